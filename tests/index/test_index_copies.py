"""Groups of copies compared with a plain union-find, and the cut that limits copies."""

from __future__ import annotations

from itertools import combinations

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
