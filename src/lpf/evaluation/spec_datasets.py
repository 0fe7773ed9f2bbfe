"""The data sets of specs: training data of a ``TrainSpec``, test entities of an ``EvalSpec``.

A domain is generated. A file comes in its own splits, or in those of one fold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lpf.datasets import Dataset, DatasetEntity, Split, assign_splits, grouped_folds
from lpf.domains import (
    GeneratorParameters,
    generate,
    generate_test,
    load_domain,
    preset,
    with_settings,
)
from lpf.errors import ConfigError, DatasetError
from lpf.evaluation.specs import DomainData, EvalSpec, FileData, TrainSpec
from lpf.index.ranking import Ranker, RankingConfig, best_first
from lpf.ingest import FileOptions, read_labelled
from lpf.metrics.groups import few_groups, group_weights
from lpf.schema import Schema
from lpf.storage.values import to_micros
from lpf.training.fitting import class_shares
from lpf.types import FloatArray

SPLIT_SEED, FOLD_SEED, SUBSET_SEED = 42, 7, 45


class DataSources:
    """Data sets by digest. Each is read once: those that are not given are read from their file
    when they are first needed."""

    def __init__(self, datasets: Mapping[str, Dataset] | None = None) -> None:
        self._datasets = dict(datasets or {})

    def dataset(self, data: FileData) -> Dataset:
        """DatasetError if the file has changed since its digest was computed."""
        if data.digest not in self._datasets:
            dataset, digest = read_with_digest(Path(data.path))
            if digest != data.digest:
                raise DatasetError(
                    f"{data.path} was changed while it was evaluated. Stored results belong to "
                    "the earlier content. Repeat the command to evaluate the new content."
                )
            self._datasets[digest] = dataset
        return self._datasets[data.digest]


def read_with_digest(path: Path, options: FileOptions | None = None) -> tuple[Dataset, str]:
    """A data file and the SHA-256 of its bytes, or of the data set if ``options`` decide what is
    read from them."""
    dataset = read_labelled(path, options=options)  # first: it says what is wrong with a path
    if options is not None and options.given:
        return dataset, dataset_digest(dataset)
    with path.open("rb") as file:
        return dataset, hashlib.file_digest(file, "sha256").hexdigest()


def dataset_digest(dataset: Dataset) -> str:
    """SHA-256 of a data set in memory, including fields that only an evaluation uses."""
    extra = [[entity.entity_id, dict(entity.fields), entity.truth] for entity in dataset]
    text = json.dumps([dataset.digest, extra], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def labelled_dataset(dataset: Dataset, predicate: str | None) -> tuple[Dataset, str]:
    """The entities that have a value of the predicate, by default the first one in the schema.
    ConfigError for a predicate that the data set does not label."""
    if predicate is None:
        predicate = next(iter(dataset.schema)).name
    names = sorted({name for entity in dataset for name in entity.labels})
    if predicate not in names:
        raise ConfigError(
            f"no entity of {dataset.name!r} has a label of {predicate!r}; they have {names}. "
            "Nothing was evaluated.",
            field="predicate",
            hint="Name one of these, or none for the first.",
        )
    unlabelled = [entity.entity_id for entity in dataset if predicate not in entity.labels]
    if not unlabelled:
        return dataset, predicate
    note = (
        f"{len(unlabelled):,} {'entity has' if len(unlabelled) == 1 else 'entities have'} no label "
        f"of {predicate!r} and {'was' if len(unlabelled) == 1 else 'were'} left out (first: "
        f"{unlabelled[0]})."
    )
    labelled = tuple(entity for entity in dataset if predicate in entity.labels)
    return replace(dataset, entities=labelled, exclusions=(*dataset.exclusions, note)), predicate


def file_dataset(data: FileData, sources: DataSources | None = None) -> tuple[Dataset, str]:
    """A file in splits, its own or those of a fold, and the predicate. The prior of the schema is
    that of the training entities."""
    source = (sources or DataSources()).dataset(data)
    dataset, predicate = labelled_dataset(source, data.predicate)
    if data.folds:
        in_splits = _in_fold(dataset, predicate, data)
    else:
        in_splits = _in_given_splits(dataset, predicate)
    return _with_prior(in_splits, predicate), predicate


def has_own_test(dataset: Dataset) -> bool:
    """Return True if every entity has a split, and there are test entities and others."""
    splits = {entity.split for entity in dataset}
    return None not in splits and "test" in splits and len(splits) > 1


def _in_given_splits(dataset: Dataset, predicate: str) -> Dataset:
    """All but test entities are for training; part of them become validation entities if the file
    has none."""
    if not has_own_test(dataset):
        raise DatasetError(
            f"dataset {dataset.name!r} has no test entities, or no others. Nothing was evaluated.",
            hint="Evaluate it with folds.",
        )
    splits = {entity.split for entity in dataset}
    if splits == {"train", "validation", "test"}:
        return dataset
    train_or_test: list[Split | None] = [
        "test" if entity.split == "test" else "train" for entity in dataset
    ]
    return assign_splits(dataset.in_splits(train_or_test), predicate, seed=SPLIT_SEED)


def _in_fold(dataset: Dataset, predicate: str, data: FileData) -> Dataset:
    folds = grouped_folds(dataset, predicate, data.folds, FOLD_SEED)
    test = set(folds[data.fold].tolist())
    splits: list[Split | None] = [
        "test" if place in test else "train" for place in range(len(dataset))
    ]
    return assign_splits(dataset.in_splits(splits), predicate, seed=SPLIT_SEED + data.fold)


def _with_prior(dataset: Dataset, predicate: str) -> Dataset:
    """A file does not state how frequent values are; its training entities show it. Those of few
    groups count less: a new group may have other shares."""
    train = dataset.select(dataset.positions("train").tolist())
    groups = few_groups([entity.group_id for entity in train])
    labels, values = train.labels(predicate), dataset.schema[predicate].values
    shares = class_shares(labels, len(values), group_weights(labels, groups))
    predicates = tuple(
        replace(one, prior=tuple(shares.tolist())) if one.name == predicate else one
        for one in dataset.schema
    )
    return replace(dataset, schema=Schema(predicates))


def train_dataset(train_spec: TrainSpec, sources: DataSources | None = None) -> tuple[Dataset, str]:
    """The data set in its three splits, and the predicate to learn."""
    if isinstance(train_spec.data, DomainData):
        domain = load_domain(train_spec.data.domain)
        dataset = generate(domain, generator_parameters(train_spec.data), seed=train_spec.data.seed)
        predicate = domain.predicate
    else:
        dataset, predicate = file_dataset(train_spec.data, sources)
    return _at_most(dataset, train_spec.entities, predicate, train_spec.seed), predicate


def generator_parameters(data: DomainData) -> GeneratorParameters:
    return with_settings(preset(data.preset), data.changes)


def _at_most(dataset: Dataset, entities: int | None, predicate: str, seed: int) -> Dataset:
    """At most ``entities`` training entities, each value in its share. With one seed, a smaller
    selection is part of a larger one."""
    train = dataset.positions("train")
    if entities is None or entities >= len(train):
        return dataset
    rank = _ranks(dataset.labels(predicate)[train], seed)
    chosen = set(train[np.argsort(rank, kind="stable")[:entities]].tolist())
    left_out = set(train.tolist()) - chosen
    return dataset.select([place for place in range(len(dataset)) if place not in left_out])


def _ranks(labels: NDArray[np.intp], seed: int) -> FloatArray:
    """The rank of each entity among those of its value, in random order, as a share."""
    order = np.random.default_rng([seed, SUBSET_SEED]).permutation(len(labels))
    rank = np.empty(len(labels))
    for value in np.unique(labels):
        of_value = order[labels[order] == value]
        rank[of_value] = (np.arange(len(of_value)) + 0.5) / len(of_value)
    return rank


def best_items(dataset: Dataset, top_k: int) -> Dataset:
    """At most ``top_k`` items per entity: the best by credibility and age as of its newest item, in
    their original order. An entity that loses items also loses its generated ``truth``."""
    if top_k < 1:
        raise ConfigError(f"must be 1 or above, got {top_k}.", field="top_k")
    ranker = Ranker(RankingConfig())
    return replace(
        dataset, entities=tuple(_cut(entity, top_k, ranker) for entity in dataset.entities)
    )


def _cut(entity: DatasetEntity, top_k: int, ranker: Ranker) -> DatasetEntity:
    if len(entity.evidence) <= top_k:
        return entity
    moments = [
        None if item.timestamp is None else to_micros(item.timestamp) for item in entity.evidence
    ]
    newest = max((moment for moment in moments if moment is not None), default=0)
    scores = ranker.scores([item.credibility for item in entity.evidence], moments, newest)
    best = sorted(best_first(scores, moments)[:top_k])
    return replace(entity, evidence=tuple(entity.evidence[place] for place in best), truth=None)


def eval_dataset(eval_spec: EvalSpec, training: Dataset, predicate: str) -> Dataset:
    """The test entities, with their evidence changed as the spec says."""
    if eval_spec.data is None:
        test = training.select(training.positions("test").tolist())
    else:
        test = _new_entities(eval_spec.data, eval_spec.entities, training, predicate)
    if eval_spec.change is not None:
        test = eval_spec.change.apply(test, predicate)
    return test if eval_spec.top_k is None else best_items(test, eval_spec.top_k)


def _new_entities(data: DomainData, entities: int, training: Dataset, predicate: str) -> Dataset:
    domain = load_domain(data.domain)
    test = generate_test(domain, generator_parameters(data), seed=data.seed, entities=entities)
    return _with_training_values(training, test, predicate, domain.predicate)


def _with_training_values(training: Dataset, test: Dataset, predicate: str, other: str) -> Dataset:
    """Entities of another domain, their values renamed by position: the lowest is the lowest."""
    if other == predicate:
        return replace(test, schema=training.schema)
    values, other_values = training.schema[predicate].values, test.schema[other].values
    if len(values) != len(other_values):
        raise DatasetError(
            f"{predicate!r} has {len(values)} values and {other!r} has {len(other_values)}, so the "
            "values of one cannot be mapped to those of the other. Nothing was evaluated."
        )
    names = dict(zip(other_values, values, strict=True))
    entities = (_relabelled(one, predicate, names[one.labels[other]]) for one in test)
    return replace(test, schema=training.schema, entities=tuple(entities))


def _relabelled(entity: DatasetEntity, predicate: str, value: str) -> DatasetEntity:
    """Without the generator's knowledge about the entity, which is about the other values."""
    return replace(
        entity,
        labels={predicate: value},
        evidence=tuple(replace(item, labels={}, truth=None) for item in entity.evidence),
        facts={},
        truth=None,
    )
