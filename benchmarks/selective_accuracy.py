"""Accuracy of the surest half and of the surest four fifths of the answers, LPF beside baselines.

    python -m benchmarks.selective_accuracy FILE... [--cache FOLDER] [--budget SECONDS]
        [--curves FOLDER]

Each method orders the test entities by its own confidence. ``lpf_chosen`` is what ``lpf train``
would save; the best baseline is that of the surest half.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import lpf
from lpf import metrics
from lpf.evaluation import title_of
from lpf.report.bars_and_lines import CURVE_HEIGHT, TRAINING, VALIDATION, line_key
from lpf.report.drawing import Drawing, draw

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

OURS = "lpf_chosen"
BASELINES = ("logistic_mean", "lexical_regression", "majority_vote", "prior")
COVERAGES = (0.5, 0.8, 1.0)
LEAST_SHOWN = 5.0  # % of entities; the accuracy of fewer is noise


def accuracy_at(probabilities: np.ndarray, labels: np.ndarray, coverage: float) -> float:
    """Share of right answers among the surest; equally sure ones count as their mean."""
    curve = metrics.risk_coverage(probabilities, labels)
    return 1.0 - float(curve.risk[max(0, int(np.ceil(coverage * len(labels))) - 1)])


@dataclass(frozen=True)
class Answered:
    """``probabilities`` [E, V] of one method, and ``labels`` [E]."""

    probabilities: np.ndarray
    labels: np.ndarray

    @property
    def at_coverages(self) -> list[float]:
        return [accuracy_at(self.probabilities, self.labels, one) for one in COVERAGES]


def answers_about(file: Path, cache: Path | None, budget: float) -> dict[str, Answered]:
    """By method."""
    found = lpf.evaluate(
        file, methods=[OURS, *BASELINES], seeds=(1,), workers=1, cache=cache, budget=budget
    )
    rows = {}
    for name, runs in found.runs.items():
        (run,) = runs
        if run.error is not None:
            print(f"{file.stem}: {name} failed: {run.error}")
            continue
        rows[name] = Answered(run.answers, run.labels.astype(np.int64))
    return rows


def curves(name: str, best: str, rows: Mapping[str, Answered]) -> Drawing:
    """Accuracy over the share of entities that are answered, LPF's and the best baseline's."""
    looks = {OURS: VALIDATION, best: TRAINING}

    def paint(axes: Axes) -> Sequence[Artist]:
        for method, look in looks.items():
            one = rows[method]
            risk = np.asarray(metrics.risk_coverage(one.probabilities, one.labels).risk)
            share = 100 * np.arange(1, len(risk) + 1) / len(risk)
            shown = share >= LEAST_SHOWN
            axes.plot(
                share[shown], 100 * (1 - risk[shown]), color=look.colour, linestyle=look.dashes
            )
        axes.set_xlabel("% of entities answered, the surest first")
        axes.set_ylabel("% right")
        axes.set_xlim(0, 100)
        axes.grid(axis="y")
        return [line_key(looks[OURS], "lpf"), line_key(looks[best], title_of(best))]

    return draw(
        f"selective-{name.replace('_', '-')}",
        f"Answering only the surest: {name.replace('_', ' ')}",
        "Accuracy of the surest answers. Higher is better.",
        CURVE_HEIGHT,
        paint,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--budget", type=float, default=0.0, help="seconds for tuning the reader")
    parser.add_argument("--curves", type=Path, help="folder for one figure per file")
    given = parser.parse_args()
    print("| data | method | " + " | ".join(f"{100 * c:.0f} %" for c in COVERAGES) + " |")
    print("|---|---|" + "---|" * len(COVERAGES))
    for file in given.files:
        found = answers_about(file, given.cache, given.budget)
        rows = {name: one.at_coverages for name, one in found.items()}
        best = max((name for name in rows if name != OURS), key=lambda name: rows[name][0])
        for name in sorted(rows, key=lambda one: -rows[one][0]):
            mark = " (best baseline)" if name == best else ""
            shown = " | ".join(f"{100 * share:.1f} %" for share in rows[name])
            print(f"| {file.stem} | {name}{mark} | {shown} |", flush=True)
        if given.curves is not None:
            curves(file.stem, best, found).write(given.curves)


if __name__ == "__main__":
    main()
