"""Figures over several domains, the one with the highest validation accuracy on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lpf.report.bars import Bars, height, key, paint_bars
from lpf.report.drawing import Drawing, draw
from lpf.report.palette import LIGHT
from lpf.report.run import Run
from lpf.report.words import percent, points

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
        words = [
            f"{upper:.1f}\n{lower:.1f}"
            for upper, lower in zip(train.values, validation.values, strict=True)
        ]
        paint_bars(axes, list(runs), [train, validation], words)
        axes.set_xlim(0, 100)
        axes.set_xlabel("accuracy, %")
        return [key(LIGHT["second"], "training"), key(LIGHT["first"], "validation")]

    return draw(
        "domain-accuracy",
        "Accuracy by domain",
        "Accuracy on single items at each seed's best epoch: the mean over seeds, with one "
        "standard deviation to either side. Training figures are running means with dropout and "
        "one sample an item.",
        height(len(runs), 2),
        paint,
    )


def gaps(runs: Runs) -> Drawing:
    found = [gap(run) for run in runs.values()]

    def paint(axes: Axes) -> Sequence[Artist]:
        colours = [LIGHT["second"] if one > 0 else LIGHT["first"] for one in found]
        bars = Bars([100 * one for one in found], colours)
        paint_bars(axes, list(runs), [bars], [points(one) for one in found])
        axes.axvline(0, color=LIGHT["quiet"], linewidth=0.8)
        axes.margins(x=0.08)
        axes.set_xlabel("training minus validation accuracy, points")
        return [key(LIGHT["second"], "training higher"), key(LIGHT["first"], "validation higher")]

    return draw(
        "domain-gap",
        "Gap between training and validation",
        "Means over seeds. A gap well above 0 says that the networks learnt the training items by "
        "heart; below 0 it is dropout, which only training figures have.",
        height(len(runs)),
        paint,
    )


def deviations(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        found = [100 * run.spread("validation_accuracy").sd for run in runs.values()]
        words = [
            f"{value:.2f}" if len(run.seeds) > 1 else "one seed"
            for value, run in zip(found, runs.values(), strict=True)
        ]
        paint_bars(axes, list(runs), [Bars(found, LIGHT["first"])], words)
        axes.set_xlim(left=0)
        axes.set_xlabel("standard deviation, points")
        return []

    return draw(
        "domain-deviation",
        "Spread of validation accuracy over seeds",
        "How far the draw of a seed moves the result.",
        height(len(runs)),
        paint,
    )


def epochs(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        best = [epochs_to_best(run) for run in runs.values()]
        trained = [epochs_trained(run) for run in runs.values()]
        words = [f"{upper:.1f}\n{lower:.1f}" for upper, lower in zip(best, trained, strict=True)]
        sets = [Bars(best, LIGHT["first"]), Bars(trained, LIGHT["other"])]
        paint_bars(axes, list(runs), sets, words)
        axes.set_xlabel("epochs, mean over seeds")
        return [key(LIGHT["first"], "to the best epoch"), key(LIGHT["other"], "trained in all")]

    return draw(
        "domain-epochs",
        "Epochs to convergence",
        "When the lowest validation loss was reached, and when training stopped.",
        height(len(runs), 2),
        paint,
    )


def converged(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        shares = [run.converged_share for run in runs.values()]
        bars = Bars([100 * share for share in shares], LIGHT["first"])
        paint_bars(axes, list(runs), [bars], [percent(share) for share in shares])
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of seeds, %")
        return []

    return draw(
        "domain-converged",
        "Seeds that stopped early",
        "Seeds whose validation loss stopped falling before the epochs ran out. Where few did, "
        "more epochs would help.",
        height(len(runs)),
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
    return Bars([100 * one.mean for one in found], LIGHT[colour], [100 * one.sd for one in found])
