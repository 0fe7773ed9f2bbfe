from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from test_recombination import robust_items

from lpf.combine import RobustParameters
from lpf.explain import AnswerExplanation, Flip, ItemPart, Weight
from lpf.explain.flip import MOST_EXACT, smallest_flip
from lpf.explain.recombination import RobustItems
from lpf.explain.sentences import change_of_answer

VALUES = ("a", "b", "c", "d")


def brute_force(items: RobustItems, count: int) -> int | None:
    """The size of the smallest set whose removal changes the answer."""
    everyone = np.arange(count)
    top = int(items.answers([everyone])[0].argmax())
    for size in range(1, count + 1):
        for removed in combinations(range(count), size):
            left = np.delete(everyone, np.array(removed))
            rest = items.answers([left])[0]
            if rest.max() > rest[top] + 1e-9:
                return size
    return None


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_smallest_set(seed: int) -> None:
    assert_smallest(seed, 1 + seed % 7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_it_is_the_smallest_set_up_to_the_most_exact(seed: int) -> None:
    assert_smallest(seed, 8 + seed % (MOST_EXACT - 7))


def assert_smallest(seed: int, count: int) -> None:
    items = robust_items(seed, count)
    answer, found = flip_of(items, count)
    expected = brute_force(items, count)
    assert (None if found is None else len(found.evidence_ids)) == expected
    if found is not None:
        assert found.is_smallest
        assert_changes(items, count, answer, found)


def flip_of(items: RobustItems, count: int) -> tuple[np.ndarray, Flip | None]:
    combined = items.combined()
    answer = combined.distribution[0]
    values = VALUES[: len(answer)]
    ids = [f"E{place}" for place in range(count)]
    return answer, smallest_flip(items, answer, combined.contributions, ids, values)


def assert_changes(items: RobustItems, count: int, answer: np.ndarray, found: Flip) -> None:
    left = [place for place in range(count) if f"E{place}" not in found.evidence_ids]
    rest = items.answers([np.array(left, dtype=np.intp)])[0]
    assert VALUES[int(rest.argmax())] == found.value != VALUES[int(answer.argmax())]


@pytest.mark.parametrize(
    "seed", [6, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 25))]
)
def test_beyond_it_is_an_upper_bound_and_is_stated_as_one(seed: int) -> None:
    count = MOST_EXACT + 1 + seed % 2
    items = robust_items(seed, count)
    answer, found = flip_of(items, count)
    if found is None:
        return  # no proof that there is none
    assert_changes(items, count, answer, found)
    least = brute_force(items, count)
    assert least is not None
    assert least <= len(found.evidence_ids)
    assert found.is_smallest == (len(found.evidence_ids) == 1)
    explanation = AnswerExplanation(
        *("C1", "level", VALUES[: len(answer)], answer, "spn", "robust", ()),
        items=tuple(
            ItemPart("item", f"E{place}", answer, None, answer, Weight(1.0), None)
            for place in range(count)
        ),
        flip=found,
    )
    assert ("fewer may be enough" in change_of_answer(explanation)) != found.is_smallest


def many(count: int, against: int) -> RobustItems:
    """Equal items for the first value, and some against it."""
    even = np.log(np.full(2, 0.5))
    potential = np.tile([0.7, 0.3], (count, 1))
    potential[:against] = [0.3, 0.7]
    plain = RobustParameters(rho=0.0, epsilon=0.0, fitted=True)
    return RobustItems(potential, np.full(count, np.nan), np.full(2, 0.5), even, even, plain)


@pytest.mark.parametrize(("count", "against"), [(MOST_EXACT + 8, 6), (301, 120), (40, 0)])
def test_of_many_items_an_upper_bound_that_works(count: int, against: int) -> None:
    items = many(count, against)
    combined = items.combined()
    ids = [f"E{place}" for place in range(count)]
    found = smallest_flip(
        items, combined.distribution[0], combined.contributions, ids, ("first", "second")
    )
    if not against:
        assert found is None  # what is left is the prior, which is even
        return
    assert found is not None
    assert found.value == "second"
    # Items are equal, so removing the balance of both sides gives a tie, and one more changes it.
    assert len(found.evidence_ids) in (count - 2 * against, count - 2 * against + 1)
    assert not found.is_smallest


def test_without_items_or_with_one_value_there_is_nothing_to_remove() -> None:
    items = many(3, 0)
    nothing = np.empty((0, 2))
    assert smallest_flip(items, np.array([0.7, 0.3]), nothing, [], ("a", "b")) is None


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_items_that_say_more_alone_are_found(rho: float) -> None:
    """One strong item against the answer and many that say nothing: they share its errors away."""
    potential = np.tile([0.5, 0.5], (MOST_EXACT + 2, 1))
    potential[0] = [0.02, 0.98]
    prior = np.log(np.array([0.75, 0.25]))
    shared = RobustParameters(rho=rho, epsilon=0.0, fitted=True)
    unknown = np.full(len(potential), np.nan)
    items = RobustItems(potential, unknown, np.full(2, 0.5), prior, prior, shared)
    combined = items.combined()
    ids = [f"E{place}" for place in range(len(potential))]
    found = smallest_flip(
        items, combined.distribution[0], combined.contributions, ids, ("first", "second")
    )
    assert found is not None
    assert found.value == "second"
    assert "E0" not in found.evidence_ids
