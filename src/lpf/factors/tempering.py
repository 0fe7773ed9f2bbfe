"""Logits to probabilities, and temperature: normalise(Φ^(1/T)) (Algorithm 1, lines 29-36).

What an item's own label says of its entity.

Sentences about a claim are labelled one by one: most say nothing, whatever the claim's own value
is. A decoder that was trained on such labels answers p(ℓ | e) for the item; the entity's value y is

    p(y | e) = Σ_ℓ p(ℓ | e) · P(y | ℓ)

with P(y | ℓ) counted on the entities learned from. That an item says nothing is then weak evidence
for "nothing is known", and no longer a vote for it.
"""

from __future__ import annotations

import numpy as np

from lpf.model.config import PredicateHead
from lpf.types import Float32Array, FloatArray


def tempered(potential: FloatArray, temperature: float) -> FloatArray:
    """Sharper below 1, softer above; zeros stay zeros. ``potential`` is [..., V]."""
    if temperature == 1.0:
        return potential
    with np.errstate(divide="ignore"):
        logs = np.log(potential)
    return np.exp(log_tempered(logs, temperature))


def log_tempered(log_potential: FloatArray, temperature: float) -> FloatArray:
    """The same on logarithms, normalised; -inf stays -inf."""
    scaled = log_potential / temperature
    scaled = scaled - scaled.max(axis=-1, keepdims=True)
    return np.asarray(scaled - np.log(np.exp(scaled).sum(axis=-1, keepdims=True)))


def softmax(logits: FloatArray) -> FloatArray:
    """Over the last axis, in place."""
    logits -= np.maximum.reduce(logits, axis=-1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= np.add.reduce(logits, axis=-1, keepdims=True)
    return logits


def channel_of(head: PredicateHead) -> FloatArray | None:
    """P(y | ℓ) [V, V], a row an item's value; None where items have no labels of their own."""
    return np.array(head.channel) if head.channel else None


def through(channel: FloatArray | None, probabilities: FloatArray | Float32Array) -> FloatArray:
    """[..., V] of the item's value -> [..., V] of its entity's."""
    return np.asarray(probabilities if channel is None else probabilities @ channel)
