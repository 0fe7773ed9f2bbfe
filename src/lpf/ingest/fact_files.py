"""Canonical facts from a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lpf.errors import InputFileError
from lpf.ingest.evidence_rows import (
    Problem,
    RowError,
    identifier_field,
    label_field,
    moment_field,
    name_field,
    required,
    share_field,
)
from lpf.ingest.input_files import FACT_COLUMNS, InputRow, meant, open_input
from lpf.storage.facts import NewFact

REQUIRED = ("entity_id", "predicate", "value", "timestamp")


def read_facts(path: str | Path) -> Iterator[NewFact]:
    """The facts of a JSONL, CSV or Parquet file. InputFileError names the first row that cannot
    be read, or has a field near the name of one it lacks: a fact whose confidence is mistyped would
    be sure. Whether a fact fits the schema is told when it is added."""
    file = open_input(path)
    file.require(*((name,) for name in REQUIRED))
    for row in file.rows():
        try:
            yield _fact(row, f"{file.name}, line {row.line}")
        except RowError as error:
            problem = Problem(file.name, row.line, error.name, error.message)
            raise InputFileError(f"{problem}. No fact was added; correct it and repeat.") from None


def _fact(row: InputRow, where: str) -> NewFact:
    if row.error:
        raise RowError(None, row.error)
    _refuse_slips(row)
    timestamp = moment_field(row.values, "timestamp")
    if timestamp is None:
        raise RowError("timestamp", "is missing")
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


def _refuse_slips(row: InputRow) -> None:
    others = row.values.keys() - FACT_COLUMNS
    for name, field in meant(others, FACT_COLUMNS - row.values.keys()).items():
        raise RowError(name, f"is no field of a fact; did you mean {field}?")
