"""Scores of predictions whose outcomes are known, beside what was promised.

There are two promises. The *stated* score is what an answer's own probabilities say of it: if they
are honest, log losses have the mean of their entropies, and so on. The *held-out* score is that of
the entities that were held out when the model was trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lpf.metrics.betting import LEAST_PROBABILITY
from lpf.metrics.calibration import BINS, Bins
from lpf.metrics.intervals import percentiles, resampled
from lpf.metrics.prediction_sets import surprise
from lpf.model.held_out import HeldOutAnswers
from lpf.monitor.sealed import Prediction
from lpf.monitor.windows import Window, WindowSize, cut_into
from lpf.types import Float32Array, FloatArray

COVERAGES: Final = (0.8, 0.9, 0.95)
DRAWS, SEED = 1000, 20
RANGE = 0.95  # of intervals, and of what chance allows
NORMAL = 1.959964  # standard errors to either side, for RANGE
BLOCK = 1 << 20  # random numbers drawn together (8 MB)


@dataclass(frozen=True, eq=False)
class Scored:
    """N predictions about one predicate in the order in which their outcomes became known:
    ``probabilities`` [N, V], positions of the true values ``labels`` [N], ``known_at`` [N] in
    microseconds since 1970."""

    probabilities: FloatArray
    labels: NDArray[np.int64]
    known_at: NDArray[np.int64]

    @classmethod
    def of(cls, predictions: Sequence[Prediction], values: Sequence[str]) -> Scored:
        """``values`` are the predicate's."""
        place = {value: number for number, value in enumerate(values)}
        rows = [one.answer.probabilities for one in predictions]
        return cls(
            np.array(rows, np.float64).reshape(len(rows), len(values)),
            np.array([place[one.outcome.value] for one in predictions], np.int64),
            np.array([one.outcome.known_at for one in predictions], np.int64),
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.asarray(self.probabilities.argmax(axis=1) == self.labels)

    @property
    def confidence(self) -> FloatArray:
        return np.asarray(self.probabilities.max(axis=1))

    @property
    def log_losses(self) -> FloatArray:
        return np.asarray(-self._logs[np.arange(len(self)), self.labels])

    @property
    def brier_losses(self) -> FloatArray:
        truth = np.eye(self.probabilities.shape[1])[self.labels]
        return np.asarray(((self.probabilities - truth) ** 2).sum(axis=1))

    @property
    def entropies(self) -> FloatArray:
        """The log losses that the probabilities promise."""
        return np.asarray(-(self.probabilities * self._logs).sum(axis=1))

    @property
    def loss_variances(self) -> FloatArray:
        """Of the log losses, if outcomes are drawn from the probabilities."""
        squares = (self.probabilities * self._logs**2).sum(axis=1)
        return np.asarray(np.maximum(squares - self.entropies**2, 0.0))

    @property
    def _logs(self) -> FloatArray:
        return np.asarray(np.log(np.maximum(self.probabilities, LEAST_PROBABILITY)))

    def surprises(self) -> tuple[Float32Array, Float32Array]:
        """Of the true and of the top values, in the precision of held-out answers."""
        found = surprise(self.probabilities)
        return found[np.arange(len(self)), self.labels], found.min(axis=1)


@dataclass(frozen=True)
class Estimate:
    """A mean over entities with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class ScoreLine:
    """One score: ``now`` on the outcomes, ``stated`` as the answers' own probabilities promise it,
    ``held_out`` on held-out entities, of which ``held_out_mean`` is known where the interval is
    not."""

    name: str
    now: Estimate
    stated: float
    held_out: Estimate | None = None
    held_out_mean: float | None = None


@dataclass(frozen=True)
class CoverageLine:
    """Of ``outcomes`` prediction sets with the coverage ``promised``, ``covered`` had the true
    value. If all is as promised, their share is between ``low`` and ``high`` in 95 of 100 cases."""

    promised: float
    covered: int
    outcomes: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.covered / self.outcomes

    @property
    def is_low(self) -> bool:
        return self.share < self.low


@dataclass(frozen=True)
class WindowLine:
    """The outcomes of one window. The mean log loss ``nll`` is between ``low`` and ``high`` in 95
    of 100 cases if the stated probabilities hold; ``stated`` is its expected value."""

    window: Window
    accuracy: float
    stated_accuracy: float
    nll: float
    stated: float
    low: float
    high: float


def score_lines(
    scored: Scored, held: HeldOutAnswers | None, held_out_brier: float | None
) -> list[ScoreLine]:
    """Accuracy, NLL, Brier score and ECE."""
    now = [
        share_estimate(scored.right),
        _mean(scored.log_losses),
        _mean(scored.brier_losses),
        ece_estimate(scored.confidence, scored.right),
    ]
    stated = (
        float(scored.confidence.mean()),
        float(scored.entropies.mean()),
        float((1.0 - (scored.probabilities**2).sum(axis=1)).mean()),
        ece_by_chance(scored.confidence),
    )
    before: list[Estimate | None] = [None] * 4
    if held is not None and len(held):
        losses = held.label_surprise.astype(np.float64)
        confidence = np.exp(-held.top_surprise.astype(np.float64))
        before = [
            share_estimate(held.right),
            _mean(np.minimum(losses, -np.log(LEAST_PROBABILITY))),
            None,
            ece_estimate(confidence, held.right),
        ]
    names = ("accuracy", "NLL", "Brier score", "ECE")
    return [
        ScoreLine(name, one, expected, old, held_out_brier if name == "Brier score" else None)
        for name, one, expected, old in zip(names, now, stated, before, strict=True)
    ]


def coverage_lines(scored: Scored, held: HeldOutAnswers) -> list[CoverageLine]:
    """How often prediction sets had the true value, with the cutoffs of the model."""
    label, top = scored.surprises()
    lines = []
    for level in COVERAGES:
        limit = float(held.cutoffs(level, False)[0])
        # A set always has the most probable value.
        covered = int(((label <= limit) | (label <= top)).sum())
        low, high = coverage_range(level, held.independent, len(scored))
        lines.append(CoverageLine(level, covered, len(scored), low, high))
    return lines


def coverage_range(coverage: float, held_out: int, outcomes: int) -> tuple[float, float]:
    """Between which shares of ``outcomes`` sets have the true value in 95 of 100 cases, if cutoffs
    come from ``held_out`` entities like these: the coverage is Beta(k, n + 1 - k) distributed with
    k = ⌈(n + 1) · coverage⌉, the count beta-binomially."""
    from scipy.special import betaln, gammaln

    rank = int(np.ceil((held_out + 1) * coverage - 1e-9))
    if rank > held_out:  # no value is left out of any set
        return 1.0, 1.0
    first, second = rank, held_out + 1 - rank
    counts = np.arange(outcomes + 1.0)
    choices = gammaln(outcomes + 1.0) - gammaln(counts + 1.0) - gammaln(outcomes - counts + 1.0)
    logs = choices + betaln(counts + first, outcomes - counts + second) - betaln(first, second)
    below = np.cumsum(np.exp(logs))
    edges = np.searchsorted(below / below[-1], [(1.0 - RANGE) / 2.0, (1.0 + RANGE) / 2.0])
    return float(edges[0] / outcomes), float(edges[1] / outcomes)


def window_lines(scored: Scored, size: WindowSize | None) -> list[WindowLine]:
    """The outcomes in consecutive windows: see ``cut_into``."""
    right, confidence = scored.right, scored.confidence
    losses, entropies, variances = scored.log_losses, scored.entropies, scored.loss_variances
    lines = []
    for window, rows in cut_into(scored.known_at, size):
        stated = float(entropies[rows].mean())
        margin = NORMAL * float(np.sqrt(variances[rows].sum())) / window.count
        lines.append(
            WindowLine(
                window,
                float(right[rows].mean()),
                float(confidence[rows].mean()),
                float(losses[rows].mean()),
                stated,
                max(0.0, stated - margin),
                stated + margin,
            )
        )
    return lines


def ece_estimate(confidence: FloatArray, right: NDArray[np.bool_]) -> Estimate:
    """The expected calibration error with an interval by the Bayesian bootstrap."""
    binned = Bins.of(confidence, BINS, "width")
    gaps = (right - confidence)[binned.order]

    def errors(weights: FloatArray) -> FloatArray:
        sums = np.add.reduceat(weights * gaps, binned.starts, axis=-1)
        return np.asarray(np.abs(sums).sum(axis=-1) / weights.sum(axis=-1))

    drawn = _in_blocks(lambda size, of: errors(of.standard_exponential(size)), len(gaps))
    low, high = percentiles(drawn, RANGE)
    return Estimate(float(errors(np.ones(len(gaps)))), float(low), float(high))


def ece_by_chance(confidence: FloatArray) -> float:
    """The mean ECE of answers that are right exactly as often as they say."""
    binned = Bins.of(confidence, BINS, "width")
    sure = confidence[binned.order]

    def errors(size: tuple[int, int], of: np.random.Generator) -> FloatArray:
        gaps = (of.random(size) < sure) - sure
        sums = np.add.reduceat(gaps, binned.starts, axis=-1)
        return np.asarray(np.abs(sums).sum(axis=-1) / len(sure))

    return float(_in_blocks(errors, len(sure)).mean())


def _in_blocks(
    make: Callable[[tuple[int, int], np.random.Generator], FloatArray], entities: int
) -> FloatArray:
    """``DRAWS`` numbers, in blocks of limited memory; the same ones every time."""
    generator = np.random.default_rng(SEED)
    block = max(1, BLOCK // entities)
    sizes = [min(block, DRAWS - begin) for begin in range(0, DRAWS, block)]
    return np.concatenate([make((size, entities), generator) for size in sizes])


def share_estimate(right: NDArray[np.bool_]) -> Estimate:
    """A share with its exact interval (Clopper-Pearson)."""
    from scipy.special import betaincinv

    count, hits = len(right), int(right.sum())
    tail = (1.0 - RANGE) / 2.0
    low = betaincinv(hits, count - hits + 1, tail) if hits else 0.0
    high = betaincinv(hits + 1, count - hits, 1.0 - tail) if hits < count else 1.0
    return Estimate(hits / count, float(low), float(high))


def _mean(losses: FloatArray) -> Estimate:
    """With an interval by the Bayesian bootstrap."""
    generator = np.random.default_rng(SEED)
    drawn = resampled([losses[:, None]], [range(len(losses))], generator, DRAWS).over_seeds()
    low, high = percentiles(drawn[:, 0], RANGE)
    return Estimate(float(losses.mean()), float(low), float(high))
