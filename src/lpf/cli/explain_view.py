"""Show an explanation on the terminal: sentences, waterfall in bits, and each item's weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from lpf.cli.answer_view import ERASED
from lpf.cli.safe_output import one_line
from lpf.cli.terminal import (
    distribution,
    indented,
    number,
    percent,
    print_pairs,
    print_table,
    start_of,
    table,
)
from lpf.explain import AnswerExplanation, ItemPart, Part
from lpf.explain.sentences import KIND_NAMES, conflict_in_words, not_used
from lpf.explain.weight_reasons import listed_reasons

HALF = 12  # columns of a bar on each side of zero
BARS_FROM = 100
NOT_RECORDED = "what if: not recorded"
CHANGED = 0.005  # a smaller change of a probability is not shown


def show_explanation(
    output: Console,
    found: AnswerExplanation,
    actual: AnswerExplanation | None,
    values: tuple[str, str] | None,
    lines: Sequence[str],
    texts: Mapping[str, str],
) -> None:
    """``actual`` is the real answer if ``found`` is what it would be; ``values`` are the two to
    compare, by default the most probable ones."""
    value, *others = found.ranked
    verdict = f"{value}, {percent(max(found.probabilities))}"
    if found.deferred is not None:
        verdict = f"deferred (would be {verdict})"
    head = one_line(f"{found.entity_id} · {found.predicate}: ")
    output.print(Text.assemble(head, (one_line(verdict), "bold")))
    if found.claim is not None:
        output.print(indented(Text(one_line(f"claim: {found.claim}"))))
    if actual is not None:
        output.print(indented(Text(one_line(_change(found, actual)), style="yellow")))
    output.print()
    output.print(indented(distribution(_shares(found), output.width)))
    output.print()
    for line in lines:
        output.print(indented(Text(one_line(line))))
    if lines:
        output.print()
    if values is None and others:
        values = (value, others[0])
    if values is not None:
        _show_waterfall(output, found, values, texts)
        _show_items(output, found, values)
    closing = [("not used", ": ".join(one)) for one in not_used(found)]
    if found.not_used is None:
        closing.append(("not used", "records do not say"))
    closing += [("note", note) for note in found.notes]
    if found.conflict is not None:
        words = conflict_in_words(found.conflict, found.source_conflict)
        closing.insert(0, ("conflict", words))
    recorded = found.record_id or (NOT_RECORDED if actual is not None else "not recorded")
    print_pairs(output, [*closing, ("record", recorded)])


def _shares(found: AnswerExplanation) -> dict[str, float]:
    return dict(zip(found.values, found.probabilities.tolist(), strict=True))


def _change(found: AnswerExplanation, actual: AnswerExplanation) -> str:
    """The real answer beside the supposed one."""
    value = actual.ranked[0]
    now, then = _shares(actual)[value], _shares(found)[value]
    if abs(now - then) < CHANGED and found.ranked[0] == value:
        return f"what if: hardly a change; the real answer is {value}, {percent(now)}"
    same = "" if found.ranked[0] == value else f", which would have {percent(then)}"
    return f"what if: the real answer is {value}, {percent(now)}{same}"


def _show_waterfall(
    output: Console, found: AnswerExplanation, values: tuple[str, str], texts: Mapping[str, str]
) -> None:
    """One row per part, with the odds after it: from even odds to the answer."""
    value, against = values
    parts = found.between(value, against)
    rows, total = [], 0.0
    largest = max((abs(bits) for _, bits in parts if math.isfinite(bits)), default=0.0) or 1.0
    wide = output.width >= BARS_FROM
    for part, bits in parts:
        # Once a part rules a value out, no other brings it back.
        total = total if math.isinf(total) or math.isnan(bits) else total + bits
        cells: list[str | Text] = [_label(part), number(bits, "+.2f")]
        if wide:
            cells.append(_bar(bits, largest))
        chance = 1.0 / (1.0 + 2.0**-total) if abs(total) < 1000 else float(total > 0)
        cells += [percent(chance), start_of(_text(part, texts))]
        rows.append(cells)
    columns = ["", "bits", *([" " * (2 * HALF + 1)] if wide else []), "then", "text"]
    title = f"From even odds: +1 bit doubles the odds of {value} against {against}"
    body = table(columns, rows, right=("bits", "then"), flexible="text")
    print_table(output, title, body)
    log_odds = found.log_odds(value, against)
    closing = f"sum {number(log_odds, '+.2f')} bits, that is {value} against {against} "
    closing += _odds(log_odds)
    output.print(indented(Text(one_line(closing), style="dim")))
    output.print()


def _odds(bits: float) -> str:
    if abs(bits) > 40:
        return "nearly certain" if bits > 0 else "nearly impossible"
    return f"{2.0**bits:,.2f} to 1" if bits >= 0 else f"1 to {2.0**-bits:,.2f}"


def _label(part: Part) -> str:
    if part.kind == "item":
        return part.name
    return "known facts" if part.kind == "facts" else KIND_NAMES[part.kind].format(name=part.name)


def _text(part: Part, texts: Mapping[str, str]) -> str:
    if part.kind == "item":
        return texts.get(part.name, ERASED)
    return part.name if part.kind == "facts" else ""


def _bar(bits: float, largest: float) -> Text:
    """To the right of the middle for the first value, to the left for the other one."""
    share = 1.0 if math.isinf(bits) else 0.0 if math.isnan(bits) else abs(bits) / largest
    length = round(HALF * share)
    if bits < 0:
        return Text(f"{'░' * length:>{HALF}}│", "red")
    return Text(f"{'':{HALF}}│{'█' * length}", "green")


def _show_items(output: Console, found: AnswerExplanation, values: tuple[str, str]) -> None:
    """What each item says, why it counts as it does, and the answer without it."""
    if not found.items:
        return
    rows = [list(_item(found, item, values[0])) for item in found.items]
    columns = ["item", "says", "weight", "credibility", "without it", "why the weight"]
    right = ("weight", "credibility", "without it")
    body = table(columns, rows, right=right, flexible="why the weight")
    print_table(output, "Items", body)
    output.print()


def _item(found: AnswerExplanation, item: ItemPart, value: str) -> Iterator[str]:
    yield item.name
    if item.says is None:
        yield "?"
    else:
        best = int(item.says.argmax())
        yield f"{found.values[best]} {100 * item.says[best]:.0f} %"
    yield number(item.weight.total)
    yield number(item.credibility)
    if item.without is None:
        yield "?"
    else:
        top = int(item.without.argmax())
        yield f"{found.values[top]} {100 * item.without[top]:.0f} %"
    yield listed_reasons(item)
