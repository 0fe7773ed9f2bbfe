"""Entities seen with fewer items than they have, as examples that any method can answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lpf.calibration.subsets import draw_subsets
from lpf.training.examples import Examples


def every_size(examples: Examples, generator: np.random.Generator) -> Examples:
    """Every entity once with each number of its items, all of them included."""
    rows, segments, owners = draw_subsets(examples.segments, generator)
    items = list(examples.dataset.items)
    spans = zip(segments.offsets[:-1], segments.offsets[1:], strict=True)
    entities = tuple(
        replace(
            examples.dataset.entities[owner],
            evidence=tuple(items[row] for row in rows[start:stop]),
        )
        for owner, (start, stop) in zip(owners, spans, strict=True)
    )
    return Examples(
        replace(examples.dataset, entities=entities),
        examples.features[rows],
        examples.credibility[rows],
        examples.groups[rows],
    )
