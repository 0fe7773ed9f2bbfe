"""Fields of a row as values of the right type. RowError names the field that is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time

from lpf.ingest.problems import RowError
from lpf.storage.facts_rows import FIRST_YEAR
from lpf.storage.texts import LONGEST_NAME, too_long, unkeepable

Values = Mapping[str, object]


def text_field(values: Values, name: str) -> str | None:
    """A text, or None where there is none."""
    value = values.get(name)
    if value is None or value == "":
        return None
    problem = unkeepable(value)
    if problem:
        raise RowError(name, problem)
    return str(value)


def name_field(values: Values, name: str) -> str | None:
    """A text without the blanks around it: no two names may differ by what nobody sees."""
    text = text_field(values, name)
    return None if text is None else text.strip()


def label_field(values: Values, name: str) -> str | None:
    """The same; a whole number is taken as the text of its digits."""
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return name_field(values, name)
    if value.bit_length() > LONGEST_NAME:
        raise RowError(name, f"is a number of more than {LONGEST_NAME} bits; give it as a text")
    return str(value)


def identifier_field(values: Values, name: str) -> str | None:
    """The same where things go by it: it must be short enough for an index."""
    label = label_field(values, name)
    problem = None if label is None else too_long(label, name)
    if problem:
        raise RowError(name, problem)
    return label


def required(value: str | None, name: str) -> str:
    if value is None:
        raise RowError(name, "is missing")
    return value


def share_field(values: Values, name: str) -> float | None:
    """A number in [0, 1], also as text."""
    value = values.get(name)
    if value is None or value == "":
        return None
    number = _number(value, name)
    if math.isnan(number) or not 0.0 <= number <= 1.0:
        raise RowError(name, f"must lie in [0, 1], got {value!r}")
    return number + 0.0  # -0.0 and 0.0 are one number with two hashes


def moment_field(values: Values, name: str) -> datetime | None:
    """A moment in UTC, from ISO 8601 or a time of Parquet. One without a zone is in UTC."""
    value = values.get(name)
    if value is None or value == "":
        return None
    moment = _in_utc(_moment(value, name))
    if moment is None or moment.year < FIRST_YEAR:
        years = f"{FIRST_YEAR} to 9999"
        raise RowError(name, f"lies outside the years {years}, probably a slip, got {_told(value)}")
    return moment


def _number(value: object, name: str) -> float:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise RowError(name, f"must be a number, got {value!r}")


def _in_utc(moment: datetime) -> datetime | None:
    """None where the year would be less than 1 or more than 9999."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return None


def _told(value: object) -> str:
    """As it stands in a file."""
    return repr(value.isoformat() if isinstance(value, date) else value)


def _moment(value: object, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            pass
    raise RowError(name, f"must be a time in ISO 8601, such as 2026-01-25T15:42:33Z, got {value!r}")
