"""Uncertainty of an answer: what the evidence leaves open, and what the model does not know.

P̂ is the answer. P_z is the answer for one joint sample of all items' latent codes (and of the
model, with an ensemble); P̄ is the mean of P_z. P̂ differs from P̄, since combining is not linear; the
difference is reported as ``gap``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lpf.combine.combined import Combined
from lpf.combine.learned import LearnedCombined
from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.distributions import tempered
from lpf.factors.keys import feature_keys, splitmix64
from lpf.items import Segments
from lpf.model.runtime import Runtime, range_ids
from lpf.types import Float32Array, FloatArray, KeyArray, Posteriors

DRAWN_AT_ONCE = 2**24  # numbers, 128 MB; more entities are drawn in blocks
DRAW_SAMPLER = "plain"  # independent samples; paired ones would understate the variance


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Uncertainty of E answers, each field [E]. Entropies in nats, variances summed over values.

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

    @classmethod
    def join(cls, parts: Sequence[Uncertainty]) -> Uncertainty:
        """The uncertainty of all entities from that of blocks of them."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in cls.__slots__
            }
        )

    def item(self, position: int) -> dict[str, float]:
        """Return the numbers of one answer."""
        return {name: float(getattr(self, name)[position]) for name in self.__slots__}


def entropy(distribution: FloatArray) -> FloatArray:
    """-Σ p log p over the last axis, with 0 log 0 = 0."""
    logs = np.log(distribution, out=np.zeros_like(distribution), where=distribution > 0)
    return np.asarray(-(distribution * logs).sum(axis=-1))


def decompose(answer: FloatArray, draws: FloatArray) -> Uncertainty:
    """Return the uncertainty of ``answer`` P̂ [E, V] from ``draws`` P_z [D, E, V]."""
    mean = draws.mean(axis=0)
    total, aleatoric = entropy(mean), entropy(draws).mean(axis=0)
    # Never negative (Jensen), but rounding can give -1e-17 if all draws agree.
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


def entity_blocks(counts: NDArray[np.intp], per_row: int) -> Iterator[slice]:
    """Slices of entities, each with as many as can be drawn at once: at least one. ``counts`` are
    their rows, and ``per_row`` the numbers that are drawn for each row."""
    start = rows = 0
    for position, count in enumerate(counts.tolist()):
        if position > start and (rows + count) * per_row > DRAWN_AT_ONCE:
            yield slice(start, position)
            start, rows = position, 0
        rows += count
    yield slice(start, len(counts))


def spn_uncertainty(
    converter: Converter,
    features: Float32Array,
    keys: KeyArray | None,
    samples: int,
    combine: Callable[[FloatArray], Combined],
    answer: FloatArray,
) -> Uncertainty:
    """Return the uncertainty of the variant ``spn``; ``answer`` is P̂ [E, V].

    Samples the latent codes of all items jointly and combines each sample as the answer was
    combined, for every member of an ensemble.
    """
    config = replace(converter.config, sampler=DRAW_SAMPLER, n_samples=samples)
    drawing = Converter(converter.runtime, converter.predicate, config)
    posteriors = converter.runtime.encode(features)
    # Keys from the posteriors would depend on how float32 rounds in batches of another shape.
    keys = feature_keys(features) if keys is None else keys
    drawn = tempered(drawing.sampled(posteriors, keys), config.temperature)
    draws = [combine(drawn[s, :, m]).distribution for s, m in np.ndindex(drawn.shape[0], samples)]
    return decompose(answer, np.stack(draws))


def entity_keys(keys: KeyArray, segments: Segments) -> KeyArray:
    """Return one key per entity from the keys of its items, whatever their order."""
    spread = splitmix64(keys, 1)[:, 0]
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
    """Return the uncertainty of the variant ``learned``: samples of the aggregated posterior."""
    converter, (entities, values) = Converter(runtime, predicate, config), answer.distribution.shape
    per_row = runtime.members * config.samples * values
    parts = []
    for block in entity_blocks(np.ones(entities, np.intp), per_row):
        aggregated = Posteriors(
            range_ids(block.stop - block.start),
            answer.mu[:, block].astype(np.float32),
            answer.sigma[:, block].astype(np.float32),
        )
        drawn = tempered(converter.sampled(aggregated, keys[block]), config.temperature)
        draws = drawn.swapaxes(1, 2).reshape(-1, block.stop - block.start, values)
        parts.append(decompose(answer.distribution[block], draws))
    return Uncertainty.join(parts)
