"""Samples ε ~ N(0, I) for Monte Carlo integration, determined by the items' keys.

``plain`` draws independent samples for every item. The other samplers use a pool of point sets that
is computed once per (sampler, M, d): the key of an item selects a set and flips the sign of each
dimension. The distribution of a set is symmetric, so flipping does not change it, and it costs only
N·d operations instead of N·M·d draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.factors.keys import splitmix64
from lpf.types import Float32Array, KeyArray

PointSet = Callable[[int, int, np.random.Generator], np.ndarray]

POOL_SIZE = 64  # a power of two, so that a bit mask selects the set
_SET_MASK = np.uint64(POOL_SIZE - 1)
_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
_SIGNS = _SIGNS.astype(np.float32)  # [256, 8]: the eight signs encoded by each byte
_POOL_SEED = 20  # arbitrary


def _antithetic(count: int, width: int, generator: np.random.Generator) -> np.ndarray:
    """M/2 independent points and their negatives."""
    half = generator.standard_normal((count // 2, width))
    return np.concatenate([half, -half])


def _orthogonal(count: int, width: int, generator: np.random.Generator) -> np.ndarray:
    """Pairs ±x along orthogonal directions, with the lengths of Gaussian points."""
    blocks, left = [], count // 2
    while left > 0:
        directions, _ = np.linalg.qr(generator.standard_normal((width, width)))
        lengths = np.sqrt(generator.chisquare(width, size=(min(left, width), 1)))
        blocks.append(directions.T[:left] * lengths)
        left -= width
    half = np.concatenate(blocks)
    return np.concatenate([half, -half])


def _sobol(count: int, width: int, generator: np.random.Generator) -> np.ndarray:
    """A scrambled Sobol sequence, mapped by the inverse normal distribution function."""
    from scipy.special import ndtri  # scipy is slow to import and only needed here
    from scipy.stats import qmc

    sequence = qmc.Sobol(width, scramble=True, rng=generator)
    cube = sequence.random_base2(count.bit_length() - 1)
    # Scrambling can give exactly 0, whose normal quantile is -inf.
    return np.asarray(ndtri(np.maximum(cube, 2.0**-33)))


POOLED: Mapping[str, PointSet] = MappingProxyType(
    {"antithetic": _antithetic, "orthogonal": _orthogonal, "sobol": _sobol}
)
SAMPLERS = ("plain", *POOLED)
PAIRED = ("antithetic", "orthogonal")  # the second half of a set is the negative of the first
DETERMINISTIC = ("mean", "moments")


def check_sampler(sampler: str, n_samples: int) -> None:
    """Raise ConfigError for an unknown sampler or an invalid number of samples."""
    if sampler not in SAMPLERS + DETERMINISTIC:
        raise ConfigError(
            f"must be one of {SAMPLERS + DETERMINISTIC}, got {sampler!r}.", field="sampler"
        )
    if n_samples < 1:
        raise ConfigError(f"must be at least 1, got {n_samples!r}.", field="n_samples")
    if sampler in PAIRED and n_samples % 2:
        raise ConfigError(
            f"{sampler} draws pairs and needs an even number, got {n_samples}.", field="n_samples"
        )
    if sampler == "sobol" and n_samples & (n_samples - 1):
        raise ConfigError(f"sobol needs a power of two, got {n_samples}.", field="n_samples")


def draw(sampler: str, keys: KeyArray, n_samples: int, width: int) -> Float32Array:
    """Return samples [M, N, d]; those of item n depend only on ``keys[n]``."""
    if sampler == "plain":
        return _draw_plain(keys, n_samples, width)
    chosen, signs = choose(keys, width)
    return pool_of(sampler, n_samples, width)[:, chosen] * signs


def choose(keys: KeyArray, width: int) -> tuple[NDArray[np.intp], Float32Array]:
    """Return the point set of each item, [N], and the signs of its dimensions, [N, d]."""
    words = (width + 63) // 64
    numbers = splitmix64(keys, 1 + words)
    chosen = (numbers[:, 0] & _SET_MASK).astype(np.intp)
    # Each byte of the remaining numbers encodes eight signs.
    eights = numbers[:, 1:].copy().view(np.uint8)
    signs = _SIGNS.take(eights, axis=0, mode="clip").reshape(len(keys), 64 * words)
    return chosen, signs[:, :width]


def _draw_plain(keys: KeyArray, n_samples: int, width: int) -> Float32Array:
    points = np.empty((len(keys), n_samples, width), np.float32)
    for row, key in zip(points, keys, strict=True):
        generator = np.random.Generator(np.random.Philox(key=int(key)))
        generator.standard_normal(dtype=np.float32, out=row)
    return points.swapaxes(0, 1)


@lru_cache(maxsize=16)
def pool_of(sampler: str, n_samples: int, width: int) -> Float32Array:
    """Return the point sets [M, POOL_SIZE, d]; equal on every machine up to rounding."""
    sets = [
        POOLED[sampler](n_samples, width, np.random.default_rng([_POOL_SEED, number]))
        for number in range(POOL_SIZE)
    ]
    pool = np.ascontiguousarray(np.stack(sets, axis=1), dtype=np.float32)
    pool.flags.writeable = False
    return pool
