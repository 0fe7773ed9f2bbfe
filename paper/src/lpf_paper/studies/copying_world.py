"""Votes of five sources, two of which copy a weak third, with a known exact posterior.

    y          all values are equally likely
    v₀ v₁ v₂   y with the source's accuracy, else any other value with equal probability
    v₃ v₄      v₂ with the copy rate, else a vote of their own

Votes are symbols, so nothing depends on reading texts. All methods see the same labelled entities
and answer for the same test entities. LPF turns a vote into a soft factor through its source's
confusion matrix, and combines factors as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpf.baselines import Labelled, Votes, fit_confusions, fit_regression
from lpf.combine import (
    LabelledFactors,
    RobustParameters,
    Segments,
    combine_robust,
    fit_robust,
    fit_temperature,
)
from lpf.domains import stream
from lpf.errors import ConfigError
from lpf.factors import tempered
from lpf.types import FloatArray

IndexArray = NDArray[np.intp]

SOURCES = 5
COPIED = 2
COPIERS = (3, 4)
FAMILIES = (0, 1, 2, 2, 2)  # sources with the same number copy each other


@dataclass(frozen=True)
class CopyingWorld:
    """``accuracy`` of each source's own votes, ``copy_rate`` of the last two sources, and the
    number of ``values``."""

    accuracy: tuple[float, ...]
    copy_rate: float = 0.95
    values: int = 3

    def __post_init__(self) -> None:
        for name, holds, rule in (
            ("accuracy", self._has_accuracies(), f"{SOURCES} numbers in (0, 1)"),
            ("copy_rate", 0.0 <= self.copy_rate <= 1.0, "in [0, 1]"),
            ("values", self.values >= 2, "at least 2"),
        ):
            if not holds:
                raise ConfigError(
                    f"copying.{name}: must be {rule}, got {getattr(self, name)!r}. Nothing was run."
                )

    def chances(self, source: int) -> FloatArray:
        """P(own vote | y), [vote, y]."""
        right = self.accuracy[source]
        wrong = (1.0 - right) / (self.values - 1)
        return np.where(np.eye(self.values, dtype=bool), right, wrong)

    def _has_accuracies(self) -> bool:
        return len(self.accuracy) == SOURCES and all(0.0 < one < 1.0 for one in self.accuracy)


# The two independent sources are so accurate that knowing their accuracy is nearly enough. They
# differ, so that no posterior is a tie.
STRONG = CopyingWorld(accuracy=(0.98, 0.96, 0.7, 0.7, 0.7))
# Here their combined odds are lower than those of the weak source counted three times:
# (.8/.1)·(.7/.15) = 37 against (.65/.175)³ = 51.
MODERATE = CopyingWorld(accuracy=(0.8, 0.7, 0.65, 0.65, 0.65))


def copying_votes(
    entities: int, seed: int, world: CopyingWorld = STRONG
) -> tuple[IndexArray, IndexArray]:
    """Votes [E, 5] and labels [E]."""
    if entities < 1 or seed < 0:
        raise ConfigError(
            "copying: needs at least 1 entity and a seed of 0 or above, got "
            f"{entities} and {seed}. Nothing was drawn."
        )
    generator = stream(seed, "copying", "votes")
    labels = generator.integers(world.values, size=entities)
    right = generator.random((entities, SOURCES)) < np.array(world.accuracy)
    away = generator.integers(1, world.values, size=right.shape)
    votes = (labels[:, None] + np.where(right, 0, away)) % world.values
    for copier in COPIERS:
        copies = generator.random(entities) < world.copy_rate
        votes[:, copier] = np.where(copies, votes[:, COPIED], votes[:, copier])
    return votes.astype(np.intp), labels.astype(np.intp)


def exact_posterior(votes: IndexArray, world: CopyingWorld) -> FloatArray:
    """The exact P(y | votes), [E, V], summed over whether a copier copied."""
    seen = np.ones((len(votes), world.values))
    for source in range(SOURCES):
        own = world.chances(source)[votes[:, source]]
        if source in COPIERS:
            same = (votes[:, source] == votes[:, COPIED])[:, None]
            own = world.copy_rate * same + (1.0 - world.copy_rate) * own
        seen *= own
    return np.asarray(seen / seen.sum(axis=1, keepdims=True))


ALONE = tuple(range(SOURCES))
FOLDS = 5
LEAST_LABELLED = 50
# Pseudo counts in every cell of a source's matrix.
SMOOTHING = 1.0
# Sources are one family if they agree in more than half of the cases in which independent sources
# would differ: counting both as one is then closer to the truth than counting each.
LEAST_EXCESS = 0.5
LEAST_DEVIATIONS = 3.0  # in standard errors, so that few labels do not link sources by chance


@dataclass(frozen=True)
class CopyingOutcome:
    """``answers`` [E, V] by method, and the ``labels`` [E] of the test entities. ``families`` has
    one number per source, equal for sources that were found to copy each other. ``fitted`` has the
    calibrated parameters of each LPF variant."""

    answers: Mapping[str, FloatArray]
    labels: IndexArray
    families: tuple[int, ...]
    fitted: Mapping[str, RobustParameters]


def copying_answers(
    labelled: int, test: int, seed: int, world: CopyingWorld = STRONG
) -> CopyingOutcome:
    """The answers of each method for ``test`` entities, given ``labelled`` other entities.

    Majority vote and Dawid-Skene use no labels; as in the other studies, each is also run with
    a temperature fitted on the labels. ConfigError for fewer than 50 labelled entities.
    """
    if labelled < LEAST_LABELLED or test < 1:
        raise ConfigError(
            f"copying: needs at least {LEAST_LABELLED} labelled entities and 1 test entity, got "
            f"{labelled} and {test}. Nothing was run."
        )
    votes, labels = copying_votes(labelled + test, seed, world)
    known = LabelledVotes(votes[:labelled], labels[:labelled], world.values)
    test_votes = votes[labelled:]
    families = found_families(known)
    groupings = {
        "lpf_copies_known": FAMILIES,
        "lpf_copies_found": families,
        "lpf_copies_ignored": ALONE,
    }
    # The families found are usually the known ones; then one fit is used for both.
    fits = {grouping: fitted_lpf(known, grouping, seed) for grouping in set(groupings.values())}
    answers = {
        **without_labels(known, test_votes),
        "stacking": stacked(known, test_votes, seed),
        **{name: lpf_answers(known, test_votes, of, fits[of]) for name, of in groupings.items()},
        "exact_posterior": exact_posterior(test_votes, world),
    }
    fitted = {name: fits[grouping] for name, grouping in groupings.items()}
    return CopyingOutcome(answers, labels[labelled:], families, fitted)


@dataclass(frozen=True)
class LabelledVotes:
    """Votes [E, 5] of entities whose ``labels`` [E] are known. There are ``values`` values."""

    votes: IndexArray
    labels: IndexArray
    values: int

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, places: IndexArray) -> LabelledVotes:
        return LabelledVotes(self.votes[places], self.labels[places], self.values)

    def folds(self, seed: int) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Training and held-out positions of the five folds."""
        fold = stream(seed, "copying", "folds").permutation(len(self)) % FOLDS
        for held in range(FOLDS):
            yield np.flatnonzero(fold != held), np.flatnonzero(fold == held)

    @cached_property
    def shares(self) -> FloatArray:
        """P(y), counted and smoothed, [V]."""
        counts = SMOOTHING + np.bincount(self.labels, minlength=self.values)
        return np.asarray(counts / counts.sum())

    @cached_property
    def confusions(self) -> FloatArray:
        """P(vote | y) of each source, counted and smoothed, [5, vote, y]."""
        counts = np.full((SOURCES, self.values, self.values), SMOOTHING)
        np.add.at(counts, (np.arange(SOURCES), self.votes, self.labels[:, None]), 1.0)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def factors(self, votes: IndexArray) -> FloatArray:
        """Φ = P(y | one vote) for each of ``votes`` [E, 5], one after the other, [5E, V]."""
        joint = self.confusions[np.arange(SOURCES), votes] * self.shares
        return np.asarray(joint / joint.sum(axis=-1, keepdims=True)).reshape(-1, self.values)


def found_families(known: LabelledVotes) -> tuple[int, ...]:
    """Groups sources that agree far more often than two sources that share nothing but the label.
    Returns one number per source, that of the first source of its family.

    It cannot distinguish copying from other shared errors, such as those on entities that are hard
    for all sources.
    """
    families = list(range(SOURCES))
    for one in range(SOURCES):
        for other in range(one + 1, SOURCES):
            if _copy_each_other(known, one, other):
                first, last = sorted((families[one], families[other]))
                families = [first if family == last else family for family in families]
    return tuple(families)


def _copy_each_other(known: LabelledVotes, one: int, other: int) -> bool:
    by_label = (known.confusions[one] * known.confusions[other]).sum(axis=0)
    expected = by_label[known.labels]
    excess = (known.votes[:, one] == known.votes[:, other]).sum() - expected.sum()
    deviation = np.sqrt((expected * (1.0 - expected)).sum())
    least = max(LEAST_EXCESS * (1.0 - expected).sum(), LEAST_DEVIATIONS * deviation)
    return bool(excess > least)


def without_labels(known: LabelledVotes, test_votes: IndexArray) -> dict[str, FloatArray]:
    """Majority vote and Dawid-Skene, with and without a temperature. Dawid-Skene fits its matrices
    to the votes of the labelled entities."""
    found = fit_confusions(_crowd(known.votes), SOURCES, known.values)
    methods: dict[str, Callable[[IndexArray], FloatArray]] = {
        "majority_vote": lambda votes: majority(votes, known.values),
        "dawid_skene": lambda votes: found.posterior(_crowd(votes)),
    }
    answers = {}
    for name, answer in methods.items():
        answers[name] = answer(test_votes)
        temperature = fit_temperature(answer(known.votes), known.labels)
        answers[f"{name}_tempered"] = tempered(answers[name], temperature)
    return answers


def majority(votes: IndexArray, values: int) -> FloatArray:
    """(1 + votes for v)/(V + all votes), [E, V]."""
    counted = 1.0 + np.eye(values)[votes].sum(axis=1)
    return np.asarray(counted / counted.sum(axis=1, keepdims=True))


def stacked(known: LabelledVotes, test_votes: IndexArray, seed: int) -> FloatArray:
    """Multinomial regression on one-hot votes: the mean of five fits, the penalty of each chosen on
    its held-out fold."""
    answers = []
    for kept, held in known.folds(seed):
        train, validation = (
            Labelled(_one_hot(part.votes, known.values), part.labels)
            for part in (known.select(kept), known.select(held))
        )
        regression = fit_regression(train, validation, known.values)
        answers.append(regression.probabilities(_one_hot(test_votes, known.values)))
    return np.asarray(np.mean(answers, axis=0))


def fitted_lpf(known: LabelledVotes, families: tuple[int, ...], seed: int) -> RobustParameters:
    """Robust mode's parameters, fitted on factors from out-of-fold confusion matrices."""
    potential = np.empty((len(known), SOURCES, known.values))
    for kept, held in known.folds(seed):
        factors = known.select(kept).factors(known.votes[held])
        potential[held] = factors.reshape(len(held), SOURCES, known.values)
    data = LabelledFactors(
        potential.reshape(-1, known.values),
        np.full(known.votes.size, np.nan),
        _segments(known.votes),
        known.labels,
        known.shares,
        np.log(known.shares),
        _groups(known.votes, families, known.values),
    )
    return fit_robust(data, generator=stream(seed, "copying", "subsets")).parameters


def lpf_answers(
    known: LabelledVotes,
    test_votes: IndexArray,
    families: tuple[int, ...],
    parameters: RobustParameters,
) -> FloatArray:
    """[E, V]."""
    return combine_robust(
        tempered(known.factors(test_votes), parameters.temperature),
        np.full(test_votes.size, np.nan),
        known.shares,
        np.log(known.shares),
        _segments(test_votes),
        parameters,
        _groups(test_votes, families, known.values),
    ).distribution


def _groups(votes: IndexArray, families: tuple[int, ...], values: int) -> NDArray[np.int64]:
    """Votes of one family that agree are copies; a different vote was not copied."""
    return (np.array(families, np.int64) * values + votes).reshape(-1)


def _segments(votes: IndexArray) -> Segments:
    return Segments.of_counts(np.full(len(votes), SOURCES))


def _crowd(votes: IndexArray) -> Votes:
    return Votes(votes.reshape(-1), np.tile(np.arange(SOURCES), len(votes)), _segments(votes))


def _one_hot(votes: IndexArray, values: int) -> FloatArray:
    return np.eye(values)[votes].reshape(len(votes), -1)
