"""LPF-Learned (Algorithm 3): weight the items, average their latent means, decode once.

`Aggregator` evaluates the networks of the learned aggregator in NumPy (lines 3-34). Entities with
the same number of items are processed together, [S, E, K, d], without padding or masks. Training in
torch pads and masks; a contract test checks that both agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.combine.robust import expit
from lpf.errors import ConfigError, EvidenceError
from lpf.factors.convert import geometric_mean
from lpf.factors.distributions import apply_channel, label_channel, softmax, tempered
from lpf.items import Segments
from lpf.model.config import AggregatorConfig
from lpf.model.runtime import Layer, Runtime, stack
from lpf.types import SIGMA_FLOOR, Float32Array, FloatArray, Posteriors

# Pairs per block: limits their features (2d or 4d float32 per pair) to a few megabytes.
BLOCK_PAIRS = 8192


@dataclass(frozen=True, slots=True)
class ItemWeights:
    """Weight (sums to 1 over K), quality and mean consistency of each item, all [S, E, K]."""

    weight: FloatArray
    quality: FloatArray
    consistency: FloatArray


class Aggregator:
    """Computes the weights of the items of an entity."""

    def __init__(self, runtime: Runtime) -> None:
        if runtime.config.aggregator is None:
            raise ConfigError(
                "this model was trained without an aggregator, so the variant 'learned' cannot "
                "answer.",
                field="aggregator",
                hint="Use the variant 'spn', or train the second stage.",
            )
        self.config: AggregatorConfig = runtime.config.aggregator
        self._quality = stack(runtime.tensors, "aggregator.quality")
        self._consistency = stack(runtime.tensors, "aggregator.consistency")
        self._weight = stack(runtime.tensors, "aggregator.weight")

    def weigh(self, mu: Float32Array, sigma: Float32Array) -> ItemWeights:
        """Return the weights for μ and σ [S, E, K, d]. A single item gets weight 1."""
        logvar = log_variance(sigma)
        quality = self._item_quality(mu, sigma, logvar)
        consistency = self._mean_consistency(mu, logvar)
        scores = _scores(self._weight, np.stack([quality, consistency], axis=-1))
        raw = np.logaddexp(0.0, scores)  # softplus
        return ItemWeights(normalised_weights(raw, self.config), quality, consistency)

    def _item_quality(
        self, mu: Float32Array, sigma: Float32Array, logvar: Float32Array
    ) -> FloatArray:
        parts = [mu, logvar]
        if self.config.mean_sigma_input:
            parts.append(sigma.mean(axis=-1, keepdims=True))
        return expit(_scores(self._quality, np.concatenate(parts, axis=-1)))

    def _mean_consistency(self, mu: Float32Array, logvar: Float32Array) -> FloatArray:
        """Return the mean consistency of each item with the others; 1 for a single item."""
        members, entities, count, _ = mu.shape
        result = np.ones((members, entities, count))
        if count == 1:
            return result
        step, rows = max(1, BLOCK_PAIRS // count**2), max(1, BLOCK_PAIRS // count)
        for entity in range(0, entities, step):
            some = slice(entity, entity + step)
            for start in range(0, count, rows):
                part = slice(start, start + rows)
                result[:, some, part] = self._block(mu[:, some], logvar[:, some], part)
        return result

    def _block(self, mu: Float32Array, logvar: Float32Array, rows: slice) -> FloatArray:
        """Return the mean consistency of the items ``rows`` with all others of their entity."""
        count = mu.shape[2]
        pair = expit(_scores(self._consistency, self._pair(mu, logvar, rows, swapped=False)))
        if self.config.symmetric and self.config.pair_input == "concatenation":
            other = expit(_scores(self._consistency, self._pair(mu, logvar, rows, swapped=True)))
            pair = (pair + other) / 2.0
        own = np.arange(count)[rows]
        pair[:, :, np.arange(len(own)), own] = 0.0
        return np.asarray(pair.sum(axis=3) / (count - 1))

    def _pair(
        self, mu: Float32Array, logvar: Float32Array, rows: slice, *, swapped: bool
    ) -> Float32Array:
        """Return features of the pairs (i in rows, j), [S, E, rows, K, width]."""
        left_mu, right_mu = mu[:, :, rows, None], mu[:, :, None]
        left_var, right_var = logvar[:, :, rows, None], logvar[:, :, None]
        if self.config.pair_input == "difference":
            distance = left_mu - right_mu
            if self.config.symmetric:
                np.abs(distance, out=distance)
            return np.concatenate([distance, np.abs(left_var - right_var)], axis=-1)
        parts = [left_mu, left_var, right_mu, right_var]
        if swapped:
            parts = [right_mu, right_var, left_mu, left_var]
        shape = np.broadcast_shapes(left_mu.shape, right_mu.shape)
        return np.concatenate([np.broadcast_to(part, shape) for part in parts], axis=-1)


def normalised_weights(raw: FloatArray, config: AggregatorConfig) -> FloatArray:
    """Convert positive scores [..., K] to weights that sum to 1 (Algorithm 3, line 34)."""
    if config.normalisation == "l1":
        return np.asarray(raw / raw.sum(axis=-1, keepdims=True))
    weights = np.exp(raw - raw.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def log_variance(sigma: Float32Array) -> Float32Array:
    """Return log σ² with the paper's floor on σ (reached by a deterministic encoder, σ = 0)."""
    return np.asarray(2.0 * np.log(np.maximum(sigma, np.float32(SIGMA_FLOOR))), np.float32)


def _scores(layers: tuple[Layer, ...], inputs: Float32Array | FloatArray) -> FloatArray:
    """Evaluate a perceptron with one output, [S, ..., width] -> [S, ...]."""
    activation = inputs.astype(np.float32).reshape(inputs.shape[0], -1, inputs.shape[-1])
    for layer in layers[:-1]:
        activation = layer.relu(activation)
    output = layers[-1](activation)
    return output.reshape(inputs.shape[:-1]).astype(np.float64)


@dataclass(frozen=True, slots=True)
class LearnedCombined:
    """Answers for E entities.

    ``distribution`` [E, V]. ``weight`` (sums to 1 over an entity), ``quality`` and ``consistency``
    [N] are averages over the members of an ensemble. ``mu`` and ``sigma`` [S, E, d] are those of
    the aggregated posterior: σ is the standard deviation of a weighted mean of independent
    Gaussians; ``logvar`` is the paper's Σ wᵢ log σ²ᵢ (None unless configured). ``members``
    [S, E, V] are the answers of each member.

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
    """Combines items with the learned aggregator of one model."""

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
        """Return answers for E entities from the posteriors of N items, at least one per entity."""
        segments.check(len(posteriors))
        if (segments.counts == 0).any():
            empty = np.flatnonzero(segments.counts == 0)[:10].tolist()
            raise EvidenceError(f"entities at positions {empty} have no items to aggregate.")
        state = _State.empty(self._runtime, len(segments), len(posteriors))
        for count in np.unique(segments.counts):
            self._equal_counts(posteriors, segments, int(count), state)
        return self._finish(state, segments, predicate, temperature)

    def _equal_counts(
        self, posteriors: Posteriors, segments: Segments, count: int, state: _State
    ) -> None:
        """Process all entities with exactly ``count`` items."""
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
        channel = label_channel(self._runtime.config.head(predicate))
        probabilities = apply_channel(channel, softmax(decoder.logits(z).astype(np.float64)))
        return LearnedCombined(
            join_members(probabilities, temperature),
            state.weight,
            state.quality,
            state.consistency,
            state.mu,
            state.sigma,
            state.logvar if self._aggregator.config.aggregate_logvar else None,
            segments,
            probabilities,
        )


def join_members(members: FloatArray, temperature: float) -> FloatArray:
    """Return the tempered geometric mean of the members' answers, [S, E, V] -> [E, V]."""
    return tempered(geometric_mean(members), temperature)


@dataclass(frozen=True, slots=True)
class _State:
    """Results for all entities, filled in group by group."""

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
