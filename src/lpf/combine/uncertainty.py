"""How sure an answer is: what the evidence leaves open, and what the model does not know.

Entropy and variance of the answer, split by what causes them.

P̂ is the answer given. P_z is the answer on one joint draw of all items' latent codes (and, over an
ensemble, of the model); P̄ its mean over draws. The answer is not the mean of the draws, because
combining is not linear, so the gap between the two is reported and not hidden.

The answer on joint draws of the latent codes, for both variants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lpf.combine.combined import Combined
from lpf.combine.learned import LearnedCombined
from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.keys import mixed
from lpf.factors.tempering import tempered
from lpf.items import Segments
from lpf.model.runtime import Runtime, range_ids
from lpf.types import Float32Array, FloatArray, KeyArray, Posteriors


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


__all__ = ["Uncertainty", "decompose", "entropy"]


DRAW_SAMPLER = "plain"  # draws must be independent: paired ones would understate their spread


def spn_uncertainty(
    converter: Converter,
    features: Float32Array,
    keys: KeyArray | None,
    samples: int,
    combine: Callable[[FloatArray], Combined],
    answer: Combined,
) -> Uncertainty:
    """Draws every item's z together, combines each draw as the answer was combined, and does so
    for every member of an ensemble."""
    config = replace(converter.config, sampler=DRAW_SAMPLER, n_samples=samples)
    drawing = Converter(converter.runtime, converter.predicate, config)
    posteriors = converter.runtime.encode(features)
    drawn = tempered(drawing.sampled(posteriors, keys), config.temperature)
    draws = [combine(drawn[s, :, m]).distribution for s, m in np.ndindex(drawn.shape[0], samples)]
    return decompose(answer.distribution, np.stack(draws))


def entity_keys(keys: KeyArray, segments: Segments) -> KeyArray:
    """One key an entity, from its items' keys in any order."""
    spread = mixed(keys, 1)[:, 0]
    result = np.zeros(len(segments), dtype=np.uint64)
    np.add.at(result, segments.owner, spread)
    return result


def learned_uncertainty(
    runtime: Runtime,
    config: ConversionConfig,
    predicate: str,
    answer: LearnedCombined,
    keys: KeyArray,
) -> Uncertainty:
    """Draws from the aggregated posterior: the weighted mean of independent Gaussians is one."""
    aggregated = Posteriors(
        range_ids(answer.mu.shape[1]),
        answer.mu.astype(np.float32),
        answer.sigma.astype(np.float32),
    )
    drawn = Converter(runtime, predicate, config).sampled(aggregated, keys)
    drawn = tempered(drawn, config.temperature)
    members, entities, samples, values = drawn.shape
    draws = drawn.swapaxes(1, 2).reshape(members * samples, entities, values)
    return decompose(answer.distribution, draws)
