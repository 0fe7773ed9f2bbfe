"""Where an item's randomness comes from: from what it is, not from where it stands.

An item's key is a hash of its text, claim and reader; it is mixed with the model, predicate and
seed of the question. So a factor is the same in any order and any company, and the errors of
different items stay independent.
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
    """16 bytes that stand for a text and the claim it is read against."""
    return _digest(16, text, claim)


def item_keys(texts: Sequence[str], claims: Sequence[str | None], reader_id: str) -> KeyArray:
    """One key per item, [N]. Equal texts read against equal claims have equal keys."""
    pairs = zip(texts, claims, strict=True)
    return stored_keys([content_key(text, claim) for text, claim in pairs], reader_id)


def stored_keys(content_keys: Sequence[bytes], reader_id: str) -> KeyArray:
    """The same keys from ``content_key``s made before, without the texts."""
    halves = np.frombuffer(b"".join(content_keys), dtype="<u8").reshape(-1, 2)
    return np.asarray(halves[:, 0] ^ _reader_key(reader_id), dtype=np.uint64)


def feature_keys(features: Float32Array) -> KeyArray:
    """Keys for items known by their features [N, width] alone: equal rows have equal keys."""
    bits = np.ascontiguousarray(features, np.float32).view(np.uint32).astype(np.uint64)
    odd = mixed(np.arange(bits.shape[1], dtype=np.uint64), 1)[:, 0] | np.uint64(1)
    return np.asarray((bits * odd).sum(axis=1, dtype=np.uint64))


def context_key(model_version: str, predicate: str, seed: int) -> np.uint64:
    """What a question adds to the key of every item."""
    return np.uint64(_hash_64(model_version, predicate, str(seed)))


def mixed(keys: KeyArray, streams: int) -> KeyArray:
    """``streams`` fresh 64-bit numbers a key, [N, streams] (the SplitMix64 generator started at
    the key): vectorised, so that thousands of items cost no more than a few array operations."""
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
        # The length keeps ("ab", "c") apart from ("a", "bc"); -1 keeps None apart from "".
        encoded = b"" if part is None else part.encode()
        digest.update((-1 if part is None else len(encoded)).to_bytes(8, "little", signed=True))
        digest.update(encoded)
    return digest.digest()
