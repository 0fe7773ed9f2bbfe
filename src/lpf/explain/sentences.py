"""An explanation in plain English: why this value rather than the next one, and what would change
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from lpf.explain.explanation import AnswerExplanation, ItemPart, Part
from lpf.explain.flip import MOST_EXACT
from lpf.explain.weight_reasons import LITTLE, joined, reason_for_weight
from lpf.results import Method

EQUAL_ODDS = 1.1
LEAST_BITS = 0.05  # less than this is not worth a word
MOST_NAMED = 3
MOST_OF_FLIP = 6
KIND_NAMES = {
    "prior": "the prior",
    "facts": "known facts",
    "related": "evidence about {name}",
    "claim": "what the claim alone gives away",
    "together": "what items only say together",
}


METHODS_IN_WORDS: Mapping[Method, str] = {
    "spn": "combined in the circuit",
    "learned": "combined with learned weights",
    "average": "averaged, since the circuit does not have this predicate",
    "canonical": "a known fact answers",
    "prior": "nothing counts",
}
CONFLICTS = (
    (0.02, "the items agree"),
    (0.15, "the items mostly agree"),
    (0.4, "the items disagree"),
    (1.1, "the items contradict each other"),
)


def sentences(explanation: AnswerExplanation, between: tuple[str, str] | None = None) -> list[str]:
    """The whole explanation, the most important first: ``reasons``, and what would change the
    answer."""
    flip = change_of_answer(explanation)
    return [*reasons(explanation, between), *([flip] if flip else [])]


def reasons(explanation: AnswerExplanation, between: tuple[str, str] | None = None) -> list[str]:
    """Why the answer is what it is, and why items count little. ``between`` are the two values to
    compare, by default the most probable ones."""
    value, *others = explanation.ranked
    if explanation.method == "canonical":
        return [f"{value} because a known fact says so ({explanation.parts[0].name})."]
    if not explanation.items and not any(
        part.kind in ("facts", "related") for part in explanation.parts
    ):
        return ["Nothing counts for or against any value: this is the prior."]
    if not others:
        return [f"{value} is the only value."]
    lines = [contrast(explanation, *(between or (value, others[0])))]
    return [*lines, *little_weight(explanation.items)]


def contrast(explanation: AnswerExplanation, value: str, against: str) -> str:
    """Why ``value`` rather than ``against``."""
    first, second = (
        explanation.probabilities[explanation.values.index(one)] for one in (value, against)
    )
    if first == second == 0.0:
        return f"{value} and {against} are both ruled out."
    parts = [(part, bits) for part, bits in explanation.between(value, against)]
    pro = [one for one in parts if one[1] > LEAST_BITS]
    con = [one for one in parts if one[1] < -LEAST_BITS]
    total = explanation.log_odds(value, against)
    times = 2.0 ** abs(total) if abs(total) < 50 else float("inf")
    if times < EQUAL_ODDS:
        return _undecided(value, against, pro, con)
    if total < 0:
        value, against, pro, con = against, value, _negated(con), _negated(pro)
    sentence = f"{value} rather than {against}, {_times(times)} as likely"
    reasons = _named(pro, positive=True)
    if reasons:
        sentence += f", because of {reasons}"
    if con:
        sentence += f"; against it: {_named(con, positive=False)}"
    return f"{sentence}."


def _undecided(
    value: str,
    against: str,
    pro: Sequence[tuple[Part, float]],
    con: Sequence[tuple[Part, float]],
) -> str:
    sentence = f"{value} and {against} are about equally likely"
    sides = [(value, pro, True), (against, con, False)]
    reasons = [f"for {name} {_named(side, positive=up)}" for name, side, up in sides if side]
    return f"{sentence}: {'; '.join(reasons)}." if reasons else f"{sentence}."


def _negated(parts: Sequence[tuple[Part, float]]) -> list[tuple[Part, float]]:
    return [(part, -bits) for part, bits in parts]


def _times(times: float) -> str:
    if times > 1e6:
        return "more than a million times"
    if times < 9.5:
        return f"{times:.1f} times"
    return f"{float(f'{times:.2g}'):,.0f} times"


def _named(parts: Sequence[tuple[Part, float]], *, positive: bool) -> str:
    """The strongest parts with their bits: "E002 (+3.1 bits) and E001 (+2.2)"."""
    order = sorted(parts, key=lambda one: one[1], reverse=positive)
    shown = [
        f"{name_of(part)} ({bits:+.1f}{' bits' if place == 0 else ''})"
        for place, (part, bits) in enumerate(order[:MOST_NAMED])
    ]
    left = order[MOST_NAMED:]
    if left:
        rest = sum(bits for _, bits in left)
        more = "1 other" if len(left) == 1 else f"{len(left)} others"
        shown.append(f"{more} ({rest:+.1f})")
    return joined(shown)


def name_of(part: Part) -> str:
    """What a sentence calls the part."""
    if part.kind == "item":
        return part.name
    if part.kind == "facts":
        return f"the known fact {part.name}" if "," not in part.name else f"facts ({part.name})"
    return KIND_NAMES[part.kind].format(name=part.name)


def little_weight(items: Sequence[ItemPart]) -> Iterator[str]:
    """One sentence for each of the first items that counts little, and why."""
    trust = items[0].weight.trust if items else None
    if trust is not None and trust <= LITTLE:
        yield "All items count little because what was learned hardly holds in other groups."
    named = 0
    for item in items:
        reason = reason_for_weight(item)
        if reason and named < MOST_NAMED:
            named += 1
            yield f"{item.name} counts little because {reason}."


def change_of_answer(explanation: AnswerExplanation, shown: Callable[[str], str] = str) -> str:
    """What it would take to change the answer by leaving out items; empty without items, with a
    known fact and with a single value. ``shown`` is how IDs and values are written."""
    flip, count = explanation.flip, len(explanation.items)
    if not count or explanation.method == "canonical" or len(explanation.values) < 2:
        return ""
    if flip is None:
        if explanation.method == "learned" and explanation.items[0].without is None:
            return ""  # a record of LPF-Learned cannot tell
        if count > MOST_EXACT:
            return "No items were found whose removal would change the answer."
        return f"The answer stays {shown(explanation.ranked[0])} whichever items are left out."
    named = [shown(name) for name in flip.evidence_ids]
    value, number = shown(flip.value), len(named)
    if number == 1:
        return f"Without {named[0]} the answer would be {value}."
    bound = "" if flip.is_smallest else " (fewer may be enough)"
    names = joined(named, MOST_OF_FLIP)
    return f"Without these {number} items the answer would be {value}{bound}: {names}."


def not_used(explanation: AnswerExplanation) -> list[tuple[str, str]]:
    """Why items that were found were not used, and which: "2 beyond the best 5" and their IDs."""
    lines = []
    for one in explanation.not_used or ():
        named = [
            f"{name} (repeats {one.repeats[name]})" if name in one.repeats else name
            for name in one.evidence_ids
        ]
        left = one.count - len(named)
        if left and named:
            named.append(f"and {left:,} more")
        lines.append((f"{one.count:,} {one.why}", ", ".join(named)))
    return lines


def conflict_in_words(conflict: float, between_sources: float | None = None) -> str:
    """ "the items disagree (0.31 of 1; between sources 0.12)"."""
    words = next(words for limit, words in CONFLICTS if conflict < limit)
    sources = "" if between_sources is None else f"; between sources {between_sources:.2f}"
    return f"{words} ({conflict:.2f} of 1{sources})"
