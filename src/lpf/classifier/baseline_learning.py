"""A baseline from its data to its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lpf.classifier.entities import PREDICATE, Entity
from lpf.classifier.labels import Classes
from lpf.classifier.lesson import Lesson, dataset_item
from lpf.classifier.methods import Recipe
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.datasets.splits import LEAST_IN_TRAIN
from lpf.errors import DatasetError
from lpf.metrics.checked import checked_probabilities
from lpf.schema import Schema
from lpf.types import Float32Array, FloatArray

if TYPE_CHECKING:
    from lpf.baselines import FittedMethod, Temperature
    from lpf.training import Examples

LEAST = {"train": LEAST_IN_TRAIN, "validation": 1}  # entities of each class


@dataclass(frozen=True)
class FittedBaseline:
    """What was learned: ``answering`` has ``temperature`` in it, where one was fitted."""

    name: str
    is_tempered: bool
    classes: Classes
    schema: Schema
    answering: FittedMethod
    temperature: Temperature | None
    reader_id: str
    with_claim: bool
    cautions: tuple[str, ...]

    def distribution(
        self, entities: Sequence[Entity], features: Float32Array, copy_similarity: float | None
    ) -> FloatArray:
        """[E, V]; ``features`` are of all items. The prior for entities without evidence."""
        from lpf.training import make_examples

        answers = np.tile(np.array(self.schema[PREDICATE].prior), (len(entities), 1))
        filled = np.array([bool(entity.evidence) for entity in entities], bool)
        if filled.any():
            asked = _asked(entities, self.schema)
            examples = make_examples(asked, features, copy_similarity)
            answers[filled] = checked_probabilities(self.answering.predict_proba(examples))
        return answers


def learn_baseline(
    recipe: Recipe, lesson: Lesson, examples: Examples, reader_id: str, *, tempered: bool
) -> FittedBaseline:
    """``examples`` are those of the lesson, in splits. References are never tempered."""
    from lpf.baselines import with_temperature
    from lpf.baselines.running import TEMPERING

    _require_both_sides(examples.dataset, lesson.classes)
    train, validation = examples.split("train"), examples.split("validation")
    assert train is not None  # both were checked above
    assert validation is not None
    recipe.require_enough(train.dataset)
    method = recipe.made(examples, reader_id)
    answering = method.fit(train, validation, PREDICATE, recipe.seed)
    temperature = None
    if tempered and not method.is_reference:
        generator = np.random.default_rng([recipe.seed, TEMPERING])
        scaled = with_temperature(answering, validation, PREDICATE, generator=generator)
        answering, temperature = scaled, scaled.temperature
    return FittedBaseline(
        recipe.name,
        tempered,
        lesson.classes,
        lesson.dataset.schema,
        answering,
        temperature,
        reader_id,
        lesson.with_claim,
        _cautions(examples.dataset, temperature is not None),
    )


def _require_both_sides(dataset: Dataset, classes: Classes) -> None:
    """DatasetError where train or validation has too few entities of a class."""
    labels = dataset.labels(PREDICATE)
    splits = np.array([entity.split for entity in dataset])
    for split, least in LEAST.items():
        counts = np.bincount(labels[splits == split], minlength=len(classes.labels))
        for label, count in zip(classes.labels, counts.tolist(), strict=True):
            if count < least:
                raise DatasetError(
                    f"X: {count} of the {counts.sum()} {split} entities are of the class "
                    f"{label!r}, and at least {least} must be. Nothing was trained; label more, "
                    "set another validation_share, or give validation entities."
                )


def _asked(entities: Sequence[Entity], schema: Schema) -> Dataset:
    """Those with evidence, as a stranger sees them: no label of any kind."""
    asked = tuple(
        DatasetEntity(f"X[{place}]", {}, tuple(_items(entity, place)), entity.claim)
        for place, entity in enumerate(entities)
        if entity.evidence
    )
    return Dataset("X", schema, asked)


def _items(entity: Entity, place: int) -> list[DatasetItem]:
    return [
        dataset_item(item, f"X[{place}][{number}]", {})
        for number, item in enumerate(entity.evidence)
    ]


def _cautions(dataset: Dataset, tempered: bool) -> tuple[str, ...]:
    from lpf.training.cautions import data_cautions, prior_cautions, size_cautions

    cautions = list(data_cautions(dataset))
    if tempered:
        cautions += size_cautions(PREDICATE, len(dataset.positions("validation")))
    train = dataset.labels(PREDICATE)[dataset.positions("train")]
    cautions += prior_cautions(dataset.schema[PREDICATE], train)
    return tuple(cautions)
