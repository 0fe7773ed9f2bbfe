"""Sources that copy each other: which methods count one source three times?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lpf import metrics
from lpf.evaluation import GENERATION, Cell
from lpf.storage import write_atomically
from lpf_paper.exhibits import Column, Figure, Row, Series, Standing, StudyResult, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.copying_world import (
    FAMILIES,
    MODERATE,
    STRONG,
    CopyingOutcome,
    CopyingWorld,
    copying_answers,
)
from lpf_paper.studies.study import ResultReader

ASKED = 2000
WORLDS: Mapping[str, CopyingWorld] = {"strong": STRONG, "moderate": MODERATE}
TITLES: Mapping[str, str] = {
    "majority_vote": "Majority vote",
    "majority_vote_tempered": "Majority vote + T",
    "dawid_skene": "Dawid-Skene",
    "dawid_skene_tempered": "Dawid-Skene + T",
    "stacking": "Stacking",
    "lpf_copies_known": "LPF-SPN, copies known",
    "lpf_copies_found": "LPF-SPN, copies found",
    "lpf_copies_ignored": "LPF-SPN, copies ignored",
    "exact_posterior": "Exact posterior",
}
OURS = ("lpf_copies_known", "lpf_copies_found")
REFERENCE = "exact_posterior"
SCORES = {"accuracy": metrics.accuracy, "nll": metrics.nll, "ece": metrics.ece}
COLUMNS = (
    Column("accuracy", "Accuracy", "share", "higher", 4),
    Column("nll", "NLL", "number", "lower", 4),
    Column("ece", "ECE", "share", "lower", 4),
)


@dataclass(frozen=True)
class CopyingRun:
    """``scores`` by method and measure, None for an infinite loss. ``found`` is True if exactly the
    copying sources were identified."""

    scores: Mapping[str, Mapping[str, float | None]]
    found: bool


@dataclass(frozen=True)
class CopyingStudy:
    """Votes, not texts: no network is trained, so there are no cells. A run takes seconds; its
    scores are stored in the results folder."""

    name: str = "copying_sources"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        return []

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        most = labelled(plan)[-1]
        runs = {world: _runs(plan, world, results.folder) for world in WORLDS}
        return StudyResult(
            self.name,
            "Sources that copy each other",
            "Two of five sources copy a weak third one: which methods notice, and which count it "
            "three times?",
            tuple(_finding(world, found, most) for world, found in runs.items()),
            tuple(_table(plan, world, found[most]) for world, found in runs.items()),
            tuple(_figure(plan, world, found) for world, found in runs.items()),
        )


def labelled(plan: ExperimentPlan) -> tuple[int, ...]:
    return (50, 500) if plan.quick else (50, 100, 200, 500, 1000)


def seeds(plan: ExperimentPlan) -> tuple[int, ...]:
    return (1, 2, 3) if plan.quick else (1, 2, 3, 4, 5)


def stored_run(labels: int, seed: int, world: CopyingWorld, folder: Path, test: int) -> CopyingRun:
    """The stored run, or a new one, which is stored."""
    path = run_path(labels, seed, world, folder, test)
    if not path.is_file():
        run = scored(copying_answers(labels, test, seed, world))
        write_atomically(path, json.dumps(asdict(run), allow_nan=False).encode())
    document: dict[str, Any] = json.loads(path.read_bytes())
    return CopyingRun(**document)


def scored(outcome: CopyingOutcome) -> CopyingRun:
    scores = {
        method: {
            name: value if isfinite(value := score(rows, outcome.labels)) else None
            for name, score in SCORES.items()
        }
        for method, rows in outcome.answers.items()
    }
    return CopyingRun(scores, outcome.families == FAMILIES)


def run_path(labels: int, seed: int, world: CopyingWorld, folder: Path, test: int) -> Path:
    text = json.dumps([GENERATION, labels, seed, test, asdict(world)], sort_keys=True)
    return folder / "copying" / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"


def _runs(plan: ExperimentPlan, world: str, folder: Path) -> dict[int, list[CopyingRun]]:
    """By number of labelled entities, one run per seed."""
    return {
        labels: [stored_run(labels, seed, WORLDS[world], folder, ASKED) for seed in seeds(plan)]
        for labels in labelled(plan)
    }


def _spread(runs: Sequence[CopyingRun], method: str, measure: str) -> Value:
    values = [run.scores[method][measure] for run in runs]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Value(None)
    return Value(fmean(known), stdev(known) if len(known) > 1 else None)


def _mean(runs: Sequence[CopyingRun], method: str, measure: str) -> float:
    """Infinite if a loss is infinite, so that the method ranks last."""
    value = _spread(runs, method, measure).value
    return float("inf") if value is None else value


def _standing(method: str) -> Standing:
    if method == REFERENCE:
        return "reference"
    return "ours" if method in OURS else "rival"


def _methods(runs: Sequence[CopyingRun]) -> list[str]:
    """The lowest NLL first, the reference last."""
    return sorted(
        runs[0].scores, key=lambda method: (method == REFERENCE, _mean(runs, method, "nll"))
    )


def _about(world: str) -> str:
    one = WORLDS[world]
    first, second, weak = (f"{accuracy:.0%}" for accuracy in one.accuracy[:3])
    return (
        f"Two sources on their own are right in {first} and {second}; a third is right in {weak}, "
        f"and two more repeat it in {one.copy_rate:.0%} of the cases. {one.values} values, "
        f"{ASKED:,} test entities."
    )


def _table(plan: ExperimentPlan, world: str, runs: Sequence[CopyingRun]) -> Table:
    rows = []
    for method in _methods(runs):
        cells = tuple(_spread(runs, method, column.name) for column in COLUMNS)
        note = None if cells[1].value is not None else "NLL is infinite in at least one run"
        rows.append(Row(method, TITLES[method], cells, _standing(method), note))
    return Table(
        f"copying_{world}",
        f"Copied votes, {world} sources",
        f"{_about(world)} {labelled(plan)[-1]} labelled entities; mean and sd over {len(runs)} "
        "seeds. Majority vote and Dawid-Skene use labels for their temperature T only; the exact "
        "posterior uses the true probabilities of the votes.",
        COLUMNS,
        tuple(rows),
    )


def _figure(plan: ExperimentPlan, world: str, runs: Mapping[int, Sequence[CopyingRun]]) -> Figure:
    methods = _methods(runs[labelled(plan)[-1]])
    series = tuple(
        Series(
            TITLES[method],
            tuple(float(labels) for labels in runs),
            tuple(_spread(found, method, "nll").value for found in runs.values()),
            standing=_standing(method),
        )
        for method in methods
        if method != "dawid_skene"  # so far above the others that they would merge into one line
    )
    return Figure(
        f"copying_{world}",
        f"NLL by labelled entities, {world} sources",
        f"{_about(world)} Mean over {len(seeds(plan))} seeds. Dawid-Skene is shown with its "
        "temperature only.",
        "lines",
        "Labelled entities",
        "NLL",
        series,
        log_x=True,
    )


def _finding(world: str, runs: Mapping[int, Sequence[CopyingRun]], most: int) -> str:
    last = runs[most]
    best = _methods(last)[0]
    nll = {method: _mean(last, method, "nll") for method in last[0].scores}
    found = ", ".join(
        f"{sum(run.found for run in one)} of {len(one)} runs with {labels}"
        for labels, one in runs.items()
    )
    return (
        f"Copied votes, {world} sources, {most} labelled: the lowest NLL is that of "
        f"{_name(best, last)} ({nll[best]:.3f}; the exact posterior has {nll[REFERENCE]:.3f}). LPF "
        f"that ignores the copies has {nll['lpf_copies_ignored']:.3f}, stacking "
        f"{nll['stacking']:.3f} (LPF with copies found is below it in {_below(last)}), a majority "
        f"vote with a temperature {nll['majority_vote_tempered']:.3f}. Who copies whom was found "
        f"in {found} labelled."
    )


def _name(best: str, runs: Sequence[CopyingRun]) -> str:
    """Names both LPF variants together if all copies were found."""
    if best in OURS and all(run.found for run in runs):
        return "LPF that knows of the copies or finds them"
    return TITLES[best]


def _below(runs: Sequence[CopyingRun]) -> str:
    """In how many runs LPF beats its nearest rival, on the same entities."""
    lower = sum(
        _mean([run], "lpf_copies_found", "nll") < _mean([run], "stacking", "nll") for run in runs
    )
    return f"{lower} of {len(runs)} runs"
