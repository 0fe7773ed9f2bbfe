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

Whole = NDArray[np.intp]

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


# The two that are independent are so good that it is nearly enough to know how good they are. They
# differ, so that no posterior is a tie.
STRONG = CopyingWorld(accuracy=(0.98, 0.96, 0.7, 0.7, 0.7))
# Here their odds together are less than those of the weak one heard three times:
# (.8/.1)·(.7/.15) = 37 against (.65/.175)³ = 51.
MODERATE = CopyingWorld(accuracy=(0.8, 0.7, 0.65, 0.65, 0.65))


def copying_votes(entities: int, seed: int, world: CopyingWorld = STRONG) -> tuple[Whole, Whole]:
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


def exact_posterior(votes: Whole, world: CopyingWorld) -> FloatArray:
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
# Votes that a source's matrix has in every cell before any is counted.
SMOOTHING = 1.0
# Sources are one family where they agree in more than half of the cases in which chance would let
# them differ: from there on, to count both once is nearer to the truth than to count each.
LEAST_EXCESS = 0.5
LEAST_DEVIATIONS = 3.0  # in standard errors, so that few labels do not link sources by chance


@dataclass(frozen=True)
class CopyingOutcome:
    """``answers`` [E, V] by method, and the ``labels`` [E] of the test entities. ``families`` are
    those that were found: a number a source, the same for those that copy each other. ``fitted`` is
    what calibration made of each LPF."""

    answers: Mapping[str, FloatArray]
    labels: Whole
    families: tuple[int, ...]
    fitted: Mapping[str, RobustParameters]


def copying_answers(
    labelled: int, test: int, seed: int, world: CopyingWorld = STRONG
) -> CopyingOutcome:
    """What each way of combining says of ``test`` entities after ``labelled`` others.

    Majority vote and Dawid-Skene use no labels; as for all methods elsewhere, each comes also with
    a temperature fitted on the labels. ConfigError for fewer than 50 labelled entities.
    """
    if labelled < LEAST_LABELLED or test < 1:
        raise ConfigError(
            f"copying: needs at least {LEAST_LABELLED} labelled entities and 1 to be asked about, "
            f"got {labelled} and {test}. Nothing was run."
        )
    votes, labels = copying_votes(labelled + test, seed, world)
    known = LabelledVotes(votes[:labelled], labels[:labelled], world.values)
    asked = votes[labelled:]
    families = found_families(known)
    groupings = {
        "lpf_copies_known": FAMILIES,
        "lpf_copies_found": families,
        "lpf_copies_ignored": ALONE,
    }
    # The families found are mostly the known ones; then one fit serves both.
    fits = {grouping: fitted_lpf(known, grouping, seed) for grouping in set(groupings.values())}
    answers = {
        **without_labels(known, asked),
        "stacking": stacked(known, asked, seed),
        **{name: lpf_answers(known, asked, of, fits[of]) for name, of in groupings.items()},
        "exact_posterior": exact_posterior(asked, world),
    }
    fitted = {name: fits[grouping] for name, grouping in groupings.items()}
    return CopyingOutcome(answers, labels[labelled:], families, fitted)


@dataclass(frozen=True)
class LabelledVotes:
    """Votes [E, 5] of entities whose ``labels`` [E] are known, among so many ``values``."""

    votes: Whole
    labels: Whole
    values: int

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, places: Whole) -> LabelledVotes:
        return LabelledVotes(self.votes[places], self.labels[places], self.values)

    def folds(self, seed: int) -> Iterator[tuple[Whole, Whole]]:
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

    def factors(self, votes: Whole) -> FloatArray:
        """Φ = P(y | one vote) for each of ``votes`` [E, 5], one after the other, [5E, V]."""
        joint = self.confusions[np.arange(SOURCES), votes] * self.shares
        return np.asarray(joint / joint.sum(axis=-1, keepdims=True)).reshape(-1, self.values)


def found_families(known: LabelledVotes) -> tuple[int, ...]:
    """Sources that agree far more often than two with nothing in common but the label, and
    whoever agrees with one of them: a number a source, that of its family's first.

    Other errors that sources share, such as those on entities that are hard for all, look the same
    to it.
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


def without_labels(known: LabelledVotes, asked: Whole) -> dict[str, FloatArray]:
    """Majority vote and Dawid-Skene, with and without a temperature. Dawid-Skene fits its matrices
    to the votes of the labelled entities."""
    found = fit_confusions(_crowd(known.votes), SOURCES, known.values)
    methods: dict[str, Callable[[Whole], FloatArray]] = {
        "majority_vote": lambda votes: majority(votes, known.values),
        "dawid_skene": lambda votes: found.posterior(_crowd(votes)),
    }
    answers = {}
    for name, answer in methods.items():
        answers[name] = answer(asked)
        temperature = fit_temperature(answer(known.votes), known.labels)
        answers[f"{name}_tempered"] = tempered(answers[name], temperature)
    return answers


def majority(votes: Whole, values: int) -> FloatArray:
    """(1 + votes for v)/(V + all votes), [E, V]."""
    counted = 1.0 + np.eye(values)[votes].sum(axis=1)
    return np.asarray(counted / counted.sum(axis=1, keepdims=True))


def stacked(known: LabelledVotes, asked: Whole, seed: int) -> FloatArray:
    """Multinomial regression on one-hot votes: the mean of five fits, the penalty of each chosen on
    its held-out fold."""
    answers = []
    for kept, held in known.folds(seed):
        train, validation = (
            Labelled(_one_hot(part.votes, known.values), part.labels)
            for part in (known.select(kept), known.select(held))
        )
        regression = fit_regression(train, validation, known.values)
        answers.append(regression.probabilities(_one_hot(asked, known.values)))
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
    known: LabelledVotes, asked: Whole, families: tuple[int, ...], parameters: RobustParameters
) -> FloatArray:
    """[E, V]."""
    return combine_robust(
        tempered(known.factors(asked), parameters.temperature),
        np.full(asked.size, np.nan),
        known.shares,
        np.log(known.shares),
        _segments(asked),
        parameters,
        _groups(asked, families, known.values),
    ).distribution


def _groups(votes: Whole, families: tuple[int, ...], values: int) -> NDArray[np.int64]:
    """Votes of one family that agree are copies; a different vote was not copied."""
    return (np.array(families, np.int64) * values + votes).reshape(-1)


def _segments(votes: Whole) -> Segments:
    return Segments.of_counts(np.full(len(votes), SOURCES))


def _crowd(votes: Whole) -> Votes:
    return Votes(votes.reshape(-1), np.tile(np.arange(SOURCES), len(votes)), _segments(votes))


def _one_hot(votes: Whole, values: int) -> FloatArray:
    return np.eye(values)[votes].reshape(len(votes), -1)
