"""Convert the fields of a row to values of the right type, and describe rows that are rejected."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from lpf.errors import InputFileError
from lpf.storage.facts import FIRST_YEAR
from lpf.storage.values import LONGEST_NAME, length_problem, text_problem

Values = Mapping[str, object]


class RowError(InputFileError):
    """A field of a row is invalid. The caller knows the file and line, and adds them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A rejected row: its file and line, the invalid field, what is wrong with it, and the row
    itself, or None if the line could not be parsed."""

    file: str
    line: int
    field: str | None
    error: str
    row: object = None
    unit: str = "line"

    def __str__(self) -> str:
        name = "" if self.field is None else f"{self.field}: "
        return f"{self.file}, {self.unit} {self.line}: {name}{self.error}"

    def as_json(self) -> str:
        """One line of JSON. Values without a JSON form, such as dates, are written as strings."""
        entry = {name: getattr(self, name) for name in ("file", "line", "field", "error", "row")}
        return json.dumps(entry, ensure_ascii=False, default=_as_text)


def text_field(values: Values, name: str) -> str | None:
    """A text, or None if the field is missing or empty."""
    value = values.get(name)
    if value is None or value == "":
        return None
    problem = text_problem(value)
    if problem:
        raise RowError(problem, field=name)
    return str(value)


def name_field(values: Values, name: str) -> str | None:
    """A text without surrounding whitespace: names must not differ in invisible characters."""
    text = text_field(values, name)
    return None if text is None else text.strip()


def label_field(values: Values, name: str) -> str | None:
    """Like ``name_field``, but whole numbers are accepted and converted to text."""
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return name_field(values, name)
    if value.bit_length() > LONGEST_NAME:
        raise RowError(
            f"is a number of more than {LONGEST_NAME} bits; write it as a text", field=name
        )
    return str(value)


def identifier_field(values: Values, name: str) -> str | None:
    """Like ``label_field``, but limited to the length that a database index supports."""
    label = label_field(values, name)
    problem = None if label is None else length_problem(label, name)
    if problem:
        raise RowError(problem, field=name)
    return label


def required(value: str | None, name: str) -> str:
    """``value``; RowError if it is None."""
    if value is None:
        raise RowError("is missing", field=name)
    return value


def share_field(values: Values, name: str) -> float | None:
    """A number in [0, 1], which may be written as text."""
    value = values.get(name)
    if value is None or value == "":
        return None
    number = _number(value, name)
    if math.isnan(number) or not 0.0 <= number <= 1.0:
        raise RowError(f"must be in [0, 1], got {value!r}", field=name)
    return number + 0.0  # turns -0.0 into 0.0, which would have another content hash


def moment_field(values: Values, name: str) -> datetime | None:
    """A time in UTC, from ISO 8601 text or a Parquet time. Without a time zone it is in UTC."""
    value = values.get(name)
    if value is None or value == "":
        return None
    moment = _in_utc(_moment(value, name))
    if moment is None or moment.year < FIRST_YEAR:
        shown = repr(value.isoformat() if isinstance(value, date) else value)
        raise RowError(
            f"is outside the years {FIRST_YEAR} to 9999, probably a typing error, got {shown}",
            field=name,
        )
    return moment


def _number(value: object, name: str) -> float:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise RowError(f"must be a number, got {value!r}", field=name)


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
    raise RowError(
        f"must be a time in ISO 8601, such as 2026-01-25T15:42:33Z, got {value!r}", field=name
    )


def _in_utc(moment: datetime) -> datetime | None:
    """None if the year would be below 1 or above 9999."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return None


def _as_text(value: object) -> str:
    """Only the length of bytes: written out, they would be a text that no erasure recognises."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
