"""Figures over several domains, the one with the highest validation accuracy on top."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lpf.report.charts import Bars, height, key, paint_bars
from lpf.report.drawing import LIGHT, Drawing, draw
from lpf.report.page import percent, points
from lpf.report.training_run import Run

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Runs = Mapping[str, Run]


def accuracies(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        train, validation = (
            _accuracy_bars(runs, name, colour)
            for name, colour in (("train_accuracy", "second"), ("validation_accuracy", "first"))
        )
        paint_bars(axes, list(runs), [train, validation])
        axes.set_xlim(0, 100)
        axes.set_xlabel("accuracy, %")
        return [key(LIGHT["second"], "training"), key(LIGHT["first"], "validation")]

    return draw(
        "domain-accuracy",
        "Accuracy by domain",
        "Accuracy on single items at each seed's best epoch: the mean over seeds, with one "
        "standard deviation to either side. Training figures are running means with dropout and "
        "one sample an item.",
        height(list(runs), 2),
        paint,
    )


def gaps(runs: Runs) -> Drawing:
    found = [gap(run) for run in runs.values()]

    def paint(axes: Axes) -> Sequence[Artist]:
        colours = [LIGHT["second"] if one > 0 else LIGHT["first"] for one in found]
        bars = Bars([100 * one for one in found], [points(one) for one in found], colours)
        paint_bars(axes, list(runs), [bars])
        axes.axvline(0, color=LIGHT["quiet"], linewidth=0.8)
        axes.margins(x=0.08)
        axes.set_xlabel("training minus validation accuracy, points")
        return [key(LIGHT["second"], "training higher"), key(LIGHT["first"], "validation higher")]

    return draw(
        "domain-gap",
        "Gap between training and validation",
        "Means over seeds. A gap well above 0 says that the networks learnt the training items by "
        "heart; below 0 it is dropout, which only training figures have.",
        height(list(runs)),
        paint,
    )


def deviations(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        found = [100 * run.spread("validation_accuracy").sd for run in runs.values()]
        words = [
            f"{value:.2f}" if len(run.seeds) > 1 else "one seed"
            for value, run in zip(found, runs.values(), strict=True)
        ]
        paint_bars(axes, list(runs), [Bars(found, words, LIGHT["first"])])
        axes.set_xlim(left=0)
        axes.set_xlabel("standard deviation, points")
        return []

    return draw(
        "domain-deviation",
        "Spread of validation accuracy over seeds",
        "How far the draw of a seed moves the result.",
        height(list(runs)),
        paint,
    )


def epochs(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        best = [epochs_to_best(run) for run in runs.values()]
        trained = [epochs_trained(run) for run in runs.values()]
        upper = Bars(best, _tenths(best), LIGHT["first"])
        paint_bars(axes, list(runs), [upper, Bars(trained, _tenths(trained), LIGHT["other"])])
        axes.set_xlabel("epochs, mean over seeds")
        return [key(LIGHT["first"], "to the best epoch"), key(LIGHT["other"], "trained in all")]

    return draw(
        "domain-epochs",
        "Epochs to convergence",
        "When the lowest validation loss was reached, and when training stopped.",
        height(list(runs), 2),
        paint,
    )


def converged(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        shares = [run.converged_share for run in runs.values()]
        words = [percent(share) for share in shares]
        paint_bars(axes, list(runs), [Bars([100 * one for one in shares], words, LIGHT["first"])])
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of seeds, %")
        return []

    return draw(
        "domain-converged",
        "Seeds that stopped early",
        "Seeds whose validation loss stopped falling before the epochs ran out. Where few did, "
        "more epochs would help.",
        height(list(runs)),
        paint,
    )


def gap(run: Run) -> float:
    return run.spread("train_accuracy").mean - run.spread("validation_accuracy").mean


def epochs_to_best(run: Run) -> float:
    return run.mean(lambda seed: seed.history.best_epoch)


def epochs_trained(run: Run) -> float:
    return run.mean(lambda seed: len(seed.history.epochs))


def _accuracy_bars(runs: Runs, name: str, colour: str) -> Bars:
    found = [run.spread(name) for run in runs.values()]
    means = [100 * one.mean for one in found]
    errors = [
        100 * one.sd if len(run.seeds) > 1 else math.nan
        for one, run in zip(found, runs.values(), strict=True)
    ]
    low = [mean - error for mean, error in zip(means, errors, strict=True)]
    high = [mean + error for mean, error in zip(means, errors, strict=True)]
    return Bars(means, _tenths(means), LIGHT[colour], low, high)


def _tenths(numbers: Sequence[float]) -> list[str]:
    return [f"{number:.1f}" for number in numbers]
