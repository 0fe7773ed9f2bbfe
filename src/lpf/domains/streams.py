"""Random numbers by name, so that nothing depends on the order in which things are drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from lpf.types import FloatArray


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """The generator of one thing: the same seed and path give the same numbers everywhere."""
    words = [step if isinstance(step, int) else _word(step) for step in path]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


def uniforms(seed: int, path: tuple[str, ...], members: Iterable[int], width: int) -> FloatArray:
    """Uniform numbers [members, width], each row from its member's own stream."""
    rows = [stream(seed, *path, member).random(width) for member in members]
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _word(step: str) -> int:
    return int.from_bytes(hashlib.blake2b(step.encode(), digest_size=8).digest(), "big")
