"""Splits and folds: groups stay together, values are stratified, results are reproducible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lpf.datasets.dataset import SPLITS, UNLABELLED, Dataset, Split
from lpf.errors import ConfigError, DatasetError

DEFAULT_SHARES = (0.7, 0.15, 0.15)
LEAST_IN_TRAIN = 2
TEST = SPLITS.index("test")
_TOLERANCE = 1e-9
_NOT_TRAINED = "Nothing was trained."
_HINT = "Add entities, or remove the splits from the data set to have them assigned again."


def assign_splits(
    dataset: Dataset,
    predicate: str,
    *,
    shares: tuple[float, float, float] = DEFAULT_SHARES,
    seed: int,
    also: Sequence[str] = (),
) -> Dataset:
    """Assign every entity to train, validation or test.

    If all entities have a split, it stays; if there is no validation, some training entities
    become validation entities, and ``exclusions`` says so. If no entity has a split, all are
    assigned: groups stay together, and the values of ``predicate`` and of the predicates in
    ``also`` are stratified as well as the groups allow; where a split would lack a value, groups
    are moved. DatasetError if only some entities have a
    split.
    """
    _check_shares(shares)
    given = {entity.split for entity in dataset}
    if given == {None}:
        everyone = np.arange(len(dataset))
        parts = _trainable_parts(dataset, (predicate, *also), everyone, shares, seed)
        return dataset.in_splits([SPLITS[part] for part in parts])
    if None in given:
        raise _partly_assigned(dataset)
    if given == {"train", "test"}:
        return _with_validation(dataset, (predicate, *also), shares, seed)
    return dataset


def grouped_folds(
    dataset: Dataset, predicate: str, folds: int, seed: int, also: Sequence[str] = ()
) -> tuple[NDArray[np.intp], ...]:
    """Return the positions of the entities of each fold, sorted; assigned by the rules of splits.

    DatasetError if all entities with some value are in one fold.
    """
    predicates = (predicate, *also)
    groups = len(set(_group_names(dataset)))
    if not 2 <= folds <= groups:
        raise ConfigError(
            f"must be 2 to {groups}, the number of groups in the data set, got {folds}.",
            field="folds",
        )
    parts = _parts(dataset, predicates, np.arange(len(dataset)), (1.0 / folds,) * folds, seed)
    positions = tuple(np.flatnonzero(parts == fold) for fold in range(folds))
    for name in predicates:
        _check_folds(dataset, name, positions)
    return positions


def require_trainable(dataset: Dataset, predicate: str) -> None:
    """Raise DatasetError unless the data set can be trained on.

    Every entity needs a value of ``predicate`` and a split, and every value must occur in each
    split, at least twice in train. Test entities are optional.
    """
    values = dataset.schema[predicate].values
    problem = _entity_problem(dataset, predicate) or _class_problem(
        dataset.labels(predicate), values
    )
    for split in SPLITS:
        problem = problem or _split_problem(dataset, predicate, split)
    if problem:
        raise DatasetError(f"dataset {dataset.name!r}: {problem}")


def _entity_problem(dataset: Dataset, predicate: str) -> str | None:
    """Return the problem if an entity has no value or no split."""
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


def _class_problem(labels: NDArray[np.intp], values: Sequence[str]) -> str | None:
    """Return the problem if a value has no entity."""
    present = [value for number, value in enumerate(values) if number in labels]
    if len(present) == 1:
        return (
            f"all entities have the value {present[0]!r}; there is nothing to distinguish. "
            f"{_NOT_TRAINED} Add entities of other values."
        )
    missing = [value for value in values if value not in present]
    if missing:
        return (
            f"no entity has the value {missing[0]!r}. {_NOT_TRAINED} "
            "Add entities that have it, or remove it from the schema."
        )
    return None


def _split_problem(dataset: Dataset, predicate: str, split: Split) -> str | None:
    """Return the problem if a split has too few entities of a value."""
    positions = dataset.positions(split)
    if not len(positions):
        return None if split == "test" else f"{split!r} has no entities. {_NOT_TRAINED} {_HINT}"
    values = dataset.schema[predicate].values
    counts = np.bincount(dataset.labels(predicate)[positions], minlength=len(values))
    needed = LEAST_IN_TRAIN if split == "train" else 1
    for value, count in zip(values, counts.tolist(), strict=True):
        if count < needed:
            number = "no entity" if count == 0 else f"only {count} entity"
            return f"{split!r} has {number} of the value {value!r}. {_NOT_TRAINED} {_HINT}"
    return None


def _parts(
    dataset: Dataset,
    predicates: Sequence[str],
    positions: NDArray[np.intp],
    shares: Sequence[float],
    seed: int,
) -> NDArray[np.intp]:
    """Return the part of each entity at ``positions``."""
    group, counts = _group_counts(dataset, predicates, positions)
    generator = np.random.Generator(np.random.PCG64(seed))
    parts: NDArray[np.intp] = place_groups(counts, shares, generator)[group]
    return parts


def _trainable_parts(
    dataset: Dataset,
    predicates: Sequence[str],
    positions: NDArray[np.intp],
    shares: Sequence[float],
    seed: int,
) -> NDArray[np.intp]:
    """Return the part of each entity at ``positions``, with groups moved so that the first part has
    two entities of every value and each other part one, where that is possible. A third part, test,
    may stay empty instead."""
    group, counts = _group_counts(dataset, predicates, positions)
    generator = np.random.Generator(np.random.PCG64(seed))
    placed = place_groups(counts, shares, generator)
    widths = [len(dataset.schema[name].values) + 1 for name in predicates]
    least = np.ones((len(shares), counts.shape[1]), dtype=np.int64)
    least[0] = LEAST_IN_TRAIN
    least[np.array(shares) == 0.0] = 0
    least[:, np.cumsum(widths) - 1] = 0  # entities without a value
    filled = fill_gaps(placed, counts, shares, least)
    has_gaps = any(
        _lacks(counts[filled == part].sum(axis=0).tolist(), least[part].tolist())
        for part in range(len(shares))
    )
    if has_gaps and not (placed == TEST).any():
        least[TEST:] = 0
        filled = fill_gaps(placed, counts, shares, least)
    parts: NDArray[np.intp] = filled[group]
    return parts


def _group_counts(
    dataset: Dataset, predicates: Sequence[str], positions: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the number of the group of each entity at ``positions``, and the entities of each
    group by value, predicate by predicate."""
    names = _group_names(dataset)
    numbers: dict[str, int] = {}
    group = np.array([numbers.setdefault(names[place], len(numbers)) for place in positions])
    counts = [_counts(dataset, name, positions, group, len(numbers)) for name in predicates]
    return group, np.concatenate(counts, axis=1)


def _counts(
    dataset: Dataset,
    predicate: str,
    positions: NDArray[np.intp],
    group: NDArray[np.intp],
    groups: int,
) -> NDArray[np.int64]:
    """Return the number of entities per group and value; the last column is without a value."""
    counts = np.zeros((groups, len(dataset.schema[predicate].values) + 1), dtype=np.int64)
    np.add.at(counts, (group, dataset.labels(predicate)[positions]), 1)  # UNLABELLED is -1
    return counts


def _group_names(dataset: Dataset) -> list[str]:
    """Return the group of each entity; an entity without a group is a group of its own."""
    return [
        f"entity {entity.entity_id}" if entity.group_id is None else f"group {entity.group_id}"
        for entity in dataset
    ]


def _with_validation(
    dataset: Dataset, predicates: Sequence[str], shares: tuple[float, float, float], seed: int
) -> Dataset:
    train = dataset.positions("train")
    share = shares[1] / (shares[0] + shares[1])
    parts = _trainable_parts(dataset, predicates, train, (1.0 - share, share), seed)
    moved = set(train[parts == 1].tolist())
    splits: list[Split | None] = [
        "validation" if place in moved else entity.split for place, entity in enumerate(dataset)
    ]
    note = (
        f"{len(moved):,} of {len(train):,} entities of 'train' were moved to 'validation', "
        f"since the data set has none (seed {seed})."
    )
    return replace(dataset.in_splits(splits), exclusions=(*dataset.exclusions, note))


def _partly_assigned(dataset: Dataset) -> DatasetError:
    without = [entity.entity_id for entity in dataset if entity.split is None]
    return DatasetError(
        f"dataset {dataset.name!r}: {len(without):,} of {len(dataset):,} entities have no split "
        f"(first: {without[0]}), the others have one. No splits were assigned.",
        hint="Give every entity a split, or none.",
    )


def _check_shares(shares: tuple[float, float, float]) -> None:
    sums_to_one = abs(sum(shares) - 1.0) <= _TOLERANCE
    if len(shares) != len(SPLITS) or not sums_to_one or min(shares[:2]) <= 0 or shares[2] < 0:
        raise ConfigError(
            "must be three numbers above 0 (train, validation, test; test may be 0) with sum 1, "
            f"got {shares!r}.",
            field="shares",
        )


def _check_folds(dataset: Dataset, predicate: str, folds: Sequence[NDArray[np.intp]]) -> None:
    labels = dataset.labels(predicate)
    present = set(labels.tolist()) - {UNLABELLED}
    for number, fold in enumerate(folds, 1):
        missing = present - set(np.delete(labels, fold).tolist())
        if missing:
            value = dataset.schema[predicate].values[min(missing)]
            raise DatasetError(
                f"dataset {dataset.name!r}: all entities with {predicate} = {value!r} are in fold "
                f"{number}, since they are in one group. No folds were created.",
                hint="Add entities with this value in other groups.",
            )


def place_groups(
    counts: NDArray[np.int64], shares: Sequence[float], generator: np.random.Generator
) -> NDArray[np.intp]:
    """Return the part of each group, [G], given its number of entities of each value, [G, V].

    The largest groups are placed first, equal ones in random order. Each goes to the part where it
    reduces

        Σ_parts Σ_values (wanted - placed)² / share

    most, among the parts that have room for it; if none has, among those with the most room.
    Computed with plain Python numbers, so that near ties are resolved in the same way on every
    machine.
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


def fill_gaps(
    placed: NDArray[np.intp],
    counts: NDArray[np.int64],
    shares: Sequence[float],
    least: NDArray[np.int64],
) -> NDArray[np.intp]:
    """Return ``placed`` with groups moved until each part has at least ``least`` [P, V] entities of
    each value, or no move of one group brings it closer to that. Of the moves that help most with a
    value, the one that leaves the shares closest to those wanted is made. Computed with plain
    Python numbers, like ``place_groups``."""
    placed, rows, needed = placed.copy(), counts.tolist(), least.tolist()
    wanted = [[share * total for total in counts.sum(axis=0).tolist()] for share in shares]
    have = [counts[placed == part].sum(axis=0).tolist() for part in range(len(shares))]

    def cost(part: int, held: Sequence[int]) -> tuple[int, float]:
        """How many entities a part lacks, and how far it is from what is wanted."""
        distance = math.fsum((want - n) ** 2 for n, want in zip(held, wanted[part], strict=True))
        return _lacks(held, needed[part]), distance / shares[part] if shares[part] else 0.0

    def effect(group: int, part: int) -> tuple[int, float, int]:
        """What moving a group changes in both, over all parts."""
        changed = _moved(rows[group], have, int(placed[group]), part)
        pairs = [(cost(place, held), cost(place, have[place])) for place, held in changed.items()]
        lacks = sum(after[0] - before[0] for after, before in pairs)
        return lacks, sum(after[1] - before[1] for after, before in pairs), group

    is_better = True
    while is_better:
        is_better = False
        for part, value in np.argwhere(least > 0).tolist():
            while have[part][value] < needed[part][value]:
                others = np.flatnonzero((counts[:, value] > 0) & (placed != part)).tolist()
                lacks, _, group = min((effect(one, part) for one in others), default=(0, 0.0, 0))
                if lacks >= 0:
                    break
                for place, held in _moved(rows[group], have, int(placed[group]), part).items():
                    have[place] = held
                placed[group], is_better = part, True
    return placed


def _moved(
    row: Sequence[int], have: Sequence[Sequence[int]], source: int, part: int
) -> dict[int, list[int]]:
    """Return what two parts have after a group with ``row`` moves from one to the other."""
    return {
        source: [n - moved for n, moved in zip(have[source], row, strict=True)],
        part: [n + moved for n, moved in zip(have[part], row, strict=True)],
    }


def _lacks(have: Sequence[int], least: Sequence[int]) -> int:
    """Return how many entities a part has fewer than it should, over all values."""
    return sum(max(0, needed - n) for n, needed in zip(have, least, strict=True))


def rounded_shares(total: int, shares: Sequence[float]) -> list[int]:
    """Round the shares of ``total`` to integers with the same sum (largest remainder)."""
    exact = [share * total for share in shares]
    whole = [math.floor(number) for number in exact]
    by_remainder = sorted(range(len(shares)), key=lambda part: whole[part] - exact[part])
    for part in by_remainder[: total - sum(whole)]:
        whole[part] += 1
    return whole


def _gain(row: Sequence[int], wanted: Sequence[float]) -> float:
    """Return the reduction of Σ wanted² if ``row`` is subtracted from ``wanted``."""
    return math.fsum(
        count * (2.0 * want - count) for count, want in zip(row, wanted, strict=True) if count
    )
