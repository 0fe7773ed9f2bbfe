"""Named random streams, so that results do not depend on the order of drawing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from lpf.types import FloatArray


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """Return a generator; the same seed and path give the same numbers on every machine."""
    words = [step if isinstance(step, int) else _word(step) for step in path]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


def uniforms(seed: int, path: tuple[str, ...], members: Iterable[int], width: int) -> FloatArray:
    """Return uniform numbers [members, width], one stream per row."""
    rows = [stream(seed, *path, member).random(width) for member in members]
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _word(step: str) -> int:
    return int.from_bytes(hashlib.blake2b(step.encode(), digest_size=8).digest(), "big")
