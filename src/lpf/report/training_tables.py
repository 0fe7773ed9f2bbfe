"""The tables of a training report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lpf.report.fitted_words import explained
from lpf.report.page import Column, Row, bullets, table
from lpf.report.run import Run, Seed, Standing, weighted_kl
from lpf.report.words import decimals, percent

if TYPE_CHECKING:
    from lpf.training.assembling import Trained
    from lpf.training.evaluation import Scores

VARIANTS = {"spn": "LPF-SPN", "learned": "LPF-Learned"}
IN_MODEL: dict[Standing, str] = {"selected": "yes, the best", "member": "yes", "other": "no"}
CAUTION = "caution: "  # such notes of a card stand in the box at the top already


def seeds_table(run: Run) -> str:
    judged = "held-out" if run.trained.in_folds else "validation"
    columns = [
        Column("seed", "word"),
        Column("in the model", "word"),
        *map(
            Column,
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
        Column("converged", "word"),
    ]
    rows = (Row(_seed_cells(seed), seed.standing == "selected") for seed in run.seeds)
    return table("Every seed at its best epoch, the best first", columns, rows)


def scores_table(trained: Trained) -> str:
    columns = [
        Column("split", "word"),
        Column("variant", "word"),
        Column("predicate", "name"),
        *map(
            Column,
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
        Row([*_place(place), name, *_score_cells(scores)])
        for place, by_predicate in trained.scores.items()
        for name, scores in by_predicate.items()
    )
    return table("Scores by split and variant", columns, rows)


def fitted_tables(trained: Trained) -> str:
    columns = [Column("number", "word"), Column("value"), Column("what it means", "long")]
    return "\n".join(
        table(
            f"Of {predicate}, from its {'held-out' if trained.in_folds else 'validation'} entities",
            columns,
            map(Row, explained(fitted)),
        )
        for predicate, fitted in trained.fitted.items()
    )


def values_table(trained: Trained) -> str:
    columns = [Column("predicate", "name"), Column("value", "name"), Column("share in training")]
    rows = (
        Row([head.name, value, percent(share)])
        for head in trained.config.predicates
        for value, share in zip(head.values, head.training_shares, strict=True)
    )
    return table(
        "What is asked, and how often each value was met in training, balancing included",
        columns,
        rows,
    )


def model_table(trained: Trained) -> str:
    columns = [Column("setting", "word"), Column("value", "long")]
    return table("The model's shape", columns, (Row(cells) for cells in _shape(trained)))


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


def _place(place: str) -> list[str]:
    """Split and variant, from their joint name."""
    split, variant = place.split("/")
    return [split, VARIANTS[variant]]


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
    if trained.reading is not None:
        yield "reading", trained.reading.told().removeprefix("reading: ")
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
