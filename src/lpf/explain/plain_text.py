"""An explanation as plain text, for ``print``. The command line shows more (``lpf explain``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lpf.explain.explanation import AnswerExplanation, ItemPart, Part
from lpf.explain.sentences import name_of, not_used, sentences
from lpf.explain.weight_reasons import reason_for_weight

LONGEST_TEXT: Final = 60
LONGEST_NAME: Final = 30
MOST_ITEMS: Final = 20


def plain_text(explanation: AnswerExplanation) -> str:
    """Verdict, sentences, and one line for each part: bits for the most probable value against the
    second, name, and text where it is at hand."""
    value = explanation.ranked[0]
    verdict = f"{value}, {100 * explanation.probabilities.max():.1f} %"
    if explanation.deferred is not None:
        verdict = f"deferred (would be {verdict}): {explanation.deferred}"
    elif explanation.method == "prior":
        verdict = f"no answer (prior: {verdict})"
    lines = [f"{explanation.entity_id} · {explanation.predicate}: {verdict}"]
    lines += [f"  {line}" for line in sentences(explanation)]
    lines += _table(explanation)
    lines += [f"  not used: {why}: {named}" for why, named in not_used(explanation)]
    lines += [f"  note: {note}" for note in explanation.notes]
    return "\n".join(map(_printable, lines))


def _table(explanation: AnswerExplanation) -> Iterator[str]:
    if len(explanation.values) < 2 or not explanation.items:
        return
    value, against = explanation.ranked[:2]
    rows = explanation.between(value, against)
    parts = [row for row in rows if not isinstance(row[0], ItemPart)]
    items = sorted(rows[len(parts) :], key=lambda row: -abs(row[1]))
    width = max(len(_name(part)) for part, _ in (*parts, *items[:MOST_ITEMS]))
    yield f"  bits for {value} against {against}:"
    for part, bits in (*parts, *items[:MOST_ITEMS]):
        yield f"  {bits:+8.2f}  {_name(part):{width}}  {_about(explanation, part)}".rstrip()
    left = items[MOST_ITEMS:]
    if left:
        yield f"  {sum(bits for _, bits in left):+8.2f}  {len(left):,} other items"


def _name(part: Part) -> str:
    return _cut(name_of(part), LONGEST_NAME)


def _about(explanation: AnswerExplanation, part: Part) -> str:
    if not isinstance(part, ItemPart):
        return ""
    text = _cut(" ".join(explanation.texts.get(part.name, "").split()), LONGEST_TEXT)
    reason = reason_for_weight(part)
    return "  ".join(filter(None, [text, f"[{reason}]" if reason else ""]))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _printable(line: str) -> str:
    """Texts and names come from others: what is not printed could clear a screen or forge a
    line."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in line)
