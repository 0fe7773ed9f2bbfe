"""Labelled entities whose features are drawn around one centre per value: quick to learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lpf.datasets import Dataset, DatasetEntity, DatasetItem, assign_splits
from lpf.schema import Predicate, Schema
from lpf.training import Examples, TrainingConfig, make_examples

WIDTH = 24
VALUES = ("low", "medium", "high")
LEVEL = Predicate("level", VALUES)
OUTCOME = Predicate("outcome", ("bad", "good"))
SMALL = TrainingConfig(
    hidden=(32, 16),
    latent_width=8,
    max_epochs=12,
    members=2,
    batch_size=16,
    learning_rate=3e-3,
    model="networks",
)


def features_of(labels: np.ndarray, generator: np.random.Generator, noise: float) -> np.ndarray:
    centres = np.random.default_rng(5).standard_normal((len(VALUES), WIDTH))
    drawn = centres[labels] + noise * generator.standard_normal((len(labels), WIDTH))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def made_up(
    entities: int = 120,
    items: int = 3,
    *,
    seed: int = 0,
    noise: float = 0.8,
    shares: tuple[float, ...] = (0.3, 0.4, 0.3),
    predicates: tuple[Predicate, ...] = (LEVEL,),
    splits: bool = True,
) -> Examples:
    """``outcome`` follows ``level``: good unless it is low."""
    generator = np.random.default_rng(seed)
    values = generator.choice(len(VALUES), entities, p=shares)
    schema = Schema(predicates)
    made = [
        DatasetEntity(f"C{place:04d}", _labels(int(value), schema), _items(place, items))
        for place, value in enumerate(values)
    ]
    dataset = Dataset("made up", schema, tuple(made))
    if splits:
        dataset = assign_splits(dataset, "level", seed=1)
    return make_examples(dataset, features_of(np.repeat(values, items), generator, noise), None)


def labelled(dataset: Dataset, own: np.ndarray) -> Dataset:
    """Items with labels of their own."""
    values = iter(own.tolist())
    return replace(
        dataset,
        entities=tuple(
            replace(
                entity,
                evidence=tuple(
                    replace(item, labels={"level": VALUES[next(values)]})
                    for item in entity.evidence
                ),
            )
            for entity in dataset
        ),
    )


def _labels(value: int, schema: Schema) -> dict[str, str]:
    every = {"level": VALUES[value], "outcome": "bad" if value == 0 else "good"}
    return {name: every[name] for name in every if name in schema}


def _items(place: int, count: int) -> tuple[DatasetItem, ...]:
    return tuple(
        DatasetItem(f"C{place:04d}_E{item}", f"item {item} of {place}", credibility=0.9)
        for item in range(count)
    )
