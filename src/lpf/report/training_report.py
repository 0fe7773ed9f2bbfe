"""The report of one training run: a page, its figures, and all numbers as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.report.documents import as_json, not_finite, training_document
from lpf.report.drawing import Drawing
from lpf.report.loss_figures import aggregator_loss, loss_over_epochs, loss_parts
from lpf.report.page import cautions_box, figures, glance, page, paragraph, section
from lpf.report.run import Run
from lpf.report.seed_figures import accuracy_gap, convergence, seed_accuracy, seed_loss
from lpf.report.training_tables import (
    fitted_tables,
    model_table,
    notes_list,
    scores_table,
    seeds_table,
    values_table,
)
from lpf.report.words import counted, decimals, percent, percent_spread
from lpf.storage.files import write_atomically

if TYPE_CHECKING:
    from lpf.training.assembling import Trained

PAGE = "training.html"
NUMBERS = "training.json"
MOST_PLACES = 5  # that a caution names
FOLDS = (
    "Answers about whole entities, from all their items. Entities were too few for splits: models "
    "that had not seen an entity answered about it, with temperature, rho and epsilon fitted to "
    "others of them where there were enough. An ECE below what chance shows cannot be told from "
    "perfect calibration."
)
SCORES = (
    "Answers about whole entities, from all their items. Temperature, rho and epsilon were fitted "
    "on the validation entities, whose scores flatter the model therefore; those on test entities "
    "do not. An ECE below what chance shows cannot be told from perfect calibration."
)


def write_training_report(trained: Trained, folder: Path, *, dataset_name: str) -> Path:
    """Writes the page, ``training.json`` and each figure as PNG and SVG; returns the page's path.
    The same run gives the same bytes. ConfigError where matplotlib is not installed."""
    run = Run.of(trained)
    document = training_document(run, dataset_name)
    cautions = [*trained.cautions, *number_cautions(list(not_finite(document)), NUMBERS)]
    drawings = {drawing.name: drawing for drawing in _drawings(run)}
    whole = page(f"Training report: {dataset_name}", _parts(run, cautions, drawings))
    for drawing in drawings.values():
        drawing.write(folder)
    write_atomically(folder / NUMBERS, as_json(document))
    write_atomically(folder / PAGE, whole.encode())
    return folder / PAGE


def number_cautions(places: Sequence[str], file: str) -> Iterator[str]:
    """What a page says of numbers that are none, so that nobody takes a gap for a zero."""
    if places:
        more = ", …" if len(places) > MOST_PLACES else ""
        yield (
            f"{counted(len(places), 'number is', 'numbers are')} infinite or undefined and missing "
            f"from the figures; {file} has null there: {', '.join(places[:MOST_PLACES])}{more}."
        )


def _drawings(run: Run) -> Iterator[Drawing]:
    yield from (seed_accuracy(run), seed_loss(run), convergence(run), accuracy_gap(run))
    yield from (loss_parts(run), loss_over_epochs(run))
    if run.trained.aggregator:
        yield aggregator_loss(run)


def _parts(run: Run, cautions: Sequence[str], drawings: dict[str, Drawing]) -> Iterator[str]:
    def shown(*names: str) -> str:
        return figures(drawings[name] for name in names)

    trained = run.trained
    yield cautions_box(cautions)
    yield glance(list(_at_a_glance(run)))
    yield section("Data", paragraph(trained.card.data), values_table(trained))
    judged = FOLDS if trained.in_folds else SCORES
    yield section("Scores", paragraph(judged), scores_table(trained))
    yield section("Seeds", seeds_table(run), shown("seed-accuracy", "seed-loss"))
    yield section("How training went", shown("convergence", "accuracy-gap"))
    yield section("Loss", shown("loss-parts", "loss-over-epochs"))
    if trained.aggregator:
        yield section("Learned aggregator", shown("aggregator-loss"))
    yield section("Fitted numbers", fitted_tables(trained))
    yield section("Settings", model_table(trained), notes_list(trained))
    uses = (trained.card.intended_use, f"Not for: {trained.card.unsuitable_use}")
    yield section("What it is for", *map(paragraph, uses))
    yield f"<footer>Every number of this page stands in {NUMBERS} beside it.</footer>"


def _at_a_glance(run: Run) -> Iterator[tuple[str, str]]:
    over = run.spread("validation_accuracy")
    count = len(run.seeds)
    yield (
        f"Item accuracy on {'held-out folds' if run.trained.in_folds else 'validation'}, "
        f"{counted(count, 'seed', 'seeds')}",
        percent_spread(over.mean, over.sd, count),
    )
    yield f"Item accuracy of the best seed, {run.selected.number}", percent(over.selected)
    converged = sum(seed.history.converged for seed in run.seeds)
    yield "Seeds that converged", f"{converged} of {count}"
    yield from _judged(run.trained)


def _judged(trained: Trained) -> Iterator[tuple[str, str]]:
    """Of answers about whole entities: on test entities, or on others where there are none."""
    for split in ("test", "validation", "out of fold"):
        found = trained.scores.get(f"{split}/spn")
        if found is not None:
            for name, scores in found.items():
                where = split if trained.in_folds else f"on {split} entities"
                yield f"{name}: accuracy {where}", percent(scores.accuracy)
                yield f"{name}: calibration error (ECE) {where}", decimals(scores.ece)
            return
