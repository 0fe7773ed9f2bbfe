"""What is wrong with a row, for people and for the file of rejects."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that was not taken: where it stands, which field is wrong and how, and the row, which
    is None where it could not be told apart into fields."""

    file: str
    line: int
    field: str | None
    error: str
    row: object = None

    def __str__(self) -> str:
        named = "" if self.field is None else f"{self.field}: "
        return f"{self.file}, line {self.line}: {named}{self.error}"

    def as_json(self) -> str:
        """One line. What JSON does not know, such as a date from Parquet, is written as text."""
        entry = {name: getattr(self, name) for name in ("file", "line", "field", "error", "row")}
        return json.dumps(entry, ensure_ascii=False, default=_as_text)


def _as_text(value: object) -> str:
    """Bytes are only counted: written out they would be a text that no erasure recognises."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


class RowError(Exception):
    """Within this room: a field of the row at hand cannot be used."""

    def __init__(self, name: str | None, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message
