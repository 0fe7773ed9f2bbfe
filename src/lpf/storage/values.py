"""Moments are kept as whole microseconds since 1970 in UTC: exact, ordered, alike everywhere.

What both databases can keep as a text, and give back as it was.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_WITHOUT_ZONE = datetime(1970, 1, 1)  # its text is what counts here
MICROSECOND = timedelta(microseconds=1)
END_OF_TIME = 2**63 - 1
MICROS_PER_DAY = 86_400_000_000


def now_micros() -> int:
    return time.time_ns() // 1000


def to_micros(moment: datetime) -> int:
    """``moment`` must carry a time zone."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def iso(micros: int) -> str:
    """``2026-01-25T15:42:33.000000Z``: one fixed width, so texts sort as the moments do."""
    plain = _EPOCH_WITHOUT_ZONE + timedelta(microseconds=micros)
    return plain.isoformat(timespec="microseconds") + "Z"


# PostgreSQL's indexes take entries of some 2,700 bytes, SQLite's of any length. What one of them
# would refuse neither may take; two names stand in one entry.
LONGEST_NAME = 512
# Leaves room for the number that makes an evidence id of it.
LONGEST_ENTITY = LONGEST_NAME - 12
LONGEST_SHOWN = 80


def unkeepable(text: object) -> str | None:
    """What is wrong with a text that must hold something; None if nothing is."""
    if not isinstance(text, str):
        return f"must be a text, got {_shown(text)}"
    if not text.strip():
        return "is empty"
    if "\0" in text:
        return "holds the character NUL, which a database cannot keep in a text"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"is not valid Unicode ({error.reason} at {error.start})"
    return None


def unusable_name(text: object) -> str | None:
    """What is wrong with a text that things go by: it must also have no blanks around it, which
    nobody sees."""
    problem = unkeepable(text)
    if problem is None and str(text) != str(text).strip():
        return f"has blanks around it: {_shortened(str(text))!r}"
    return problem


def too_long(text: str, name: str) -> str | None:
    """What is wrong with the length of a text that things go by; ``name`` is its field's."""
    longest = LONGEST_ENTITY if name == "entity_id" else LONGEST_NAME
    length = len(text.encode())
    if length <= longest:
        return None
    return f"is {length} bytes long, at most {longest} are allowed"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _shown(value: object) -> str:
    """Something small as it is; of the rest only what it is, since it may hold a whole text."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a value of type {type(value).__name__}"
