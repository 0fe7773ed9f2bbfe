"""The report of one training run: a page, its figures, and all numbers as JSON.

The fitted numbers of a predicate, each with a sentence on what it means.

The tables of a training report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lpf.combine.robust import CREDIBILITY_BOUNDS, expit
from lpf.report.documents import as_json, not_finite, training_document
from lpf.report.drawing import Drawing
from lpf.report.page import (
    PageColumn,
    PageRow,
    bullets,
    counted,
    decimals,
    figures,
    glance,
    page,
    paragraph,
    percent,
    percent_spread,
    section,
    table,
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
from lpf.report.training_run import Run, Seed, Standing, weighted_kl
from lpf.storage.atomic_files import write_atomically

if TYPE_CHECKING:
    from lpf.combine.calibration import CalibrationFit
    from lpf.training.assembly import Trained
    from lpf.training.fitting import FittedParameters, Scores


Explained = tuple[str, str, str]


def explained(fitted: FittedParameters) -> Iterator[Explained]:
    """Name, value and meaning of each."""
    yield from _parameters(fitted.robust)
    if fitted.learned_temperature is not None:
        yield (
            "temperature of LPF-Learned",
            decimals(fitted.learned_temperature),
            "The same as the temperature above, for the answers of the learned variant.",
        )
    yield from _gains(fitted.robust)


def _parameters(fit: CalibrationFit) -> Iterator[Explained]:
    numbers = fit.parameters
    yield (
        "temperature T",
        decimals(numbers.temperature),
        "How single items are read: 1 as the model has them; above 1 flatter, as it was too "
        "sure of itself; below 1 sharper.",
    )
    yield (
        "rho ρ",
        decimals(numbers.rho),
        "How much error the items of an entity share: at 0 each counts in full, at 1 all of them "
        "together count as one.",
    )
    yield (
        "epsilon ε",
        decimals(numbers.epsilon),
        "The chance that an item of typical or unknown credibility says nothing of the truth.",
    )
    yield (
        "slope",
        decimals(numbers.slope),
        "How much credibility changes that chance; at 0 it predicts nothing.",
    )
    typical = float(expit(np.array(numbers.centre)))
    yield (
        "centre",
        decimals(numbers.centre),
        f"What counts as typical credibility, as log-odds: {percent(typical)}.",
    )
    if numbers.highest < CREDIBILITY_BOUNDS[1]:
        yield (
            "highest credibility",
            percent(numbers.highest),
            "The highest that the slope was fitted on. One above it counts as this.",
        )
    if numbers.source_epsilon:
        yield (
            "source epsilon",
            decimals(numbers.source_epsilon),
            "The chance that a source is unreliable as a whole.",
        )


def _gains(fit: CalibrationFit) -> Iterator[Explained]:
    yield (
        "NLL before and after",
        f"{decimals(fit.nll_before)} → {decimals(fit.nll_after)}",
        "What the true values cost the model on average, before the fit and after; lower is "
        "better. Measured on the entities that were fitted on.",
    )
    if fit.nll_cross_fitted is not None:
        yield (
            "NLL after, held out",
            decimals(fit.nll_cross_fitted),
            "The same on entities left out of the fit in turn. If it is above the value before, "
            "the fit did not help.",
        )
    yield (
        "entities",
        str(fit.entities),
        "Entities it was fitted on."
        if fit.converged
        else "Entities it was fitted on. The search for the numbers did not settle.",
    )


VARIANTS = {"spn": "LPF-SPN", "learned": "LPF-Learned"}
IN_MODEL: dict[Standing, str] = {"selected": "yes, the best", "member": "yes", "other": "no"}
CAUTION = "caution: "  # such notes of a card stand in the box at the top already


def seeds_table(run: Run) -> str:
    judged = "held-out" if run.trained.in_folds else "validation"
    columns = [
        PageColumn("seed", "word"),
        PageColumn("in the model", "word"),
        *map(
            PageColumn,
            (
                f"{judged} accuracy",
                "training accuracy",
                f"{judged} loss",
                "cross-entropy",
                "KL",
                "weighted KL",
                "best epoch",
                "epochs",
            ),
        ),
        PageColumn("converged", "word"),
    ]
    rows = (PageRow(_seed_cells(seed), seed.standing == "selected") for seed in run.seeds)
    return table("Every seed at its best epoch, the best first", columns, rows)


def scores_table(trained: Trained) -> str:
    columns = [
        PageColumn("split", "word"),
        PageColumn("variant", "word"),
        PageColumn("predicate", "name"),
        *map(
            PageColumn,
            (
                "entities",
                "accuracy",
                "macro F1",
                "NLL",
                "NLL of the prior",
                "Brier",
                "ECE",
                "ECE by chance",
            ),
        ),
    ]
    rows = (
        PageRow([one.data, VARIANTS[one.variant], name, *_score_cells(scores)])
        for one in trained.scores
        for name, scores in one.by_predicate.items()
    )
    return table("Scores by split and variant", columns, rows)


def fitted_tables(trained: Trained) -> str:
    columns = [
        PageColumn("number", "word"),
        PageColumn("value"),
        PageColumn("what it means", "long"),
    ]
    return "\n".join(
        table(
            f"Of {predicate}, from its {'held-out' if trained.in_folds else 'validation'} entities",
            columns,
            map(PageRow, explained(fitted)),
        )
        for predicate, fitted in trained.fitted.items()
    )


def values_table(trained: Trained) -> str:
    columns = [
        PageColumn("predicate", "name"),
        PageColumn("value", "name"),
        PageColumn("share in training"),
    ]
    rows = (
        PageRow([head.name, value, percent(share)])
        for head in trained.config.predicates
        for value, share in zip(head.values, head.training_shares, strict=True)
    )
    return table(
        "What is asked, and how often each value was met in training, balancing included",
        columns,
        rows,
    )


def model_table(trained: Trained) -> str:
    columns = [PageColumn("setting", "word"), PageColumn("value", "long")]
    return table("The model's shape", columns, (PageRow(cells) for cells in _shape(trained)))


def notes_list(trained: Trained) -> str:
    notes = [note for note in trained.card.notes if not note.startswith(CAUTION)]
    return bullets(notes) if notes else ""


def _seed_cells(seed: Seed) -> list[str]:
    best, history = seed.best, seed.history
    return [
        str(seed.number),
        IN_MODEL[seed.standing],
        percent(best.validation_accuracy),
        percent(best.train_accuracy),
        decimals(best.validation_loss),
        decimals(best.validation_cross_entropy),
        f"{best.validation_kl:.2f}",
        decimals(weighted_kl(best.validation_loss, best.validation_cross_entropy)),
        str(history.best_epoch),
        str(len(history.epochs)),
        "yes" if history.converged else "no",
    ]


def _score_cells(scores: Scores) -> list[str]:
    losses = (scores.nll, scores.prior_nll, scores.brier, scores.ece, scores.ece_null)
    return [
        str(scores.entities),
        percent(scores.accuracy),
        percent(scores.macro_f1),
        *map(decimals, losses),
    ]


def _shape(trained: Trained) -> Iterator[tuple[str, str]]:
    config = trained.config
    encoder, decoder, aggregator = config.encoder, config.decoder, config.aggregator
    yield "members", f"{config.members}, of seeds {_listed(config.seeds)}"
    yield "reader", config.reader_id or "not recorded"
    if trained.choice is not None:
        yield "reading", trained.choice.describe().removeprefix("reading: ")
    widths = _listed((encoder.input_width, *encoder.hidden, encoder.latent_width), " → ")
    kind = "deterministic" if encoder.deterministic else "mean and sigma"
    yield "encoder", f"{widths} ({kind}), dropout {encoder.dropout:g}"
    widths = _listed(
        (f"{encoder.latent_width} + {decoder.predicate_width}", *decoder.hidden), " → "
    )
    yield "decoder", f"{widths} → values, dropout {decoder.dropout:g}"
    if aggregator is None:
        yield "learned aggregator", "none"
        return
    yield (
        "learned aggregator",
        f"quality {_listed(aggregator.quality_hidden, ' → ')}, consistency "
        f"{_listed(aggregator.consistency_hidden, ' → ')}, weight "
        f"{_listed(aggregator.weight_hidden, ' → ')}; pairs by {aggregator.pair_input}, "
        f"{'symmetric' if aggregator.symmetric else 'not symmetric'}, weights by "
        f"{aggregator.normalisation}, dropout {aggregator.dropout:g}",
    )


def _listed(values: tuple[object, ...], between: str = ", ") -> str:
    return between.join(map(str, values))


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
    cautions = [*trained.warnings, *number_warnings(list(not_finite(document)), NUMBERS)]
    drawings = {drawing.name: drawing for drawing in _drawings(run)}
    whole = page(f"Training report: {dataset_name}", _parts(run, cautions, drawings))
    for drawing in drawings.values():
        drawing.write(folder)
    write_atomically(folder / NUMBERS, as_json(document))
    write_atomically(folder / PAGE, whole.encode())
    return folder / PAGE


def number_warnings(places: Sequence[str], file: str) -> Iterator[str]:
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
    yield warnings_box(cautions)
    yield glance(list(_at_a_glance(run)))
    yield section("Data", paragraph(trained.card.data), values_table(trained))
    judged = FOLDS if trained.in_folds else SCORES
    yield section("Scores", paragraph(judged), scores_table(trained))
    yield section("Seeds", seeds_table(run), shown("seed-accuracy", "seed-loss"))
    yield section("How training went", shown("convergence", "accuracy-gap"))
    yield section("Loss", shown("loss-parts", "loss-over-epochs"))
    if trained.aggregator:
        yield section("Learned aggregator", shown("aggregator-loss"))
    yield section("FittedParameters numbers", fitted_tables(trained))
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
    """Scores of whole entities, on those that are the most independent of training."""
    held_out = trained.held_out
    where = held_out.data if trained.in_folds else f"on {held_out.data} entities"
    for name, scores in held_out.by_predicate.items():
        yield f"{name}: accuracy {where}", percent(scores.accuracy)
        yield f"{name}: calibration error (ECE) {where}", decimals(scores.ece)
