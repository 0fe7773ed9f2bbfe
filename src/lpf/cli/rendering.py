"""How things look on a terminal: bars, numbers, moments. Legible at 80 columns without colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

BAR_WIDTH = 40
MOST_VALUES = 12
INDENT = 2
BLOCKS = " ▏▎▍▌▋▊▉"


class Output(Console):
    """Standard output, whose end the program decides on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        raise BrokenPipeError


def console() -> Output:
    """Standard output. Numbers and words in it are ours to colour, not Rich's to guess at."""
    return Output(highlight=False)


def indented(renderable: Any) -> Padding:
    return Padding(renderable, (0, 0, 0, INDENT), expand=False)


def print_table(output: Console, title: str, body: RenderableType) -> None:
    output.print(Text(title, style="bold"))
    output.print(indented(body))


def print_pairs(output: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Names and what they are, one under the other; long ones wrap beside their name."""
    body = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    body.add_column(style="dim", no_wrap=True)
    body.add_column(overflow="fold")
    for name, value in pairs:
        body.add_row(name, Text(value))
    output.print(indented(body))


def bar(share: float, width: int = BAR_WIDTH) -> Text:
    """``share`` of ``width`` columns, to an eighth of one."""
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    return Text("█" * (eighths // 8) + BLOCKS[eighths % 8].strip(), style="cyan")


def distribution(probabilities: Mapping[str, float], width: int) -> Table:
    """A bar a value, in the order of the values; of very many, only the most probable."""
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
        body.add_row(Text(value), percent(probability), bar(probability, columns))
    return body


def percent(probability: float) -> str:
    """Two digits; what is neither impossible nor certain does not look so."""
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
    """The beginning of a text on one line; the terminal cuts it further."""
    return " ".join(text[: 2 * length].split())[:length]


def count(number: int, thing: str, things: str | None = None) -> str:
    """``1 item``, ``2 items``."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
