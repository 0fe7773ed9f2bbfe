"""The figures of a training report: accuracy and loss by seed and over epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lpf.report.bars_and_lines import (
    CURVE_HEIGHT,
    MEAN,
    TRAINING,
    VALIDATION,
    Bars,
    Look,
    dot_key,
    finish_axes,
    height,
    key,
    line_key,
    name_rows,
    paint_bars,
    paint_curve,
    paint_mean,
    write_labels,
)
from lpf.report.drawing import LIGHT, Drawing, draw
from lpf.report.page import decimals, decimals_spread, percent, percent_spread
from lpf.report.training_run import RankedRun, SeedRole

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from lpf.training.stage_two import AggregatorEpoch


LOOKS: dict[SeedRole, Look] = {
    "selected": Look(LIGHT["first"], width=2.2),
    "member": Look(LIGHT["member"], width=1.4),
    "other": Look(LIGHT["other"], ":", 1.4),
}
ROLES: dict[SeedRole, str] = {
    "selected": "★ best, in the model",
    "member": "in the model",
    "other": "not in the model",
}


def seed_accuracy(run: RankedRun) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        from matplotlib.ticker import PercentFormatter

        spread = run.spread("validation_accuracy")
        values = [seed.best.validation_accuracy for seed in run.seeds]
        _paint_seeds(axes, run, values, [percent(value) for value in values], spread.mean)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        return _keys(run, percent_spread(spread.mean, spread.sd, len(run.seeds)))

    return draw(
        "seed-accuracy",
        "Validation accuracy by seed",
        f"Accuracy on {run.scored_items} at each seed's best epoch, the best seed on top. The "
        "dashed line is the mean over all seeds.",
        height([seed.name for seed in run.seeds]),
        paint,
    )


def seed_loss(run: RankedRun) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        spread = run.spread("validation_loss")
        values = [seed.best.validation_loss for seed in run.seeds]
        _paint_seeds(axes, run, values, [decimals(value) for value in values], spread.mean)
        return _keys(run, decimals_spread(spread.mean, spread.sd, len(run.seeds)))

    return draw(
        "seed-loss",
        "Validation loss by seed",
        "Cross-entropy and weighted KL together, at the same epochs and in the same order. Lower "
        "is better.",
        height([seed.name for seed in run.seeds]),
        paint,
    )


def convergence(run: RankedRun) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        for seed in reversed(run.seeds):  # the best one last, on top of the others
            losses = [epoch.validation_loss for epoch in seed.history.epochs]
            paint_curve(axes, losses, LOOKS[seed.role], seed.history.best_epoch)
        finish_axes(axes, "validation loss", max(len(seed.history.epochs) for seed in run.seeds))
        lines = [line_key(LOOKS[role], ROLES[role]) for role in _roles(run)]
        return [*lines, dot_key("best epoch")]

    return draw(
        "convergence",
        "Validation loss over epochs",
        f"One line per seed. A dot marks the epoch with the lowest loss{_use_of_best_epoch(run)}.",
        CURVE_HEIGHT,
        paint,
    )


def accuracy_gap(run: RankedRun) -> Drawing:
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
        f"The best seed, {history.seed}; dots mark its best epoch. Training figures are running "
        "means with dropout and one sample per item. Validation figures have neither, so they can "
        "be higher.",
        CURVE_HEIGHT,
        paint,
    )


def _use_of_best_epoch(run: RankedRun) -> str:
    if not run.trained.in_folds:
        return ", whose weights were used"
    return (
        ". Folds replace validation, and no seed stops before the last epoch: the final model is "
        "trained up to the epoch at which the mean of all lines is lowest"
    )


def _paint_seeds(
    axes: Axes, run: RankedRun, values: Sequence[float], words: Sequence[str], mean: float
) -> None:
    colours = [LOOKS[seed.role].colour for seed in run.seeds]
    paint_bars(axes, [seed.name for seed in run.seeds], [Bars(values, words, colours)])
    paint_mean(axes, mean)


def _keys(run: RankedRun, mean: str) -> list[Artist]:
    patches = [key(LOOKS[role].colour, ROLES[role]) for role in _roles(run)]
    return [*patches, line_key(MEAN, f"mean {mean}")]


def _roles(run: RankedRun) -> list[SeedRole]:
    """The roles that occur, the best first."""
    present = {seed.role for seed in run.seeds}
    return [role for role in LOOKS if role in present]


CROSS_ENTROPY, WEIGHTED_KL = LIGHT["first"], LIGHT["second"]
THIN = 0.8


def loss_parts(run: RankedRun) -> Drawing:
    """Cross-entropy and weighted KL of the best seed at its best epoch."""
    best = run.selected.best
    totals = [best.train_loss, best.validation_loss]
    entropies = [best.train_cross_entropy, best.validation_cross_entropy]

    def paint(axes: Axes) -> Sequence[Artist]:
        rows = np.arange(2.0)
        axes.barh(rows, entropies, 0.55, color=CROSS_ENTROPY)
        axes.barh(rows, np.subtract(totals, entropies), 0.55, left=entropies, color=WEIGHTED_KL)
        name_rows(axes, ["training", "validation"])
        write_labels(axes, rows, [decimals(total) for total in totals])
        return _part_keys()

    return draw("loss-parts", "Parts of the loss", _parts_caption(run), 1.35, paint)


def loss_over_epochs(run: RankedRun) -> Drawing:
    history = run.selected.history

    def paint(axes: Axes) -> Sequence[Artist]:
        entropies = np.array([epoch.validation_cross_entropy for epoch in history.epochs])
        totals = np.array([epoch.validation_loss for epoch in history.epochs])
        edges = np.arange(len(totals) + 1) + 0.5
        axes.stairs(entropies, edges, fill=True, color=CROSS_ENTROPY)
        axes.stairs(totals, edges, baseline=entropies, fill=True, color=WEIGHTED_KL)
        axes.axvline(history.best_epoch, color=LIGHT["ink"], linestyle=":", linewidth=1.4)
        axes.set_ylim(bottom=0)
        finish_axes(axes, "validation loss", len(totals))
        return [*_part_keys(), line_key(Look(LIGHT["ink"], ":", 1.4), "best epoch")]

    return draw(
        "loss-over-epochs",
        "Parts of the validation loss over epochs",
        f"The best seed, {history.seed}. The two parts are stacked; training stops by their sum.",
        CURVE_HEIGHT,
        paint,
    )


def aggregator_loss(run: RankedRun) -> Drawing:
    """Losses of the second stage. The first member is the best seed."""
    members = run.trained.aggregator

    def paint(axes: Axes) -> Sequence[Artist]:
        for epochs in members[:0:-1]:
            _paint_member(axes, epochs, THIN)
        _paint_member(axes, members[0], VALIDATION.width)
        finish_axes(axes, "loss", max(map(len, members)))
        lines = [line_key(TRAINING, "training"), line_key(VALIDATION, "validation")]
        return [*lines, dot_key("lowest validation loss")]

    return draw(
        "aggregator-loss",
        "Loss of the learned aggregator over epochs",
        "Cross-entropy of whole entities in the second stage. Thick lines: the best seed. Thin "
        "lines: the other members.",
        CURVE_HEIGHT,
        paint,
    )


def _paint_member(axes: Axes, epochs: Sequence[AggregatorEpoch], width: float) -> None:
    validation = [epoch.validation_loss for epoch in epochs]
    thin = Look(TRAINING.colour, TRAINING.dashes, width)
    paint_curve(axes, [epoch.train_loss for epoch in epochs], thin)
    paint_curve(
        axes, validation, Look(VALIDATION.colour, width=width), int(np.argmin(validation)) + 1
    )


def _part_keys() -> list[Artist]:
    return [key(CROSS_ENTROPY, "cross-entropy"), key(WEIGHTED_KL, "weighted KL")]


def _parts_caption(run: RankedRun) -> str:
    best = run.selected.best
    part = run.selected.weighted_kl
    share = f" ({percent(part / best.validation_loss)})" if best.validation_loss else ""
    return (
        f"The best seed, {run.selected.number}, at its best epoch. Validation: cross-entropy "
        f"{decimals(best.validation_cross_entropy)} and weighted KL {decimals(part)}{share}; "
        f"KL without its weight is {best.validation_kl:.2f}."
    )
