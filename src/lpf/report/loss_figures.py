"""Figures of what the losses are made of, and of the second stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lpf.report.bars import key, name_rows, write_beside
from lpf.report.curves import (
    CURVE_HEIGHT,
    TRAINING,
    VALIDATION,
    Look,
    dot_key,
    finish_axes,
    line_key,
    paint_curve,
)
from lpf.report.drawing import Drawing, draw
from lpf.report.palette import LIGHT
from lpf.report.run import Run, weighted_kl
from lpf.report.words import decimals, percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from lpf.training.stage_two import AggregatorEpoch

CROSS_ENTROPY, WEIGHTED_KL = LIGHT["first"], LIGHT["second"]
THIN = 0.8


def loss_parts(run: Run) -> Drawing:
    """Of the best seed at its best epoch."""
    best = run.selected.best
    totals = [best.train_loss, best.validation_loss]
    entropies = [best.train_cross_entropy, best.validation_cross_entropy]

    def paint(axes: Axes) -> Sequence[Artist]:
        rows = np.arange(2.0)
        axes.barh(rows, entropies, 0.55, color=CROSS_ENTROPY)
        axes.barh(rows, np.subtract(totals, entropies), 0.55, left=entropies, color=WEIGHTED_KL)
        name_rows(axes, ["training", "validation"])
        write_beside(axes, rows, [decimals(total) for total in totals])
        return _part_keys()

    return draw("loss-parts", "What the loss is made of", _parts_caption(run), 1.35, paint)


def loss_over_epochs(run: Run) -> Drawing:
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
        f"Of the best seed, {history.seed}. Both parts stand on each other; their sum tells how "
        "long to train.",
        CURVE_HEIGHT,
        paint,
    )


def aggregator_loss(run: Run) -> Drawing:
    """Of the second stage. The first member is the best seed."""
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
        "Cross-entropy of whole entities in the second stage. Thick lines are the best seed's, "
        "thin ones those of the other members.",
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


def _parts_caption(run: Run) -> str:
    best = run.selected.best
    part = weighted_kl(best.validation_loss, best.validation_cross_entropy)
    share = f" ({percent(part / best.validation_loss)})" if best.validation_loss else ""
    return (
        f"Of the best seed, {run.selected.number}, at its best epoch. Validation: cross-entropy "
        f"{decimals(best.validation_cross_entropy)} and weighted KL {decimals(part)}{share}; "
        f"unweighted, KL is {best.validation_kl:.2f}."
    )
