"""Prediction sets: cases worked out by hand, brute force, MAPIE, and coverage over many splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import betabinom

from lpf.errors import ConfigError
from lpf.metrics.prediction_sets import cutoff, cutoffs_by_value, never_empty, sets, surprise

COVERAGES = (0.8, 0.9, 0.95)
SPLITS, HELD, ASKED = 100, 150, 400
SURPRISES = arrays(np.float32, st.integers(1, 60), elements=st.floats(0, 50, width=32))


def test_the_cutoff_is_the_kth_smallest_surprise() -> None:
    """k = ⌈(n + 1) · coverage⌉: of 9 surprises and 80 %, the 8th; of 19 and 95 %, the 19th."""
    nine = np.arange(9, 0, -1, dtype=np.float32)
    assert cutoff(nine, 0.8) == 8.0
    assert cutoff(nine, 0.7) == 7.0
    assert cutoff(nine, 0.9) == 9.0
    assert cutoff(nine, 0.91) == np.inf
    assert cutoff(np.arange(1, 20, dtype=np.float32), 0.95) == 19.0
    assert cutoff(np.empty(0, np.float32), 0.5) == np.inf


def test_the_cutoff_counts_groups_alike() -> None:
    """Three groups; each is a quarter of all, as is the new one. The group of two gives each of its
    entities an eighth: 1 is reached by 1/8, 2 by 3/8, 3 by 5/8 and 4 by 6/8."""
    surprises = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    groups = np.array([7, 3, 5, 7])
    assert [cutoff(surprises, c, groups) for c in (0.12, 0.3, 0.6, 0.75)] == [1.0, 2.0, 3.0, 4.0]
    assert cutoff(surprises, 0.76, groups) == np.inf


@given(SURPRISES, st.floats(0.01, 0.99))
def test_entities_without_groups_are_groups_of_their_own(
    surprises: np.ndarray, coverage: float
) -> None:
    assert cutoff(surprises, coverage) == cutoff(surprises, coverage, np.arange(len(surprises)))


@given(SURPRISES, st.floats(0.01, 0.99))
def test_the_cutoff_is_that_of_brute_force(surprises: np.ndarray, coverage: float) -> None:
    """The smallest surprise that so many of the n + 1 surprises are at most, a new one being
    larger than all."""
    enough = [
        one
        for one in surprises.tolist()
        if (surprises <= one).sum() >= (len(surprises) + 1) * coverage - 1e-9
    ]
    assert cutoff(surprises, coverage) == min(enough, default=np.inf)


@given(SURPRISES, st.floats(0.01, 0.98), st.floats(0.001, 0.01))
def test_more_coverage_never_gives_smaller_sets(
    surprises: np.ndarray, coverage: float, more: float
) -> None:
    assert cutoff(surprises, coverage + more) >= cutoff(surprises, coverage)


def test_each_value_has_a_cutoff_of_its_own() -> None:
    surprises = np.array([1.0, 2.0, 3.0, 10.0, 20.0, 30.0], np.float32)
    labels = np.array([0, 0, 0, 1, 1, 1])
    found = cutoffs_by_value(surprises, labels, 3, 0.5)
    assert found.tolist() == [2.0, 20.0, np.inf]


def test_a_value_of_probability_zero_is_in_a_set_only_if_all_are() -> None:
    asked = surprise(np.array([[1.0, 0.0]]))
    assert sets(asked, 3.0).tolist() == [[True, False]]
    assert sets(asked, np.inf).tolist() == [[True, True]]


def test_an_empty_set_gets_the_most_probable_value() -> None:
    asked = surprise(np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]]))
    members = sets(asked, float(surprise(np.array([0.8]))[0]))
    assert members.tolist() == [[False] * 3, [True, False, False]]
    assert never_empty(members, asked).tolist() == [[True, False, False]] * 2


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1.0, float("nan")])
def test_a_coverage_is_between_0_and_1(coverage: float) -> None:
    with pytest.raises(ConfigError) as raised:
        cutoff(np.ones(3, np.float32), coverage)
    assert raised.value.field == "coverage"


@pytest.mark.parametrize("coverage", COVERAGES)
def test_coverage_over_random_splits_is_within_the_beta_binomial_interval(coverage: float) -> None:
    """The count of covered entities follows it exactly. 95 of 100 splits are expected within its
    95 % interval; fewer than 89 happens once in two hundred times."""
    distribution, labels = made_answers(HELD + ASKED, seed=1)
    surprises = surprise(distribution)[np.arange(len(labels)), labels]
    generator, within, total = np.random.default_rng(2), 0, 0
    chances = count_within(HELD, coverage)
    low, high = chances.interval(0.95)
    for _ in range(SPLITS):
        order = generator.permutation(len(labels))
        found = cutoff(surprises[order[:HELD]], coverage)
        covered = int(sets(surprises[order[HELD:], None], found).sum())
        within += low <= covered <= high
        total += covered
    assert within >= 89
    spread = chances.std() / np.sqrt(SPLITS)
    assert abs(total / SPLITS - chances.mean()) < 3.5 * spread


@pytest.mark.parametrize("coverage", COVERAGES)
def test_class_conditional_coverage_is_within_the_interval_of_each_value(coverage: float) -> None:
    distribution, labels = made_answers(3 * (HELD + ASKED), seed=3)
    surprises = surprise(distribution)[np.arange(len(labels)), labels]
    values, generator = distribution.shape[1], np.random.default_rng(4)
    within = np.zeros(values)
    for _ in range(SPLITS):
        order = generator.permutation(len(labels))
        held, asked = order[: 3 * HELD], order[3 * HELD :]
        cutoffs = cutoffs_by_value(surprises[held], labels[held], values, coverage)
        members = sets(surprise(distribution[asked]), cutoffs)
        for value in range(values):
            own = labels[asked] == value
            chances = count_within(int((labels[held] == value).sum()), coverage, int(own.sum()))
            low, high = chances.interval(0.95)
            within[value] += low <= members[own, value].sum() <= high
    assert (within >= 88).all(), within


def test_marginal_sets_do_not_cover_each_value_and_sets_by_value_do() -> None:
    """A model that hardly ever says the rare value: 90 % of all are covered without it."""
    generator = np.random.default_rng(5)
    labels = (generator.random(4000) < 0.08).astype(np.intp)
    chance = np.clip(0.1 * generator.random(4000) + 0.05 * labels, 0.001, 0.999)
    distribution = np.stack([1 - chance, chance], axis=1)
    surprises = surprise(distribution)
    own = surprises[np.arange(4000), labels]
    held, asked = slice(0, 2000), slice(2000, 4000)
    rare = labels[asked] == 1
    plain = sets(surprises[asked], cutoff(own[held], 0.9))[rare, 1].mean()
    by_value = sets(surprises[asked], cutoffs_by_value(own[held], labels[held], 2, 0.9))
    assert plain < 0.3
    assert by_value[rare, 1].mean() > 0.82
    assert by_value[~rare, 0].mean() > 0.87


def test_groups_keep_the_coverage_of_entities_of_new_groups() -> None:
    """Entities of a group are answered alike well, and large groups better. Counting entities
    alike, those of a new group are covered too rarely."""
    coverage, covered, naive = 0.9, [], []
    for seed in range(10_000, 10_400):
        generator = np.random.default_rng(seed)
        sizes = generator.choice([1, 30], 60)
        hard = np.where(sizes == 1, 2.0, 0.5) * generator.exponential(1.0, 60)
        groups = np.repeat(np.arange(60), sizes)
        surprises = (hard[groups] + 0.1 * generator.random(len(groups))).astype(np.float32)
        new = 2.0 if generator.random() < 0.5 else 0.5
        asked = new * generator.exponential(1.0) + 0.1 * generator.random()
        covered.append(asked <= cutoff(surprises, coverage, groups))
        naive.append(asked <= cutoff(surprises, coverage))
    assert np.mean(naive) < 0.87
    assert np.mean(covered) > 0.87


@pytest.mark.filterwarnings("ignore:WARNING")  # a value by itself has one label only
@pytest.mark.parametrize("by_value", [False, True])
def test_sets_are_those_of_mapie(by_value: bool) -> None:
    """MAPIE's score is 1 - p, of the same order as -log p."""
    classification = pytest.importorskip("mapie.classification")
    distribution, labels = made_answers(700, seed=6)
    held, asked = slice(0, 301), slice(301, 700)
    for coverage in COVERAGES:
        model = FixedAnswers(distribution)
        rows = np.arange(len(labels))[:, None].astype(float)
        values = range(distribution.shape[1]) if by_value else [None]
        wanted = np.zeros(distribution[asked].shape, bool)
        for value in values:
            chosen = np.arange(301) if value is None else np.flatnonzero(labels[held] == value)
            split = classification.SplitConformalClassifier(
                model, confidence_level=coverage, conformity_score="lac", prefit=True
            )
            split.conformalize(rows[chosen], labels[chosen])
            members = split.predict_set(rows[asked])[1][:, :, 0]
            if value is None:
                wanted = members
            else:
                wanted[:, value] = members[:, value]
        own = surprise(distribution)[np.arange(301), labels[held]]
        cutoffs: Any = cutoff(own, coverage)
        if by_value:
            cutoffs = cutoffs_by_value(own, labels[held], distribution.shape[1], coverage)
        assert np.array_equal(sets(surprise(distribution[asked]), cutoffs), wanted)


class FixedAnswers:
    """A classifier in scikit-learn's form whose answer to row k is known."""

    def __init__(self, answers: np.ndarray) -> None:
        self.answers = answers
        self.classes_ = np.arange(answers.shape[1])
        self.n_features_in_ = 1

    def fit(self, X: np.ndarray, y: np.ndarray) -> FixedAnswers:
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.answers[X[:, 0].astype(int)]

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return True


def count_within(held: int, coverage: float, asked: int = ASKED) -> Any:
    """How many of ``asked`` new entities are covered: beta-binomial."""
    rank = int(np.ceil((held + 1) * coverage - 1e-9))
    return betabinom(asked, rank, held + 1 - rank)


def made_answers(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Answers about three values [E, 3] that are overconfident, and the true values [E]."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet([0.6, 0.8, 1.0], count)
    labels = (generator.random(count)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(max=2)
    sharp = truth**2.0 + 1e-4
    return sharp / sharp.sum(axis=1, keepdims=True), labels
