"""Cells and tables of the domains study: all domains together, by method, and one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from lpf.evaluation import Cell, DomainData, EvalSpec, Summary, TrainSpec, standing_of, title_of
from lpf_paper.exhibits import Column, Row, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.printed import PrintedTable, printed_table
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_tables import (
    cell_value,
    comparison_table,
    counted,
    mean_of_row,
    method_table,
    plain_value,
    printed_value,
)

# Seeds of the large test sets, different from those of the data sets.
TEST_SEED, VARYING_SEED = 1000, 2000
# Test entities: the data set's own, or new ones with five or one to five items.
TestSet = Literal["own", "fixed", "varying"]


@dataclass(frozen=True)
class DomainRuns:
    """All methods on one preset and test set, with the reader of their results."""

    preset: str
    test_set: TestSet
    by_method: Runs
    results: ResultReader

    @property
    def study(self) -> str:
        return study_name(self.preset)

    @property
    def items(self) -> str:
        return "one to five items each" if self.test_set == "varying" else "five items each"

    def summary(self, method: str, domain: str | None = None) -> Summary:
        """Over all domains if none is named."""
        cells = self.by_method[method]
        if domain is not None:
            cells = [cell for cell in cells if _domain_of(cell) == domain]
        return self.results.summary(cells)

    def nll(self, method: str, domain: str | None = None) -> float | None:
        return finite_mean(self.summary(method, domain), "nll")


def study_name(preset: str) -> str:
    return f"domains_{preset}"


def finite_mean(summary: Summary, measure: str) -> float | None:
    """None if every run crashed or a loss is infinite."""
    spread = summary.spreads.get(measure)
    return spread.mean if spread is not None and isfinite(spread.mean) else None


def cells_at(
    plan: ExperimentPlan,
    preset: str,
    test_set: TestSet,
    methods: Iterable[str],
    *,
    first: bool = False,
) -> dict[str, list[Cell]]:
    """The cells of each method, domain by domain, data set by data set, or on the first data sets
    only."""
    seeds = data_seeds(plan, preset)[:1] if first else data_seeds(plan, preset)
    return {
        method: [
            _cell(plan, preset, method, domain, seed, test_set)
            for domain in plan.domains
            for seed in seeds
        ]
        for method in methods
    }


def data_seeds(plan: ExperimentPlan, preset: str) -> tuple[int, ...]:
    return plan.data_seeds if preset == "paper" else plan.hard_seeds


def eval_spec_at(plan: ExperimentPlan, preset: str, domain: str, test_set: TestSet) -> EvalSpec:
    if test_set == "own":
        return EvalSpec()
    if test_set == "fixed":
        return EvalSpec(DomainData(domain, preset, TEST_SEED), plan.test_entities)
    varied = DomainData(domain, preset, VARYING_SEED, ("items_min=1",))
    return EvalSpec(varied, plan.test_entities // 2)


def domain_train_spec(
    plan: ExperimentPlan, domain: str, seed: int, preset: str = "paper"
) -> TrainSpec:
    """Training data of a domain; other studies use it too and share its networks."""
    return TrainSpec(DomainData(domain, preset, seed), seed=seed, seeds=plan.training_seeds)


def _cell(
    plan: ExperimentPlan, preset: str, method: str, domain: str, seed: int, test_set: TestSet
) -> Cell:
    train_spec = domain_train_spec(plan, domain, seed, preset)
    return Cell(train_spec, eval_spec_at(plan, preset, domain, test_set), method)


def _domain_of(cell: Cell) -> str | None:
    return cell.train_spec.data.domain if isinstance(cell.train_spec.data, DomainData) else None


MEASURES = (
    "nll",
    "raw_nll",
    "accuracy",
    "macro_f1",
    "brier",
    "ece",
    "ece_null",
    "ece_p",
    "aurc",
)
# The paper's LPF-Learned: its numbers by domain are compared with this one, not with the repaired.
PUBLISHED = "lpf_learned_published"


def pooled_table(plan: ExperimentPlan, runs: DomainRuns) -> Table:
    fixed = runs.test_set == "fixed"
    entities = plan.test_entities if fixed else plan.test_entities // 2
    sets = counted(len(data_seeds(plan, runs.preset)), "data set")
    return method_table(
        f"{runs.study}_{runs.test_set}",
        f"All domains together, {runs.items}",
        f"Means and sd over {len(plan.domains)} domains with {sets} of 630 training entities each; "
        f"{entities:,} test entities per domain, in wordings that are not in the training data. "
        "Every method has a fitted temperature, which depends on the number of items if that "
        "varies; 'NLL before T' is without it.",
        runs.by_method,
        MEASURES,
        runs.results,
    )


def against_table(runs: DomainRuns) -> Table:
    suffix = "" if runs.test_set == "fixed" else f"_{runs.test_set}"
    return comparison_table(
        f"{runs.study}_against{suffix}",
        "Paired by entity and data set; below 0 the ensemble is better. Intervals of 95 % over "
        "data sets and entities together, p-values corrected for the number of methods.",
        "lpf_robust",
        runs.by_method,
        runs.results,
        f", {runs.items}",
    )


def nll_table(plan: ExperimentPlan, fixed: DomainRuns) -> Table:
    columns = tuple(Column(domain, domain, "number", "lower", 4) for domain in plan.domains)
    rows = [_nll_row(plan, method, fixed) for method in fixed.by_method]
    rows.sort(key=lambda row: (row.standing == "reference", *mean_of_row(row)))
    return Table(
        f"{fixed.study}_nll",
        "NLL by domain",
        "Mean and sd over data sets, five items per entity.",
        columns,
        tuple(rows),
    )


def cross_domain_table(plan: ExperimentPlan, own: DomainRuns) -> Table:
    """On the 135 test entities of each data set, as in the paper; LPF-Learned as published if it
    was run."""
    beside, published = printed_table("cross_domain"), _published(plan, own)
    titles = {method: title_of(method) for method in (*own.by_method, PUBLISHED)}
    if published is not None:
        titles[PUBLISHED] += ", on new entities"
    run = (
        "not run here"
        if published is None
        else f"run on the first data set of each domain only and tested on {plan.test_entities:,} "
        "new entities, in wordings that are not in the training data"
    )
    return Table(
        "cross_domain",
        "Accuracy on each data set's own 135 test entities",
        "Mean and sd over data sets. The paper has one data set per domain and reports the best "
        f"of seven seeds by its test accuracy. {title_of(PUBLISHED)}, was {run}.",
        tuple(Column(name, title, "share", "higher", 4) for name, title in titles.items()),
        tuple(_cross_domain_row(domain, own, published, beside) for domain in plan.domains),
    )


def far_table(plan: ExperimentPlan, first: DomainRuns) -> Table:
    return method_table(
        f"{first.study}_far",
        "Methods that are slow to train, on the first data set of each domain",
        f"{len(plan.domains)} runs per method, five items per entity. Training on one core.",
        first.by_method,
        (*MEASURES, "fit_seconds"),
        first.results,
    )


def notes_of(summaries: Iterable[tuple[str, Summary]]) -> str | None:
    """Each note with the names it applies to. Notes on answers before their temperature are left
    out."""
    about: dict[str, list[str]] = {}
    for name, summary in summaries:
        for note in summary.notes:
            if not note.startswith("raw_"):
                about.setdefault(note, []).append(name)
    return "; ".join(f"{', '.join(names)}: {note}" for note, names in about.items()) or None


def _nll_row(plan: ExperimentPlan, method: str, fixed: DomainRuns) -> Row:
    found = {domain: fixed.summary(method, domain) for domain in plan.domains}
    shown = tuple(cell_value(one, "nll") for one in found.values())
    return Row(method, title_of(method), shown, standing_of(method), notes_of(found.items()))


def _published(plan: ExperimentPlan, own: DomainRuns) -> DomainRuns | None:
    """Runs of LPF-Learned as published, on new entities; None if it was not run."""
    if PUBLISHED not in plan.slow_methods:
        return None
    cells = cells_at(plan, own.preset, "fixed", [PUBLISHED], first=True)
    return DomainRuns(own.preset, "fixed", cells, own.results)


def _cross_domain_row(
    domain: str, own: DomainRuns, published: DomainRuns | None, beside: PrintedTable
) -> Row:
    found = {method: own.summary(method, domain) for method in own.by_method}
    if published is not None:
        found[PUBLISHED] = published.summary(PUBLISHED, domain)
    methods = (*own.by_method, PUBLISHED)
    cells = tuple(_beside(beside, domain, method, found.get(method)) for method in methods)
    note = notes_of((title_of(method), one) for method, one in found.items())
    return Row(domain, domain, cells, note=note)


def _beside(beside: PrintedTable, domain: str, method: str, summary: Summary | None) -> Value:
    paper, doubt = printed_value(beside, domain, method)
    spread = None if summary is None else summary.spreads.get("accuracy")
    return (
        Value(None, paper=paper, doubt=doubt) if spread is None else Value.of(spread, paper, doubt)
    )


GAP = ("lpf_robust", "lpf_paper", "perfect_reader")  # ours, the start of the gap, its end
GAP_COLUMNS = (
    Column("accuracy", "Accuracy", "share", None, 4),
    Column("nll", "NLL", "number", None, 4),
    Column("paper", "Paper mode + T", "number", None, 4),
    Column("perfect", "Perfect reader", "number", None, 4),
    Column("closed", "Gap closed", "share", None, 3),
    Column("ece", "ECE", "share", None, 4),
    Column("ece_null", "ECE if perfect", "share", None, 4),
)


def closed(ours: float | None, paper: float | None, perfect: float | None) -> float | None:
    """The share of the gap between the paper's loss and the perfect reader's that is closed: 0 is
    no better than the paper, 1 as good as the reader. None if a loss is unknown or there is no
    gap."""
    if ours is None or paper is None or perfect is None or paper <= perfect:
        return None
    return (paper - ours) / (paper - perfect)


def gap_table(plan: ExperimentPlan, fixed: DomainRuns) -> Table:
    return Table(
        f"{fixed.study}_gap",
        "The robust ensemble between the paper's model and a perfect reader",
        "A perfect reader knows what the generator meant by every text, but no more.",
        GAP_COLUMNS,
        tuple(_row(domain, fixed) for domain in plan.domains),
    )


def closing(plan: ExperimentPlan, fixed: DomainRuns) -> str:
    """A sentence; empty if a run crashed, since means would cover different data sets."""
    if any(one.runs < one.all_runs for one in map(fixed.summary, GAP)):
        return ""
    overall = _share(fixed)
    by_domain = [_share(fixed, domain) for domain in plan.domains]
    known = [share for share in by_domain if share is not None]
    if overall is None or not known:
        return ""
    return (
        f"The ensemble closes {overall:.0%} of the gap between the paper's model with a fitted "
        f"temperature and a perfect reader; by domain {min(known):.0%} to {max(known):.0%}."
    )


def _share(fixed: DomainRuns, domain: str | None = None) -> float | None:
    ours, paper, perfect = (fixed.nll(method, domain) for method in GAP)
    return closed(ours, paper, perfect)


def _row(domain: str, fixed: DomainRuns) -> Row:
    ours, paper, perfect = found = [fixed.summary(method, domain) for method in GAP]
    cells = (
        cell_value(ours, "accuracy"),
        cell_value(ours, "nll"),
        plain_value(finite_mean(paper, "nll")),
        plain_value(finite_mean(perfect, "nll")),
        plain_value(_share(fixed, domain)),
        cell_value(ours, "ece"),
        plain_value(finite_mean(ours, "ece_null")),
    )
    note = notes_of(zip(map(title_of, GAP), found, strict=True))
    return Row(domain, domain, cells, note=note)
