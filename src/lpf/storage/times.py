"""Moments are kept as whole microseconds since 1970 in UTC: exact, ordered, alike everywhere."""

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
