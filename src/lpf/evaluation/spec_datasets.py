"""Who is asked about: the train_spec's own test entities or new ones, and what is done to their
evidence.

A file of labelled entities in splits: its own, or those of a fold.

What a train_spec is learned from: a domain's data set or a file's, whole or bounded.

The best items of each entity, chosen as a question chooses them.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lpf.datasets import Dataset, DatasetEntity, Split, assign_splits, grouped_folds, read_dataset
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
from lpf.schema import Schema
from lpf.storage.values import to_micros
from lpf.training.material import training_shares
from lpf.types import FloatArray

SPLIT_SEED, FOLD_SEED = 42, 7


def file_dataset(data: FileData) -> tuple[Dataset, str]:
    """A file in splits: its own, or those of a fold. Its prior is that of what is learned from."""
    _require_unchanged(data)
    dataset, predicate = labelled_file(Path(data.path), data.predicate)
    if data.folds:
        placed = _in_fold(dataset, predicate, data)
    else:
        placed = _in_given_splits(dataset, predicate)
    return _with_prior(placed, predicate), predicate


def _require_unchanged(data: FileData) -> None:
    """Answers are kept under the digest: they must come from that very file."""
    found = hashlib.sha256(Path(data.path).read_bytes()).hexdigest()
    if found != data.digest:
        raise DatasetError(
            f"{data.path}: was changed while it was evaluated. What was kept is of the file as it "
            "was; repeat the command to evaluate it as it is."
        )


def labelled_file(path: Path, predicate: str | None) -> tuple[Dataset, str]:
    """The entities that have a value of the predicate, the first one labelled where none is
    named. ConfigError for one that the file does not label."""
    dataset = read_dataset(path)
    if predicate is None:
        predicate = next(iter(dataset.schema)).name
    else:
        _require_labelled(path, dataset, predicate)
    if all(predicate in entity.labels for entity in dataset):
        return dataset, predicate
    return read_dataset(path, predicate=predicate), predicate


def _require_labelled(path: Path, dataset: Dataset, predicate: str) -> None:
    """A plain ``label`` is called that: by any other name it would be learned all over again."""
    names = sorted({name for entity in dataset for name in entity.labels})
    if predicate not in names:
        raise ConfigError(
            f"predicate: no entity of {path} has a label of {predicate!r}; they have {names}. "
            "Nothing was evaluated. Name one of these, or none for the first."
        )


def has_own_test(dataset: Dataset) -> bool:
    """Whether the file says who is to be asked about, and leaves somebody to learn from."""
    splits = {entity.split for entity in dataset}
    return None not in splits and "test" in splits and len(splits) > 1


def _in_given_splits(dataset: Dataset, predicate: str) -> Dataset:
    """Whoever is not asked about is learned from; part of them validate where none are said to."""
    if not has_own_test(dataset):
        raise DatasetError(
            f"dataset {dataset.name!r}: has no test entities, or nobody else. Nothing was "
            "evaluated; evaluate it with folds."
        )
    splits = {entity.split for entity in dataset}
    if splits == {"train", "validation", "test"}:
        return dataset
    learned: list[Split | None] = [
        "test" if entity.split == "test" else "train" for entity in dataset
    ]
    return assign_splits(dataset.in_splits(learned), predicate, seed=SPLIT_SEED)


def _in_fold(dataset: Dataset, predicate: str, data: FileData) -> Dataset:
    folds = grouped_folds(dataset, predicate, data.folds, FOLD_SEED)
    asked = set(folds[data.fold].tolist())
    splits: list[Split | None] = [
        "test" if place in asked else "train" for place in range(len(dataset))
    ]
    return assign_splits(dataset.in_splits(splits), predicate, seed=SPLIT_SEED + data.fold)


def _with_prior(dataset: Dataset, predicate: str) -> Dataset:
    """A file says nothing of how frequent values are; who is learned from does."""
    train = dataset.labels(predicate)[dataset.positions("train")]
    known = train[train >= 0]
    values = dataset.schema[predicate].values
    shares = training_shares(known, len(values), np.ones(len(known)))
    predicates = tuple(
        replace(one, prior=tuple(shares.tolist())) if one.name == predicate else one
        for one in dataset.schema
    )
    return replace(dataset, schema=Schema(predicates))


FEW_SEED = 45


def train_dataset(train_spec: TrainSpec) -> tuple[Dataset, str]:
    """The data set in its three splits, and the predicate that it is about."""
    if isinstance(train_spec.data, DomainData):
        domain = load_domain(train_spec.data.domain)
        dataset = generate(domain, generator_parameters(train_spec.data), seed=train_spec.data.seed)
        predicate = domain.predicate
    else:
        dataset, predicate = file_dataset(train_spec.data)
    return _at_most(dataset, train_spec.entities, predicate, train_spec.seed), predicate


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


def best_items(dataset: Dataset, top_k: int) -> Dataset:
    """At most ``top_k`` items an entity: by credibility and age as of its newest item, in the order
    they stood in. What a generator knows of the entity is dropped where items are."""
    if top_k < 1:
        raise ConfigError(f"top_k: must be 1 or above, got {top_k}. Nothing was left out.")
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
    kept = sorted(best_first(scores, moments)[:top_k])
    return replace(entity, evidence=tuple(entity.evidence[place] for place in kept), truth=None)


def eval_dataset(eval_spec: EvalSpec, train_spec: Dataset, predicate: str) -> Dataset:
    """Who is asked about, with what was done to their evidence."""
    if eval_spec.data is None:
        asked = train_spec.select(train_spec.positions("test").tolist())
    else:
        asked = _new_entities(eval_spec.data, eval_spec.entities, train_spec, predicate)
    if eval_spec.change is not None:
        asked = eval_spec.change.apply(asked, predicate)
    return asked if eval_spec.top_k is None else best_items(asked, eval_spec.top_k)


def _new_entities(data: DomainData, entities: int, train_spec: Dataset, predicate: str) -> Dataset:
    domain = load_domain(data.domain)
    made = generate_test(domain, generator_parameters(data), seed=data.seed, entities=entities)
    return _in_words_of(train_spec, made, predicate, domain.predicate)


def _in_words_of(train_spec: Dataset, asked: Dataset, predicate: str, other: str) -> Dataset:
    """Entities of another domain, their values renamed by place: the lowest is the lowest."""
    if other == predicate:
        return replace(asked, schema=train_spec.schema)
    ours, theirs = train_spec.schema[predicate].values, asked.schema[other].values
    if len(ours) != len(theirs):
        raise DatasetError(
            f"{predicate!r} has {len(ours)} values and {other!r} {len(theirs)}, so one cannot be "
            "asked in the words of the other. Nothing was asked."
        )
    words = dict(zip(theirs, ours, strict=True))
    entities = (_relabelled(one, predicate, words[one.labels[other]]) for one in asked)
    return replace(asked, schema=train_spec.schema, entities=tuple(entities))


def _relabelled(entity: DatasetEntity, predicate: str, value: str) -> DatasetEntity:
    """What the generator knows of it speaks of its own values and is dropped."""
    return replace(
        entity,
        labels={predicate: value},
        evidence=tuple(replace(item, labels={}, truth=None) for item in entity.evidence),
        facts={},
        truth=None,
    )
