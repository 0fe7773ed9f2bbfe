"""The tables of a training report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lpf.combine.robust import CREDIBILITY_BOUNDS, expit
from lpf.model.artefact import WARNING_PREFIX
from lpf.report.page import PageColumn, PageRow, bullets, decimals, percent, table
from lpf.report.training_run import RankedRun, RankedSeed, SeedRole

if TYPE_CHECKING:
    from lpf.combine.calibration import CalibrationFit
    from lpf.training.assembly import Trained
    from lpf.training.fitting import FittedParameters, Scores

VARIANTS = {"spn": "LPF-SPN", "learned": "LPF-Learned"}
IN_MODEL: dict[SeedRole, str] = {"selected": "yes, the best", "member": "yes", "other": "no"}

# Name, value and meaning of a fitted parameter.
Explained = tuple[str, str, str]


def seeds_table(run: RankedRun) -> str:
    data = "held-out" if run.trained.in_folds else "validation"
    numbers = (
        f"{data} accuracy",
        "training accuracy",
        f"{data} loss",
        "cross-entropy",
        "KL",
        "weighted KL",
        "best epoch",
        "epochs",
    )
    columns = [
        PageColumn("seed", "word"),
        PageColumn("in the model", "word"),
        *map(PageColumn, numbers),
        PageColumn("converged", "word"),
    ]
    rows = (PageRow(_seed_cells(seed), seed.role == "selected") for seed in run.seeds)
    return table("Every seed at its best epoch, the best first", columns, rows)


def _seed_cells(seed: RankedSeed) -> list[str]:
    best, history = seed.best, seed.history
    return [
        str(seed.number),
        IN_MODEL[seed.role],
        percent(best.validation_accuracy),
        percent(best.train_accuracy),
        decimals(best.validation_loss),
        decimals(best.validation_cross_entropy),
        f"{best.validation_kl:.2f}",
        decimals(seed.weighted_kl),
        str(history.best_epoch),
        str(len(history.epochs)),
        "yes" if history.converged else "no",
    ]


def scores_table(trained: Trained) -> str:
    numbers = (
        "entities",
        "accuracy",
        "accuracy of the class shares",
        "macro F1",
        "NLL",
        "NLL of the class shares",
        "Brier",
        "ECE",
        "ECE by chance",
    )
    columns = [
        PageColumn("split", "word"),
        PageColumn("variant", "word"),
        PageColumn("predicate", "name"),
        *map(PageColumn, numbers),
    ]
    rows = (
        PageRow([one.data, VARIANTS[one.variant], name, *_score_cells(scores)])
        for one in trained.scores
        for name, scores in one.by_predicate.items()
    )
    return table("Scores by split and variant", columns, rows)


def _score_cells(scores: Scores) -> list[str]:
    losses = (scores.nll, scores.class_shares_nll, scores.brier, scores.ece, scores.ece_null)
    return [
        str(scores.entities),
        percent(scores.accuracy),
        percent(scores.class_shares_accuracy),
        percent(scores.macro_f1),
        *map(decimals, losses),
    ]


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
        "Predicates, and the share of each value in training after balancing", columns, rows
    )


def model_table(trained: Trained) -> str:
    columns = [PageColumn("setting", "word"), PageColumn("value", "long")]
    return table("The model's shape", columns, (PageRow(cells) for cells in _shape(trained)))


def _shape(trained: Trained) -> Iterator[tuple[str, str]]:
    config = trained.config
    encoder, decoder, aggregator = config.encoder, config.decoder, config.aggregator
    yield "members", f"{config.members}, of seeds {_joined(config.seeds)}"
    yield "reader", config.reader_id or "not recorded"
    if trained.choice is not None:
        yield "model", trained.choice.describe()
    widths = _joined((encoder.input_width, *encoder.hidden, encoder.latent_width), " → ")
    kind = "deterministic" if encoder.deterministic else "mean and sigma"
    yield "encoder", f"{widths} ({kind}), dropout {encoder.dropout:g}"
    widths = _joined(
        (f"{encoder.latent_width} + {decoder.predicate_width}", *decoder.hidden), " → "
    )
    yield "decoder", f"{widths} → values, dropout {decoder.dropout:g}"
    if aggregator is None:
        yield "learned aggregator", "none"
        return
    yield (
        "learned aggregator",
        f"quality {_joined(aggregator.quality_hidden, ' → ')}, consistency "
        f"{_joined(aggregator.consistency_hidden, ' → ')}, weight "
        f"{_joined(aggregator.weight_hidden, ' → ')}; pairs by {aggregator.pair_input}, "
        f"{'symmetric' if aggregator.symmetric else 'not symmetric'}, weights by "
        f"{aggregator.normalisation}, dropout {aggregator.dropout:g}",
    )


def _joined(values: tuple[object, ...], between: str = ", ") -> str:
    return between.join(map(str, values))


def notes_list(trained: Trained) -> str:
    """The card's notes without the warnings, which the box at the top shows already."""
    notes = [note for note in trained.card.notes if not note.startswith(WARNING_PREFIX)]
    return bullets(notes) if notes else ""


def fitted_tables(trained: Trained) -> str:
    """One table per predicate: each fitted parameter with what it means."""
    columns = [
        PageColumn("parameter", "word"),
        PageColumn("value"),
        PageColumn("what it means", "long"),
    ]
    data = "held-out" if trained.in_folds else "validation"
    return "\n".join(
        table(
            f"{predicate}: fitted on its {data} entities",
            columns,
            map(PageRow, _explained(fitted)),
        )
        for predicate, fitted in trained.fitted.items()
    )


def _explained(fitted: FittedParameters) -> Iterator[Explained]:
    yield from _robust_parameters(fitted.robust)
    yield (
        "minimum credibility",
        decimals(fitted.min_credibility),
        "Questions leave out items below this credibility, unless they say otherwise; at 0 they "
        "use all. It is above 0 only if leaving items out made answers better beyond chance.",
    )
    if fitted.learned_temperature is not None:
        yield (
            "temperature of LPF-Learned",
            decimals(fitted.learned_temperature),
            "Like the temperature above, for the answers of the learned variant.",
        )
    yield from _gains(fitted.robust)


def _robust_parameters(fit: CalibrationFit) -> Iterator[Explained]:
    numbers = fit.parameters
    yield (
        "temperature T",
        decimals(numbers.temperature),
        "Scales the factors of single items: 1 leaves them unchanged; above 1 flattens them, "
        "because the model was overconfident; below 1 sharpens them.",
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
        "Probability that an item of typical or unknown credibility is unrelated to the true "
        "value.",
    )
    yield (
        "slope",
        decimals(numbers.slope),
        "How much credibility changes that probability; at 0 it has no effect.",
    )
    typical = float(expit(np.array(numbers.centre)))
    yield (
        "centre",
        decimals(numbers.centre),
        f"The typical credibility, as log-odds: {percent(typical)}.",
    )
    if numbers.highest < CREDIBILITY_BOUNDS[1]:
        yield (
            "highest credibility",
            percent(numbers.highest),
            "The highest credibility that the slope was fitted on. Anything above counts as this.",
        )
    if numbers.source_epsilon:
        yield (
            "source epsilon",
            decimals(numbers.source_epsilon),
            "Probability that a whole source is unreliable.",
        )


def _gains(fit: CalibrationFit) -> Iterator[Explained]:
    yield (
        "NLL before and after",
        f"{decimals(fit.nll_before)} → {decimals(fit.nll_after)}",
        "Negative log-likelihood of the true values, before and after the fit, on the entities "
        "that were fitted on; lower is better.",
    )
    if fit.nll_cross_fitted is not None:
        yield (
            "NLL after, held out",
            decimals(fit.nll_cross_fitted),
            "The same on entities that were left out of the fit in turn. If it is above the value "
            "before, the fit did not help.",
        )
    yield (
        "entities",
        str(fit.entities),
        "Number of entities that were fitted on."
        if fit.converged
        else "Number of entities that were fitted on. The optimiser did not converge.",
    )
