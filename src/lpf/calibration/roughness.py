"""How rough probabilities are that were fitted on a few entities."""

from __future__ import annotations

import math

# Fewer than this cannot tell a calibrated model from one that is off by 15 points.
FEW_ENTITIES = 40


def rough_error(entities: int) -> float:
    """Half the width of a 95 % interval for a share of about one half: what so few can tell."""
    return min(0.5, 0.98 / math.sqrt(max(1, entities)))
