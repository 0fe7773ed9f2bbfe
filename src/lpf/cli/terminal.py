"""How output looks on a terminal: bars, numbers, dates and tables, legible at 80 columns without
colour.

Tables fit the terminal: numbers stay whole, texts and names are shortened. Readers are shown by
name and the start of their hash; JSON documents have the whole id.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.cells import set_cell_size
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from lpf.cli.safe_output import CONTROLS, one_line, unprotected, visible

BAR_WIDTH = 40
MOST_VALUES = 12
INDENT = 2
BLOCKS = " ▏▎▍▌▋▊▉"


class Output(Console):
    """Standard output or error, without Rich's own highlighting of numbers and words. Control
    characters in texts are escaped, so only lpf's own styles reach the terminal. A closed pipe is
    an error here, which ``exits`` turns into an exit code."""

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False, **more: Any) -> None:
        stream = unprotected(sys.stderr if stderr else sys.stdout)
        super().__init__(file=stream, soft_wrap=soft_wrap, **{"highlight": False, **more})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Styles and cursor movements are kept apart from texts until here."""
        for segment in super().render(renderable, options):
            if segment.control or CONTROLS.search(segment.text) is None:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        raise BrokenPipeError


def console() -> Output:
    """Standard output."""
    return Output()


def indented(renderable: Any) -> Padding:
    return Padding(renderable, (0, 0, 0, INDENT), expand=False)


def print_table(output: Console, title: str, body: RenderableType) -> None:
    output.print(Text(one_line(title), style="bold"))
    output.print(indented(body))


def print_pairs(output: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line; long values wrap in their own column."""
    body = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    body.add_column(style="dim", no_wrap=True)
    body.add_column(overflow="fold")
    for name, value in pairs:
        body.add_row(Text(one_line(name)), Text(visible(value)))
    output.print(indented(body))


def bar(share: float, width: int = BAR_WIDTH) -> Text:
    """``share`` of ``width`` columns, to an eighth of one."""
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    return Text("█" * (eighths // 8) + BLOCKS[eighths % 8].strip(), style="cyan")


def distribution(probabilities: Mapping[str, float], width: int) -> Table:
    """One bar per value, in the order of the values; of very many, only the most probable."""
    shown = list(probabilities.items())
    if len(shown) > MOST_VALUES:
        shown = sorted(shown, key=lambda pair: -pair[1])[:MOST_VALUES]
        rest = 1.0 - math.fsum(probability for _, probability in shown)
        shown.append((f"{len(probabilities) - MOST_VALUES} others", max(rest, 0.0)))
    body = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    body.add_column(no_wrap=True, overflow="ellipsis", max_width=width // 3)
    body.add_column(no_wrap=True, justify="right")
    body.add_column(no_wrap=True)
    for value, probability in shown:
        columns = min(BAR_WIDTH, width // 2)
        body.add_row(Text(one_line(value)), percent(probability), bar(probability, columns))
    return body


def percent(probability: float) -> str:
    """Two decimals; only exactly 0 and 1 are shown as 0 % and 100 %."""
    if 0.0 < probability < 0.00005:
        return "< 0.01 %"
    if 0.99995 <= probability < 1.0:
        return "> 99.99 %"
    return f"{100 * probability:.2f} %"


def number(value: float | None, form: str = ".2f") -> str:
    if value is None or math.isnan(value):
        return "?"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return format(value, form)


def when(moment: datetime | None) -> str:
    """To the minute, in UTC."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def start_of(text: str, length: int = 200) -> str:
    """The beginning of a text on one line; the table cuts it further."""
    return visible(" ".join(text[: 2 * length].split())[:length])


def count(number: int, thing: str, things: str | None = None) -> str:
    """``1 item``, ``2 items``."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


LONGEST_NAME = 20
SHORTEST_NAME = 7
SHORTEST_TEXT = 8
READABLE_TEXT = 20  # below this width of a text, optional columns are left out
GAP = 2
# Columns whose cells may lose their middle. A date or a percentage may not.
NAMES = frozenset({"item", "entity", "predicate", "value", "answer", "name", "file"})
# Of these, what identifies a row: it is shortened last.
IDS = frozenset({"item", "entity"})


@dataclass(frozen=True)
class TextColumn:
    """The cells under a heading. A number keeps its width, a text is cut at its end, a name loses
    its middle if there is no room, and any other long cell wraps."""

    heading: str
    cells: Sequence[Text]
    is_number: bool
    is_text: bool

    @property
    def longest(self) -> int:
        return max([len(self.heading), *(cell.cell_len for cell in self.cells)])

    @property
    def wanted(self) -> int:
        """The width it gets if there is room; a text also gets what is left over."""
        most = SHORTEST_TEXT if self.is_text else LONGEST_NAME
        return self.longest if self.is_number else min(self.longest, most)

    @property
    def least(self) -> int:
        """The smallest width next to other columns; for a text, that of its heading."""
        if self.is_text:
            return len(self.heading)
        is_whole = self.heading in IDS and self.longest <= LONGEST_NAME
        return self.wanted if is_whole else self.shortest

    @property
    def shortest(self) -> int:
        if self.heading not in NAMES:
            return self.wanted
        return min(self.wanted, max(SHORTEST_NAME, len(self.heading)))

    def shown(self, width: int) -> Sequence[Text]:
        """The cells at this width."""
        if self.is_text:
            return [_cut_off(cell) for cell in self.cells]
        if width < self.wanted:
            return [shortened(cell, width) for cell in self.cells]
        return self.cells


@dataclass(frozen=True)
class FittedTable:
    """A table without lines, laid out when the width of the terminal is known. ``below`` has one
    renderable per row, printed under it over the whole width."""

    columns: Sequence[TextColumn]
    optional: Sequence[str] = ()
    below: Sequence[RenderableType] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitted = self.fitted(options.max_width)
        rows = list(zip(*[column.shown(width) for column, width in fitted], strict=True))
        if not self.below:
            yield _layout(fitted, rows)
            return
        yield _layout(fitted, [])
        for row, more in zip(rows, self.below, strict=True):
            yield _layout(fitted, [row], heading=False)
            yield more

    def fitted(self, available: int) -> list[tuple[TextColumn, int]]:
        """The columns and their widths. First the text is cut, then the widest of the names, one
        letter at a time; then columns are left out; ids are shortened last."""
        columns = self._columns_that_fit(available)
        names = [column for column in columns if not column.is_text]
        widths = {column.heading: column.wanted for column in columns}
        _shrink(widths, {column.heading: column.least for column in names}, available)
        for column in columns:
            if column.is_text:
                left = available - _total(widths.values()) + column.wanted
                widths[column.heading] = min(column.longest, left)
        _shrink(widths, {column.heading: column.shortest for column in names}, available)
        return [(column, widths[column.heading]) for column in columns]

    def _columns_that_fit(self, available: int) -> list[TextColumn]:
        """Drop the optional columns in their order, while the others do not fit at their smallest
        widths with a readable width for the text; then the text, if there is still no room."""
        columns = list(self.columns)
        for heading in self.optional:
            needed = [READABLE_TEXT if column.is_text else column.least for column in columns]
            if _total(needed) > available:
                columns = [column for column in columns if column.heading != heading]
        if _total(column.least for column in columns) > available:
            columns = [column for column in columns if not column.is_text]
        return columns


def _layout(
    fitted: Sequence[tuple[TextColumn, int]], rows: Iterable[Sequence[Text]], heading: bool = True
) -> Table:
    body = Table(
        box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim", show_header=heading
    )
    for column, width in fitted:
        justify: JustifyMethod = "right" if column.is_number else "left"
        body.add_column(column.heading, justify=justify, width=width, overflow="fold")
    for row in rows:
        body.add_row(*row)
    return body


def _shrink(widths: dict[str, int], least: Mapping[str, int], available: int) -> None:
    """Narrow the widest, one letter at a time, until all fit or none can be narrowed."""
    while _total(widths.values()) > available:
        wide = [heading for heading, width in least.items() if widths[heading] > width]
        if not wide:
            return
        widths[max(wide, key=widths.__getitem__)] -= 1


def _total(widths: Iterable[int]) -> int:
    """With the gaps between them."""
    each = list(widths)
    return sum(each) + GAP * (len(each) - 1)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    right: Iterable[str] = (),
    flexible: str | None = None,
    optional: Sequence[str] = (),
    below: Sequence[RenderableType] = (),
) -> FittedTable:
    """``right`` are columns of numbers, ``flexible`` is the one whose texts are cut, ``optional``
    are left out, in their order, if there is no room. For ``below`` see FittedTable."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    numbers = set(right)
    return FittedTable(
        [
            TextColumn(
                one_line(name), [row[place] for row in cells], name in numbers, name == flexible
            )
            for place, name in enumerate(headings)
        ],
        optional,
        below,
    )


def shortened(cell: Text, width: int) -> Text:
    """Cut out the middle: names often differ at their ends."""
    if cell.cell_len <= width:
        return cell
    end = (width - 1) // 2
    tail = set_cell_size(cell.plain[::-1], end)[::-1]
    return Text(f"{set_cell_size(cell.plain, width - 1 - end)}…{tail}", cell.style)


def _cut_off(cell: Text) -> Text:
    cut = cell.copy()
    cut.no_wrap, cut.overflow = True, "ellipsis"
    return cut


def _cell(content: str | Text) -> Text:
    """Text from users is never interpreted as markup, and a cell cannot look like two rows."""
    return content if isinstance(content, Text) else Text(one_line(content))


ID = re.compile(
    r"(?P<pair>pair\()?(?P<name>[^\s();]+)@(?P<hash>[0-9a-f]{8,})(?P<rest>(;[^\s();+]+)*)"
    r"(?(pair)\))(?P<stance>\+stance\([^()\s]+\))?(?P<words>\+words\(\d+;[0-9a-f]+\))?"
)
USUAL = frozenset({"precision=float32", "max_length=256", "graph=1", "passages=1"})


def short_reader(reader_id: str) -> str:
    """``all-MiniLM-L6-v2 (53aa5117)``; an id of another form is returned unchanged."""
    match = ID.fullmatch(reader_id)
    return reader_id if match is None else _shown(match)


def with_short_readers(text: str) -> str:
    """Shorten the ids of readers within a text."""
    return ID.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    settings = [setting for setting in match["rest"].split(";") if setting and setting not in USUAL]
    inside = ", ".join([match["hash"][:8], *settings])
    claims = ", with claims" if match["pair"] else ""
    stances = ", with stances" if match["stance"] else ""
    if match["stance"] and "tuned@" in match["stance"]:
        stances = ", with tuned stances"
    words = ", with words" if match["words"] else ""
    return f"{match['name']} ({inside}){claims}{stances}{words}"
