"""Convert times for storage, and check that both databases can store a text.

Times are stored as whole microseconds since 1970 in UTC.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_WITHOUT_ZONE = datetime(1970, 1, 1)  # isoformat() must not write an offset
MICROSECOND = timedelta(microseconds=1)
END_OF_TIME = 2**63 - 1
MICROS_PER_DAY = 86_400_000_000


def now_micros() -> int:
    return time.time_ns() // 1000


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970. ``moment`` must have a time zone."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def iso(micros: int) -> str:
    """ISO 8601 with a fixed width, such as ``2026-01-25T15:42:33.000000Z``, so that the texts sort
    by time."""
    naive = _EPOCH_WITHOUT_ZONE + timedelta(microseconds=micros)
    return naive.isoformat(timespec="microseconds") + "Z"


# PostgreSQL limits an index entry to about 2,700 bytes, and an entry holds up to two names. The
# limit applies to SQLite too, so that both accept the same data.
LONGEST_NAME = 512
# Leaves room for the suffix that turns an entity ID into an evidence ID.
LONGEST_ENTITY = LONGEST_NAME - 12
LONGEST_SHOWN = 80


def without_password(url: str) -> str:
    """An address for messages: without login and query, which may hold passwords."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return "(an address without ://)"
    before, at, place = rest.rpartition("@")
    if at and "?" in before:  # the @ may be part of a password in the query
        return f"{scheme}://..."
    return f"{scheme}://{place.partition('?')[0].partition('#')[0]}"


def text_problem(text: object) -> str | None:
    """What is wrong with a required text, or None."""
    if not isinstance(text, str):
        return f"must be a text, got {_shown(text)}"
    if not text.strip():
        return "is empty"
    if "\0" in text:
        return "contains a NUL character, which databases cannot store in a text"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"is not valid Unicode ({error.reason} at {error.start})"
    return None


def name_problem(text: object) -> str | None:
    """What is wrong with an ID or another name, or None. Besides being a valid text, it must not
    begin or end with whitespace, which is invisible."""
    problem = text_problem(text)
    if problem is None and str(text) != str(text).strip():
        return f"begins or ends with whitespace: {_shortened(str(text))!r}"
    return problem


def length_problem(text: str, name: str) -> str | None:
    """What is wrong with the length of a name in the field ``name``, or None."""
    longest = LONGEST_ENTITY if name == "entity_id" else LONGEST_NAME
    length = len(text.encode())
    if length <= longest:
        return None
    return f"is {length} bytes long; at most {longest} are allowed"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _shown(value: object) -> str:
    """The value of a number, but only the type of anything that may hold a long text."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a value of type {type(value).__name__}"
