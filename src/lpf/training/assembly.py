"""From a search to a model: its members, what is fitted for them, and its card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lpf.datasets import Dataset
from lpf.model.artefact import OUT_OF_FOLD, ModelCard, save_model
from lpf.model.config import DecoderConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.model.runtime import Runtime
from lpf.training.config import TrainingConfig
from lpf.training.fitting import FittedParameters, Scores
from lpf.training.history import SeedHistory, ranked, spread
from lpf.training.linear import ReadingChoice
from lpf.training.stage_two import AggregatorHistory
from lpf.types import Float32Array

INTENDED = (
    "Turning short texts like those it was trained on into probabilities for the predicates below, "
    "together with other items about the same entity."
)
UNSUITABLE = (
    "Texts of another kind or language, predicates it was not trained on, decisions about people "
    "without a person who reads the evidence."
)
METRICS = ("accuracy", "nll", "prior_nll", "brier", "ece", "ece_null", "entities")


@dataclass(frozen=True)
class Trained:
    """A model that is ready to be saved, and all that happened on the way."""

    config: ModelConfig
    tensors: Mapping[str, Float32Array]
    card: ModelCard
    histories: tuple[SeedHistory, ...]
    aggregator: AggregatorHistory
    fitted: Mapping[str, FittedParameters]
    scores: Mapping[str, Mapping[str, Scores]]  # "validation/spn" -> predicate -> scores
    cautions: tuple[str, ...]
    reading: ReadingChoice | None = None  # None where nothing was to be chosen

    @property
    def networks_in_it(self) -> frozenset[int]:
        """The seeds whose networks are part of the model: none where a linear reading is."""
        return frozenset() if _is_linear(self.reading) else frozenset(self.config.seeds)

    @property
    def in_folds(self) -> bool:
        """Whether entities were too few for splits: folds tell of unseen ones."""
        return OUT_OF_FOLD in self.scores

    def save(self, models: Path) -> str:
        """Writes the model to ``models/<version>`` and returns the version."""
        return save_model(models, self.config, self.tensors, self.card)

    def runtime(self) -> Runtime:
        return Runtime(self.config, self.tensors)


def model_config(
    heads: Sequence[PredicateHead],
    config: TrainingConfig,
    seeds: Sequence[int],
    reader_id: str,
    input_width: int,
) -> ModelConfig:
    """The shape of a model with one member a seed."""
    return ModelConfig(
        tuple(heads),
        EncoderConfig(
            input_width, config.hidden, config.latent_width, config.dropout, config.deterministic
        ),
        DecoderConfig(dropout=config.dropout),
        None,
        len(seeds),
        tuple(seeds),
        reader_id,
    )


def choose(
    model: ModelConfig, tensors: Mapping[str, Float32Array], places: Sequence[int]
) -> tuple[ModelConfig, dict[str, Float32Array]]:
    """The members at ``places``, in this order."""
    seeds = tuple(model.seeds[place] for place in places)
    chosen = {name: array[list(places)] for name, array in tensors.items()}
    return replace(model, members=len(seeds), seeds=seeds), chosen


def make_card(
    name: str,
    dataset: Dataset,
    config: TrainingConfig,
    histories: Sequence[SeedHistory],
    runtime: Runtime,
    fitted: Mapping[str, FittedParameters],
    scores: Mapping[str, Mapping[str, Scores]],
    cautions: Sequence[str],
    reading: ReadingChoice | None = None,
) -> ModelCard:
    in_folds = OUT_OF_FOLD in scores
    networks = _network_notes(config, histories, in_folds)
    if _is_linear(reading):
        networks = [f"of networks that do not answer: {note}" for note in networks]
    chosen = [] if reading is None else [reading.told()]
    fits = _fitted_notes(runtime, fitted)
    members = _member_note(histories, runtime, in_folds or _is_linear(reading))
    notes = [members, *networks, *chosen, *fits]
    return ModelCard(
        name,
        describe_data(dataset, in_folds),
        INTENDED,
        UNSUITABLE,
        _card_metrics(histories, fitted, scores, _is_linear(reading)),
        (*notes, *(f"caution: {caution}" for caution in cautions)),
    )


def describe_data(dataset: Dataset, in_folds: bool) -> str:
    splits = [entity.split for entity in dataset]
    counts = [f"{splits.count(split)} {split}" for split in ("train", "validation", "test")]
    use = ", all trained on, judged in folds" if in_folds else f" ({', '.join(counts)})"
    return (
        f"{dataset.name}: {len(dataset)} entities{use}, {int(dataset.offsets[-1])} items; sha256 "
        f"{dataset.digest[:16]}."
    )


def _is_linear(reading: ReadingChoice | None) -> bool:
    return reading is not None and reading.is_linear


def _member_note(histories: Sequence[SeedHistory], runtime: Runtime, unranked: bool) -> str:
    members = list(runtime.config.seeds)
    if unranked:
        return f"members: one for each of the seeds {members}"
    return f"seeds {[one.seed for one in histories]}; members, best first: {members}"


def _network_notes(
    config: TrainingConfig, histories: Sequence[SeedHistory], in_folds: bool
) -> list[str]:
    judged = "held-out items of folds" if in_folds else "validation items"
    # Folds tell when to stop, and batches are as small as few items ask for.
    stopping = "" if in_folds else f"patience {config.patience}, batch {config.batch_size}, "
    return [
        f"accuracy on {judged} over all seeds {_spread(histories, 'validation_accuracy')}; loss "
        f"{_spread(histories, 'validation_loss')}",
        f"learning rate {config.learning_rate:g}, beta {config.beta:g}, {stopping}weight decay "
        f"{config.weight_decay:g}, hidden {list(config.hidden)}, latent {config.latent_width}",
    ]


def _spread(histories: Sequence[SeedHistory], name: str) -> str:
    """One seed has no spread."""
    found = spread(histories, name)
    if len(histories) == 1:
        return f"{found.mean:.4f}"
    return f"{found.mean:.4f} ± {found.sd:.4f}, selected {found.selected:.4f}"


def _fitted_notes(runtime: Runtime, fitted: Mapping[str, FittedParameters]) -> list[str]:
    notes = []
    for name, one in fitted.items():
        numbers = one.robust.parameters
        notes.append(
            f"{name}: fitted on {one.robust.entities} entities: temperature "
            f"{numbers.temperature:.4f}, rho {numbers.rho:.4f}, epsilon {numbers.epsilon:.4f}, "
            f"slope {numbers.slope:.4f} around credibility logit {numbers.centre:.4f} up to "
            f"credibility {numbers.highest:.4f}; NLL "
            f"{one.robust.nll_before:.4f} before, {one.robust.nll_after:.4f} after{_held(one)}"
        )
        if one.learned_temperature is not None:
            notes.append(f"{name}: temperature of LPF-Learned {one.learned_temperature:.4f}")
    return notes


def _held(one: FittedParameters) -> str:
    held_out = one.robust.nll_cross_fitted
    return "" if held_out is None else f", {held_out:.4f} on held-out folds"


def _card_metrics(
    histories: Sequence[SeedHistory],
    fitted: Mapping[str, FittedParameters],
    scores: Mapping[str, Mapping[str, Scores]],
    linear: bool,
) -> dict[str, float]:
    listed = {}
    if not linear:
        best = histories[ranked(histories)[0]].best
        listed["item_validation_accuracy"] = round(best.validation_accuracy, 6)
    for predicate, one in fitted.items():
        listed[f"{predicate}/nll_fitted"] = round(one.robust.nll_after, 6)
        if one.robust.nll_cross_fitted is not None:
            listed[f"{predicate}/nll_cross_fitted"] = round(one.robust.nll_cross_fitted, 6)
    for place, by_predicate in scores.items():
        for predicate, found in by_predicate.items():
            for name in METRICS:
                listed[f"{predicate}/{place}/{name}"] = round(getattr(found, name), 6)
    return listed
