"""Read known facts from a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lpf.errors import InputFileError
from lpf.ingest.input_files import FACT_COLUMNS, InputRow, open_input, similar_fields
from lpf.ingest.row_fields import (
    RowError,
    identifier_field,
    label_field,
    moment_field,
    name_field,
    required,
    share_field,
)
from lpf.storage.facts import NewFact

REQUIRED = ("entity_id", "predicate", "value", "timestamp")


def read_facts(path: str | Path) -> Iterator[NewFact]:
    """The facts of a JSONL, CSV or Parquet file. They are checked against the schema later, when
    they are added.

    InputFileError names the first invalid row. A column similar to a missing field is an error
    too: if ``confidence`` is mistyped, the fact would count as certain.
    """
    file = open_input(path)
    file.require(*((name,) for name in REQUIRED))
    for row in file.rows():
        where = f"{file.name}, line {row.line}"
        try:
            yield _fact(row, where)
        except RowError as error:
            raise InputFileError(
                f"{error.message} ({where}).",
                field=error.field,
                hint="No fact was added; correct it and try again.",
            ) from None


def _fact(row: InputRow, where: str) -> NewFact:
    if row.error:
        raise RowError(row.error)
    _check_mistyped_columns(row)
    timestamp = moment_field(row.values, "timestamp")
    if timestamp is None:
        raise RowError("is missing", field="timestamp")
    confidence = share_field(row.values, "confidence")
    return NewFact(
        entity_id=required(identifier_field(row.values, "entity_id"), "entity_id"),
        predicate=required(name_field(row.values, "predicate"), "predicate"),
        value=required(label_field(row.values, "value"), "value"),
        timestamp=timestamp,
        confidence=1.0 if confidence is None else confidence,
        source=identifier_field(row.values, "source"),
        where=where,
    )


def _check_mistyped_columns(row: InputRow) -> None:
    unknown = row.values.keys() - FACT_COLUMNS
    for name, field in similar_fields(unknown, FACT_COLUMNS - row.values.keys()).items():
        raise RowError(f"is not a field of a fact; did you mean {field}?", field=name)
