"""Write answers to a file as they come: JSONL in full, or a table with the columns of
``QueryResults.to_frame``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lpf.errors import ConfigError
from lpf.results import QueryResult, answer_cells, answer_columns
from lpf.schema import Schema
from lpf.storage.table_files import Columns, TableWriter, table_writer

TABLES = (".csv", ".xlsx", ".parquet")
LINES = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True)
class QuestionError:
    """A question that was not answered, by the line it is on."""

    line: int
    message: str


def answer_format(target: str | Path) -> str:
    """The suffix that decides how answers are written: that of a table, or ``.jsonl`` for any other
    file. ConfigError for a suffix of another kind of table, which a user would not expect to be
    JSONL."""
    suffix = Path(target).suffix.lower()
    if suffix in TABLES:
        return suffix
    if suffix in (".xls", ".xlsm", ".tsv", ".ods", ".feather"):
        raise ConfigError(
            f"{target}: answers are written as JSONL, CSV, Excel (.xlsx) or Parquet. Nothing was "
            "answered."
        )
    return LINES[0]


class AnswerWriter:
    """Writes answers into an open file. ``predicates`` are those that are asked about: each of
    their values has a column. ``ranked`` adds a column ``rank`` in front, ``with_errors`` one for
    questions that could not be answered. ``close`` completes the file."""

    def __init__(
        self,
        suffix: str,
        file: IO[bytes],
        schema: Schema,
        predicates: Iterable[str],
        *,
        with_errors: bool = False,
        ranked: bool = False,
    ) -> None:
        values = dict.fromkeys(value for name in predicates for value in schema[name].values)
        self._values = tuple(values)
        self._with_errors, self._ranked = with_errors, ranked
        self._file, self._count = file, 0
        columns: Columns = answer_columns(self._values)
        if ranked:
            columns = {"rank": "count", **columns}
        if with_errors:
            columns = {**columns, "error": "text"}
        self._width = len(columns)
        self._table: TableWriter | None = table_writer(suffix, file, columns)

    def write(self, outcome: QueryResult | QuestionError) -> None:
        self._count += 1
        if self._table is None:
            line = json.dumps(self._document(outcome), allow_nan=False)
            # In ASCII, DEL is the only character left that a terminal would obey.
            self._file.write(line.replace("\x7f", "\\u007f").encode() + b"\n")
        elif isinstance(outcome, QuestionError):
            blank = [None] * (self._width - 1)
            self._table.write([*blank, f"line {outcome.line}: {outcome.message}"])
        else:
            rank = [self._count] if self._ranked else []
            error = [None] if self._with_errors else []
            self._table.write([*rank, *answer_cells(outcome, self._values), *error])

    def close(self) -> None:
        if self._table is not None:
            self._table.close()

    def _document(self, outcome: QueryResult | QuestionError) -> Mapping[str, Any]:
        if isinstance(outcome, QuestionError):
            return {"error": {"line": outcome.line, "message": outcome.message}}
        rank = {"rank": self._count} if self._ranked else {}
        return {**rank, **outcome.to_dict()}
