"""The learned aggregator's networks in plain NumPy (Algorithm 3, lines 3-34).

Items come in groups of equal size, [S, E, K, d]: entities with the same number of items need no
padding and no mask here. Training in torch pads and masks; a contract test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.errors import ConfigError
from lpf.model.config import AggregatorConfig
from lpf.model.linear import Layer, stack
from lpf.model.runtime import Runtime
from lpf.types import SIGMA_FLOOR, Float32Array, FloatArray

# Pairs in one block: their features (2d or 4d float32) then take a few megabytes, however many
# items an entity has.
BLOCK_PAIRS = 8192


@dataclass(frozen=True, slots=True)
class ItemWeights:
    """For each item: its weight (sums to 1 over K), quality, mean consistency. All [S, E, K]."""

    weight: FloatArray
    quality: FloatArray
    consistency: FloatArray


class Aggregator:
    """Weighs the items of an entity against each other."""

    def __init__(self, runtime: Runtime) -> None:
        if runtime.config.aggregator is None:
            raise ConfigError(
                "aggregator: this model was trained without one, so the variant 'learned' cannot "
                "answer. Use the variant 'spn', or train the second stage."
            )
        self.config: AggregatorConfig = runtime.config.aggregator
        self._quality = stack(runtime.tensors, "aggregator.quality")
        self._consistency = stack(runtime.tensors, "aggregator.consistency")
        self._weight = stack(runtime.tensors, "aggregator.weight")

    def weigh(self, mu: Float32Array, sigma: Float32Array) -> ItemWeights:
        """μ and σ [S, E, K, d] -> weights. One item alone gets weight 1."""
        logvar = log_variance(sigma)
        quality = self._item_quality(mu, sigma, logvar)
        consistency = self._mean_consistency(mu, logvar)
        raw = _softplus(_scores(self._weight, np.stack([quality, consistency], axis=-1)))
        return ItemWeights(normalised_weights(raw, self.config), quality, consistency)

    def _item_quality(
        self, mu: Float32Array, sigma: Float32Array, logvar: Float32Array
    ) -> FloatArray:
        parts = [mu, logvar]
        if self.config.mean_sigma_input:
            parts.append(sigma.mean(axis=-1, keepdims=True))
        return _sigmoid(_scores(self._quality, np.concatenate(parts, axis=-1)))

    def _mean_consistency(self, mu: Float32Array, logvar: Float32Array) -> FloatArray:
        """Mean agreement of each item with the others; 1 for an item alone."""
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
        """Mean consistency of items ``rows`` with all others of their entity."""
        count = mu.shape[2]
        pair = _sigmoid(_scores(self._consistency, self._pair(mu, logvar, rows, swapped=False)))
        if self.config.symmetric and self.config.pair_input == "concatenation":
            other = _sigmoid(_scores(self._consistency, self._pair(mu, logvar, rows, swapped=True)))
            pair = (pair + other) / 2.0
        own = np.arange(count)[rows]
        pair[:, :, np.arange(len(own)), own] = 0.0
        return np.asarray(pair.sum(axis=3) / (count - 1))

    def _pair(
        self, mu: Float32Array, logvar: Float32Array, rows: slice, *, swapped: bool
    ) -> Float32Array:
        """Features of pairs (i in rows, j), [S, E, rows, K, width]."""
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
    """Positive scores [..., K] to weights that sum to 1 (Algorithm 3, line 34)."""
    if config.normalisation == "l1":
        return np.asarray(raw / raw.sum(axis=-1, keepdims=True))
    weights = np.exp(raw - raw.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def log_variance(sigma: Float32Array) -> Float32Array:
    """log σ² with the paper's floor on σ, which a deterministic encoder (σ = 0) sits on."""
    return np.asarray(2.0 * np.log(np.maximum(sigma, np.float32(SIGMA_FLOOR))), np.float32)


def _scores(layers: tuple[Layer, ...], inputs: Float32Array | FloatArray) -> FloatArray:
    """A perceptron with one output on [S, ..., width] -> [S, ...]."""
    activation = inputs.astype(np.float32).reshape(inputs.shape[0], -1, inputs.shape[-1])
    for layer in layers[:-1]:
        activation = layer.relu(activation)
    output = layers[-1](activation)
    return output.reshape(inputs.shape[:-1]).astype(np.float64)


def _sigmoid(score: FloatArray) -> FloatArray:
    decay = np.exp(-np.abs(score))
    return np.asarray(np.where(score >= 0, 1.0, decay) / (1.0 + decay))


def _softplus(score: FloatArray) -> FloatArray:
    return np.logaddexp(0.0, score)
