"""Reading a TOML table key by key, so that every error names the file and the place in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lpf.errors import DatasetError


@dataclass(frozen=True)
class Place:
    """Where in which file something stands."""

    file: str
    path: str = ""

    def at(self, step: str) -> Place:
        return Place(self.file, f"{self.path}.{step}" if self.path else step)

    def refuse(self, reason: str) -> NoReturn:
        where = f"{self.file}: {self.path}" if self.path else self.file
        raise DatasetError(f"{where}: {reason}. Nothing was loaded.")


@dataclass(frozen=True)
class Table:
    """A table and the keys it may have; others are refused at once."""

    place: Place
    entries: Mapping[str, Any]
    known: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, entry: Any, place: Place, known: Iterable[str]) -> Table:
        if not isinstance(entry, Mapping):
            place.refuse(f"must be a table, got {entry!r}")
        made = cls(place, entry, frozenset(known))
        for key in entry:
            if key not in made.known:
                place.at(key).refuse(f"unknown key; the keys are {sorted(made.known)}")
        return made

    def text(self, key: str, default: str | None = None, blank: bool = False) -> str:
        value = self._value(key, default)
        if not isinstance(value, str) or not (blank or value.strip()):
            self.place.at(key).refuse(f"must be a text, got {value!r}")
        return value

    def texts(self, key: str, least: int = 1) -> tuple[str, ...]:
        return text_list(self._value(key), self.place.at(key), least)

    def number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if not _is_number(value):
            self.place.at(key).refuse(f"must be a number, got {value!r}")
        return float(value)

    def numbers(self, key: str, count: int) -> tuple[float, ...]:
        return number_list(self._value(key), self.place.at(key), count)

    def whole_numbers(self, key: str) -> tuple[int, ...]:
        values = self._value(key)
        is_list = isinstance(values, list) and values
        if not is_list or not all(type(value) is int for value in values):
            self.place.at(key).refuse(f"must be a list of whole numbers, got {values!r}")
        return tuple(values)

    def list_of(self, key: str) -> Sequence[Any]:
        values = self._value(key)
        if not isinstance(values, list) or not values:
            self.place.at(key).refuse(f"must be a list that is not empty, got {values!r}")
        return values

    def table(self, key: str, known: Iterable[str]) -> Table:
        return Table.of(self._value(key), self.place.at(key), known)

    def tables(self, key: str) -> list[tuple[Any, Place]]:
        entries = self.list_of(key)
        return [(entry, self.place.at(f"{key}[{i}]")) for i, entry in enumerate(entries)]

    def _value(self, key: str, default: Any = None) -> Any:
        value = self.entries.get(key, default)
        if value is None:
            self.place.at(key).refuse("is missing")
        return value


def text_list(values: Any, place: Place, least: int = 1, blanks: bool = False) -> tuple[str, ...]:
    """A list of at least so many different texts."""
    if not isinstance(values, list) or len(values) < least:
        place.refuse(f"must be a list of at least {least}, got {values!r}")
    for value in values:
        if not isinstance(value, str) or not (blanks or value.strip()):
            place.refuse(f"must hold texts, got {value!r}")
    if len(set(values)) < len(values):
        place.refuse("has something twice")
    return tuple(values)


def number_list(values: Any, place: Place, count: int) -> tuple[float, ...]:
    """A list of exactly so many numbers."""
    if not isinstance(values, list) or len(values) != count or not all(map(_is_number, values)):
        place.refuse(f"must be a list of {count} numbers, got {values!r}")
    return tuple(map(float, values))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
