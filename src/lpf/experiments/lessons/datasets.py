"""What a lesson is learned from: a domain's data set or a file's, whole or bounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpf.datasets import Dataset
from lpf.domains import GeneratorParameters, generate, load_domain, preset, with_settings
from lpf.experiments.cells import DomainData, Lesson
from lpf.experiments.lessons.files import file_dataset
from lpf.types import FloatArray

FEW_SEED = 45


def lesson_dataset(lesson: Lesson) -> tuple[Dataset, str]:
    """The data set in its three splits, and the predicate that it is about."""
    if isinstance(lesson.data, DomainData):
        domain = load_domain(lesson.data.domain)
        dataset = generate(domain, generator_parameters(lesson.data), seed=lesson.data.seed)
        predicate = domain.predicate
    else:
        dataset, predicate = file_dataset(lesson.data)
    return _at_most(dataset, lesson.entities, predicate, lesson.seed), predicate


def generator_parameters(data: DomainData) -> GeneratorParameters:
    return with_settings(preset(data.preset), data.changes)


def _at_most(dataset: Dataset, entities: int | None, predicate: str, seed: int) -> Dataset:
    """As many training entities as asked for, each value in its share. Of one seed, fewer are
    among more."""
    train = dataset.positions("train")
    if entities is None or entities >= len(train):
        return dataset
    rank = _ranks(dataset.labels(predicate)[train], seed)
    kept = set(train[np.argsort(rank, kind="stable")[:entities]].tolist())
    left_out = set(train.tolist()) - kept
    return dataset.select([place for place in range(len(dataset)) if place not in left_out])


def _ranks(labels: NDArray[np.intp], seed: int) -> FloatArray:
    """The place of each within its value, in an order drawn by chance, as a share."""
    order = np.random.default_rng([seed, FEW_SEED]).permutation(len(labels))
    rank = np.empty(len(labels))
    for value in np.unique(labels):
        of_value = order[labels[order] == value]
        rank[of_value] = (np.arange(len(of_value)) + 0.5) / len(of_value)
    return rank
