"""The report of one training run: a page, its figures, and all numbers as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.report.drawing import Drawing
from lpf.report.page import (
    counted,
    decimals,
    figures,
    glance,
    make_page,
    paragraph,
    percent,
    percent_spread,
    section,
    warnings_box,
)
from lpf.report.training_figures import (
    accuracy_gap,
    aggregator_loss,
    convergence,
    loss_over_epochs,
    loss_parts,
    seed_accuracy,
    seed_loss,
)
from lpf.report.training_run import RankedRun, as_json, null_warnings
from lpf.report.training_tables import (
    fitted_tables,
    model_table,
    notes_list,
    scores_table,
    seeds_table,
    values_table,
)
from lpf.storage.atomic_files import write_atomically

if TYPE_CHECKING:
    from lpf.training.assembly import Trained

PAGE = "training.html"
NUMBERS = "training.json"
SEEDS = "Seeds"  # the section that also has a table
FOLDS = (
    "Answers about whole entities, from all their items. There were too few entities for splits: "
    "each was answered by models that were not trained on it; if there were enough, temperature, "
    "rho and epsilon were also fitted without it. An ECE below the one by chance is consistent "
    "with perfect calibration."
)
SPLITS = (
    "Answers about whole entities, from all their items. Temperature, rho and epsilon were fitted "
    "on the validation entities, so scores on them are optimistic; scores on test entities are "
    "not. An ECE below the one by chance is consistent with perfect calibration."
)


def write_training_report(trained: Trained, folder: Path, *, dataset_name: str) -> Path:
    """Write the page, ``training.json`` and each figure as PNG and SVG; return the page's path.

    The same run gives the same bytes. ConfigError if matplotlib is not installed.
    """
    run = RankedRun.of(trained)
    document = run.to_dict(dataset_name)
    warnings = [*trained.warnings, *null_warnings(document, NUMBERS)]
    drawings = _drawings(run)
    html = make_page(f"Training report: {dataset_name}", _parts(run, warnings, drawings))
    for drawing in chain.from_iterable(drawings.values()):
        drawing.write(folder)
    write_atomically(folder / NUMBERS, as_json(document))
    write_atomically(folder / PAGE, html.encode())
    return folder / PAGE


def _drawings(run: RankedRun) -> dict[str, list[Drawing]]:
    """All figures, by the section that shows them."""
    drawings = {
        SEEDS: [seed_accuracy(run), seed_loss(run)],
        "How training went": [convergence(run), accuracy_gap(run)],
        "Loss": [loss_parts(run), loss_over_epochs(run)],
    }
    if run.trained.aggregator:
        drawings["Learned aggregator"] = [aggregator_loss(run)]
    return drawings


def _parts(
    run: RankedRun, warnings: Sequence[str], drawings: Mapping[str, Sequence[Drawing]]
) -> Iterator[str]:
    trained = run.trained
    yield warnings_box(warnings)
    yield glance([*_seeds_at_a_glance(run), *_scores_at_a_glance(trained)])
    yield section("Data", paragraph(trained.card.data), values_table(trained))
    how = FOLDS if trained.in_folds else SPLITS
    yield section("Scores", paragraph(how), scores_table(trained))
    for title, shown in drawings.items():
        tables = [seeds_table(run)] if title == SEEDS else []
        yield section(title, *tables, figures(shown))
    yield section("Fitted parameters", fitted_tables(trained))
    yield section("Settings", model_table(trained), notes_list(trained))
    uses = (trained.card.intended_use, f"Not for: {trained.card.unsuitable_use}")
    yield section("Intended use", *map(paragraph, uses))
    yield f"<footer>Every number on this page is also in {NUMBERS}.</footer>"


def _seeds_at_a_glance(run: RankedRun) -> Iterator[tuple[str, str]]:
    accuracy = run.spread("validation_accuracy")
    count = len(run.seeds)
    scored_on = "held-out folds" if run.trained.in_folds else "validation"
    yield (
        f"Item accuracy on {scored_on}, {counted(count, 'seed', 'seeds')}",
        percent_spread(accuracy.mean, accuracy.sd, count),
    )
    yield f"Item accuracy of the best seed, {run.selected.number}", percent(accuracy.selected)
    converged = sum(seed.history.converged for seed in run.seeds)
    yield "Seeds that converged", f"{converged} of {count}"


def _scores_at_a_glance(trained: Trained) -> Iterator[tuple[str, str]]:
    held_out = trained.held_out
    where = held_out.data if trained.in_folds else f"on {held_out.data} entities"
    for name, scores in held_out.by_predicate.items():
        shares = percent(scores.class_shares_accuracy)
        yield f"{name}: accuracy {where}, class shares {shares}", percent(scores.accuracy)
        yield f"{name}: calibration error (ECE) {where}", decimals(scores.ece)
