"""What an item's own label says about the value of its entity.

In data such as claims with sentences, items have labels of their own: most sentences say nothing,
whatever the value of the claim. A decoder trained on such labels gives p(ℓ | e) for the item; the
entity's value y has

    p(y | e) = Σ_ℓ p(ℓ | e) · P(y | ℓ)

where the channel P(y | ℓ) was counted on training entities. An item that says nothing is then weak
evidence for "nothing is known", not a vote for it.
"""

from __future__ import annotations

import numpy as np

from lpf.model.config import PredicateHead
from lpf.types import Float32Array, FloatArray


def label_channel(head: PredicateHead) -> FloatArray | None:
    """Return P(y | ℓ) [V, V], one row per item value; None if items have no labels of their own."""
    return np.array(head.channel) if head.channel else None


def apply_channel(
    channel: FloatArray | None, probabilities: FloatArray | Float32Array
) -> FloatArray:
    """Convert probabilities [..., V] of the item's value to those of its entity's value."""
    return np.asarray(probabilities if channel is None else probabilities @ channel)
