"""LPF-Learned (Algorithm 3): weigh the items, average their latent means, decode once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.combine.combined import Segments
from lpf.errors import EvidenceError
from lpf.factors.channel import channel_of, through
from lpf.factors.convert import geometric_mean
from lpf.factors.tempering import softmax, tempered
from lpf.model.aggregator import Aggregator, log_variance
from lpf.model.runtime import Runtime
from lpf.types import Float32Array, FloatArray, Posteriors


@dataclass(frozen=True, slots=True)
class LearnedCombined:
    """Answers for E entities: ``distribution`` [E, V]; per item [N] the weight (sums to 1 over an
    entity), quality and mean consistency, averaged over the members of an ensemble; ``mu`` [S, E,
    d] of the aggregated posterior, with ``sigma``, the exact deviation of a weighted mean of
    independent Gaussians, and ``logvar``, the paper's Σ wᵢ log σ²ᵢ (None where not configured).
    ``members`` [S, E, V] is what each member decodes; see ``joined``.

    Weights say how much an item moved the latent code. They do not add up to the answer.
    """

    distribution: FloatArray
    weight: FloatArray
    quality: FloatArray
    consistency: FloatArray
    mu: FloatArray
    sigma: FloatArray
    logvar: FloatArray | None
    segments: Segments
    members: FloatArray


class LearnedCombiner:
    """Aggregation under one model, for any predicate it knows."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._aggregator = Aggregator(runtime)

    def combine(
        self,
        posteriors: Posteriors,
        segments: Segments,
        predicate: str,
        temperature: float = 1.0,
    ) -> LearnedCombined:
        """Posteriors of N items -> E answers. Every entity needs at least one item."""
        segments.check(len(posteriors))
        if (segments.counts == 0).any():
            empty = np.flatnonzero(segments.counts == 0)[:10].tolist()
            raise EvidenceError(f"entities at positions {empty} have no item to aggregate.")
        state = _State.empty(self._runtime, len(segments), len(posteriors))
        for count in np.unique(segments.counts):
            self._equal_counts(posteriors, segments, int(count), state)
        return self._finish(state, segments, predicate, temperature)

    def _equal_counts(
        self, posteriors: Posteriors, segments: Segments, count: int, state: _State
    ) -> None:
        """Entities with exactly ``count`` items, in one pass."""
        entities = np.flatnonzero(segments.counts == count)
        rows = segments.offsets[entities][:, None] + np.arange(count)
        mu, sigma = posteriors.mu[:, rows], posteriors.sigma[:, rows]
        weights = self._aggregator.weigh(mu, sigma)
        state.weight[rows] = weights.weight.mean(axis=0)
        state.quality[rows] = weights.quality.mean(axis=0)
        state.consistency[rows] = weights.consistency.mean(axis=0)
        state.mu[:, entities] = np.einsum("sek,sekd->sed", weights.weight, mu)
        variance = np.einsum("sek,sekd->sed", weights.weight**2, sigma.astype(np.float64) ** 2)
        state.sigma[:, entities] = np.sqrt(variance)
        logvar = log_variance(sigma)
        state.logvar[:, entities] = np.einsum("sek,sekd->sed", weights.weight, logvar)

    def _finish(
        self, state: _State, segments: Segments, predicate: str, temperature: float
    ) -> LearnedCombined:
        decoder = self._runtime.decoder(predicate)
        z: Float32Array = state.mu.astype(np.float32)
        channel = channel_of(self._runtime.config.head(predicate))
        probabilities = through(channel, softmax(decoder.logits(z).astype(np.float64)))
        return LearnedCombined(
            joined(probabilities, temperature),
            state.weight,
            state.quality,
            state.consistency,
            state.mu,
            state.sigma,
            state.logvar if self._aggregator.config.aggregate_logvar else None,
            segments,
            probabilities,
        )


def joined(members: FloatArray, temperature: float) -> FloatArray:
    """One answer [E, V] from those of the members [S, E, V]: their geometric mean, tempered."""
    return tempered(geometric_mean(members), temperature)


@dataclass(frozen=True, slots=True)
class _State:
    """Results while groups of entities are worked through."""

    weight: FloatArray
    quality: FloatArray
    consistency: FloatArray
    mu: FloatArray
    sigma: FloatArray
    logvar: FloatArray

    @classmethod
    def empty(cls, runtime: Runtime, entities: int, items: int) -> _State:
        latent = (runtime.members, entities, runtime.config.encoder.latent_width)
        item = (items,)
        return cls(*(np.empty(shape) for shape in (item, item, item, latent, latent, latent)))
