"""Groups of copies compared with a plain union-find, and the cut that limits copies."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import unit_vectors

from lpf.errors import ConfigError
from lpf.index import copies
from lpf.index.copies import checked_similarity, copy_labels, numbered
from lpf.index.ranking import take_best

SIMILARITY = 0.81
# Whole numbers: no cosine of two such vectors is within 0.003 of the threshold.
items = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.one_of(st.none(), st.sampled_from("abcdef")),
        st.tuples(*[st.integers(-2, 2)] * 3),
    ),
    min_size=1,
    max_size=25,
)


def labels_of(drawn: list, similarity: float | None = SIMILARITY) -> list[int]:
    keys = [bytes([key]) * 16 for key, _, _ in drawn]
    texts = np.array([vector for _, _, vector in drawn], np.float32)
    labels = copy_labels(keys, [report for _, report, _ in drawn], texts, similarity)
    return list(range(len(drawn))) if labels is None else labels.tolist()


def are_copies(one: tuple, other: tuple) -> bool:
    a, b = np.array(one[2], float), np.array(other[2], float)
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    close = lengths > 0 and a @ b / lengths >= SIMILARITY
    return one[0] == other[0] or (one[1] is not None and one[1] == other[1]) or close


def naive_labels(drawn: list) -> list[int]:
    parents = list(range(len(drawn)))

    def root(place: int) -> int:
        return place if parents[place] == place else root(parents[place])

    for one, other in combinations(range(len(drawn)), 2):
        if are_copies(drawn[one], drawn[other]):
            low, high = sorted((root(one), root(other)))
            parents[high] = low
    return [root(place) for place in range(len(drawn))]


@given(items)
def test_groups_are_those_of_a_plain_union_find(drawn: list) -> None:
    assert labels_of(drawn) == naive_labels(drawn)


@given(items, st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order(drawn: list, random) -> None:
    places = list(range(len(drawn)))
    random.shuffle(places)
    before, after = labels_of(drawn), labels_of([drawn[place] for place in places])
    for one, other in combinations(range(len(drawn)), 2):
        assert (after[one] == after[other]) == (before[places[one]] == before[places[other]])


@settings(max_examples=30)
@given(items)
def test_blocks_change_nothing(drawn: list) -> None:
    whole = labels_of(drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "BLOCK_ROWS", 3)
        assert labels_of(drawn) == whole


def test_without_a_threshold_texts_are_not_compared() -> None:
    same = [(1, None, (1, 0, 0)), (2, None, (1, 0, 0))]
    assert labels_of(same) == [0, 0]
    assert labels_of(same, None) == [0, 1]


def test_copies_of_copies_are_copies() -> None:
    chain = [(1, "a", (1, 0, 0)), (2, "a", (0, 1, 0)), (2, None, (0, 0, 1)), (3, None, (0, 0, 2))]
    assert labels_of(chain) == [0, 0, 0, 0]


def test_thousands_of_equal_items_are_one_group() -> None:
    texts = np.ones((5000, 4), np.float32)
    keys = [place.to_bytes(16, "big") for place in range(5000)]
    labels = copy_labels(keys, [None] * 5000, texts, 0.97)
    assert labels is not None
    assert not labels.any()


def test_no_copies_among_many() -> None:
    keys = [place.to_bytes(16, "big") for place in range(1500)]
    assert copy_labels(keys, [None] * 1500, unit_vectors(1500, 64), 0.97) is None


def test_the_cut_takes_the_best_of_each_group_first() -> None:
    labels = np.array([0, 0, 0, 3, 4])
    assert take_best([0, 1, 2, 3, 4], labels, 3) == [0, 3, 4]
    assert take_best([4, 2, 1, 0, 3], labels, 2) == [4, 2]


def test_the_cut_fills_up_with_the_best_copies_in_order() -> None:
    assert take_best([2, 1, 0, 3, 4], np.array([0, 0, 0, 3, 4]), 4) == [2, 1, 3, 4]


@given(items, st.integers(1, 30))
def test_the_cut_keeps_every_group_before_any_copy(drawn: list, top_k: int) -> None:
    labels = np.array(labels_of(drawn))
    kept = take_best(list(range(len(drawn))), labels, top_k)
    assert kept == sorted(set(kept))
    assert len(kept) == min(top_k, len(drawn))
    groups = len(set(labels.tolist()))
    assert len(set(labels[kept].tolist())) == min(groups, len(kept))


def test_numbers_count_from_0_as_labels_appear() -> None:
    assert numbered(["b", None, "a", "b"]) == [0, -1, 1, 0]


def test_a_threshold_is_a_cosine_or_off() -> None:
    assert checked_similarity(0) is None
    assert checked_similarity(None) is None
    with pytest.raises(ConfigError, match=r"index\.copy_similarity"):
        checked_similarity(1.5)


def crowded(seed: int, items: int, centres: int) -> tuple[list[bytes], list[str | None], Any]:
    """Texts around some centres: near copies, copies of copies, same keys and same reports."""
    random = np.random.default_rng(seed)
    middles = random.standard_normal((centres, 16))
    spread = random.choice([0.01, 0.05, 0.3], size=(items, 1))
    rows = middles[random.integers(0, centres, items)]
    texts = (rows + spread * random.standard_normal(rows.shape)).astype(np.float32)
    keys = [bytes([int(n)]) + bytes(15) for n in random.integers(0, 200, items)]
    reports = [None if n > 20 else f"r{n}" for n in random.integers(0, 400, items)]
    unique = [number.to_bytes(16, "big") for number in range(items)]
    mixed = [key if random.random() < 0.1 else own for key, own in zip(keys, unique, strict=True)]
    return mixed, reports, texts


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("top_k", [1, 5, 40, 300])
def test_groups_found_on_demand_choose_the_same_items(
    seed: int, top_k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "MOST_FOLLOWED", 10_000)
    keys, reports, texts = crowded(seed, 300, 25 + 20 * (seed % 3))
    order = np.random.default_rng(seed).permutation(300).tolist()
    full = copies.copy_labels(keys, reports, texts, 0.97)
    lazy = copies.GroupsOnDemand(keys, reports, texts, 0.97).labels(order, top_k)
    chosen = take_best(order, full, top_k)
    assert take_best(order, lazy, top_k) == chosen
    assert full is not None
    pairs = [(a, b) for a in chosen for b in chosen]
    assert [full[a] == full[b] for a, b in pairs] == [lazy[a] == lazy[b] for a, b in pairs]


def test_the_groups_of_one_crowd_are_found_without_comparing_all() -> None:
    random = np.random.default_rng(0)
    texts = (np.ones(16) + 0.01 * random.standard_normal((5000, 16))).astype(np.float32)
    texts[4990:] = random.standard_normal((10, 16))
    keys = [number.to_bytes(16, "big") for number in range(5000)]
    groups = copies.GroupsOnDemand(keys, [None] * 5000, texts, 0.97)
    chosen = take_best(range(5000), groups.labels(range(5000), 11), 11)
    assert chosen == [0, *range(4990, 5000)]
