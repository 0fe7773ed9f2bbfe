"""How much one more observation is expected to tell, from the answers that it may lead to.

An item is drawn from a pool of n items of other entities. With item j the answer would be qⱼ, now
it is w. Bayes' rule makes Lⱼ(y) = qⱼ(y) / w(y) the likelihood of item j, up to a factor that
depends on j alone. The pool fixes that factor: its items were drawn from entities of all values, in
shares p that maximise the likelihood of the pool,

    P(j | y) = Lⱼ(y) / Σ_v p(v) Lⱼ(v) / n,        p(y) = Σⱼ p(y) P(j | y)

At the maximum P(j | y) sums to 1 for every value that the pool has, so the expected answer
Σⱼ P(j) qⱼ is the present one: nobody can expect to change their mind in a certain direction. Where
the pool does not have a value (every item speaks against it), P(j | y) is scaled to sum to 1, and
``unseen`` is the part of w that this concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from lpf.explain.recombination import Places
from lpf.types import FloatArray

MOST_ROUNDS: Final = 500
CLOSE: Final = 1e-7
TIE: Final = 1e-9
SMALLEST: Final = float(np.finfo(np.float64).tiny)  # a ratio to less than this may overflow


@dataclass(frozen=True, eq=False)
class Outlook:
    """What one more observation may lead to: its n outcomes have ``chances`` [..., n] and lead to
    ``answers`` [..., n, V]; weighted by their chances, these sum to the answer ``now`` [..., V].
    ``unseen`` [...] is the probability of values that the outcomes cannot tell about."""

    now: FloatArray
    chances: FloatArray
    answers: FloatArray
    unseen: FloatArray

    @property
    def only(self) -> Outlook:
        """The first, where there is one."""
        return Outlook(self.now[0], self.chances[0], self.answers[0], self.unseen[0])

    @property
    def gain(self) -> FloatArray:
        """The expected information in bits [...]: the mutual information of value and outcome,
        between 0 and the entropy of ``now``."""
        return np.asarray(np.maximum((self.chances * self.bits).sum(axis=-1), 0.0))

    @property
    def bits(self) -> FloatArray:
        """Of each outcome, in bits [..., n]: the divergence of its answer from ``now``."""
        now = self.now[..., None, :]
        ratio = np.divide(
            self.answers, now, out=np.ones_like(self.answers), where=(self.answers > 0) & (now > 0)
        )
        return np.asarray((self.answers * np.log2(ratio)).sum(axis=-1))

    @property
    def error(self) -> FloatArray:
        """The standard error of ``gain`` because the pool is a sample [...]."""
        count = self.chances.shape[-1]
        spread = (count * self.chances * self.bits).std(axis=-1)
        return np.asarray(spread / np.sqrt(count))

    @property
    def changes(self) -> FloatArray:
        """The chance that another value becomes more probable than the present top value [...]."""
        top = self.now.argmax(axis=-1)[..., None, None]
        kept = np.take_along_axis(self.answers, top, axis=-1)[..., 0]
        changed = self.answers.max(axis=-1) > kept + TIE
        return np.asarray((self.chances * changed).sum(axis=-1))

    @property
    def confidence(self) -> FloatArray:
        """The expected probability of the most probable value afterwards [...]."""
        return np.asarray((self.chances * self.answers.max(axis=-1)).sum(axis=-1))


def entropy_bits(rows: FloatArray) -> FloatArray:
    """Of distributions [..., V]."""
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    return np.asarray(-(rows * logs).sum(axis=-1))


def outlook_of_pool(now: FloatArray, after: FloatArray) -> Outlook:
    """``now`` [..., V] is the answer, ``after`` [..., n, V] what it would be with each item of the
    pool. A pool of one item says nothing about how items differ, so its gain is 0."""
    possible = now > SMALLEST
    likelihood = np.divide(
        after, now[..., None, :], out=np.zeros_like(after), where=possible[..., None, :]
    )
    shares = np.where(possible, 1.0, 0.0)
    shares /= shares.sum(axis=-1, keepdims=True)
    count = after.shape[-2]
    for _ in range(MOST_ROUNDS):
        mixed = (likelihood @ shares[..., None])[..., 0]
        given = likelihood / (count * np.where(mixed > 0, mixed, 1.0))[..., None]
        total = given.sum(axis=-2)  # 1 at the maximum, for values that the pool has
        if np.abs(shares * (total - 1.0)).max() < CLOSE:
            break
        shares = shares * total
        shares /= shares.sum(axis=-1, keepdims=True)
    chance = given / np.where(total > 0, total, 1.0)[..., None, :]
    joint = now[..., None, :] * chance
    unseen = (now * np.maximum(1.0 - total, 0.0)).sum(axis=-1)
    return _outlook_of(now, joint, np.asarray(unseen))


def outlook_of_items(
    answers: Callable[[Sequence[Places]], FloatArray], own: Sequence[Places], pool: Places
) -> Outlook:
    """One more of the items at ``pool`` [n] for each of E entities, whose items are at ``own``.
    ``answers`` [S, V] are those from the items at each of S selections."""
    now = answers(own)
    after = answers([np.append(rows, place) for rows in own for place in pool])
    return outlook_of_pool(now, after.reshape(len(own), len(pool), -1))


def outlook_of_joint(joint: FloatArray) -> Outlook:
    """``joint`` [n, V] are the probabilities of outcome and value together."""
    return _outlook_of(joint.sum(axis=0), joint, np.zeros(()))


def _outlook_of(now: FloatArray, joint: FloatArray, unseen: FloatArray) -> Outlook:
    chances = joint.sum(axis=-1)
    answers = np.where(
        chances[..., None] > 0,
        joint / np.where(chances > 0, chances, 1.0)[..., None],
        now[..., None, :],
    )
    return Outlook(now, chances, answers, unseen)
