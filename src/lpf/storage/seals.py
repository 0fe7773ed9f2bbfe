"""Seals: hashes that show whether a row of the store was changed or damaged.

A seal covers every field of a row that an answer depends on. Texts are not part of it, so that it
can be checked without loading them: a text is checked against its salted hash. Seals find damage
and careless edits; whoever can write to the store can write a matching seal too.

Only sound rows are sealed, so a row with a valid seal has values of the right types. Migrations use
these functions: what they compute must never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lpf.errors import StoreDamagedError

NAMES_SHOWN = 3
NO_CLAIM = b"\xff" * 8
FIELDS_CHANGED = "its fields do not match their hash"
TEXT_CHANGED = "its text does not match its salted hash"
VECTOR_CHANGED = "its stored vector does not match its hash"
REMEDY = "'lpf doctor --full' lists all damaged items; restore a backup, or erase the item"

# The sealed fields of an item: evidence_id, entity_id, predicate, credibility, timestamp,
# evidence_type, source, report_id, supports_value, content_key, content_hash, salt, commitment,
# ingested_at, version.
ITEM_KINDS: Final = (
    *("text", "text", "text", "share?", "moment?", "text", "text?", "text?", "text?"),
    *("bytes", "bytes", "bytes", "bytes", "moment", "number"),
)
# Those of a fact: entity_id, predicate, value, confidence, timestamp, source, recorded_at,
# superseded_at, superseded_by.
FACT_KINDS: Final = (
    *("text", "text", "text", "share", "moment", "text?", "moment", "moment?", "number?"),
)
# The years 1 to 9999 in microseconds since 1970.
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999


@dataclass(frozen=True, slots=True)
class DamagedItem:
    """An item that cannot be used, and why. The ID is printable whatever is stored as ID."""

    evidence_id: str
    reason: str

    def __str__(self) -> str:
        return f"{self.evidence_id}: {self.reason}"


def row_seal(values: Sequence[Any]) -> bytes:
    """SHA-256 of the values as a Python tuple in ASCII: ``('E1', None, 0.9, b'\\x00', ...)``."""
    return hashlib.sha256(ascii(tuple(values)).encode()).digest()


def vector_seal(commitment: Any, reader_id: str, vector: bytes) -> bytes:
    """Ties a vector to its text (``commitment`` is the text's salted hash) and to its reader."""
    digest = hashlib.sha256(ascii((commitment, reader_id)).encode())
    digest.update(vector)
    return digest.digest()


def text_commitment(salt: bytes, text: str, claim: str | None) -> bytes:
    """The salted hash of a text: SHA-256 of ``salt``, text and claim.

    Text and claim are in UTF-8, each preceded by its length as 8 bytes big-endian. A missing claim
    is the length FFFFFFFFFFFFFFFF with nothing after it.
    """
    digest = hashlib.sha256(salt)
    for part in (text, claim):
        encoded = b"" if part is None else part.encode()
        digest.update(NO_CLAIM if part is None else len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.digest()


def text_is_intact(salt: Any, text: Any, claim: Any, commitment: Any) -> bool:
    """Compare a text with its salted hash; the values may be of any type."""
    typed = isinstance(salt, bytes) and _fits(text, "text") and _fits(claim, "text?")
    return typed and text_commitment(salt, text, claim) == commitment


def vector_is_intact(commitment: Any, reader_id: str, vector: Any, seal: Any) -> bool:
    return isinstance(vector, bytes) and vector_seal(commitment, reader_id, vector) == seal


def is_sound(values: Sequence[Any], kinds: Sequence[str]) -> bool:
    """Return True if every value has the type and range of its kind."""
    return all(_fits(value, kind) for value, kind in zip(values, kinds, strict=True))


def vector_is_sound(vector: Any, width: Any) -> bool:
    """Return True for ``width`` finite numbers in float32."""
    if not isinstance(vector, bytes) or not _fits(width, "number") or len(vector) != 4 * width:
        return False
    return bool(np.isfinite(np.frombuffer(vector, "<f4")).all())


def printable(name: Any) -> str:
    """The name of a damaged row as text that every terminal can show."""
    text = name if isinstance(name, str) else ascii(name)
    return text.encode(errors="backslashreplace").decode()


def first_damaged(damaged: Sequence[object]) -> str:
    """The first few, with their reasons."""
    shown = "; ".join(map(str, damaged[:NAMES_SHOWN]))
    more = len(damaged) - NAMES_SHOWN
    return f"{shown}; and {more:,} more" if more > 0 else shown


def damage_notes(damaged: Sequence[object]) -> list[str]:
    """The note for an answer, if items could not be used."""
    if not damaged:
        return []
    number = len(damaged)
    start = "1 item was not used" if number == 1 else f"{number:,} items were not used"
    return [f"{start}: {first_damaged(damaged)}. {REMEDY}"]


def damaged_error(damaged: Sequence[DamagedItem], undone: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"damaged items in the store: {first_damaged(damaged)}. {undone}",
        hint=f"{REMEDY}.",
    )


def stored_number(value: Any, place: str) -> int:
    """A whole number read from the store. StoreDamagedError if it is something else."""
    if isinstance(value, int):
        return value
    raise StoreDamagedError(
        f"{place} holds {ascii(value)[:40]} instead of a whole number. Nothing was done.",
        hint="Restore a backup; 'lpf doctor --full' lists what else is damaged.",
    )


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return kind.endswith("?")
    kind = kind.rstrip("?")
    if kind == "text":
        return isinstance(value, str) and (value.isascii() or is_unicode(value))
    if kind == "bytes":
        return isinstance(value, bytes)
    if kind == "share":
        return isinstance(value, float) and 0.0 <= value <= 1.0
    if not isinstance(value, int):
        return False
    return kind == "number" or _EARLIEST <= value <= _LATEST


def is_unicode(text: str) -> bool:
    """False for a lone surrogate: the bytes it was read from are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
