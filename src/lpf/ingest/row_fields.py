"""Convert the fields of a row to values of the right type, and describe rows that are rejected."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, TypeVar

from lpf.errors import InputFileError
from lpf.ingest.cell_values import CellReader
from lpf.storage.facts import FIRST_YEAR
from lpf.storage.values import LONGEST_NAME, length_problem, text_problem
from lpf.types import SPLIT_TEXT, length_problem_of

Values = Mapping[str, object]
Value = TypeVar("Value")
FieldProblem = tuple[str | None, str]
LONGEST_SHOWN = 100


class RowError(InputFileError):
    """Fields of a row are invalid. The caller knows the file and line, and adds them. ``field`` and
    ``message`` are of the first; ``problems`` has every field with what is wrong with it."""

    def __init__(
        self, message: str, *, field: str | None = None, more: Sequence[FieldProblem] = ()
    ) -> None:
        super().__init__(message, field=field)
        self.problems: tuple[FieldProblem, ...] = ((field, message), *more)


class FieldReader:
    """Reads the fields of one row and collects what is wrong with them, so that a user sees all of
    it at once."""

    def __init__(self) -> None:
        self._problems: list[FieldProblem] = []

    def take(self, read: Callable[..., Value], *arguments: Any) -> Value | None:
        """What ``read`` returns; None if it raises RowError."""
        try:
            return read(*arguments)
        except RowError as error:
            self._problems += error.problems
            return None

    def finish(self) -> None:
        """RowError if any field was invalid."""
        if self._problems:
            (name, message), *more = self._problems
            raise RowError(message, field=name, more=more)


@dataclass(frozen=True, slots=True)
class Problem:
    """A rejected row: its file and line, the first invalid field, what is wrong with it, and the
    row itself, or None if the line could not be parsed. ``more`` has the other invalid fields."""

    file: str
    line: int
    field: str | None
    error: str
    row: object = None
    unit: str = "line"
    more: tuple[FieldProblem, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.line}: {self.reasons}"

    @property
    def reasons(self) -> str:
        """All that is wrong with the row."""
        return named_problems(((self.field, self.error), *self.more))

    @property
    def errors(self) -> list[dict[str, str | None]]:
        """All that is wrong with the row, as plain data."""
        listed = ((self.field, self.error), *self.more)
        return [{"field": name, "error": error} for name, error in listed]

    def as_json(self) -> str:
        """One line of JSON. Values without a JSON form, such as dates, are written as strings."""
        entry = {name: getattr(self, name) for name in ("file", "line", "field", "error", "row")}
        if self.more:
            entry["errors"] = self.errors
        return json.dumps(entry, ensure_ascii=False, default=_as_text)


def named_problems(problems: Sequence[FieldProblem]) -> str:
    """``credibility: must be a number; timestamp: is missing``."""
    return "; ".join(error if name is None else f"{name}: {error}" for name, error in problems)


def text_field(values: Values, name: str) -> str | None:
    """A text, or None if the field is missing or empty."""
    value = values.get(name)
    if value is None or value == "":
        return None
    problem = text_problem(value)
    if problem:
        raise RowError(problem, field=name)
    text = str(value)
    problem = length_problem_of(text)
    if problem:
        raise RowError(f"{problem}. {SPLIT_TEXT.rstrip('.')}", field=name)
    return text


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


def share_field(values: Values, name: str, cells: CellReader, place: str) -> float | None:
    """A number in [0, 1], which may be written as text: ``0.8``, ``0,8`` or ``80 %``."""
    value = values.get(name)
    if value is None or value == "":
        return None
    number = _number(value, name, cells, place)
    if math.isnan(number) or not 0.0 <= number <= 1.0:
        raise RowError(f"must be in [0, 1], got {shown(value)}", field=name)
    return number + 0.0  # turns -0.0 into 0.0, which would have another content hash


def moment_field(values: Values, name: str, cells: CellReader) -> datetime | None:
    """A time in UTC, from a text or a time of Parquet or Excel. Without a time zone it is in
    UTC."""
    value = values.get(name)
    if value is None or value == "":
        return None
    moment = _in_utc(_moment(value, name, cells))
    if moment is None or moment.year < FIRST_YEAR:
        got = value.isoformat() if isinstance(value, date) else value
        raise RowError(
            f"is outside the years {FIRST_YEAR} to 9999, probably a typing error, got {shown(got)}",
            field=name,
        )
    return moment


def shown(value: object) -> str:
    """The value for an error message, cut if it is long."""
    text = repr(value[: LONGEST_SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _number(value: object, name: str, cells: CellReader, place: str) -> float:
    if isinstance(value, str):
        number = cells.number(value, place)
        if number is not None:
            return number
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise RowError(f"must be a number, got {shown(value)}", field=name)


def _moment(value: object, name: str, cells: CellReader) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    moment = cells.moment(value) if isinstance(value, str) else None
    if moment is not None:
        return moment
    raise RowError(
        f"must be a time in ISO 8601, such as 2026-01-25T15:42:33Z, or in the form given with "
        f"--date-format, got {shown(value)}",
        field=name,
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
