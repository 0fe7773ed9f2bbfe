"""Keys that seed the samples of each item.

The key of an item is a hash of its text, claim and reader, combined with the model, predicate and
seed of the question. So the factor of an item does not depend on the order or number of items in a
batch, and the sampling errors of different items are independent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lpf.types import Float32Array, KeyArray

_GOLDEN, _WORD = 0x9E3779B97F4A7C15, 0xFFFFFFFFFFFFFFFF
MAX_STREAMS = 65
_STEPS = np.array([_GOLDEN * i & _WORD for i in range(1, MAX_STREAMS + 1)], dtype=np.uint64)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def content_key(text: str, claim: str | None) -> bytes:
    """Return a hash (16 bytes) of a text and the claim it is read with."""
    return _digest(16, text, claim)


def item_keys(texts: Sequence[str], claims: Sequence[str | None], reader_id: str) -> KeyArray:
    """Return one key per item, [N]. Items with equal text and claim have equal keys."""
    pairs = zip(texts, claims, strict=True)
    return stored_keys([content_key(text, claim) for text, claim in pairs], reader_id)


def stored_keys(content_keys: Sequence[bytes], reader_id: str) -> KeyArray:
    """Return the keys of `item_keys` from stored results of `content_key`."""
    halves = np.frombuffer(b"".join(content_keys), dtype="<u8").reshape(-1, 2)
    return np.asarray(halves[:, 0] ^ _reader_key(reader_id), dtype=np.uint64)


def feature_keys(features: Float32Array) -> KeyArray:
    """Return keys for items without text, from their features [N, width]."""
    bits = np.ascontiguousarray(features, np.float32).view(np.uint32).astype(np.uint64)
    odd = splitmix64(np.arange(bits.shape[1], dtype=np.uint64), 1)[:, 0] | np.uint64(1)
    return np.asarray((bits * odd).sum(axis=1, dtype=np.uint64))


def context_key(model_key: str, predicate: str, seed: int) -> np.uint64:
    """Return what is combined (xor) with the key of every item of a question."""
    return np.uint64(_hash_64(model_key, predicate, str(seed)))


def splitmix64(keys: KeyArray, streams: int) -> KeyArray:
    """Return ``streams`` random 64-bit numbers per key, [N, streams], from the SplitMix64 generator
    seeded with the key. Vectorised over keys."""
    state = keys[:, None] + _STEPS[:streams]
    state ^= state >> _SHIFTS[0]
    state *= _MIX_1
    state ^= state >> _SHIFTS[1]
    state *= _MIX_2
    state ^= state >> _SHIFTS[2]
    return state


@lru_cache(maxsize=64)
def _reader_key(reader_id: str) -> np.uint64:
    return np.uint64(_hash_64(reader_id))


def _hash_64(*parts: str | None) -> int:
    return int.from_bytes(_digest(8, *parts), "little")


def _digest(size: int, *parts: str | None) -> bytes:
    digest = hashlib.blake2b(digest_size=size)
    for part in parts:
        # The length distinguishes ("ab", "c") from ("a", "bc"), and -1 distinguishes None from "".
        encoded = b"" if part is None else part.encode()
        digest.update((-1 if part is None else len(encoded)).to_bytes(8, "little", signed=True))
        digest.update(encoded)
    return digest.digest()
