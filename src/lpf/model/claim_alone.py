"""What the claim alone gives away: a regression that never sees the evidence.

The wording of a claim often tells its label. The regression is fitted beside a model
(``training.claim_alone``) and stored with it, so that an answer can do without what it says:

    P(y | E) ∝ P_circuit(y) · Π λᵢ(y)^aᵢ · share(y) / P(y | claim)

``share`` are the class shares of the entities it was fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lpf.items import Segments
from lpf.model.layout import CLAIM
from lpf.types import Float32Array, FloatArray

CLAIM_TENSORS = ("weight", "bias", "log_shares")


@dataclass(frozen=True)
class ClaimAlone:
    """Logits x·weight + bias of a claim's features: ``weight`` [width, V], ``bias`` [V].
    ``log_shares`` [V] are the logarithms of the class shares."""

    weight: Float32Array
    bias: Float32Array
    log_shares: Float32Array

    @classmethod
    def of(cls, tensors: Mapping[str, Float32Array], predicate: str) -> ClaimAlone:
        return cls(*(tensors[f"{CLAIM}{predicate}.{name}"] for name in CLAIM_TENSORS))

    def tensors(self, predicate: str) -> dict[str, Float32Array]:
        return {
            f"{CLAIM}{predicate}.{name}": np.asarray(getattr(self, name), np.float32)
            for name in CLAIM_TENSORS
        }

    def log_probabilities(self, claims: Float32Array) -> FloatArray:
        """log P(y | claim) [N, V] from the claims' features [N, width]."""
        logits = claims.astype(np.float64) @ self.weight.astype(np.float64) + self.bias
        return np.asarray(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))

    def taken_out(self, features: Float32Array, segments: Segments) -> FloatArray:
        """log share(y) - log P(y | claim) of each entity [E, V], whose items have ``features``
        [N, ...] that begin with the claim's. The mean over the items that have a claim; 0 for an
        entity without any."""
        claims = features[:, : len(self.weight)]
        has_claim = np.asarray(claims.any(axis=1), np.float64)
        rows = has_claim[:, None] * (self.log_shares - self.log_probabilities(claims))
        count = segments.sum(has_claim)
        return np.asarray(segments.sum(rows) / np.maximum(count, 1.0)[:, None])
