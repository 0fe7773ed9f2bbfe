"""Single answers with their evidence, and where errors come from, by domain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from textwrap import shorten

import numpy as np

from lpf.evaluation import Cell, EvalSpec, TrainSpec, title_of
from lpf_paper.exhibits import Column, Example, Row, StudyResult, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.printed import PrintedTable
from lpf_paper.studies.domains_tables import domain_train_spec
from lpf_paper.studies.provenance_errors import (
    PAPERS_LPF,
    RECORDS,
    credibility_table,
    label_errors,
    method_errors,
    printed_errors,
    printed_methods,
    recomputed,
    record_answer,
    record_name,
    records_table,
    selective_table,
)
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.study_tables import printed_value
from lpf_paper.studies.tracing import DRAWS, METHOD, Trace, TracedAnswer, TracedItem, stored_trace

LONGEST_TEXT = 140
ERRORS_SHOWN = 3
ITEM_COLUMNS = (
    Column("text", "Text", "text"),
    Column("source", "Source", "word"),
    Column("credibility", "Credibility", "share", None, 3),
    Column("says", "Says", "word"),
    Column("epsilon", "ε", "share", None, 3),
    Column("exponent", "Weight", "number", None, 3),
    Column("adds", "Adds", "number", None, 3),
)


def examples(domain: str, trace: Trace) -> list[Example]:
    """Right answers of high, middle and low confidence, then errors, most confident first."""
    errors = trace.errors[:ERRORS_SHOWN]
    chosen = [(f"{how} right answer", one) for how, one in _right(trace.right)]
    chosen += [
        (f"error {place} of {len(trace.errors)}", one) for place, one in enumerate(errors, 1)
    ]
    return [_example(domain, how, one, trace) for how, one in chosen]


def _right(answers: Sequence[TracedAnswer]) -> list[tuple[str, TracedAnswer]]:
    """``answers`` are sorted, most confident first. The middling one is nearest to halfway between
    the confidences of the other two."""
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
        ("Distribution", _with_shares(values, answer.distribution)),
        ("Prior", _with_shares(values, _normalised(answer.base))),
    ]
    if answer.perfect is not None:
        facts.append(("Perfect reader", _with_shares(values, answer.perfect)))
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
    """Prior, items and their sum, so that a reader can check the addition."""
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
        "Evidence",
        f"Adds: to the log-odds of {values[first]} against {values[second]}, in nats.",
        ITEM_COLUMNS,
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
    return Row(name, title, (*[None] * (len(ITEM_COLUMNS) - 1), Value(added)), "reference")


def _with_shares(values: Sequence[str], row: Sequence[float]) -> str:
    return ", ".join(f"{value} {_share(share)}" for value, share in zip(values, row, strict=True))


def _share(share: float) -> str:
    """A share that is not 0 or 1 is not shown as 0 or 100 %."""
    if 0.0 < share < 0.00005:
        return "< 0.0001"
    return "> 0.9999" if 0.99995 <= share < 1.0 else f"{share:.4f}"


def _normalised(logs: Sequence[float]) -> list[float]:
    parts = [math.exp(one - max(logs)) for one in logs]
    return [one / sum(parts) for one in parts]


COMPLIANCE = "compliance"  # the paper splits this domain into parts
SURE = 0.8
COLUMNS = (
    Column("asked", "Test entities", "count", None, 0),
    Column("errors", "Errors", "count", None, 0),
    Column("error_rate", "Error rate", "share", None, 4),
    Column("high_confidence_errors", "Errors above .8", "count", None, 0),
    Column("perfect", "A perfect reader's too", "count", None, 0),
    Column("wrong_confidence", "Confidence, wrong", "share", None, 3),
    Column("right_confidence", "Confidence, right", "share", None, 3),
    Column("wrong_conflict", "Conflict, wrong", "share", None, 3),
    Column("right_conflict", "Conflict, right", "share", None, 3),
    Column("items", "Items of errors", "count", None, 0),
    Column("for_truth", "that say the truth", "count", None, 0),
    Column("for_answer", "that say the answer", "count", None, 0),
)

Traces = Mapping[str, Trace]


@dataclass(frozen=True)
class ProvenanceStudy:
    name: str = "provenance"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        return [cell for cells in runs(plan).values() for cell in cells.values()]

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        traces = {
            domain: stored_trace(train_spec(plan, domain), results.folder)
            for domain in plan.domains
        }
        tables = [_errors_table(traces), method_errors(runs(plan), results)]
        if COMPLIANCE in plan.domains:
            answered = results.answered(runs(plan)[METHOD][COMPLIANCE])
            tables += [label_errors(answered), selective_table(answered)]
            tables += [credibility_table(answered), records_table()]
        return StudyResult(
            self.name,
            "Single answers, and where errors come from",
            "What is an answer based on, item by item, and why are wrong answers wrong?",
            tuple(_findings(traces, COMPLIANCE in plan.domains)),
            tuple(tables),
            examples=tuple(one for pair in traces.items() for one in examples(*pair)),
        )


def train_spec(plan: ExperimentPlan, domain: str) -> TrainSpec:
    """The training data of the domains study, so that nothing has to be trained."""
    return domain_train_spec(plan, domain, plan.data_seeds[0])


def runs(plan: ExperimentPlan) -> dict[str, dict[str, Cell]]:
    """One cell per domain for the robust ensemble and the methods whose errors the paper counts."""
    counted = printed_methods(plan.domains)
    others = [method for method in plan.domain_methods if method in counted and method != METHOD]
    return {
        method: {
            domain: Cell(train_spec(plan, domain), EvalSpec(), method) for domain in plan.domains
        }
        for method in (METHOD, *others)
    }


def _errors_table(traces: Traces) -> Table:
    rows = [_row(domain, trace.answers, printed_errors(domain)) for domain, trace in traces.items()]
    if len(traces) > 1:
        all_answers = [one for trace in traces.values() for one in trace.answers]
        rows.append(_row("All", all_answers, None))
    return Table(
        "errors",
        f"Errors of the {title_of(METHOD)}",
        "Each domain's own test entities, first data set, with the paper's count for its "
        "LPF-SPN on its data. A perfect reader knows what the generator meant by every text: if "
        "it is wrong too, the evidence is misleading. Conflict is 0 if all items say the same. An "
        "item says the value that would be the answer from it alone. In the examples below, ε is "
        "the probability that an item carries no information, weight is its exponent.",
        COLUMNS,
        tuple(rows),
    )


def _row(name: str, answers: Sequence[TracedAnswer], beside: PrintedTable | None) -> Row:
    wrong, right = _wrong(answers), [one for one in answers if one.is_right]
    perfect = [one for one in answers if one.perfect is not None]
    found: dict[str, float | None] = {
        "asked": len(answers),
        "errors": len(wrong),
        "error_rate": len(wrong) / len(answers),
        "high_confidence_errors": len(_sure(wrong)),
        "perfect": len(_misled(wrong)) if perfect else None,
        "wrong_confidence": _mean([one.confidence for one in wrong]),
        "right_confidence": _mean([one.confidence for one in right]),
        "wrong_conflict": _mean([one.conflict for one in wrong]),
        "right_conflict": _mean([one.conflict for one in right]),
        "items": sum(len(one.items) for one in wrong),
        "for_truth": _that_say(wrong, "truth"),
        "for_answer": _that_say(wrong, "answer"),
    }
    return Row(name, name, tuple(_shown(found[one.name], one.name, beside) for one in COLUMNS))


def _shown(value: float | None, column: str, beside: PrintedTable | None) -> Value | None:
    paper, doubt = printed_value(beside, PAPERS_LPF, column)
    if value is None:
        return None if paper is None else Value(None, paper=paper, doubt=doubt)
    return Value(float(value), paper=paper, doubt=doubt)


def _wrong(answers: Sequence[TracedAnswer]) -> list[TracedAnswer]:
    return [one for one in answers if not one.is_right]


def _sure(answers: Sequence[TracedAnswer]) -> list[TracedAnswer]:
    return [one for one in answers if one.confidence > SURE]


def _misled(wrong: Sequence[TracedAnswer]) -> list[TracedAnswer]:
    """Errors that a perfect reader makes too."""
    return [
        one for one in wrong if one.perfect is not None and int(np.argmax(one.perfect)) != one.truth
    ]


def _that_say(wrong: Sequence[TracedAnswer], which: str) -> int:
    """How many items of the answers say the ``truth``, or the ``answer``."""
    return sum(item.says == getattr(one, which) for one in wrong for item in one.items)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _findings(traces: Traces, compliance: bool) -> list[str]:
    answers = [one for trace in traces.values() for one in trace.answers]
    wrong = _wrong(answers)
    where = f"{len(answers):,} test entities ({', '.join(traces)})"
    sentences = [_how_many(answers, wrong, where)]
    if wrong:
        sentences.append(_items_said(wrong))
    if wrong and len(wrong) < len(answers):
        sentences.append(_conflicts(answers, wrong))
    if any(one.perfect is not None for one in wrong):
        sentences.append(_whose_fault(wrong))
    return sentences + ([_papers_records()] if compliance else [])


def _how_many(answers: Sequence[TracedAnswer], wrong: Sequence[TracedAnswer], where: str) -> str:
    sure, errors = len(_sure(answers)), len(_sure(wrong))
    rate = len(wrong) / len(answers)
    return (
        f"Errors of the robust ensemble on {where}: {len(wrong)} ({rate:.1%}). "
        f"Among the {sure:,} answers above {SURE:g} there are {errors}, among the "
        f"{len(answers) - sure:,} others {len(wrong) - errors}."
    )


def _items_said(wrong: Sequence[TracedAnswer]) -> str:
    items = sum(len(one.items) for one in wrong)
    truth, answer = _that_say(wrong, "truth"), _that_say(wrong, "answer")
    overruled = sum(_that_say([one], "truth") > _that_say([one], "answer") for one in wrong)
    return (
        f"Items behind wrong answers: {items}, of which {truth} say the truth by themselves, "
        f"{answer} the answer that was given and {items - truth - answer} something else. Wrong "
        f"answers with more items for the truth than for the answer: {overruled} of {len(wrong)}."
    )


def _conflicts(answers: Sequence[TracedAnswer], wrong: Sequence[TracedAnswer]) -> str:
    ours = fmean(one.conflict for one in wrong)
    others = fmean(one.conflict for one in answers if one.is_right)
    word = "more" if ours > others else "no more"
    return (
        f"Items of wrong answers contradict each other {word} than those of right ones: conflict "
        f"{ours:.3f} against {others:.3f} on average."
    )


def _whose_fault(wrong: Sequence[TracedAnswer]) -> str:
    misled = len(_misled(wrong))
    return (
        f"Errors that a perfect reader of the same texts makes too, because the evidence itself "
        f"misleads: {misled} of {len(wrong)}. Errors of reading or weighing: {len(wrong) - misled}."
    )


def _papers_records() -> str:
    records = []
    for slug in RECORDS:
        printed, ours = record_answer(slug), recomputed(slug, weighted=True)
        top, best = (max(one, key=one.__getitem__) for one in (printed, ours))
        records.append(
            f"{record_name(slug)} is printed as {top} with {printed[top]:.3f}, and its items come "
            f"to {best} with {ours[best]:.4f}"
        )
    return f"The paper's two records, added up by its own rule: {'; '.join(records)}."
