"""Figures of one run over its seeds: how good each is, and how it came there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lpf.report.bars import Bars, height, key, paint_bars
from lpf.report.curves import (
    CURVE_HEIGHT,
    MEAN,
    TRAINING,
    VALIDATION,
    Look,
    dot_key,
    finish_axes,
    line_key,
    paint_curve,
    paint_mean,
)
from lpf.report.drawing import Drawing, draw
from lpf.report.palette import LIGHT
from lpf.report.run import Run, Standing
from lpf.report.words import decimals, decimals_spread, percent, percent_spread

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LOOKS: dict[Standing, Look] = {
    "selected": Look(LIGHT["first"], width=2.2),
    "member": Look(LIGHT["member"], width=1.4),
    "other": Look(LIGHT["other"], ":", 1.4),
}
STANDINGS: dict[Standing, str] = {
    "selected": "★ best, in the model",
    "member": "in the model",
    "other": "not in the model",
}


def seed_accuracy(run: Run) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        from matplotlib.ticker import PercentFormatter

        over = run.spread("validation_accuracy")
        values = [seed.best.validation_accuracy for seed in run.seeds]
        _paint_seeds(axes, run, values, [percent(value) for value in values], over.mean)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        return _keys(run, percent_spread(over.mean, over.sd, len(run.seeds)))

    return draw(
        "seed-accuracy",
        "Validation accuracy by seed",
        f"Accuracy on {run.judged_items} at each seed's best epoch, the best seed on top. The "
        "dashed line is the mean over all seeds.",
        height([seed.name for seed in run.seeds]),
        paint,
    )


def seed_loss(run: Run) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        over = run.spread("validation_loss")
        values = [seed.best.validation_loss for seed in run.seeds]
        _paint_seeds(axes, run, values, [decimals(value) for value in values], over.mean)
        return _keys(run, decimals_spread(over.mean, over.sd, len(run.seeds)))

    return draw(
        "seed-loss",
        "Validation loss by seed",
        "Cross-entropy and weighted KL together, at the same epochs and in the same order. Lower "
        "is better.",
        height([seed.name for seed in run.seeds]),
        paint,
    )


def convergence(run: Run) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        for seed in reversed(run.seeds):  # the best one last, on top of the others
            losses = [epoch.validation_loss for epoch in seed.history.epochs]
            paint_curve(axes, losses, LOOKS[seed.standing], seed.history.best_epoch)
        finish_axes(axes, "validation loss", max(len(one.history.epochs) for one in run.seeds))
        lines = [line_key(LOOKS[one], STANDINGS[one]) for one in _standings(run)]
        return [*lines, dot_key("best epoch")]

    return draw(
        "convergence",
        "Validation loss over epochs",
        f"One line a seed. A dot marks the epoch with the lowest loss{_kept(run)}.",
        CURVE_HEIGHT,
        paint,
    )


def accuracy_gap(run: Run) -> Drawing:
    history = run.selected.history

    def paint(axes: Axes) -> Sequence[Artist]:
        train = [100 * epoch.train_accuracy for epoch in history.epochs]
        validation = [100 * epoch.validation_accuracy for epoch in history.epochs]
        paint_curve(axes, train, TRAINING, history.best_epoch)
        paint_curve(axes, validation, VALIDATION, history.best_epoch)
        finish_axes(axes, "accuracy, %", len(history.epochs))
        return [line_key(TRAINING, "training"), line_key(VALIDATION, "validation")]

    return draw(
        "accuracy-gap",
        "Training and validation accuracy over epochs",
        f"Of the best seed, {history.seed}; dots mark its best epoch. Training figures are running "
        "means with dropout and one sample an item. Validation figures have neither, so that they "
        "may be the higher ones.",
        CURVE_HEIGHT,
        paint,
    )


def _kept(run: Run) -> str:
    if not run.trained.in_folds:
        return ", whose weights were kept"
    return (
        ". Folds take the place of validation, and no seed stops before the last epoch: where the "
        "mean of all lines was lowest tells how long to train on everything"
    )


def _paint_seeds(
    axes: Axes, run: Run, values: Sequence[float], words: Sequence[str], mean: float
) -> None:
    colours = [LOOKS[seed.standing].colour for seed in run.seeds]
    paint_bars(axes, [seed.name for seed in run.seeds], [Bars(values, words, colours)])
    paint_mean(axes, mean)


def _keys(run: Run, mean: str) -> list[Artist]:
    patches = [key(LOOKS[one].colour, STANDINGS[one]) for one in _standings(run)]
    return [*patches, line_key(MEAN, f"mean {mean}")]


def _standings(run: Run) -> list[Standing]:
    """Those that occur, the best first."""
    there = {seed.standing for seed in run.seeds}
    return [standing for standing in LOOKS if standing in there]
