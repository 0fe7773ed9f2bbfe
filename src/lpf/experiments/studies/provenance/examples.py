"""Single answers as people read them: the facts, and each item's part in a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import shorten

from lpf.experiments.exhibits import Column, Example, Row, Table, Value
from lpf.experiments.studies.provenance.tracing import DRAWS, Trace, TracedAnswer, TracedItem

LONGEST_TEXT = 140
ERRORS_SHOWN = 3
COLUMNS = (
    Column("text", "Text", "text"),
    Column("source", "Source", "word"),
    Column("credibility", "Credibility", "share", None, 3),
    Column("says", "Says", "word"),
    Column("epsilon", "ε", "share", None, 3),
    Column("exponent", "Weight", "number", None, 3),
    Column("adds", "Adds", "number", None, 3),
)


def examples(domain: str, trace: Trace) -> list[Example]:
    """A sure, a middling and an unsure answer that is right, then errors, the surest first."""
    errors = trace.errors[:ERRORS_SHOWN]
    chosen = [(f"{how} right answer", one) for how, one in _right(trace.right)]
    chosen += [
        (f"error {place} of {len(trace.errors)}", one) for place, one in enumerate(errors, 1)
    ]
    return [_example(domain, how, one, trace) for how, one in chosen]


def _right(answers: Sequence[TracedAnswer]) -> list[tuple[str, TracedAnswer]]:
    """``answers`` have the surest first. The middling one lies halfway between the confidences of
    the other two, which most answers do not: most are sure."""
    if len(answers) < 3:
        return [("a", one) for one in answers]
    sure, unsure = answers[0], answers[-1]
    halfway = (sure.confidence + unsure.confidence) / 2.0
    middling = min(answers[1:-1], key=lambda one: abs(one.confidence - halfway))
    return [("the surest", sure), ("a middling", middling), ("the least sure", unsure)]


def _example(domain: str, how: str, answer: TracedAnswer, trace: Trace) -> Example:
    title = f"{domain}, {answer.entity_id}: {how}"
    return Example(title, _facts(answer, trace), _items(domain, answer, trace.values))


def _facts(answer: TracedAnswer, trace: Trace) -> tuple[tuple[str, str], ...]:
    values, fitted, doubt = trace.values, trace.parameters, answer.doubt
    facts = [
        ("Entity", answer.entity_id),
        ("Predicate", trace.predicate),
        ("Truth", values[answer.truth]),
        ("Answer", f"{values[answer.answer]} ({'right' if answer.is_right else 'wrong'})"),
        ("Confidence", _share(answer.confidence)),
        ("Distribution", _told(values, answer.distribution)),
        ("Prior", _told(values, _normalised(answer.base))),
    ]
    if answer.perfect is not None:
        facts.append(("Perfect reader", _told(values, answer.perfect)))
    facts += [
        ("Conflict", f"{answer.conflict:.3f} (0: all items say the same, 1: they share nothing)"),
        (
            "Doubt",
            f"entropy {doubt['entropy']:.3f} nats; over {DRAWS} draws of what the texts mean, "
            f"{doubt['aleatoric']:.3f} aleatoric and {doubt['epistemic']:.3f} epistemic",
        ),
        (
            "Fitted",
            f"temperature {fitted['temperature']:.3f}, ρ {fitted['rho']:.3f}, "
            f"ε {fitted['epsilon']:.3f}, its slope in credibility {fitted['slope']:.3f}",
        ),
    ]
    return tuple(facts)


def _items(domain: str, answer: TracedAnswer, values: tuple[str, ...]) -> Table:
    """From the prior over the items to their sum, so that a reader can add up."""
    first, second = answer.answer, answer.rival
    prior = answer.base[first] - answer.base[second]
    adds = [one.contributions[first] - one.contributions[second] for one in answer.items]
    rows = (
        _sum_row("prior", "Prior", prior),
        *(_item_row(one, added, values) for one, added in zip(answer.items, adds, strict=True)),
        _sum_row("sum", "Together", prior + sum(adds)),
    )
    return Table(
        f"{domain}_{answer.entity_id}",
        "Its evidence",
        f"Adds: to the log-odds of {values[first]} against {values[second]}, in nats.",
        COLUMNS,
        rows,
    )


def _item_row(item: TracedItem, added: float, values: tuple[str, ...]) -> Row:
    credibility = None if item.credibility is None else Value(item.credibility)
    cells = (
        shorten(item.text, LONGEST_TEXT, placeholder=" …"),
        item.source,
        credibility,
        f"{values[item.says]} {max(item.potential):.3f}",
        Value(item.epsilon),
        Value(item.exponent),
        Value(added),
    )
    return Row(item.evidence_id, item.evidence_id, cells)


def _sum_row(name: str, title: str, added: float) -> Row:
    return Row(name, title, (*[None] * (len(COLUMNS) - 1), Value(added)), "reference")


def _told(values: Sequence[str], row: Sequence[float]) -> str:
    return ", ".join(f"{value} {_share(share)}" for value, share in zip(values, row, strict=True))


def _share(share: float) -> str:
    """Nothing is shown as certain, or as impossible, that is not."""
    if 0.0 < share < 0.00005:
        return "< 0.0001"
    return "> 0.9999" if 0.99995 <= share < 1.0 else f"{share:.4f}"


def _normalised(logs: Sequence[float]) -> list[float]:
    parts = [math.exp(one - max(logs)) for one in logs]
    return [one / sum(parts) for one in parts]
