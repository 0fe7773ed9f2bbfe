"""A file of labelled entities in splits: its own, or those of a fold."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from lpf.datasets import Dataset, Split, assign_splits, grouped_folds, read_dataset
from lpf.errors import ConfigError, DatasetError
from lpf.experiments.cells import FileData
from lpf.schema import Schema
from lpf.training.material import training_shares

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
