"""Data sets from files, each evaluated as ``lpf evaluate`` does it: one table per file and one over
all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lpf.baselines import CLAIM_ONLY
from lpf.datasets import Dataset
from lpf.evaluation import (
    CHOSEN,
    Cell,
    Comparison,
    Evaluation,
    EvaluationPlan,
    Evaluator,
    ResultStore,
    compare,
    standing_of,
    title_of,
)
from lpf.metrics import Difference
from lpf_paper.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.printed import PrintedTable, printed_table
from lpf_paper.studies.domains_tables import MEASURES
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.study_figures import reliability_series
from lpf_paper.studies.study_tables import COLUMNS, cell_value, with_printed_rows

PAPERS_FEVER = "fever_comparison"
CLEAN = (
    Column("clean_nll", "NLL, nothing shared", "number", "lower", 4),
    Column("clean_accuracy", "Accuracy, nothing shared", "share", "higher", 4),
)
SUMMARY = (
    Column("asked", "Test entities", "count", None, 0),
    Column("best", "Lowest NLL", "word"),
    Column("ours", "LPF as trained", "number", None, 4),
    Column("simple", "Best without LPF", "word"),
    Column("theirs", "Its NLL", "number", None, 4),
    Column("difference", "LPF minus that", "number", None, 4),
    Column("p", "p (Holm)", "share", None, 4),
    Column("accuracy", "Accuracy, LPF", "share", None, 4),
    Column("simple_accuracy", "Accuracy, best without", "share", None, 4),
    Column("claim", "NLL, claim alone", "number", None, 4),
)


@dataclass(frozen=True)
class FileStanding:
    """How LPF ranks on one file. ``best`` has the lowest NLL of all methods except references,
    ``simple`` the lowest of those without LPF; None if no run has one."""

    evaluation: Evaluation
    best: str | None
    simple: str | None
    comparison: Comparison | None

    @classmethod
    def of(cls, evaluation: Evaluation) -> FileStanding:
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
    return evaluation.dataset.name.replace("_", " ")


def nll(evaluation: Evaluation, method: str) -> float:
    """Infinite if there is none, so that it ranks last."""
    spread = evaluation.scores(method).spreads.get("nll")
    return math.inf if spread is None else spread.mean


def file_table(evaluation: Evaluation, is_fever: bool) -> Table:
    """One row per method, lowest NLL first, references last; then rows only the paper has."""
    beside = printed_table(PAPERS_FEVER) if is_fever else None
    measures = (*MEASURES, "runtime_ms") if is_fever else MEASURES
    clean = CLEAN if evaluation.unshared_ids else ()
    ranked = sorted(evaluation.runs, key=lambda one: _order(evaluation, one))
    rows = [_row(evaluation, method, measures, beside) for method in ranked]
    shown = Table(
        f"file_{evaluation.dataset.name}",
        file_title(evaluation).capitalize(),
        " ".join([_how(evaluation), *evaluation.warnings, *_papers_test(beside)]),
        (*(COLUMNS[one] for one in measures), *clean),
        tuple(rows),
    )
    return shown if beside is None else with_printed_rows(shown, beside)


def summary_table(evaluated: Sequence[Evaluation]) -> Table:
    return Table(
        "files",
        "All files",
        "NLL by file. Methods without LPF are all whose name does not begin with LPF, including "
        "VAE-Only, which averages factors of LPF's networks. The difference is paired by entity "
        "and repetition, with its 95 % interval; below 0 LPF, as trained, is better. p is "
        "corrected for the number of methods on the file, since the best of many is chosen.",
        SUMMARY,
        tuple(_summary_row(FileStanding.of(one)) for one in evaluated),
    )


def _row(
    evaluation: Evaluation, method: str, measures: Sequence[str], beside: PrintedTable | None
) -> Row:
    summary = evaluation.scores(method)
    cells = [cell_value(summary, measure, beside, method) for measure in measures]
    if evaluation.unshared_ids:
        clean = evaluation.unshared_scores(method)
        spreads = {} if clean is None else clean.spreads
        cells += [
            Value.of(spreads[name]) if name in spreads else None for name in ("nll", "accuracy")
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
        f"in {evaluation.folds} folds, so that each is tested once"
        if evaluation.folds
        else f"of which {asked:,} are the file's test entities"
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
        f"The paper's numbers are from another test set of {beside.entities:,} claims: differences "
        "from ours do not compare methods."
    ]


def _summary_row(standing: FileStanding) -> Row:
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
    name = evaluation.dataset.name
    return Row(name, file_title(evaluation), cells)


def _of(evaluation: Evaluation, method: str | None, measure: str) -> Value | None:
    if method is None or method not in evaluation.runs:
        return None
    spread = evaluation.scores(method).spreads.get(measure)
    return None if spread is None else Value.of(spread)


SIGNIFICANT = 0.05


def findings(evaluated: Sequence[Evaluation]) -> list[str]:
    if not evaluated:
        return ["No files were given."]
    standings = [FileStanding.of(one) for one in evaluated]
    sentences = [_overall(standings)]
    sentences += [_file(one) for one in standings]
    sentences += [sentence for one in evaluated if (sentence := _claim(one)) is not None]
    return sentences + [sentence for one in evaluated if (sentence := _clean(one)) is not None]


def _overall(standings: Sequence[FileStanding]) -> str:
    better, worse, unclear = (
        [file_title(one.evaluation) for one in standings if _verdict(one) == verdict]
        for verdict in (-1, 1, 0)
    )
    return (
        "Held against the best method without LPF, at 5 % after correction, LPF as training leaves "
        f"it has the lower NLL on {_listed(better, standings)}, the higher on "
        f"{_listed(worse, standings)}, and no clear difference on {_listed(unclear, standings)}."
    )


def _verdict(standing: FileStanding) -> int:
    """-1 if LPF is better, 1 if the other is, 0 if the difference may be chance."""
    found = standing.comparison
    if found is None or found.difference is None or found.adjusted is None:
        return 0
    if found.adjusted >= SIGNIFICANT:
        return 0
    return -1 if found.difference.mean < 0 else 1


def _file(standing: FileStanding) -> str:
    name, found = file_title(standing.evaluation), standing.comparison
    if found is None or found.difference is None or standing.simple is None:
        note = "" if found is None or found.note is None else f" ({found.note})"
        return f"{name}: LPF could not be compared with a method without LPF{note}."
    difference, word = found.difference, "below" if found.difference.mean < 0 else "above"
    best = ""
    if standing.best is not None and standing.best not in (
        standing.evaluation.ours,
        standing.simple,
    ):
        best = f" The lowest of all has {title_of(standing.best)}."
    return (
        f"{name}: LPF is {abs(difference.mean):.4f} {word} {title_of(standing.simple)}, the "
        f"best without LPF, in NLL (95 % interval of the difference {difference.low:z.4f} to "
        f"{difference.high:z.4f}, corrected p {found.adjusted:z.3f}).{best}"
    )


def _claim(evaluation: Evaluation) -> str | None:
    """How much the claim alone reveals, without evidence."""
    if CLAIM_ONLY not in evaluation.runs or evaluation.ours is None:
        return None
    alone = {CLAIM_ONLY: evaluation.runs[CLAIM_ONLY]}
    runs = evaluation.runs[evaluation.ours]
    found = compare(runs, alone, groups=evaluation.group_of)[0].difference
    if found is None:
        return None
    theirs, ours = (evaluation.scores(name).spreads for name in (CLAIM_ONLY, evaluation.ours))
    return (
        f"{file_title(evaluation)}: the claim alone, without any evidence, has an NLL of "
        f"{theirs['nll'].mean:z.4f} and an accuracy of {theirs['accuracy'].mean:z.4f}, LPF "
        f"{ours['nll'].mean:z.4f} and {ours['accuracy'].mean:z.4f}: {_what_evidence_adds(found)}."
    )


def _what_evidence_adds(found: Difference) -> str:
    if found.low > 0.0:
        return "evidence did harm here"
    if found.high >= 0.0:
        return "whether evidence adds anything is not clear"
    return "the rest is due to evidence, or to a better use of the claim"


def _clean(evaluation: Evaluation) -> str | None:
    """The result on test entities that share nothing with training entities."""
    if not evaluation.unshared_ids or evaluation.ours is None:
        return None
    clean, overall = evaluation.unshared_scores(evaluation.ours), evaluation.scores(evaluation.ours)
    if clean is None or "nll" not in clean.spreads:
        return None
    return (
        f"{file_title(evaluation)}: on the {len(evaluation.unshared_ids):,} entities that share "
        f"nothing with the training entities, LPF has an accuracy of "
        f"{clean.spreads['accuracy'].mean:z.4f} (on all {overall.spreads['accuracy'].mean:z.4f}) "
        f"and an NLL of {clean.spreads['nll'].mean:z.4f} ({overall.spreads['nll'].mean:z.4f})."
    )


def _listed(names: Sequence[str], of: Sequence[object]) -> str:
    which = f" ({', '.join(names)})" if names else ""
    return f"{len(names) or 'none'} of {len(of)} files{which}"


FOLDS, QUICK_FOLDS = 5, 3
DRAWN = (
    CHOSEN,
    "lpf_robust",
    "vae_only_ensemble",
    "deterministic_ensemble_average",
    "logistic_mean",
    "claim_only",
    "prior",
)


@dataclass(frozen=True)
class FilesStudy:
    name: str = "files"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        return [cell for path in plan.files for cell in evaluator(plan, path).cells()]

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        store = ResultStore(results.folder)
        evaluated = [evaluator(plan, path).evaluation(store) for path in plan.files]
        tables = [file_table(one, is_fever(one.dataset)) for one in evaluated]
        return StudyResult(
            self.name,
            "Evidence written by people",
            "Do the results on generated domains hold on other data sets?",
            tuple(findings(evaluated)),
            (summary_table(evaluated), *tables) if evaluated else (),
            (_nll_figure(evaluated), _reliability_figure(evaluated)) if evaluated else (),
        )


def evaluator(plan: ExperimentPlan, path: Path) -> Evaluator:
    """A file with its own test entities is run with every seed of the plan. A file in folds already
    trains once per fold and tests all entities, so it gets one seed."""
    folds = QUICK_FOLDS if plan.quick else FOLDS
    file_plan = EvaluationPlan(path, seeds=plan.study_seeds, folds=folds)
    first = Evaluator.of(file_plan)
    if first.folds:
        file_plan = replace(file_plan, seeds=file_plan.seeds[:1])
    if is_fever(first.dataset):  # the paper has numbers for it
        file_plan = replace(file_plan, methods=(*file_plan.methods, "vae_only"))
    return replace(first, plan=file_plan)


def is_fever(dataset: Dataset) -> bool:
    """Return True if the claims are those of the paper's FEVER table. Their IDs begin with its
    name; data sets derived from it have other names."""
    return all(entity.entity_id.casefold().startswith("fever") for entity in dataset)


def _nll_figure(evaluated: Sequence[Evaluation]) -> Figure:
    names = tuple(file_title(one) for one in evaluated)
    series = []
    for method in DRAWN:
        found = [_nll(one, method) for one in evaluated]
        if any(value is not None for value in found):
            series.append(
                Series(title_of(method), names, tuple(found), standing=standing_of(method))
            )
    return Figure(
        "files_nll",
        "NLL by file",
        "Lower is better. A method that is not below the claim alone has learned nothing from "
        "evidence.",
        "bars",
        "",
        "NLL",
        tuple(series),
    )


def _reliability_figure(evaluated: Sequence[Evaluation]) -> Figure:
    series = []
    for one in evaluated:
        first = one.runs[CHOSEN][0]
        if first.error is None:
            series.append(reliability_series(file_title(one), first))
    return Figure(
        "files_reliability",
        "Are the confidences right?",
        f"{title_of(CHOSEN)}, first repetition on each file. On the diagonal, confidence equals "
        "accuracy; bars are 95 % intervals.",
        "reliability",
        "Confidence",
        "Share that is right",
        tuple(series),
    )


def _nll(evaluation: Evaluation, method: str) -> float | None:
    if method not in evaluation.runs:
        return None
    spread = evaluation.scores(method).spreads.get("nll")
    return None if spread is None else Value.of(spread).value
