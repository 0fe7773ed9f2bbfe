"""Accuracy of the surest half and of the surest four fifths of the answers, LPF beside its best
baseline, from evaluations whose results were kept. Nothing is trained.

    lpf evaluate FILE --keep FOLDER
    python -m benchmarks.selective_accuracy FILE... --keep FOLDER [--budget TIME] [--curves FOLDER]

Each method orders the test entities by its own confidence. ``lpf_chosen`` is what ``lpf train``
would save; the best baseline is the one with the lowest NLL. Repetitions (seeds) and folds are
those that were kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lpf.errors import LPFError
from lpf.evaluation import title_of
from lpf.evaluation.evaluation import Evaluation
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.method_names import CHOSEN, standing_of
from lpf.evaluation.plan import EvaluationPlan
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.summaries import entity_keys, pooled, too_few
from lpf.metrics import confidence_and_hits
from lpf.metrics.scores import risk_coverage_of_answers
from lpf.metrics.selective import SureAnswers, selective_difference
from lpf.options import parse_time
from lpf.report.bars_and_lines import CURVE_HEIGHT, TRAINING, VALIDATION, line_key
from lpf.report.drawing import Drawing, draw
from lpf.training.config import DEFAULT_BUDGET

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

COVERAGES = (0.5, 0.8)
MOST_SEEDS = 10  # repetitions that are looked for
LEAST_SHOWN = 5.0  # % of entities; the accuracy of fewer is noise


@dataclass(frozen=True)
class Rivals:
    """LPF and its best baseline on one data set: a run per seed of each."""

    name: str
    baseline: str
    ours: list[Predictions]
    theirs: list[Predictions]
    groups: Mapping[str, str]


def kept_evaluation(file: Path, store: ResultStore, budget: float) -> Evaluation | None:
    """What was kept of the evaluation of this file; None without a result of LPF."""
    evaluator = Evaluator.of(EvaluationPlan(file, budget=budget))
    for resplit in (False, True):
        found = replace(evaluator, plan=replace(evaluator.plan, resplit=resplit))
        seeds = [seed for seed in range(1, MOST_SEEDS + 1) if _has(found, store, CHOSEN, seed)]
        if not seeds:
            continue
        runs = {
            method: [
                pooled([store.load(cell) for cell in found.cells_of(method, seed)])
                for seed in seeds
            ]
            for method in found.methods
            if all(_has(found, store, method, seed) for seed in seeds)
        }
        plan = replace(found.plan, seeds=tuple(seeds))
        return Evaluation(plan, found.dataset, found.predicate, found.folds, (), runs, None)
    return None


def _has(evaluator: Evaluator, store: ResultStore, method: str, seed: int) -> bool:
    return method in evaluator.methods and not store.missing(evaluator.cells_of(method, seed))


def rivals_of(name: str, evaluation: Evaluation) -> Rivals | None:
    """None if LPF or every baseline failed."""
    baselines = [
        method
        for method in evaluation.ranked()
        if standing_of(method) == "rival"
        and not method.startswith("lpf_")
        and len(evaluation.answered(method)) == len(evaluation.runs[method])
    ]
    ours = evaluation.answered(CHOSEN)
    if not baselines or len(ours) < len(evaluation.runs[CHOSEN]):
        return None
    best = baselines[0]
    return Rivals(name, best, ours, evaluation.answered(best), evaluation.group_of)


def row(found: Rivals) -> str:
    """One line of the table."""
    keys = [entity_keys(run, found.groups) for run in found.ours]
    ours, theirs = ([_sure(run) for run in runs] for runs in (found.ours, found.theirs))
    cells = [found.name, f"{len(keys[0]):,}", str(len(keys)), title_of(found.baseline)]
    for coverage in COVERAGES:
        one = selective_difference(ours, theirs, keys, coverage, np.random.default_rng(0))
        between = f"{100 * one.low:+z.1f} to {100 * one.high:+z.1f}"
        if too_few(keys, found.groups):
            between = "too few groups"
        cells += [f"{100 * one.first:.1f} %", f"{100 * one.second:.1f} %"]
        cells.append(f"{100 * (one.first - one.second):+z.1f} ({between})")
    return f"| {' | '.join(cells)} |"


def _sure(run: Predictions) -> SureAnswers:
    return SureAnswers(*confidence_and_hits(run.answers, run.labels.astype(np.int64)))


def heading() -> str:
    names = ["data", "entities", "runs", "best baseline"]
    for coverage in COVERAGES:
        names += [f"lpf, surest {100 * coverage:.0f} %", "baseline", "difference in points"]
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def curves(found: Rivals) -> Drawing:
    """Accuracy over the share of entities that are answered, in the first run."""
    both = ((found.ours[0], VALIDATION, "lpf"), (found.theirs[0], TRAINING,
            title_of(found.baseline)))  # fmt: skip

    def paint(axes: Axes) -> Sequence[Artist]:
        for run, look, _ in both:
            sure = _sure(run)
            risk = risk_coverage_of_answers(sure.confidence, sure.right).risk
            share = 100 * np.arange(1, len(risk) + 1) / len(risk)
            shown = share >= LEAST_SHOWN
            axes.plot(
                share[shown], 100 * (1 - risk[shown]), color=look.colour, linestyle=look.dashes
            )
        axes.set_xlabel("% of entities answered, the surest first")
        axes.set_ylabel("% right")
        axes.set_xlim(0, 100)
        axes.grid(axis="y")
        return [line_key(look, title) for _, look, title in both]

    return draw(
        f"selective-{found.name.replace('_', '-')}",
        f"Answering only the surest: {found.name.replace('_', ' ')}",
        "Accuracy of the surest answers. Higher is better.",
        CURVE_HEIGHT,
        paint,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="data sets that were evaluated")
    parser.add_argument("--keep", type=Path, required=True, help="folder of lpf evaluate --keep")
    parser.add_argument("--budget", help="the one that was given to lpf evaluate, such as 20m")
    parser.add_argument("--curves", type=Path, help="folder for one figure per file")
    given = parser.parse_args(arguments)
    try:
        budget = DEFAULT_BUDGET if given.budget is None else parse_time(given.budget, "--budget")
    except LPFError as error:
        parser.error(str(error))
    missing = []
    print(heading())
    for file in given.files:
        try:
            kept = kept_evaluation(file, ResultStore(given.keep), budget)
        except LPFError as error:
            missing.append(f"{file}: {error}")
            continue
        found = None if kept is None else rivals_of(file.stem, kept)
        if found is None:
            missing.append(
                f"{file}: {given.keep} has no complete results of {CHOSEN} and a baseline; run: "
                f"lpf evaluate {file} --keep {given.keep}"
            )
            continue
        print(row(found), flush=True)
        if given.curves is not None:
            curves(found).write(given.curves)
    if missing:
        raise SystemExit("\n".join(missing))


if __name__ == "__main__":
    main()
