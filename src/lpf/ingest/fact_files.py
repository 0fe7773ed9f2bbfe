"""Read known facts from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from lpf.errors import InputFileError, LPFError
from lpf.ingest.cell_values import CellReader
from lpf.ingest.input_files import FileOptions, open_input
from lpf.ingest.input_rows import FACT_COLUMNS, InputFile, InputRow, similar_fields
from lpf.ingest.row_fields import (
    FieldReader,
    RowError,
    Values,
    identifier_field,
    label_field,
    moment_field,
    name_field,
    named_problems,
    required,
    share_field,
)
from lpf.schema import Schema
from lpf.storage.facts import NewFact

REQUIRED = ("entity_id", "value", "timestamp")
PROBLEMS_SHOWN = 20
Found = TypeVar("Found")


class FactFile:
    """The facts of a JSONL, CSV, Excel or Parquet file. With a ``schema``, names in another case
    are recognised, and facts that do not fit it are named with the other errors.

    ``read_as`` says what was assumed about the file; it is complete after reading. Rows without a
    date are an error, unless ``undated`` is the date that they have; then the column may also be
    called ``date``. ``undone`` is what errors say was not done.
    """

    def __init__(
        self,
        path: str | Path,
        options: FileOptions | None = None,
        schema: Schema | None = None,
        undated: datetime | None = None,
        undone: str = "No fact was added",
    ) -> None:
        self._file = open_input(path, options)
        self._undone = undone
        self._undated = undated
        self._schema = schema
        self._only_predicate = _predicate_of_all(options, schema)
        needed = REQUIRED if undated is None else REQUIRED[:-1]
        names = needed if self._only_predicate else ("predicate", *needed)
        self._file.require(*((name,) for name in names))
        self._cells = CellReader.of(self._file, None if options is None else options.date_format)

    @property
    def read_as(self) -> tuple[str, ...]:
        return (*self._file.read_as, *self._cells.notes)

    def facts(self) -> Iterator[NewFact]:
        """InputFileError, after the last row, names all rows that are invalid. A column similar to
        a missing field is an error too: if ``confidence`` is mistyped, the fact would count as
        certain."""
        problems: list[str] = []
        first: RowError | None = None
        for row in self._file.rows():
            where = f"{self._file.name}, {self._file.unit} {row.line}"
            try:
                yield self._fact(row, where)
            except RowError as error:
                first = first or error
                problems.append(f"{named_problems(error.problems)} ({where})")
        if first is not None:
            raise _refusal(self._file, problems, self._undone)

    def _fact(self, row: InputRow, where: str) -> NewFact:
        if row.error:
            raise RowError(row.error)
        values, place, fields = row.values, f"{self._file.unit} {row.line}", FieldReader()
        if self._undated is not None and "timestamp" not in values and "date" in values:
            values = {**values, "timestamp": values["date"]}
        fields.take(_check_mistyped_columns, values)
        entity_id = fields.take(_required, identifier_field, values, "entity_id")
        predicate = fields.take(self._predicate, values, place)
        value = fields.take(self._value, values, predicate, place)
        timestamp = fields.take(moment_field, values, "timestamp", self._cells)
        if timestamp is None and values.get("timestamp") in (None, ""):
            if self._undated is None:
                fields.take(_missing, "timestamp")
            timestamp = self._undated
        confidence = fields.take(share_field, values, "confidence", self._cells, place)
        source = fields.take(identifier_field, values, "source")
        fields.finish()
        if entity_id is None or predicate is None or value is None or timestamp is None:
            raise AssertionError("finish raises if one of them is missing")
        sure = 1.0 if confidence is None else confidence
        return NewFact(entity_id, predicate, value, timestamp, sure, source, where=where)

    def _predicate(self, values: Values, place: str) -> str:
        given = required(name_field(values, "predicate") or self._only_predicate, "predicate")
        if self._schema is None:
            return given
        known = self._cells.one_of(given, [each.name for each in self._schema], place)
        return _checked(lambda: self._known(known), "predicate")

    def _value(self, values: Values, predicate: str | None, place: str) -> str:
        given = required(label_field(values, "value"), "value")
        if self._schema is None or predicate is None:
            return given
        known = self._schema[predicate]
        value = self._cells.one_of(given, known.values, place)
        _checked(lambda: known.position(value), "value")
        return value

    def _known(self, predicate: str) -> str:
        assert self._schema is not None
        return self._schema[predicate].name


def _predicate_of_all(options: FileOptions | None, schema: Schema | None) -> str | None:
    """The predicate of rows that name none: the one given, or the only one of the schema."""
    if options is not None and options.predicate is not None:
        return options.predicate if schema is None else schema[options.predicate].name
    names = [] if schema is None else [each.name for each in schema]
    return names[0] if len(names) == 1 else None


def read_facts(
    path: str | Path, options: FileOptions | None = None, schema: Schema | None = None
) -> Iterator[NewFact]:
    """The facts of a file: see ``FactFile``."""
    return FactFile(path, options, schema).facts()


def _refusal(file: InputFile, problems: list[str], undone: str) -> InputFileError:
    hidden = len(problems) - PROBLEMS_SHOWN
    more = [f"and {hidden:,} more"] if hidden > 0 else []
    listed = problems[:PROBLEMS_SHOWN] + more
    text = listed[0] if len(listed) == 1 else "".join(f"\n  {problem}" for problem in listed)
    count = "" if len(problems) == 1 else f"{file.name}: {len(problems):,} rows are invalid:"
    return InputFileError(f"{count}{text}.", hint=f"{undone}; correct it and try again.")


def _checked(look_up: Callable[[], Found], field: str) -> Found:
    """RowError for a name that the schema does not have."""
    try:
        return look_up()
    except LPFError as error:
        raise RowError(error.message.rstrip("."), field=field) from None


def _required(read: Callable[[Values, str], str | None], values: Values, name: str) -> str:
    return required(read(values, name), name)


def _missing(name: str) -> None:
    raise RowError("is missing", field=name)


def _check_mistyped_columns(values: Values) -> None:
    unknown = values.keys() - FACT_COLUMNS
    for name, field in similar_fields(unknown, FACT_COLUMNS - values.keys()).items():
        raise RowError(f"is not a field of a fact; did you mean {field}?", field=name)
