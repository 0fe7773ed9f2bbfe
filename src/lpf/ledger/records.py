"""What goes into the ledger and what comes back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lpf.errors import UnknownRecordError

_RECORD_ID = re.compile(r"INF([0-9]{8,18})")


def record_id(seq: int) -> str:
    """``INF00000042``: eight digits, more once they are needed."""
    return f"INF{seq:08d}"


def sequence_of(identifier: str) -> int:
    """The place of a record, from 1. UnknownRecordError for what no record can be called."""
    found = _RECORD_ID.fullmatch(identifier)
    seq = int(found[1]) if found else 0
    if seq < 1 or record_id(seq) != identifier:
        raise UnknownRecordError(
            f"{identifier!r} is not the id of a record; ids look like {record_id(42)}."
        )
    return seq


@dataclass(frozen=True, slots=True)
class QueryText:
    """The words of a question, kept outside the record so that they can be erased; the record
    holds ``commitment``, which says nothing about the words without ``salt``. See
    ``query_text_commitment``."""

    commitment: bytes
    salt: bytes
    text: str


def query_text_commitment(salt: bytes, text: str) -> bytes:
    """SHA-256 of salt and text: 32 bytes that bind the record to its words."""
    return hashlib.sha256(salt + text.encode()).digest()


@dataclass(frozen=True, slots=True)
class Draft:
    """A record to be. ``fields`` is all of it but ``record_id`` and ``format``, which the ledger
    adds. A part that many records share goes into ``blobs`` as canonical JSON, stored once, and
    ``fields`` holds ``reference(blob)`` in its place. A text in ``texts`` is the one whose
    commitment, in hexadecimal, is the field ``query_text``."""

    fields: Mapping[str, Any]
    blobs: tuple[bytes, ...] = ()
    texts: tuple[QueryText, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """A record that is on disk. ``leaf`` is its hash in the tree, 32 bytes."""

    record_id: str
    seq: int
    leaf: bytes


def reference(blob: bytes) -> dict[str, str]:
    """What a record holds in place of ``blob``."""
    return {"blob": hashlib.sha256(blob).hexdigest()}
