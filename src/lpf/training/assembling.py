"""From a search to a model: its members, what is fitted for them, and its card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lpf.datasets import Dataset
from lpf.model.artefact import save_model
from lpf.model.card import ModelCard
from lpf.model.config import DecoderConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.model.runtime import Runtime
from lpf.training.evaluation import Scores
from lpf.training.fitting import Fitted
from lpf.training.history import SeedHistory, ranked, spread
from lpf.training.reading_choice import ReadingChoice
from lpf.training.settings import TrainingConfig
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


@dataclass(frozen=True)
class Trained:
    """A model that is ready to be saved, and all that happened on the way."""

    config: ModelConfig
    tensors: Mapping[str, Float32Array]
    card: ModelCard
    histories: tuple[SeedHistory, ...]
    aggregator: AggregatorHistory
    fitted: Mapping[str, Fitted]
    scores: Mapping[str, Mapping[str, Scores]]  # "validation/spn" -> predicate -> scores
    cautions: tuple[str, ...]
    reading: ReadingChoice | None = None  # None where nothing was to be chosen

    @property
    def networks_in_it(self) -> frozenset[int]:
        """The seeds whose networks are part of the model: none where a linear reading is."""
        linear = self.reading is not None and self.reading.is_linear
        return frozenset() if linear else frozenset(self.config.seeds)

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
    fitted: Mapping[str, Fitted],
    scores: Mapping[str, Mapping[str, Scores]],
    cautions: Sequence[str],
    reading: ReadingChoice | None = None,
) -> ModelCard:
    chosen = [] if reading is None else [reading.told()]
    fits = _fitted_notes(runtime, fitted)
    notes = [*_training_notes(config, histories, runtime), *chosen, *fits]
    return ModelCard(
        name,
        describe_data(dataset),
        INTENDED,
        UNSUITABLE,
        _card_metrics(histories, scores),
        (*notes, *(f"caution: {caution}" for caution in cautions)),
    )


def describe_data(dataset: Dataset) -> str:
    splits = [entity.split for entity in dataset]
    counts = [f"{splits.count(split)} {split}" for split in ("train", "validation", "test")]
    return (
        f"{dataset.name}: {len(dataset)} entities ({', '.join(counts)}), "
        f"{int(dataset.offsets[-1])} items; sha256 {dataset.digest[:16]}."
    )


def _training_notes(
    config: TrainingConfig, histories: Sequence[SeedHistory], runtime: Runtime
) -> list[str]:
    accuracy, loss = (
        spread(histories, name) for name in ("validation_accuracy", "validation_loss")
    )
    return [
        f"seeds {[one.seed for one in histories]}; members, best first: "
        f"{list(runtime.config.seeds)}",
        f"item accuracy on validation over all seeds {accuracy.mean:.4f} ± {accuracy.sd:.4f}, "
        f"selected {accuracy.selected:.4f}; loss {loss.mean:.4f} ± {loss.sd:.4f}, "
        f"selected {loss.selected:.4f}",
        f"learning rate {config.learning_rate:g}, beta {config.beta:g}, patience "
        f"{config.patience}, batch {config.batch_size}, weight decay {config.weight_decay:g}, "
        f"hidden {list(config.hidden)}, latent {config.latent_width}",
    ]


def _fitted_notes(runtime: Runtime, fitted: Mapping[str, Fitted]) -> list[str]:
    notes = []
    for name, one in fitted.items():
        numbers = one.robust.parameters
        notes.append(
            f"{name}: fitted on {one.robust.entities} entities: temperature "
            f"{numbers.temperature:.4f}, rho {numbers.rho:.4f}, epsilon {numbers.epsilon:.4f}, "
            f"slope {numbers.slope:.4f} around credibility logit {numbers.centre:.4f} up to "
            f"credibility {numbers.highest:.4f}; NLL "
            f"{one.robust.nll_before:.4f} before, {one.robust.nll_after:.4f} after"
        )
        if one.learned_temperature is not None:
            notes.append(f"{name}: temperature of LPF-Learned {one.learned_temperature:.4f}")
    return notes


def _card_metrics(
    histories: Sequence[SeedHistory], scores: Mapping[str, Mapping[str, Scores]]
) -> dict[str, float]:
    best = histories[ranked(histories)[0]].best
    listed = {"item_validation_accuracy": round(best.validation_accuracy, 6)}
    for place, by_predicate in scores.items():
        for predicate, found in by_predicate.items():
            for name in ("accuracy", "nll", "brier", "ece", "ece_null", "entities"):
                listed[f"{predicate}/{place}/{name}"] = round(getattr(found, name), 6)
    return listed
