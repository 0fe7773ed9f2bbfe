"""What an item's own label says of its entity.

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


def channel_of(head: PredicateHead) -> FloatArray | None:
    """P(y | ℓ) [V, V], a row an item's value; None where items have no labels of their own."""
    return np.array(head.channel) if head.channel else None


def through(channel: FloatArray | None, probabilities: FloatArray | Float32Array) -> FloatArray:
    """[..., V] of the item's value -> [..., V] of its entity's."""
    return np.asarray(probabilities if channel is None else probabilities @ channel)
