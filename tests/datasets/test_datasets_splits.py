"""Splits and folds: groups stay together, values are stratified, seeds are reproducible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled_data import LEVELS, dataset, entity

from lpf.datasets import SPLITS, Dataset, assign_splits, grouped_folds, require_trainable
from lpf.datasets.splits import DEFAULT_SHARES as SHARES
from lpf.datasets.splits import place_groups, rounded_shares
from lpf.errors import ConfigError, DatasetError
from lpf.schema import Predicate, Schema


def companies(count: int = 300, years: int = 3, seed: int = 5) -> Dataset:
    """Companies over several years, one group per company, with similar values."""
    generator = np.random.default_rng(seed)
    score = generator.normal(size=(count, 1)) + generator.normal(size=(count, years))
    ranks = np.argsort(np.argsort(score.ravel()))
    values = np.searchsorted([0.3 * ranks.size, 0.7 * ranks.size], ranks, side="right")
    return dataset(
        [entity(i, LEVELS[value], group=f"G{i // years}") for i, value in enumerate(values)]
    )


def split_of_groups(data: Dataset) -> dict[str | None, set[str | None]]:
    found: dict[str | None, set[str | None]] = {}
    for each in data:
        found.setdefault(each.group_id, set()).add(each.split)
    return found


def counts(data: Dataset) -> Counter[tuple[str | None, str]]:
    return Counter((each.split, each.labels["level"]) for each in data)


@pytest.mark.parametrize("seed", range(5))
def test_300_groups_of_3_are_split_630_135_135(seed: int) -> None:
    data = assign_splits(companies(), "level", seed=seed)
    assert [len(data.positions(split)) for split in SPLITS] == [630, 135, 135]
    assert all(len(splits) == 1 for splits in split_of_groups(data).values())
    wanted = {"low": 0.3, "medium": 0.4, "high": 0.3}
    for split, size in zip(SPLITS, (630, 135, 135), strict=True):
        for value, share in wanted.items():
            assert abs(counts(data)[split, value] - share * size) <= 3
    require_trainable(data, "level")


def test_values_without_groups_are_split_exactly() -> None:
    values = ["low"] * 200 + ["medium"] * 100 + ["high"] * 40
    data = assign_splits(dataset([entity(i, v) for i, v in enumerate(values)]), "level", seed=0)
    assert {key: count for key, count in counts(data).items() if key[0] != "train"} == {
        (split, value): count
        for split in ("validation", "test")
        for value, count in (("low", 30), ("medium", 15), ("high", 6))
    }


def test_splits_depend_on_the_seed() -> None:
    data = companies()
    first, again, other = (assign_splits(data, "level", seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.digest != other.digest


def test_splits_are_the_same_on_every_machine() -> None:
    """Fixed results; a change of the algorithm must be noticed."""
    entities = [entity(i, LEVELS[i * i % 7 % 3], group=f"G{i // 2}") for i in range(40)]
    data = assign_splits(dataset(entities), "level", seed=7)
    assert (
        "".join((each.split or "?")[:2] for each in data.entities[::2])
        == "tevavatrtrtrtrtrtrtetrtrtrtrvatrtetrtrtr"
    )


def test_group_and_entity_with_the_same_name_differ() -> None:
    alone = [entity(i, LEVELS[i % 3]) for i in range(30)]
    grouped = [entity(100 + i, LEVELS[i % 3], group="C0000") for i in range(9)]
    data = assign_splits(dataset([*alone, *grouped]), "level", seed=0)
    assert len({each.split for each in data if each.group_id}) == 1
    assert [len(data.positions(split)) for split in SPLITS] == [27, 6, 6]


def test_large_group_stays_together() -> None:
    giant = [entity(i, LEVELS[i % 3], group="giant") for i in range(80)]
    others = [entity(100 + i, LEVELS[i % 3]) for i in range(20)]
    data = assign_splits(dataset([*giant, *others]), "level", seed=0)
    assert {each.split for each in data if each.group_id} == {"train"}
    for split in ("validation", "test"):
        assert 9 <= len(data.positions(split)) <= 11


EVENTS = {  # rumours of nine events, as in a public data set
    "A": (12, 39, 23), "B": (2, 0, 0), "C": (0, 2, 44), "D": (10, 35, 13), "E": (12, 0, 0),
    "F": (1, 0, 8), "G": (13, 51, 7), "H": (12, 10, 3), "I": (12, 8, 8),
}  # fmt: skip


def test_few_large_groups_still_give_every_split_every_value() -> None:
    """Room alone would make a validation split of two events without any "low"."""
    members = [
        (event, LEVELS[value])
        for event, numbers in EVENTS.items()
        for value, number in enumerate(numbers)
        for _ in range(number)
    ]
    data = dataset([entity(i, value, group=event) for i, (event, value) in enumerate(members)])
    for number, fold in enumerate(grouped_folds(data, "level", 5, seed=7)):
        test = set(fold.tolist())
        in_fold = data.in_splits(["test" if i in test else "train" for i in range(len(data))])
        split = assign_splits(in_fold, "level", seed=42 + number)
        assert all(len(splits) == 1 for splits in split_of_groups(split).values())
        known = [place for place, each in enumerate(split) if each.split != "test"]
        require_trainable(split.select(known), "level")


def test_an_empty_test_split_is_not_filled_by_half() -> None:
    """With three groups, a test split could only have some of the values; none is better."""
    groups = {"A": (20, 10, 10), "B": (30, 0, 0), "C": (10, 10, 10)}
    members = [
        (name, LEVELS[value])
        for name, numbers in groups.items()
        for value, number in enumerate(numbers)
        for _ in range(number)
    ]
    entities = [entity(i, value, group=name) for i, (name, value) in enumerate(members)]
    for seed in range(5):
        data = assign_splits(dataset(entities), "level", seed=seed)
        require_trainable(data, "level")
        assert not len(data.positions("test"))


def test_many_rare_values_are_placed_in_little_time() -> None:
    values = tuple(f"v{number}" for number in range(150))
    schema = Schema((Predicate("level", values),))
    entities = tuple(entity(i, values[i % len(values)]) for i in range(4 * len(values)))
    data = assign_splits(Dataset("rare", schema, entities), "level", seed=0)
    require_trainable(data, "level")


def test_a_value_of_one_group_stays_where_it_was_placed() -> None:
    """No move can give it to two splits."""
    rare = [entity(i, "high", group="rare") for i in range(6)]
    others = [entity(100 + i, LEVELS[i % 2], group=f"G{i // 3}") for i in range(60)]
    data = assign_splits(dataset([*rare, *others]), "level", seed=0)
    assert len({each.split for each in data if each.group_id == "rare"}) == 1
    with pytest.raises(DatasetError, match="high"):
        require_trainable(data, "level")


@given(
    groups=st.lists(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=6), min_size=1),
    seed=st.integers(0, 2**32),
)
def test_groups_are_never_split(groups: Sequence[Sequence[str]], seed: int) -> None:
    members = [(number, value) for number, group in enumerate(groups) for value in group]
    entities = [entity(i, value, group=f"G{n}") for i, (n, value) in enumerate(members)]
    data = assign_splits(dataset(entities), "level", seed=seed)
    assert all(len(s) == 1 and None not in s for s in split_of_groups(data).values())
    counts = np.array([[group.count(level) for level in LEVELS] for group in groups])
    placed = place_groups(counts, SHARES, np.random.default_rng(seed))
    sizes = np.bincount(placed, counts.sum(axis=1), minlength=len(SPLITS))
    largest = max(map(len, groups))
    for size, room in zip(sizes, rounded_shares(len(members), SHARES), strict=True):
        assert size <= room + largest


def test_given_splits_are_used() -> None:
    splits = ["train", "validation", "test", "test"] * 5
    data = dataset([entity(i, LEVELS[i % 3], split=s) for i, s in enumerate(splits)])
    assert assign_splits(data, "level", seed=0) is data


def test_missing_validation_is_taken_from_train() -> None:
    given = [
        entity(i, each.labels["level"], group=each.group_id, split="test" if i < 90 else "train")
        for i, each in enumerate(companies())
    ]
    data = assign_splits(dataset(given), "level", shares=(0.6, 0.2, 0.2), seed=0)
    assert data.positions("test").tolist() == list(range(90))
    assert len(data.positions("validation")) == pytest.approx(810 / 4, abs=2)
    assert all(len(splits) == 1 for splits in split_of_groups(data).values())
    (sentence,) = data.exclusions
    assert "of 810 entities of 'train' were moved to 'validation'" in sentence
    require_trainable(data, "level")


def test_partly_assigned_splits_are_refused() -> None:
    data = dataset([entity(1, split="train"), entity(2), entity(3)])
    with pytest.raises(DatasetError, match=r"2 of 3 entities have no split \(first: C0002\).*Give"):
        assign_splits(data, "level", seed=0)


@pytest.mark.parametrize(
    "shares", [(0.5, 0.5, 0.5), (1.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.9, 0.2, -0.1), (0.5, 0.5)]
)
def test_invalid_shares_are_refused(shares: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match="shares: must be"):
        assign_splits(companies(9), "level", shares=shares, seed=0)


def test_no_test_share_leaves_test_empty() -> None:
    data = assign_splits(companies(40), "level", shares=(0.8, 0.2, 0.0), seed=0)
    assert [len(data.positions(split)) for split in SPLITS] == [96, 24, 0]
    require_trainable(data, "level")


# --- what can be trained on


def spread(**counts: Sequence[int]) -> Dataset:
    """A data set with these numbers of low, medium and high entities per split."""
    entities = []
    for split, numbers in counts.items():
        for value, number in zip(LEVELS, numbers, strict=True):
            for _ in range(number):
                entities.append(entity(len(entities), value, split=split))  # type: ignore[arg-type]
    return dataset(entities)


def test_smallest_trainable_data_set() -> None:
    require_trainable(spread(train=(2, 2, 2), validation=(1, 1, 1), test=(1, 1, 1)), "level")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (spread(train=(5, 0, 0), validation=(1, 0, 0)), "all entities have the value 'low'"),
        (spread(train=(5, 0, 5), validation=(1, 0, 1)), "no entity has the value 'medium'"),
        (spread(train=(5, 0, 5), validation=(1, 1, 1)), "'train' has no entity of the value 'medi"),
        (spread(train=(5, 5, 1), validation=(1, 1, 1)), "'train' has only 1 entity of the value"),
        (spread(train=(5, 5, 5)), "'validation' has no entities"),
        (spread(validation=(5, 5, 5)), "'train' has no entities"),
        (spread(train=(5, 5, 5), validation=(0, 1, 1)), "'validation' has no entity of the value"),
        (
            spread(train=(2, 2, 2), validation=(1, 1, 1), test=(1, 1, 0)),
            "'test' has no entity of the value 'high'",
        ),
        (
            dataset([entity(1), entity(2, None)]),
            "1 entities have no value of 'level' (first: C0002)",
        ),
        (dataset([entity(1), entity(2, "high")]), "2 entities have no split (first: C0001)"),
    ],
)
def test_untrainable_data_set_is_refused(data: Dataset, problem: str) -> None:
    with pytest.raises(DatasetError) as caught:
        require_trainable(data, "level")
    assert str(caught.value).startswith(f"dataset 'made up': {problem}")
    assert "Nothing was trained. " in str(caught.value)


# --- folds


def test_folds_partition_the_groups() -> None:
    data = companies()
    folds = grouped_folds(data, "level", 5, seed=3)
    assert sorted(np.concatenate(folds).tolist()) == list(range(900))
    assert [len(fold) for fold in folds] == [180] * 5
    labels = data.labels("level")
    for fold in folds:
        assert np.abs(np.bincount(labels[fold]) - [54, 72, 54]).max() <= 4
        assert (np.diff(fold) > 0).all()
    owners = [{data.entities[place].group_id for place in fold} for fold in folds]
    assert sum(map(len, owners)) == len(set().union(*owners))
    again = grouped_folds(data, "level", 5, seed=3)
    assert all(np.array_equal(one, other) for one, other in zip(folds, again, strict=True))


@pytest.mark.parametrize("folds", [0, 1, 13])
def test_invalid_number_of_folds_is_refused(folds: int) -> None:
    with pytest.raises(ConfigError, match=f"folds: must be 2 to 12, .* got {folds}"):
        grouped_folds(companies(12), "level", folds, seed=0)


def test_value_in_a_single_group_cannot_be_folded() -> None:
    entities = [entity(i, LEVELS[i % 2]) for i in range(12)]
    entities += [entity(20 + i, "high", group="only") for i in range(3)]
    with pytest.raises(DatasetError, match="all entities with level = 'high' are in fold"):
        grouped_folds(dataset(entities), "level", 3, seed=0)


def test_several_predicates_are_stratified() -> None:
    """The second predicate is stratified too, although it is independent of the first."""
    schema = Schema((Predicate("level", LEVELS), Predicate("seen", ("no", "yes"))))
    made = [
        replace(
            entity(i, LEVELS[i % 3]), labels={"level": LEVELS[i % 3], "seen": ("no", "yes")[i < 10]}
        )
        for i in range(60)
    ]
    data = Dataset("two", schema, tuple(made))
    folds = grouped_folds(data, "level", 5, seed=3, also=("seen",))
    assert [np.bincount(data.labels("seen")[fold]).tolist() for fold in folds] == [[10, 2]] * 5
    assert [np.bincount(data.labels("level")[fold]).tolist() for fold in folds] == [[4, 4, 4]] * 5
    placed = assign_splits(data, "level", seed=1, also=("seen",))
    counts = [np.bincount(placed.labels("seen")[placed.positions(one)]).tolist() for one in SPLITS]
    assert [found[1] for found in counts] in ([7, 2, 1], [7, 1, 2], [6, 2, 2])
