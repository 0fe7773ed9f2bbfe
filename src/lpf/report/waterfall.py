"""The waterfall of an answer: from even odds over prior, facts and items to the answer, in bits.

The chart is an SVG string made by hand. Positions along the bits are percentages of its width and
texts have a fixed size, so one drawing fits a phone, a wide screen and paper. Each row has its full
text as a tooltip (``<title>``). The table has the same numbers for those who cannot see or hover.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lpf.explain import AnswerExplanation, ItemPart, Part
from lpf.report.foreign_text import beginning, shown
from lpf.report.page import PageColumn, PageRow, table

MOST_ITEMS: Final = 20  # with a row of their own; the weakest of more share one
QUIET_BITS: Final = 0.05  # what changes the odds by less than 4 % says nothing
TOOLTIP_CHARACTERS: Final = 240
LABEL_CHARACTERS: Final = 90
NAME_CHARACTERS: Final = 60
ROW, TOP, BOTTOM = 36, 40, 40  # heights in pixels
LEAST_SPAN: Final = 2.0  # bits
# Marks on the axis above, the most useful first: the others appear where there is room.
MARKS: Final = (
    0.5, 0.9, 0.1, 0.99, 0.01, 0.999, 0.001, 0.75, 0.25, 0.9999, 0.0001, 0.97, 0.03,
)  # fmt: skip
MARK_DISTANCE: Final = 14.0  # percent of the width
Placer = Callable[[float], float]  # from bits to percent of the chart's width
TICKS: Final = 6


@dataclass(frozen=True)
class Step:
    """One row: ``bits`` for the answer, from ``before`` to ``after``, all in log odds (base 2).
    ``bits`` is infinite if this rules one value out, and NaN if it rules both out. ``items`` are
    the evidence IDs behind it."""

    kind: str
    name: str
    text: str
    bits: float
    before: float
    after: float
    items: tuple[str, ...] = ()

    @property
    def says_nothing(self) -> bool:
        return self.kind == "item" and abs(self.bits) < QUIET_BITS


@dataclass(frozen=True)
class ItemGroup:
    """An item with its copies, which count together; a group of one for an item without copies."""

    parts: tuple[ItemPart, ...]
    bits: float | None

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)

    @property
    def says_nothing(self) -> bool:
        return self.bits is not None and abs(self.bits) < QUIET_BITS


def rivals(explanation: AnswerExplanation) -> tuple[str, str] | None:
    """The two most probable values, or None if there is only one."""
    ranked = explanation.ranked
    return (ranked[0], ranked[1]) if len(ranked) > 1 else None


def item_groups(explanation: AnswerExplanation) -> tuple[ItemGroup, ...]:
    """The items with copies folded together, those that count most first. The bits are None if
    they cannot be known: LPF-Learned needs its model for them."""
    pair = rivals(explanation)
    known: dict[int, float] = {}
    if pair is not None and not _lacks_model(explanation):
        known = {id(part): bits for part, bits in explanation.between(*pair)}
    groups: dict[frozenset[str], list[ItemPart]] = {}
    for item in explanation.items:
        groups.setdefault(frozenset((item.name, *item.copies_of)), []).append(item)
    found = [
        ItemGroup(tuple(parts), sum(known[id(one)] for one in parts) if known else None)
        for parts in groups.values()
    ]
    return tuple(sorted(found, key=_strength))


def _strength(group: ItemGroup) -> float:
    if group.bits is None:
        return 0.0
    return -math.inf if math.isnan(group.bits) else -abs(group.bits)


def _lacks_model(explanation: AnswerExplanation) -> bool:
    items = explanation.items
    return explanation.method == "learned" and bool(items) and items[0].without is None


def steps(explanation: AnswerExplanation, texts: Mapping[str, str]) -> tuple[Step, ...]:
    """All rows of the waterfall; their bits are those of ``explanation.between``, with copies
    folded together. ``texts`` are those of the items, by ID. Empty if there is only one value."""
    pair = rivals(explanation)
    if pair is None:
        return ()
    rows: list[Step] = []
    bits_of = {id(part): bits for part, bits in explanation.between(*pair)}
    for part in explanation.parts:
        _append(rows, part.kind, _part_name(part), "", bits_of[id(part)])
    groups = item_groups(explanation)
    if any(group.bits is None for group in groups):
        return tuple(rows)
    for group in groups[:MOST_ITEMS]:
        text, bits = texts.get(group.ids[0], ""), group.bits or 0.0
        _append(rows, "item", _group_name(group.ids), text, bits, group.ids)
    others = groups[MOST_ITEMS:]
    if others:
        ids = tuple(name for group in others for name in group.ids)
        total = sum(group.bits or 0.0 for group in others)
        _append(rows, "others", f"{len(ids):,} other items", "each says less", total, ids)
    return tuple(rows)


def _part_name(part: Part) -> str:
    """A prior, the claim alone and what only shows together have names of their own."""
    name = beginning(part.name, LABEL_CHARACTERS)
    words = {
        "prior": "before any evidence",
        "facts": f"known: {name}",
        "related": f"evidence about {name}",
    }
    return words.get(part.kind, name)


def _append(
    rows: list[Step],
    kind: str,
    name: str,
    text: str,
    bits: float,
    items: tuple[str, ...] = (),
) -> None:
    before = rows[-1].after if rows else 0.0
    after = before if math.isnan(bits) else before + bits
    if math.isnan(after):  # one part rules out a value, another one its rival
        after = bits
    rows.append(Step(kind, name, text, bits, before, after, items))


def _group_name(ids: Sequence[str]) -> str:
    name = beginning(ids[0], NAME_CHARACTERS)
    copies = len(ids) - 1
    return name if not copies else f"{name} and {copies} {'copy' if copies == 1 else 'copies'}"


def waterfall_table(rows: Sequence[Step], caption: str) -> str:
    """The numbers of the chart as a table."""
    columns = (
        PageColumn("part", "name"),
        PageColumn("adds, bits"),
        PageColumn("so far, bits"),
        PageColumn("probability"),
    )
    lines = [
        PageRow([row.name, bits_text(row.bits), bits_text(row.after), share(chance(row.after))])
        for row in rows
    ]
    total = bits_text(rows[-1].after)
    answer = ["answer", total, total, share(chance(rows[-1].after))]
    return table(caption, columns, [*lines, PageRow(answer, is_selected=True)])


def waterfall(rows: Sequence[Step], value: str, against: str) -> str:
    """The chart, for a page that has ``case_file.css``."""
    (low, high), marked = _range(rows)

    def place(bits: float) -> float:
        return 100.0 * (min(max(bits, low), high) - low) / (high - low)

    height = TOP + ROW * (len(rows) + 1) + BOTTOM
    first, second = (beginning(one, NAME_CHARACTERS) for one in (value, against))
    label = (
        f"Waterfall from even odds to {bits_text(rows[-1].after)} bits for {first} against "
        f"{second}, in {len(rows)} steps. The table has the same numbers."
    )
    body = "".join(
        [
            *_axes(place, *marked, height, first, second),
            *(_row(row, position, place) for position, row in enumerate(rows)),
            _answer(rows[-1].after, len(rows), place),
        ]
    )
    return (
        f'<svg class="waterfall" role="img" aria-label="{shown(label)}" width="100%" '
        f'height="{height}">\n{body}</svg>\n'
    )


def _row(row: Step, position: int, place: Placer) -> str:
    top = TOP + ROW * position
    shade = "quiet" if row.says_nothing or not row.bits else "for" if row.bits > 0 else "against"
    if math.isnan(row.bits):
        shade = "quiet"
    words = f"{row.name}: {row.text}" if row.text else row.name
    tooltip = f"{beginning(words, TOOLTIP_CHARACTERS)} ({bits_text(row.bits)} bits)"
    start, end = sorted((place(row.before), place(row.after)))
    rest = beginning(row.text, LABEL_CHARACTERS) if row.text else ""
    return (
        f"<g><title>{shown(tooltip)}</title>"
        f'<rect class="hit" y="{top}" width="100%" height="{ROW}"/>'
        f"{_label(top, row.name, rest, bits_text(row.bits))}"
        f'<rect class="{shade}" x="{start:.2f}%" y="{top + 19}" width="{end - start:.2f}%" '
        f'height="11"/>{_link(place(row.after), top + 19, ROW + 11)}</g>\n'
    )


def _answer(total: float, position: int, place: Placer) -> str:
    top = TOP + ROW * position
    start, end = sorted((place(0.0), place(total)))
    words = f"{bits_text(total)} = {share(chance(total))}"
    return (
        f"<g><title>{shown(f'answer: {words}')}</title>{_label(top, 'answer', '', words)}"
        f'<rect class="total" x="{start:.2f}%" y="{top + 19}" width="{end - start:.2f}%" '
        f'height="11"/></g>\n'
    )


def _label(top: int, name: str, rest: str, number: str) -> str:
    """The left part is cut off where the number begins, whatever the width of the page."""
    more = f' <tspan class="text">{shown(rest)}</tspan>' if rest else ""
    return (
        f'<svg y="{top}" width="76%" height="18"><text y="13"><tspan class="name">{shown(name)}'
        f'</tspan>{more}</text></svg><text class="number" x="100%" y="{top + 13}">{number}</text>'
    )


def _link(at: float, top: int, height: int) -> str:
    return f'<line class="link" x1="{at:.2f}%" x2="{at:.2f}%" y1="{top}" y2="{top + height}"/>'


def _axes(
    place: Placer, low: float, high: float, height: int, first: str, second: str
) -> Iterator[str]:
    """Probability above, bits below, with marks from ``low`` to ``high``. ``first`` and ``second``
    are the names of the values."""
    bottom = height - BOTTOM
    yield f'<text class="axis" y="11">probability of {shown(beginning(first, 24))}</text>\n'
    for at, probability in _marks(place, low, high):
        kind = "even" if probability == 0.5 else "grid"
        yield f'<line class="{kind}" x1="{at:.2f}%" x2="{at:.2f}%" y1="32" y2="{bottom + 4}"/>'
        yield f'<text class="tick" x="{at:.2f}%" y="27">{100 * probability:g} %</text>\n'
    step = _tick_step(high - low)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        at, word = place(number * step), bits_text(number * step, 0 if step >= 1 else 1)
        yield f'<text class="tick" x="{at:.2f}%" y="{bottom + 16}">{word}</text>\n'
    under = bottom + 34
    yield f'<text class="axis" y="{under}">← {shown(beginning(second, 20))}</text>'
    yield f'<text class="tick" x="50%" y="{under}">bits</text>'
    yield f'<text class="axis end" x="100%" y="{under}">{shown(beginning(first, 20))} →</text>\n'


def _marks(place: Placer, low: float, high: float) -> list[tuple[float, float]]:
    """Probabilities with their places, none too near to another one or to the edge."""
    chosen: list[tuple[float, float]] = []
    for probability in MARKS:
        at = place(math.log2(probability / (1.0 - probability)))
        is_inside = low < math.log2(probability / (1.0 - probability)) < high
        if is_inside and all(abs(at - other) >= MARK_DISTANCE for other, _ in chosen):
            chosen.append((at, probability))
    return chosen


def _tick_step(span: float) -> float:
    return next(
        (step for step in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0) if span / step <= TICKS), 100.0
    )


def _range(rows: Sequence[Step]) -> tuple[tuple[float, float], tuple[float, float]]:
    """From the lowest to the highest odds, with room at the sides; and the part of it that has
    marks. What is ruled out reaches the edge, which then has none."""
    reached = [0.0, *(row.after for row in rows)]
    finite = [bits for bits in reached if math.isfinite(bits)]
    low, high = min(finite), max(finite)
    missing = max(LEAST_SPAN - (high - low), 0.0)
    low, high = low - missing / 2, high + missing / 2
    room = 0.09 * (high - low)
    marked = (low - room, high + room)
    return (
        (marked[0] - (4 * room if -math.inf in reached else 0.0)),
        (marked[1] + (4 * room if math.inf in reached else 0.0)),
    ), marked


def chance(bits: float) -> float:
    """The probability of one of two values with these log odds."""
    return 0.0 if bits == -math.inf else 1.0 / (1.0 + 2.0 ** min(-bits, 1000.0))


def bits_text(bits: float, digits: int = 2) -> str:
    """With its sign; infinite bits rule a value out."""
    if math.isnan(bits):
        return "rules out both"
    if math.isinf(bits):
        return "+∞" if bits > 0 else "−∞"
    rounded = round(bits, digits)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else f"{0:.{digits}f}"


def share(probability: float) -> str:
    """A probability as a percentage, with more digits near 0 and 1. Only what is certain is shown
    as 0 or 100 %."""
    if probability in (0.0, 1.0):
        return f"{100 * probability:.0f} %"
    if not 0.0001 <= probability <= 0.9999:
        return "< 0.01 %" if probability < 0.5 else "> 99.99 %"
    digits = 1 if 0.001 <= probability <= 0.999 else 2
    return f"{100 * probability:.{digits}f} %"
