"""Accuracy of the surest half and of the surest four fifths of the answers, LPF beside baselines.

    python -m benchmarks.selective_accuracy FILE... [--cache FOLDER] [--budget SECONDS]

Each method orders the test entities by its own confidence. ``lpf_chosen`` is what ``lpf train``
would save; the best baseline is that of the surest half.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import lpf
from lpf import metrics

OURS = "lpf_chosen"
BASELINES = ("logistic_mean", "lexical_regression", "majority_vote", "prior")
COVERAGES = (0.5, 0.8, 1.0)


def accuracy_at(probabilities: np.ndarray, labels: np.ndarray, coverage: float) -> float:
    """Share of right answers among the surest; equally sure ones count as their mean."""
    curve = metrics.risk_coverage(probabilities, labels)
    return 1.0 - float(curve.risk[max(0, int(np.ceil(coverage * len(labels))) - 1)])


def table_of(file: Path, cache: Path | None, budget: float) -> dict[str, list[float]]:
    """Accuracy at each of ``COVERAGES``, by method."""
    found = lpf.evaluate(
        file, methods=[OURS, *BASELINES], seeds=(1,), workers=1, cache=cache, budget=budget
    )
    rows = {}
    for name, runs in found.runs.items():
        (run,) = runs
        if run.error is not None:
            print(f"{file.stem}: {name} failed: {run.error}")
            continue
        labels = run.labels.astype(np.int64)
        rows[name] = [accuracy_at(run.answers, labels, coverage) for coverage in COVERAGES]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--budget", type=float, default=0.0, help="seconds for tuning the reader")
    given = parser.parse_args()
    print("| data | method | " + " | ".join(f"{100 * c:.0f} %" for c in COVERAGES) + " |")
    print("|---|---|" + "---|" * len(COVERAGES))
    for file in given.files:
        rows = table_of(file, given.cache, given.budget)
        best = max((name for name in rows if name != OURS), key=lambda name: rows[name][0])
        for name in sorted(rows, key=lambda one: -rows[one][0]):
            mark = " (best baseline)" if name == best else ""
            shown = " | ".join(f"{100 * share:.1f} %" for share in rows[name])
            print(f"| {file.stem} | {name}{mark} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
