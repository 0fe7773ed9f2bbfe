"""Reads a TOML table key by key; every error names the file and the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lpf.errors import DatasetError


@dataclass(frozen=True)
class TomlPath:
    """A key of a file, such as ``fields[2].range`` of ``legal.toml``."""

    file: str
    path: str = ""

    def at(self, step: str) -> TomlPath:
        """Return the path of a key below this one."""
        return TomlPath(self.file, f"{self.path}.{step}" if self.path else step)

    def refuse(self, reason: str) -> NoReturn:
        """Raise DatasetError for this key."""
        where = f"{self.file}: {self.path}" if self.path else self.file
        raise DatasetError(f"{reason}. Nothing was loaded.", field=where)


@dataclass(frozen=True)
class TomlTable:
    """A table with a fixed set of allowed keys."""

    path: TomlPath
    entries: Mapping[str, Any]
    known: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, entry: Any, path: TomlPath, known: Iterable[str]) -> TomlTable:
        if not isinstance(entry, Mapping):
            path.refuse(f"must be a table, got {entry!r}")
        table = cls(path, entry, frozenset(known))
        for key in entry:
            if key not in table.known:
                path.at(key).refuse(f"unknown key; choose from {sorted(table.known)}")
        return table

    def text(self, key: str, default: str | None = None, blank: bool = False) -> str:
        value = self._value(key, default)
        if not isinstance(value, str) or not (blank or value.strip()):
            self.path.at(key).refuse(f"must be a text, got {value!r}")
        return value

    def texts(self, key: str, least: int = 1) -> tuple[str, ...]:
        return text_list(self._value(key), self.path.at(key), least)

    def number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if not _is_number(value):
            self.path.at(key).refuse(f"must be a number, got {value!r}")
        return float(value)

    def numbers(self, key: str, count: int) -> tuple[float, ...]:
        return number_list(self._value(key), self.path.at(key), count)

    def whole_numbers(self, key: str) -> tuple[int, ...]:
        values = self._value(key)
        is_list = isinstance(values, list) and values
        if not is_list or not all(type(value) is int for value in values):
            self.path.at(key).refuse(f"must be a list of whole numbers, got {values!r}")
        return tuple(values)

    def list_of(self, key: str) -> Sequence[Any]:
        values = self._value(key)
        if not isinstance(values, list) or not values:
            self.path.at(key).refuse(f"must be a non-empty list, got {values!r}")
        return values

    def table(self, key: str, known: Iterable[str]) -> TomlTable:
        return TomlTable.of(self._value(key), self.path.at(key), known)

    def tables(self, key: str) -> list[tuple[Any, TomlPath]]:
        entries = self.list_of(key)
        return [(entry, self.path.at(f"{key}[{i}]")) for i, entry in enumerate(entries)]

    def _value(self, key: str, default: Any = None) -> Any:
        value = self.entries.get(key, default)
        if value is None:
            self.path.at(key).refuse("is missing")
        return value


def text_list(values: Any, path: TomlPath, least: int = 1, blanks: bool = False) -> tuple[str, ...]:
    """Check for a list of at least ``least`` different texts."""
    if not isinstance(values, list) or len(values) < least:
        path.refuse(f"must be a list of at least {least}, got {values!r}")
    for value in values:
        if not isinstance(value, str) or not (blanks or value.strip()):
            path.refuse(f"must contain texts, got {value!r}")
    if len(set(values)) < len(values):
        path.refuse("has duplicates")
    return tuple(values)


def number_list(values: Any, path: TomlPath, count: int) -> tuple[float, ...]:
    """Check for a list of exactly ``count`` numbers."""
    if not isinstance(values, list) or len(values) != count or not all(map(_is_number, values)):
        path.refuse(f"must be a list of {count} numbers, got {values!r}")
    return tuple(map(float, values))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
