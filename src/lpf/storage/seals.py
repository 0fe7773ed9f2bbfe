"""Seals: hashes that show whether a row of the store was changed or damaged.

A seal covers every field of a row that an answer depends on. Texts are not part of it, so that it
can be checked without loading them: a text is checked against its salted hash. Seals find damage
and careless edits; whoever can write to the store can write a matching seal too.

Migrations use these functions, so what they compute must never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any


def row_seal(values: Sequence[Any]) -> bytes:
    """SHA-256 of the values as a Python tuple in ASCII: ``('E1', None, 0.9, b'\\x00', ...)``. It
    exists for values of any type, so that damaged rows have one too."""
    return hashlib.sha256(ascii(tuple(values)).encode()).digest()


def vector_seal(commitment: Any, reader_id: str, vector: Any) -> bytes:
    """Ties a vector to its text (``commitment`` is the text's salted hash) and to its reader."""
    digest = hashlib.sha256(ascii((commitment, reader_id)).encode())
    digest.update(vector if isinstance(vector, bytes) else ascii(vector).encode())
    return digest.digest()
