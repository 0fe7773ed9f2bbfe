"""Sources that copy: the exact posterior against all that can have happened, and who sees it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from lpf import metrics
from lpf.errors import ConfigError
from lpf_paper.studies.copying_world import (
    FAMILIES,
    MODERATE,
    SOURCES,
    STRONG,
    CopyingOutcome,
    CopyingWorld,
    LabelledVotes,
    copying_answers,
    copying_votes,
    exact_posterior,
    found_families,
    majority,
)

METHODS = {
    "majority_vote",
    "majority_vote_tempered",
    "dawid_skene",
    "dawid_skene_tempered",
    "stacking",
    "lpf_copies_known",
    "lpf_copies_found",
    "lpf_copies_ignored",
    "exact_posterior",
}


@cache
def outcome(world: CopyingWorld) -> CopyingOutcome:
    return copying_answers(500, 5000, 4, world)


def enumerated(world: CopyingWorld) -> dict[tuple[int, ...], np.ndarray]:
    """P(votes, y) by walking through every label, every own vote and every choice to copy."""
    joint: dict[tuple[int, ...], np.ndarray] = {}
    for label, *own in product(range(world.values), repeat=1 + SOURCES):
        chance = 1.0 / world.values
        for right, vote in zip(world.accuracy, own, strict=True):
            chance *= right if vote == label else (1.0 - right) / (world.values - 1)
        for copied in product((True, False), repeat=2):
            votes = (*own[:3], *(own[2] if c else v for c, v in zip(copied, own[3:], strict=True)))
            switches = np.prod([world.copy_rate if c else 1.0 - world.copy_rate for c in copied])
            joint.setdefault(votes, np.zeros(world.values))[label] += chance * switches
    return joint


@pytest.mark.parametrize(
    "world",
    [
        CopyingWorld((0.9, 0.8, 0.6, 0.7, 0.55), copy_rate=0.9, values=2),
        CopyingWorld((0.8, 0.75, 0.65, 0.6, 0.5), copy_rate=0.5),
        CopyingWorld((0.8, 0.3, 0.65, 0.6, 0.5), copy_rate=0.0),
        MODERATE,
    ],
)
def test_the_exact_posterior_is_that_of_all_that_can_have_happened(world: CopyingWorld) -> None:
    joint = enumerated(world)
    assert len(joint) == world.values**SOURCES
    assert sum(row.sum() for row in joint.values()) == pytest.approx(1.0)
    expected = np.array([row / row.sum() for row in joint.values()])
    found = exact_posterior(np.array(list(joint)), world)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_votes_come_about_as_the_world_says() -> None:
    world = CopyingWorld((0.9, 0.8, 0.6, 0.7, 0.5), copy_rate=0.75)
    votes, labels = copying_votes(60_000, 2, world)
    joint = enumerated(world)
    counts = np.zeros((world.values,) * (SOURCES + 1))
    np.add.at(counts, (*votes.T, labels), 1.0)
    expected = np.zeros_like(counts)
    for row, chances in joint.items():
        expected[row] = chances
    # Chi-squared over all cells: its mean is the degrees of freedom, its deviation √(2·df).
    expected *= len(labels)
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = counts.size - 1
    assert abs(statistic - freedom) < 5.0 * np.sqrt(2.0 * freedom)


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    first, again = (copying_answers(60, 200, 1, MODERATE) for _ in range(2))
    np.testing.assert_array_equal(first.labels, again.labels)
    for name, answers in first.answers.items():
        np.testing.assert_array_equal(answers, again.answers[name])
    (votes, _), (others, _) = (copying_votes(200, seed) for seed in (1, 2))
    assert not np.array_equal(votes, others)


@pytest.mark.parametrize("values", [2, 3])
def test_every_method_answers_with_distributions(values: int) -> None:
    found = (
        outcome(STRONG) if values == 3 else copying_answers(60, 5000, 1, replace(STRONG, values=2))
    )
    assert found.answers.keys() == METHODS
    for answers in found.answers.values():
        assert answers.shape == (5000, values)
        assert (answers >= 0.0).all()
        np.testing.assert_allclose(answers.sum(axis=1), 1.0)


def accuracies(world: CopyingWorld) -> dict[str, float]:
    found = outcome(world)
    return {name: metrics.accuracy(rows, found.labels) for name, rows in found.answers.items()}


@pytest.mark.parametrize("world", [STRONG, MODERATE])
def test_methods_without_labels_follow_the_weak_source(
    world: CopyingWorld,
) -> None:
    accuracy = accuracies(world)
    weak = world.accuracy[2]
    for name in ("majority_vote", "dawid_skene"):
        assert accuracy[name] < weak + 0.05
    assert accuracy["lpf_copies_known"] > accuracy["majority_vote"] + 0.15
    assert accuracy["lpf_copies_known"] > accuracy["exact_posterior"] - 0.02
    assert accuracy["stacking"] > accuracy["exact_posterior"] - 0.03


def test_ignoring_copies_costs_most_if_the_other_sources_are_moderate() -> None:
    """How much accuracy it costs depends on the labelled sample (.07 here, .10 to .18 with ten
    others): the weak source's odds, counted three times, are not far above those of the two. The
    NLL is steadier."""
    found, accuracy = outcome(MODERATE), accuracies(MODERATE)
    known, ignored = (
        metrics.nll(found.answers[f"lpf_copies_{name}"], found.labels)
        for name in ("known", "ignored")
    )
    assert accuracy["lpf_copies_known"] > accuracy["lpf_copies_ignored"] + 0.03
    assert known < ignored - 0.08


@pytest.mark.parametrize("world", [STRONG, MODERATE])
def test_nothing_beats_the_exact_posterior(world: CopyingWorld) -> None:
    """By more than chance: its expected NLL is the lowest there is."""
    found = outcome(world)
    rows = np.arange(len(found.labels))
    exact = -np.log(found.answers["exact_posterior"][rows, found.labels])
    for answers in found.answers.values():
        worse = -np.log(answers[rows, found.labels]) - exact
        assert worse.mean() >= -3.0 * worse.std() / np.sqrt(len(worse))


def test_copies_are_found_in_the_votes() -> None:
    for world in (STRONG, MODERATE):
        found = outcome(world)
        assert found.families == FAMILIES
        np.testing.assert_array_equal(
            found.answers["lpf_copies_found"], found.answers["lpf_copies_known"]
        )


def test_without_copying_no_family_is_found() -> None:
    world = replace(MODERATE, copy_rate=0.0)
    for seed in range(20):
        votes, labels = copying_votes(100, seed, world)
        assert found_families(LabelledVotes(votes, labels, 3)) == (0, 1, 2, 3, 4)


def test_a_copier_of_a_copier_is_in_the_family() -> None:
    """0 and 3 are alike, then 1 and 3 are: the three have the number of the first."""
    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=400)
    votes = np.where(generator.random((400, 5)) < 0.6, labels[:, None], (labels[:, None] + 1) % 3)
    chain = votes[:, 0].copy()
    votes[:, 3] = np.where(generator.random(400) < 0.75, chain, votes[:, 3])
    votes[:, 1] = np.where(generator.random(400) < 0.75, votes[:, 3], votes[:, 1])
    assert found_families(LabelledVotes(votes, labels, 3)) == (0, 0, 2, 0, 4)


def test_matrices_and_factors_by_hand() -> None:
    votes = np.array([[0, 0, 0, 0, 0], [0, 1, 1, 1, 1]])
    known = LabelledVotes(votes, np.array([0, 1]), 2)
    # Source 0 said 0 of both; a vote in every cell before.
    np.testing.assert_allclose(known.confusions[0], [[2 / 3, 2 / 3], [1 / 3, 1 / 3]])
    np.testing.assert_allclose(known.confusions[1], [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    np.testing.assert_allclose(known.shares, [0.5, 0.5])
    np.testing.assert_allclose(known.factors(votes[:1])[:2], [[0.5, 0.5], [2 / 3, 1 / 3]])


def test_the_majority_by_hand() -> None:
    found = majority(np.array([[0, 0, 0, 1, 2], [2, 2, 1, 1, 2]]), 3)
    np.testing.assert_allclose(found, [[4 / 8, 2 / 8, 2 / 8], [1 / 8, 3 / 8, 4 / 8]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": (0.9, 0.9)}, "5 numbers"),
        ({"accuracy": (0.9, 0.9, 0.7, 0.7, 1.0)}, "5 numbers"),
        ({"copy_rate": 1.01}, "copy_rate"),
        ({"values": 1}, "at least 2"),
    ],
)
def test_worlds_that_cannot_be_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CopyingWorld(**{"accuracy": STRONG.accuracy, **change})


def test_too_few_entities_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 50 labelled"):
        copying_answers(49, 10, 1)
    with pytest.raises(ConfigError, match="1 test entity"):
        copying_answers(50, 0, 1)
    with pytest.raises(ConfigError, match="seed of 0 or above"):
        copying_votes(10, -1)
