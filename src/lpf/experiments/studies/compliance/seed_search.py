"""The search for networks on compliance, seed by seed: what training printed of each."""

from __future__ import annotations

from collections.abc import Sequence

from lpf.experiments.exhibits import Column, Figure, Row, Series, Standing, Table, Value
from lpf.experiments.plan import Plan
from lpf.experiments.printed.tables import PrintedTable, printed_table
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.compliance.cells import lesson
from lpf.experiments.studies.tables import printed_value
from lpf.training.history import SeedHistory, spread

SEED_COLUMNS = (
    Column("validation_accuracy", "Items right", "share", "higher", 4),
    Column("validation_loss", "Validation loss", "number", "lower", 4),
    Column("validation_cross_entropy", "Cross-entropy", "number", "lower", 4),
    Column("validation_kl", "KL", "number", None, 2),
    Column("best_epoch", "Best epoch", "count", None, 0),
)


def seeds_table(plan: Plan, book: Book) -> Table:
    """With what the paper prints beside it."""
    beside = printed_table("compliance_seeds")
    histories = book.shelf.kept(lesson(plan)).histories
    accuracy = spread(histories, "validation_accuracy")
    return Table(
        "seeds",
        "The search, seed by seed",
        f"Single items of validation companies; {accuracy.mean:.4f} ± {accuracy.sd:.4f} over "
        f"all, {accuracy.selected:.4f} for the selected one.",
        SEED_COLUMNS,
        tuple(_row(history, beside) for history in histories),
    )


def training_figures(plan: Plan, book: Book) -> list[Figure]:
    histories = book.shelf.kept(lesson(plan)).histories
    return [_accuracy_figure(histories), _loss_figure(histories)]


def _row(history: SeedHistory, beside: PrintedTable) -> Row:
    cells = []
    for column in SEED_COLUMNS:
        paper, doubt = printed_value(beside, str(history.seed), column.name)
        cells.append(Value(_of(history, column.name), paper=paper, doubt=doubt))
    note = None if history.converged else "stopped by the number of epochs, not by patience"
    return Row(str(history.seed), f"Seed {history.seed}", tuple(cells), "rival", note)


def _of(history: SeedHistory, name: str) -> float:
    return float(history.best_epoch if name == "best_epoch" else getattr(history.best, name))


def _accuracy_figure(histories: Sequence[SeedHistory]) -> Figure:
    right = [history.best.validation_accuracy for history in histories]
    return Figure(
        "seed_variance",
        "How much the seed matters",
        "Accuracy on single items of validation companies, at the best epoch of each seed.",
        "bars",
        "Seed",
        "Accuracy",
        (_bars("Validation items right", histories, right, "ours"),),
    )


def _loss_figure(histories: Sequence[SeedHistory]) -> Figure:
    best = [history.best for history in histories]
    entropies = [epoch.validation_cross_entropy for epoch in best]
    weighted = [epoch.validation_loss - epoch.validation_cross_entropy for epoch in best]
    return Figure(
        "loss_parts",
        "What the loss is made of",
        "Validation loss of each seed at its best epoch, in its two parts.",
        "bars",
        "Seed",
        "Loss",
        (
            _bars("Cross-entropy", histories, entropies, "ours"),
            _bars("β·KL", histories, weighted, "rival"),
        ),
    )


def _bars(
    name: str, histories: Sequence[SeedHistory], heights: Sequence[float], standing: Standing
) -> Series:
    seeds = tuple(str(history.seed) for history in histories)
    return Series(name, seeds, tuple(heights), standing=standing)
