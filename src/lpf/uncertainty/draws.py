"""The answer on joint draws of the latent codes, for both variants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lpf.combine.combined import Combined, Segments
from lpf.combine.learned import LearnedCombined
from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.keys import mixed
from lpf.factors.tempering import tempered
from lpf.model.runtime import Runtime, range_ids
from lpf.types import Float32Array, FloatArray, KeyArray, Posteriors
from lpf.uncertainty.decompose import Uncertainty, decompose

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
