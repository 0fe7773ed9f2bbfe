"""Entropy and variance of the answer, split by what causes them.

P̂ is the answer given. P_z is the answer on one joint draw of all items' latent codes (and, over an
ensemble, of the model); P̄ its mean over draws. The answer is not the mean of the draws, because
combining is not linear, so the gap between the two is reported and not hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.types import FloatArray


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """For E answers, each field [E]. Entropies are in nats, variances are summed over values.

    entropy of P̂ = aleatoric + epistemic + gap, and
    variance of P̄ = variance_aleatoric + variance_epistemic, both by construction.
    """

    entropy: FloatArray
    aleatoric: FloatArray
    epistemic: FloatArray
    gap: FloatArray
    variance: FloatArray
    variance_aleatoric: FloatArray
    variance_epistemic: FloatArray

    def item(self, position: int) -> dict[str, float]:
        return {name: float(getattr(self, name)[position]) for name in self.__slots__}


def entropy(distribution: FloatArray) -> FloatArray:
    """-Σ p log p over the last axis, with 0 log 0 = 0."""
    logs = np.log(distribution, out=np.zeros_like(distribution), where=distribution > 0)
    return np.asarray(-(distribution * logs).sum(axis=-1))


def decompose(answer: FloatArray, draws: FloatArray) -> Uncertainty:
    """``answer`` P̂ [E, V], ``draws`` P_z [D, E, V]."""
    mean = draws.mean(axis=0)
    total, aleatoric = entropy(mean), entropy(draws).mean(axis=0)
    # Jensen: never negative, but rounding can leave -1e-17 where all draws agree.
    epistemic = np.maximum(total - aleatoric, 0.0)
    given = entropy(answer)
    spread = draws.var(axis=0).sum(axis=-1)
    inner = (draws * (1.0 - draws)).sum(axis=-1).mean(axis=0)
    return Uncertainty(
        entropy=given,
        aleatoric=aleatoric,
        epistemic=epistemic,
        gap=given - aleatoric - epistemic,
        variance=inner + spread,
        variance_aleatoric=inner,
        variance_epistemic=spread,
    )
