"""Softmax, and temperature: normalise(Φ^(1/T)) (Algorithm 1, lines 29-36)."""

from __future__ import annotations

import numpy as np

from lpf.types import FloatArray


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
