"""Entities that tell how sure answers are: for prediction sets, deferral and what an answer says of
itself.

If there are enough validation entities, a third of them is held apart and used for nothing else. If
not, the answers about held-out entities that training has anyway are taken: from fits without the
entity's fold, or about validation entities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lpf.datasets import Dataset, DatasetEntity, grouped_folds
from lpf.engine import Engine
from lpf.errors import ConfigError, DatasetError
from lpf.metrics.groups import few_groups
from lpf.model.config import HeldOutConfig
from lpf.model.held_out import HeldOutAnswers, HeldOutKind
from lpf.model.runtime import Runtime
from lpf.schema import Schema
from lpf.training.examples import Examples
from lpf.types import FloatArray, QueryOptions

FEWEST_TO_SHARE = 300  # validation entities, of which some may be held apart
PARTS = 3  # a third of the validation entities is held apart
PARTS_SEED, ORDER_SEED = 0, 0


def hold_apart(examples: Examples, predicates: tuple[str, ...]) -> Examples:
    """The same entities, some of which no longer belong to a split: they are held apart. None are
    if there are few validation entities, or if entities are of few groups."""
    dataset = examples.dataset
    places = dataset.positions("validation")
    validation = dataset.select(places.tolist())
    if len(places) < FEWEST_TO_SHARE or few_groups([one.group_id for one in dataset]) is not None:
        return examples
    first, *others = predicates
    try:
        part = grouped_folds(validation, first, PARTS, PARTS_SEED, others)[0]
    except (ConfigError, DatasetError):  # a value's entities are of so few groups that they stay
        return examples
    chosen = set(places[part].tolist())
    splits = [None if place in chosen else one.split for place, one in enumerate(dataset)]
    return replace(examples, dataset=dataset.in_splits(splits))


def is_learned(entity: DatasetEntity) -> bool:
    """True for training and validation entities: a model may be fitted to them."""
    return entity.split in ("train", "validation")


def apart(examples: Examples) -> Examples | None:
    """The entities that are held apart; None if there are none."""
    places = np.flatnonzero([entity.split is None for entity in examples.dataset])
    return examples.select(places) if len(places) else None


def as_given(dataset: Dataset) -> Dataset:
    """The data set as it was before ``hold_apart``."""
    return dataset.in_splits([entity.split or "validation" for entity in dataset])


def held_out_answers(
    kind: HeldOutKind, distribution: FloatArray, dataset: Dataset, predicate: str
) -> HeldOutAnswers:
    """``distribution`` [E, V] are the answers about the entities of ``dataset``, all labelled. They
    are stored in random order, so that the first entity of a group is a random one."""
    numbers: dict[str | int, int] = {}
    groups = np.array(
        [
            numbers.setdefault(place if one.group_id is None else one.group_id, len(numbers))
            for place, one in enumerate(dataset)
        ],
        np.intp,
    )
    order = np.random.default_rng(ORDER_SEED).permutation(len(dataset))
    labels = dataset.labels(predicate)
    return HeldOutAnswers.from_answers(kind, distribution[order], labels[order], groups[order])


def answers_apart(
    runtime: Runtime, schema: Schema, predicate: str, held: Examples
) -> HeldOutAnswers | None:
    """The finished model's answers about the entities held apart, as questions get them; None if
    none is labelled."""
    places = np.flatnonzero(held.dataset.labels(predicate) >= 0)
    if not len(places):
        return None
    labelled = held.select(places)
    engine, items, options = Engine(runtime, schema), labelled.items, QueryOptions()
    rows = engine.countable(items, predicate, options)
    used = items if rows is None else items.select(rows)
    distribution = engine.answer(used, predicate, options).distribution
    return held_out_answers("apart", distribution, labelled.dataset, predicate)


def with_held_out(runtime: Runtime, found: Mapping[str, HeldOutAnswers | None]) -> Runtime:
    """The same model, which now also knows how sure its answers about held-out entities were."""
    known = {name: one for name, one in found.items() if one is not None}
    config = replace(
        runtime.config,
        held_out={
            **runtime.config.held_out,
            **{name: HeldOutConfig(len(one), one.kind) for name, one in known.items()},
        },
    )
    tensors = dict(runtime.tensors)
    for name, one in known.items():
        tensors |= one.tensors(name)
    return Runtime(config, tensors, runtime.version)
