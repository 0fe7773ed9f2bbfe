"""Are outcomes worse than was promised? A test that may be looked at after every outcome.

Somebody starts with a capital of 1 and bets against a promise, outcome by outcome, at odds that are
fair if the promise holds. Then the capital has a mean of at most 1 at any time, and the chance that
it ever reaches 20 is at most 1/20 (Ville's inequality), however often one looks. A large capital is
evidence against the promise; its logarithm is what the functions below return, [N].

Two promises are bet against:

- *the stated probabilities*: each outcome is drawn from the probabilities of its answer, except for
  a share t at most that has nothing to do with the answers. The bet is that this share is s > t. It
  pays (1 + s·x)/(1 + t·x), where x = 1/(V·p) - 1 if V values were possible and the true one had the
  probability p. Its mean is at most 1 for every smaller share too, because it increases with x.
  ``tolerated_share`` gives the t that held-out entities do not rule out.
- *the held-out entities*: answers are no further off than those about held-out entities. How far an
  answer is off is the surprise of the true value minus that of the top value; right answers, for
  which this is 0, are ordered by their surprise. The rank of an answer among those about held-out
  entities and all earlier ones is uniform if all are alike (a conformal p-value). The bet is that
  answers that are far off become frequent; it pays k·p^(k - 1), with k < 1.

Nobody knows s, k, or when things begin to go wrong. The capital is divided among several s or k and
among all beginnings; the parts that still wait are kept. A long good time thus costs little power.
Both kinds of bets follow Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting" (2024), and Vovk, "Testing randomness online" (2021).
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lpf.metrics.scores import checked
from lpf.types import FloatArray

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
POWERS = (0.3, 0.5, 0.7, 0.85)
LEVEL = 0.05  # the chance of a false alarm, over all looks together
TOLERABLE = np.linspace(0.0, 0.99, 397)
RULED_OUT = 1.353  # half the 90 % quantile of chi-squared with one degree of freedom
# A smaller stated probability counts as this one: the capital stays finite, and the bet fair.
LEAST_PROBABILITY = 1e-12


def against_probabilities(
    probabilities: FloatArray, labels: NDArray[np.int64], tolerated: float = 0.0
) -> FloatArray:
    """The log capital after each outcome [N], betting that more than the share ``tolerated`` of
    them has nothing to do with the answers. Answers [N, V] and the positions of their true values
    [N] are in the order in which the outcomes became known."""
    rows, places = checked(probabilities, labels)
    gain = _gain(rows[np.arange(len(rows)), places], rows.shape[1])
    shares = tolerated + (1.0 - tolerated) * np.array(SHARES)
    return _capital(np.log1p(shares * gain[:, None]) - np.log1p(tolerated * gain)[:, None])


def tolerated_share(label_probabilities: ArrayLike, values: int) -> float:
    """The largest share of outcomes that have nothing to do with the answers which held-out
    entities do not rule out with 95 % confidence (likelihood ratio), from the probabilities [H] of
    their true values, one of ``values``. With few held-out entities it is large."""
    gain = _gain(np.asarray(label_probabilities, np.float64), values)
    likelihood = np.array([np.log1p(share * gain).sum() for share in TOLERABLE])
    return float(TOLERABLE[np.flatnonzero(likelihood >= likelihood.max() - RULED_OUT)[-1]])


def _gain(stated: FloatArray, values: int) -> FloatArray:
    return np.asarray(1.0 / (values * np.maximum(stated, LEAST_PROBABILITY)) - 1.0)


def against_held_out(distances: ArrayLike, held_out: ArrayLike) -> FloatArray:
    """The log capital after each outcome [N], betting against the promise that ``distances`` [N]
    (see ``how_far_off``), in their order, are like those of ``held_out`` entities [H]."""
    ranks = conformal_p_values(distances, held_out)
    powers = np.array(POWERS)
    return _capital(np.log(powers) + (powers - 1.0) * np.log(ranks)[:, None])


def how_far_off(label_surprise: ArrayLike, top_surprise: ArrayLike) -> FloatArray:
    """[N], how far answers are off, from the surprises of their true and of their top values: below
    0 for right answers, the surer the lower."""
    label, top = np.asarray(label_surprise, np.float64), np.asarray(top_surprise, np.float64)
    return np.where(label > top, label - top, -1.0 / (1.0 + label))


def conformal_p_values(scores: ArrayLike, held_out: ArrayLike) -> FloatArray:
    """[N], the share of held-out and earlier scores, and of itself, that are at least as large as
    each of ``scores`` [N]. If all come in random order, these are independent of each other and
    uniform in (0, 1], or larger if scores are equal."""
    known = sorted(np.asarray(held_out, np.float64).tolist())
    found = []
    for score in np.asarray(scores, np.float64).tolist():
        found.append((len(known) - bisect_left(known, score) + 1) / (len(known) + 1))
        insort(known, score)
    return np.array(found)


def alarm_at(log_capital: FloatArray, tests: int = 1) -> int | None:
    """The first position at which the promise is refuted; None if it is not. If several streams are
    tested, the chance of any false alarm among them is at most ``LEVEL``."""
    reached = np.flatnonzero(log_capital >= np.log(tests / LEVEL))
    return int(reached[0]) if len(reached) else None


def _capital(log_payments: FloatArray) -> FloatArray:
    """[N], from the logarithm of what each bet [K] pays at each outcome, [N, K]. A part 1/(t(t+1))
    of the capital begins to bet at outcome t, divided equally among the bets."""
    count, bets = log_payments.shape
    if not count:
        return np.empty(0)
    turn = np.arange(1.0, count + 1.0)
    paid = np.cumsum(log_payments, axis=0)
    before = np.vstack([np.zeros(bets), paid[:-1]])
    begun = -np.log(turn * (turn + 1.0))[:, None] - before
    running = paid + np.logaddexp.accumulate(begun, axis=0)
    together = np.logaddexp.reduce(running, axis=1) - np.log(bets)
    return np.asarray(np.logaddexp(together, -np.log(turn + 1.0)))
