"""Softmax, temperature and label channel: operations on distributions [..., V].

Temperature is normalise(Φ^(1/T)) (Algorithm 1, lines 29-36).

The label channel is for data whose items have labels of their own, such as claims with sentences:
most sentences say nothing, whatever the value of the claim. A decoder trained on such labels gives
p(ℓ | e) for the item; the entity's value y has

    p(y | e) = Σ_ℓ p(ℓ | e) · P(y | ℓ)

where the channel P(y | ℓ) was counted on training entities. An item that says nothing is then weak
evidence for "nothing is known", not a vote for it.
"""

from __future__ import annotations

import numpy as np

from lpf.model.config import PredicateHead
from lpf.types import Float32Array, FloatArray


def tempered(potential: FloatArray, temperature: float) -> FloatArray:
    """Return normalise(Φ^(1/T)), [..., V]: sharper for T < 1, softer for T > 1. Zeros stay zero."""
    if temperature == 1.0:
        return potential
    with np.errstate(divide="ignore"):
        logs = np.log(potential)
    return np.exp(log_tempered(logs, temperature))


def log_tempered(log_potential: FloatArray, temperature: float) -> FloatArray:
    """Return log of `tempered`, from log Φ [..., V]; -inf stays -inf."""
    scaled = log_potential / temperature
    scaled = scaled - scaled.max(axis=-1, keepdims=True)
    return np.asarray(scaled - np.log(np.exp(scaled).sum(axis=-1, keepdims=True)))


def softmax(logits: FloatArray) -> FloatArray:
    """Softmax over the last axis, in place."""
    logits -= np.maximum.reduce(logits, axis=-1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= np.add.reduce(logits, axis=-1, keepdims=True)
    return logits


def label_channel(head: PredicateHead) -> FloatArray | None:
    """Return P(y | ℓ) [V, V], one row per item value; None if items have no labels of their own."""
    return np.array(head.channel) if head.channel else None


def apply_channel(
    channel: FloatArray | None, probabilities: FloatArray | Float32Array
) -> FloatArray:
    """Convert probabilities [..., V] of the item's value to those of its entity's value."""
    return np.asarray(probabilities if channel is None else probabilities @ channel)
