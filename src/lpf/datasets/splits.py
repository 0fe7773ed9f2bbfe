"""Splits and folds: whole groups, every value in its share, alike on every machine.

Placing groups into parts of stated shares, for every value at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lpf.datasets.dataset import SPLITS, UNLABELLED, Dataset, Split
from lpf.errors import ConfigError, DatasetError


def placed_groups(
    counts: NDArray[np.int64], shares: Sequence[float], generator: np.random.Generator
) -> NDArray[np.intp]:
    """The part of each group, [G], for the number of entities it has of each value, [G, V].

    The largest groups are placed first, equal ones in random order, each into the part that brings

        Σ_parts Σ_values (wanted - placed)² / share

    down most, of those parts that have room for it or else the most room. Plain Python numbers are
    alike on every machine, so that no near tie falls another way elsewhere.
    """
    order = generator.permutation(len(counts))
    order = order[np.argsort(-counts.sum(axis=1)[order], kind="stable")]
    parts = [part for part, share in enumerate(shares) if share > 0]
    totals = counts.sum(axis=0).tolist()
    wanted = [[share * total for total in totals] for share in shares]
    room = rounded_shares(sum(totals), shares)
    placed = np.empty(len(counts), dtype=np.intp)
    rows = counts.tolist()
    for group in order.tolist():
        row = rows[group]
        size = sum(row)
        least = min(size, max(room[part] for part in parts))
        roomy = [part for part in parts if room[part] >= least]
        best = max(roomy, key=lambda part: _gain(row, wanted[part]) / shares[part])
        placed[group] = best
        room[best] -= size
        wanted[best] = [want - count for want, count in zip(wanted[best], row, strict=True)]
    return placed


def rounded_shares(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers that sum to ``total``, by largest remainder."""
    exact = [share * total for share in shares]
    whole = [math.floor(number) for number in exact]
    by_remainder = sorted(range(len(shares)), key=lambda part: whole[part] - exact[part])
    for part in by_remainder[: total - sum(whole)]:
        whole[part] += 1
    return whole


def _gain(row: Sequence[int], wanted: Sequence[float]) -> float:
    """How much Σ wanted² falls where ``row`` is taken from ``wanted``."""
    return math.fsum(
        count * (2.0 * want - count) for count, want in zip(row, wanted, strict=True) if count
    )


DEFAULT_SHARES = (0.7, 0.15, 0.15)
LEAST_IN_TRAIN = 2
_TOLERANCE = 1e-9
_NOT_TRAINED = "Nothing was trained."
_MEND = "Add entities, or take the splits out of the data set to have them assigned anew."


def assign_splits(
    dataset: Dataset,
    predicate: str,
    *,
    shares: tuple[float, float, float] = DEFAULT_SHARES,
    seed: int,
    also: Sequence[str] = (),
) -> Dataset:
    """The entities in train, validation and test.

    Splits that every entity has are kept; where these are train and test alone, validation is
    taken out of train, and ``exclusions`` says so. Else all are assigned: no group is split, and
    every value of ``predicate``, and of those in ``also``, is in each split as near to ``shares``
    as the groups allow.
    DatasetError where only some entities have a split.
    """
    _check_shares(shares)
    given = {entity.split for entity in dataset}
    if given == {None}:
        everyone = np.arange(len(dataset))
        parts = _parts(dataset, (predicate, *also), everyone, shares, seed)
        return dataset.in_splits([SPLITS[part] for part in parts])
    if None in given:
        raise _partly_assigned(dataset)
    if given == {"train", "test"}:
        return _with_validation(dataset, (predicate, *also), shares, seed)
    return dataset


def grouped_folds(
    dataset: Dataset, predicate: str, folds: int, seed: int, also: Sequence[str] = ()
) -> tuple[NDArray[np.intp], ...]:
    """The positions of each fold's entities, rising: disjoint, together all, placed by the same
    rules as splits. DatasetError where what is outside a fold would lack a value."""
    predicates = (predicate, *also)
    groups = len(set(_group_names(dataset)))
    if not 2 <= folds <= groups:
        raise ConfigError(
            f"folds: must be 2 to {groups}, as many as the data set has groups, got {folds}."
        )
    parts = _parts(dataset, predicates, np.arange(len(dataset)), (1.0 / folds,) * folds, seed)
    found = tuple(np.flatnonzero(parts == fold) for fold in range(folds))
    for name in predicates:
        _check_folds(dataset, name, found)
    return found


def require_trainable(dataset: Dataset, predicate: str) -> None:
    """DatasetError unless every entity has a value of ``predicate`` and a split, there are train
    and validation, and every value is in each split, twice in train. A data set without test
    entities can be trained on; it is judged elsewhere."""
    values = dataset.schema[predicate].values
    problem = _gap(dataset, predicate) or _class_gap(dataset.labels(predicate), values)
    for split in SPLITS:
        problem = problem or _split_gap(dataset, predicate, split)
    if problem:
        raise DatasetError(f"dataset {dataset.name!r}: {problem}")


def _gap(dataset: Dataset, predicate: str) -> str | None:
    """What some entity lacks."""
    unlabelled = [entity.entity_id for entity in dataset if predicate not in entity.labels]
    if unlabelled:
        return (
            f"{len(unlabelled):,} entities have no value of {predicate!r} (first: "
            f"{unlabelled[0]}). {_NOT_TRAINED} Read the file with predicate={predicate!r}, which "
            "leaves them out."
        )
    without = [entity.entity_id for entity in dataset if entity.split is None]
    if without:
        return (
            f"{len(without):,} entities have no split (first: {without[0]}). {_NOT_TRAINED} "
            "Assign splits first (assign_splits)."
        )
    return None


def _class_gap(labels: NDArray[np.intp], values: Sequence[str]) -> str | None:
    """Which value nobody has."""
    present = [value for number, value in enumerate(values) if number in labels]
    if len(present) == 1:
        return (
            f"all entities have the value {present[0]!r}; there is nothing to tell apart. "
            f"{_NOT_TRAINED} Add entities of other values."
        )
    lacking = [value for value in values if value not in present]
    if lacking:
        return (
            f"no entity has the value {lacking[0]!r}. {_NOT_TRAINED} "
            "Add entities that have it, or take it out of the schema."
        )
    return None


def _split_gap(dataset: Dataset, predicate: str, split: Split) -> str | None:
    """Which value a split has too few of."""
    positions = dataset.positions(split)
    if not len(positions):
        return None if split == "test" else f"{split!r} has no entities. {_NOT_TRAINED} {_MEND}"
    values = dataset.schema[predicate].values
    counts = np.bincount(dataset.labels(predicate)[positions], minlength=len(values))
    needed = LEAST_IN_TRAIN if split == "train" else 1
    for value, count in zip(values, counts.tolist(), strict=True):
        if count < needed:
            found = "no entity" if count == 0 else f"only {count} entity"
            return f"{split!r} has {found} of the value {value!r}. {_NOT_TRAINED} {_MEND}"
    return None


def _parts(
    dataset: Dataset,
    predicates: Sequence[str],
    positions: NDArray[np.intp],
    shares: Sequence[float],
    seed: int,
) -> NDArray[np.intp]:
    """The number of the part of each of the entities at ``positions``."""
    names = _group_names(dataset)
    numbers: dict[str, int] = {}
    group = np.array([numbers.setdefault(names[place], len(numbers)) for place in positions])
    counts = np.concatenate(
        [_counts(dataset, predicate, positions, group, len(numbers)) for predicate in predicates],
        axis=1,
    )
    generator = np.random.Generator(np.random.PCG64(seed))
    parts: NDArray[np.intp] = placed_groups(counts, shares, generator)[group]
    return parts


def _counts(
    dataset: Dataset,
    predicate: str,
    positions: NDArray[np.intp],
    group: NDArray[np.intp],
    groups: int,
) -> NDArray[np.int64]:
    """How many entities of each value a group has, those without a value last."""
    counts = np.zeros((groups, len(dataset.schema[predicate].values) + 1), dtype=np.int64)
    np.add.at(counts, (group, dataset.labels(predicate)[positions]), 1)  # UNLABELLED is -1
    return counts


def _group_names(dataset: Dataset) -> list[str]:
    """The group of each entity. One without is its own, and no named group is called like it."""
    return [
        f"entity {entity.entity_id}" if entity.group_id is None else f"group {entity.group_id}"
        for entity in dataset
    ]


def _with_validation(
    dataset: Dataset, predicates: Sequence[str], shares: tuple[float, float, float], seed: int
) -> Dataset:
    train = dataset.positions("train")
    share = shares[1] / (shares[0] + shares[1])
    parts = _parts(dataset, predicates, train, (1.0 - share, share), seed)
    taken = set(train[parts == 1].tolist())
    splits: list[Split | None] = [
        "validation" if place in taken else entity.split for place, entity in enumerate(dataset)
    ]
    note = (
        f"{len(taken):,} of {len(train):,} entities of 'train' were made 'validation', "
        f"since the data set has none (seed {seed})."
    )
    return replace(dataset.in_splits(splits), exclusions=(*dataset.exclusions, note))


def _partly_assigned(dataset: Dataset) -> DatasetError:
    without = [entity.entity_id for entity in dataset if entity.split is None]
    return DatasetError(
        f"dataset {dataset.name!r}: {len(without):,} of {len(dataset):,} entities have no split "
        f"(first: {without[0]}), the others have one. No splits were assigned. "
        "Give every entity a split, or none."
    )


def _check_shares(shares: tuple[float, float, float]) -> None:
    sums = abs(sum(shares) - 1.0) <= _TOLERANCE
    if len(shares) != len(SPLITS) or not sums or min(shares[:2]) <= 0 or shares[2] < 0:
        raise ConfigError(
            "shares: must be those of train, validation and test, sum to 1, and be above 0 "
            f"(that of test may be 0), got {shares!r}."
        )


def _check_folds(dataset: Dataset, predicate: str, folds: Sequence[NDArray[np.intp]]) -> None:
    labels = dataset.labels(predicate)
    present = set(labels.tolist()) - {UNLABELLED}
    for number, fold in enumerate(folds, 1):
        lacking = present - set(np.delete(labels, fold).tolist())
        if lacking:
            value = dataset.schema[predicate].values[min(lacking)]
            raise DatasetError(
                f"dataset {dataset.name!r}: all entities with {predicate} = {value!r} are in fold "
                f"{number}, since they are of one group. No folds were made. "
                "Add entities of this value in other groups."
            )
