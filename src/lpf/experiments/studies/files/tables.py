"""Tables of evaluated files: one a file, and one over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lpf.experiments.evaluation.outcome import Evaluation
from lpf.experiments.exhibits import Column, Row, Table, Value
from lpf.experiments.judging.comparisons import Comparison
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.printed.tables import PrintedTable, printed_table
from lpf.experiments.studies.domains.tables import MEASURES
from lpf.experiments.studies.printed_rows import with_printed_rows
from lpf.experiments.studies.tables import COLUMNS, cell_value

PAPERS_FEVER = "fever_comparison"
CLEAN = (
    Column("clean_nll", "NLL, nothing shared", "number", "lower", 4),
    Column("clean_accuracy", "Accuracy, nothing shared", "share", "higher", 4),
)
SUMMARY = (
    Column("asked", "Asked", "count", None, 0),
    Column("best", "Lowest NLL", "word"),
    Column("ours", "LPF as trained", "number", None, 4),
    Column("simple", "Best without LPF", "word"),
    Column("theirs", "Its NLL", "number", None, 4),
    Column("difference", "LPF less that", "number", None, 4),
    Column("p", "p (Holm)", "share", None, 4),
    Column("accuracy", "Accuracy, LPF", "share", None, 4),
    Column("simple_accuracy", "Accuracy, best without", "share", None, 4),
    Column("claim", "NLL, claim alone", "number", None, 4),
)


@dataclass(frozen=True)
class Standing:
    """How LPF stands on one file. ``best`` has the lowest NLL of all methods but
    references, ``simple`` that of those without LPF; None where no run has one."""

    evaluation: Evaluation
    best: str | None
    simple: str | None
    comparison: Comparison | None

    @classmethod
    def of(cls, evaluation: Evaluation) -> Standing:
        ranked = [
            method
            for method in sorted(evaluation.runs, key=lambda one: nll(evaluation, one))
            if standing_of(method) != "reference" and math.isfinite(nll(evaluation, method))
        ]
        without = [method for method in ranked if not method.startswith("lpf_")]
        simple = without[0] if without else None
        compared = {one.name: one for one in evaluation.comparisons()}
        return cls(evaluation, ranked[0] if ranked else None, simple, compared.get(simple or ""))


def file_title(evaluation: Evaluation) -> str:
    return evaluation.plan.path.stem.replace("_", " ")


def nll(evaluation: Evaluation, method: str) -> float:
    """Infinite where there is none, so that it ranks last."""
    spread = evaluation.summary(method).spreads.get("nll")
    return math.inf if spread is None else spread.mean


def file_table(evaluation: Evaluation, is_fever: bool) -> Table:
    """One row a method, the lowest NLL first and references last; then what the paper alone has."""
    beside = printed_table(PAPERS_FEVER) if is_fever else None
    measures = (*MEASURES, "runtime_ms") if is_fever else MEASURES
    clean = CLEAN if evaluation.unshared_ids else ()
    ranked = sorted(evaluation.runs, key=lambda one: _order(evaluation, one))
    rows = [_row(evaluation, method, measures, beside) for method in ranked]
    shown = Table(
        f"file_{evaluation.plan.path.stem}",
        file_title(evaluation).capitalize(),
        " ".join([_how(evaluation), *evaluation.cautions, *_papers_test(beside)]),
        (*(COLUMNS[one] for one in measures), *clean),
        tuple(rows),
    )
    return shown if beside is None else with_printed_rows(shown, beside)


def summary_table(evaluated: Sequence[Evaluation]) -> Table:
    return Table(
        "files",
        "All files",
        "NLL by file. Without LPF are all methods but those of its name; VAE-Only, which averages "
        "what LPF's networks say, is one of them. The difference is paired by entity and "
        "repetition, with its 95 % interval; below 0 LPF, as training leaves it, is better. p is "
        "corrected for the number of methods on the file, since the best of many is looked at.",
        SUMMARY,
        tuple(_summary_row(Standing.of(one)) for one in evaluated),
    )


def _row(
    evaluation: Evaluation, method: str, measures: Sequence[str], beside: PrintedTable | None
) -> Row:
    summary = evaluation.summary(method)
    cells = [cell_value(summary, measure, beside, method) for measure in measures]
    if evaluation.unshared_ids:
        clean = evaluation.clean_summary(method)
        spreads = {} if clean is None else clean.spreads
        cells += [
            spreads[name].value() if name in spreads else None for name in ("nll", "accuracy")
        ]
    note = "; ".join(summary.notes) or None
    return Row(method, title_of(method), tuple(cells), standing_of(method), note)


def _order(evaluation: Evaluation, method: str) -> tuple[bool, float]:
    return standing_of(method) == "reference", nll(evaluation, method)


def _how(evaluation: Evaluation) -> str:
    dataset, seeds = evaluation.dataset, len(evaluation.plan.seeds)
    asked = _asked(evaluation)
    items = sum(1 for _ in dataset.items) / len(dataset)
    values = len(dataset.schema[evaluation.predicate].values)
    parts = (
        f"in {evaluation.folds} folds, so that each is asked about once"
        if evaluation.folds
        else f"of which {asked:,} are asked about, as the file has it"
    )
    times = "one repetition" if seeds == 1 else f"{seeds} repetitions"
    return (
        f"{len(dataset):,} entities with {items:.1f} items each on average and one of {values} "
        f"values, {parts}; {times}."
    )


def _asked(evaluation: Evaluation) -> int:
    return len(next(iter(evaluation.runs.values()))[0].labels)


def _papers_test(beside: PrintedTable | None) -> list[str]:
    if beside is None:
        return []
    return [
        f"The paper's numbers are of another test, of {beside.entities:,} claims: they stand "
        "beside ours, but what they differ by is no measure of a method."
    ]


def _summary_row(standing: Standing) -> Row:
    evaluation, simple = standing.evaluation, standing.simple
    found = None if standing.comparison is None else standing.comparison.difference
    adjusted = None if standing.comparison is None else standing.comparison.adjusted
    cells: tuple[Value | str | None, ...] = (
        Value(float(_asked(evaluation))),
        None if standing.best is None else title_of(standing.best),
        _of(evaluation, evaluation.ours, "nll"),
        None if simple is None else title_of(simple),
        _of(evaluation, simple, "nll"),
        None if found is None else Value(found.mean, low=found.low, high=found.high),
        None if adjusted is None else Value(adjusted),
        _of(evaluation, evaluation.ours, "accuracy"),
        _of(evaluation, simple, "accuracy"),
        _of(evaluation, "claim_only", "nll"),
    )
    name = evaluation.plan.path.stem
    return Row(name, file_title(evaluation), cells)


def _of(evaluation: Evaluation, method: str | None, measure: str) -> Value | None:
    if method is None or method not in evaluation.runs:
        return None
    spread = evaluation.summary(method).spreads.get(measure)
    return None if spread is None else spread.value()
