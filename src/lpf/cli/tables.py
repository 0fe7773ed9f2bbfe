"""Tables that fit the terminal: numbers stay whole, texts and names give way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import set_cell_size
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

LONGEST_NAME = 20
SHORTEST_NAME = 7
SHORTEST_TEXT = 8
GAP = 2
# Columns that may lose the middle of what is in them. A date or a percentage may not.
NAMES = frozenset({"item", "entity", "predicate", "value", "answer", "name", "file"})


@dataclass(frozen=True)
class Column:
    """The cells under a heading. A number keeps its width, a text is cut off at its end; what is
    very long otherwise goes on below itself, and a name loses its middle where there is no room."""

    heading: str
    cells: Sequence[Text]
    is_number: bool
    is_text: bool

    @property
    def longest(self) -> int:
        return max([len(self.heading), *(cell.cell_len for cell in self.cells)])

    @property
    def wanted(self) -> int:
        """The width it has where there is room for it; a text takes what is left over as well."""
        most = SHORTEST_TEXT if self.is_text else LONGEST_NAME
        return self.longest if self.is_number else min(self.longest, most)

    @property
    def least(self) -> int:
        if self.heading not in NAMES:
            return self.wanted
        return min(self.wanted, max(SHORTEST_NAME, len(self.heading)))

    def shown(self, width: int) -> Sequence[Text]:
        """The cells, made to be ``width`` wide."""
        if self.is_text:
            return [_cut_off(cell) for cell in self.cells]
        if width < self.wanted:
            return [shortened(cell, width) for cell in self.cells]
        return self.cells


@dataclass(frozen=True)
class FittedTable:
    """A light table, laid out when the width of the terminal is known."""

    columns: Sequence[Column]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        made = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
        fitted = self.fitted(options.max_width)
        for column, width in fitted:
            justify: JustifyMethod = "right" if column.is_number else "left"
            made.add_column(column.heading, justify=justify, width=width, overflow="fold")
        for row in zip(*[column.shown(width) for column, width in fitted], strict=True):
            made.add_row(*row)
        yield made

    def fitted(self, available: int) -> list[tuple[Column, int]]:
        """The columns and their widths. First the text gives way, then the widest of the names, a
        letter at a time; a text that has less room than its heading is left out."""
        widths = [column.wanted for column in self.columns]
        missing = sum(widths) + GAP * (len(widths) - 1) - available
        while missing > 0 and (wide := self._above_least(widths)):
            widths[max(wide, key=widths.__getitem__)] -= 1
            missing -= 1
        for place, column in enumerate(self.columns):
            if column.is_text:
                widths[place] = min(column.longest, widths[place] - missing)
        both = zip(self.columns, widths, strict=True)
        return [(column, width) for column, width in both if width >= len(column.heading)]

    def _above_least(self, widths: Sequence[int]) -> list[int]:
        return [place for place, one in enumerate(self.columns) if widths[place] > one.least]


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    right: Iterable[str] = (),
    flexible: str | None = None,
) -> FittedTable:
    """``right`` are the columns of numbers, ``flexible`` is the one whose texts are cut off."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    numbers = set(right)
    return FittedTable(
        [
            Column(name, [row[place] for row in cells], name in numbers, name == flexible)
            for place, name in enumerate(headings)
        ]
    )


def shortened(cell: Text, width: int) -> Text:
    """Without its middle: the ends of names tell them apart."""
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
    """Texts of users are shown as they are, never read as markup."""
    return content if isinstance(content, Text) else Text(content)
