"""Points ε ~ N(0, I) for the Monte Carlo integral, chosen by the items' keys.

Except for ``plain``, which draws afresh for every item, the points come from a small pool of sets
made once for each (sampler, M, d). An item's key picks the set and flips the sign of each
dimension: all sets are symmetric in law, so the flipped set is as good as the first, and a flip
costs N·d operations where a new set would cost N·M·d draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.factors.keys import mixed
from lpf.types import Float32Array, KeyArray

PointSet = Callable[[int, int, np.random.Generator], np.ndarray]

POOL_SIZE = 64  # a power of two: the set is picked by masking bits
_SET_MASK = np.uint64(POOL_SIZE - 1)
_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
_SIGNS = _SIGNS.astype(np.float32)  # [256, 8]: the signs that a byte stands for
_POOL_SEED = 20  # any number; another one gives other sets of the same law


def _antithetic(count: int, width: int, generator: np.random.Generator) -> np.ndarray:
    """M/2 independent points and their mirror images."""
    half = generator.standard_normal((count // 2, width))
    return np.concatenate([half, -half])


def _orthogonal(count: int, width: int, generator: np.random.Generator) -> np.ndarray:
    """Mirror pairs along directions at right angles, with the lengths of Gaussian points."""
    blocks, left = [], count // 2
    while left > 0:
        directions, _ = np.linalg.qr(generator.standard_normal((width, width)))
        lengths = np.sqrt(generator.chisquare(width, size=(min(left, width), 1)))
        blocks.append(directions.T[:left] * lengths)
        left -= width
    half = np.concatenate(blocks)
    return np.concatenate([half, -half])


def _sobol(count: int, width: int, generator: np.random.Generator) -> np.ndarray:
    """A scrambled Sobol sequence carried over by the inverse of the normal distribution."""
    from scipy.special import ndtri  # scipy is slow to import and only needed here
    from scipy.stats import qmc

    sequence = qmc.Sobol(width, scramble=True, rng=generator)
    cube = sequence.random_base2(count.bit_length() - 1)
    # Scrambling can land on 0, whose normal quantile is -inf; the open cube starts half a cell in.
    return np.asarray(ndtri(np.maximum(cube, 2.0**-33)))


POOLED: Mapping[str, PointSet] = MappingProxyType(
    {"antithetic": _antithetic, "orthogonal": _orthogonal, "sobol": _sobol}
)
SAMPLERS = ("plain", *POOLED)
PAIRED = ("antithetic", "orthogonal")  # the second half of a set mirrors the first
DETERMINISTIC = ("mean", "moments")


def check_sampler(sampler: str, n_samples: int) -> None:
    """ConfigError for an unknown sampler, or a number of samples it cannot use."""
    if sampler not in SAMPLERS + DETERMINISTIC:
        raise ConfigError(f"sampler: must be one of {SAMPLERS + DETERMINISTIC}, got {sampler!r}.")
    if n_samples < 1:
        raise ConfigError(f"n_samples: must be at least 1, got {n_samples!r}.")
    if sampler in PAIRED and n_samples % 2:
        raise ConfigError(f"n_samples: {sampler} draws pairs and needs an even number, got "
                          f"{n_samples}.")  # fmt: skip
    if sampler == "sobol" and n_samples & (n_samples - 1):
        raise ConfigError(f"n_samples: sobol needs a power of two, got {n_samples}.")


def draw(sampler: str, keys: KeyArray, n_samples: int, width: int) -> Float32Array:
    """Points [M, N, d]; item n's depend on ``keys[n]`` alone."""
    if sampler == "plain":
        return _draw_plain(keys, n_samples, width)
    chosen, signs = choose(keys, width)
    return pool_of(sampler, n_samples, width)[:, chosen] * signs


def choose(keys: KeyArray, width: int) -> tuple[NDArray[np.intp], Float32Array]:
    """Which set of the pool each item takes, [N], and the signs it flips it by, [N, d]. Who scales
    points by σ can flip σ instead."""
    words = (width + 63) // 64
    numbers = mixed(keys, 1 + words)
    chosen = (numbers[:, 0] & _SET_MASK).astype(np.intp)
    # Each byte of the other numbers is eight signs, looked up together.
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
    """[M, POOL_SIZE, d], the same on every machine up to the last bits of its linear algebra."""
    sets = [
        POOLED[sampler](n_samples, width, np.random.default_rng([_POOL_SEED, number]))
        for number in range(POOL_SIZE)
    ]
    pool = np.ascontiguousarray(np.stack(sets, axis=1), dtype=np.float32)
    pool.flags.writeable = False
    return pool
