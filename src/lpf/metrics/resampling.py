"""What means might be on other seeds and other entities than those at hand: the bootstrap.

Seeds are drawn with replacement. Entities are not: in each draw every entity gets a weight from the
exponential distribution, the same in all seeds that hold it (the Bayesian bootstrap; its spread is
that of drawing entities with replacement, but for a factor E/(E+1) of the variance). Seeds that
share all, some or none of their entities then need no rules of their own: weights of entities that
only one seed holds are as independent as draws inside it, and no seed is ever left without any.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.types import FloatArray

# Draws are made in blocks of about this many weights, 8 MB of them.
BLOCK = 1 << 20


@dataclass(frozen=True)
class Resampled:
    """D draws from S seeds: ``means`` [D, S, C] of each seed's C columns under the weights of a
    draw, and ``shares`` [D, S], the part of the S drawn seeds that each is."""

    means: FloatArray
    shares: FloatArray

    def over_seeds(self) -> FloatArray:
        """[D, C], mean over the seeds drawn."""
        return np.asarray(np.einsum("ds,dsc->dc", self.shares, self.means))


def resampled(
    columns: Sequence[FloatArray],
    entities: Sequence[Sequence[Hashable]],
    generator: np.random.Generator,
    draws: int,
) -> Resampled:
    """``columns`` has [E_s, C] finite numbers of each seed, ``entities`` the names of its E_s rows.
    Rows of one name are of one entity, whichever seed they are in."""
    if draws < 1:
        raise ConfigError(f"draws: must be 1 or above, got {draws!r}.")
    places, size = _numbered(entities)
    block = max(1, BLOCK // size)
    parts = [
        _drawn(columns, places, generator.standard_exponential((min(block, draws - begin), size)))
        for begin in range(0, draws, block)
    ]
    return Resampled(np.concatenate(parts), _shares(len(columns), generator, draws))


def _numbered(entities: Sequence[Sequence[Hashable]]) -> tuple[list[NDArray[np.intp]], int]:
    """Of each row the number of its entity, and how many entities there are."""
    numbers: dict[Hashable, int] = {}
    places = [
        np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)
        for names in entities
    ]
    return places, len(numbers)


def _drawn(
    columns: Sequence[FloatArray], places: Sequence[NDArray[np.intp]], weights: FloatArray
) -> FloatArray:
    """[D, S, C] under ``weights`` [D, E]."""
    means = []
    for values, rows in zip(columns, places, strict=True):
        own = weights.take(rows, axis=1)
        means.append((own @ values) / own.sum(axis=1, keepdims=True))
    return np.stack(means, axis=1)


def _shares(seeds: int, generator: np.random.Generator, draws: int) -> FloatArray:
    """[D, S]. One seed alone is always itself."""
    return np.asarray(generator.multinomial(seeds, np.full(seeds, 1.0 / seeds), size=draws) / seeds)
