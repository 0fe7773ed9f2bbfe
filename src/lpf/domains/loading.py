"""Declarations from TOML files: the seven of this package, or a user's own.

Reading a TOML table key by key, so that every error names the file and the place in it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from lpf.domains.declaration import (
    Aspect,
    ChoiceField,
    Domain,
    Field,
    FlagField,
    NameField,
    NumberField,
    Related,
)
from lpf.domains.wordings import MONTH, Sentence, WordingCell, check_slots
from lpf.errors import DatasetError


@dataclass(frozen=True)
class TomlPath:
    """Where in which file something stands."""

    file: str
    path: str = ""

    def at(self, step: str) -> TomlPath:
        return TomlPath(self.file, f"{self.path}.{step}" if self.path else step)

    def refuse(self, reason: str) -> NoReturn:
        where = f"{self.file}: {self.path}" if self.path else self.file
        raise DatasetError(f"{where}: {reason}. Nothing was loaded.")


@dataclass(frozen=True)
class TomlTable:
    """A table and the keys it may have; others are refused at once."""

    place: TomlPath
    entries: Mapping[str, Any]
    known: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, entry: Any, place: TomlPath, known: Iterable[str]) -> TomlTable:
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

    def table(self, key: str, known: Iterable[str]) -> TomlTable:
        return TomlTable.of(self._value(key), self.place.at(key), known)

    def tables(self, key: str) -> list[tuple[Any, TomlPath]]:
        entries = self.list_of(key)
        return [(entry, self.place.at(f"{key}[{i}]")) for i, entry in enumerate(entries)]

    def _value(self, key: str, default: Any = None) -> Any:
        value = self.entries.get(key, default)
        if value is None:
            self.place.at(key).refuse("is missing")
        return value


def text_list(values: Any, place: TomlPath, least: int = 1, blanks: bool = False) -> tuple[str, ...]:
    """A list of at least so many different texts."""
    if not isinstance(values, list) or len(values) < least:
        place.refuse(f"must be a list of at least {least}, got {values!r}")
    for value in values:
        if not isinstance(value, str) or not (blanks or value.strip()):
            place.refuse(f"must hold texts, got {value!r}")
    if len(set(values)) < len(values):
        place.refuse("has something twice")
    return tuple(values)


def number_list(values: Any, place: TomlPath, count: int) -> tuple[float, ...]:
    """A list of exactly so many numbers."""
    if not isinstance(values, list) or len(values) != count or not all(map(_is_number, values)):
        place.refuse(f"must be a list of {count} numbers, got {values!r}")
    return tuple(map(float, values))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


SUFFIX = ".toml"
_DECLARATIONS = files("lpf.domains").joinpath("declarations")
_KEYS = (
    *("name", "letter", "evidence_letter", "grouped_by", "task", "score_field", "predicate"),
    *("values", "shares", "value_meanings", "related", "fields", "aspects"),
)
_FIELD_KEYS = {
    "name": ("parts", "joiner"),
    "choice": ("choices",),
    "year": ("years",),
    "integer": ("range", "weight"),
    "number": ("range", "decimals", "weight"),
    "flag": ("weight",),
}


def domain_names() -> tuple[str, ...]:
    """The domains that come with this package."""
    names = (entry.name for entry in _DECLARATIONS.iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)))


def load_domain(name_or_path: str | Path) -> Domain:
    """A domain of this package by its name, else the declaration in a file of one's own."""
    if isinstance(name_or_path, str) and name_or_path in domain_names():
        return _built_in(name_or_path)
    path = Path(name_or_path)
    if path.suffix != SUFFIX and not path.exists():
        raise DatasetError(
            f"domain {str(name_or_path)!r}: is not one of {list(domain_names())}, nor a TOML file. "
            "Nothing was loaded."
        )
    try:
        return parse_domain(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read ({error}). Nothing was loaded.") from error


@lru_cache
def _built_in(name: str) -> Domain:
    file = f"{name}{SUFFIX}"
    return parse_domain(_DECLARATIONS.joinpath(file).read_text(encoding="utf-8"), file)


def parse_domain(text: str, file: str) -> Domain:
    """The domain that a text declares. DatasetError names ``file`` and the place in it."""
    place = TomlPath(file)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DatasetError(f"{file}: not valid TOML: {error}. Nothing was loaded.") from error
    table = TomlTable.of(document, place, _KEYS)
    name, values = table.text("name"), table.texts("values", least=2)
    fields = tuple(_field(entry, where) for entry, where in table.tables("fields"))
    names = [field.name for field in fields if field.is_text]
    domain = Domain(
        name=name,
        letter=table.text("letter"),
        task=" ".join(table.text("task").split()),
        predicate=table.text("predicate"),
        values=values,
        shares=_shares(table.numbers("shares", len(values)), place.at("shares")),
        value_meanings=_meanings(table, len(values)),
        score_field=table.text("score_field"),
        related=_related(table, len(values)),
        fields=fields,
        aspects=tuple(
            _aspect(entry, where, name, values, names) for entry, where in table.tables("aspects")
        ),
        evidence_letter=table.text("evidence_letter", "E"),
        grouped_by=document.get("grouped_by"),
    )
    _check_whole(domain, place)
    return domain


def _check_whole(domain: Domain, place: TomlPath) -> None:
    """What only shows when all parts are seen together."""
    names = [field.name for field in domain.fields]
    for name in (domain.score_field, domain.predicate, domain.related.predicate, MONTH):
        if name in names:
            place.at("fields").refuse(f"{name!r} cannot be a field's name as well")
    for kind, given in (("fields", names), ("aspects", [a.name for a in domain.aspects])):
        if len(set(given)) < len(given):
            place.at(kind).refuse("two of them have one name")
    if not any(field.weight for field in domain.fields):
        place.at("fields").refuse("none has a weight, so that nothing decides on the value")
    if domain.grouped_by is not None and not domain.years:
        place.at("grouped_by").refuse(f"must name a field of kind year, got {domain.grouped_by!r}")
    if domain.related.predicate == domain.predicate:
        place.at("related.predicate").refuse("must differ from the main predicate")


def _meanings(table: TomlTable, count: int) -> tuple[str, ...]:
    meanings = table.texts("value_meanings", count)
    if len(meanings) != count:
        table.place.at("value_meanings").refuse(f"must be {count}, got {len(meanings)}")
    return meanings


def _shares(shares: tuple[float, ...], place: TomlPath, least: float = 1e-12) -> tuple[float, ...]:
    if min(shares) < least or abs(math.fsum(shares) - 1.0) > 1e-9:
        place.refuse(f"must be above 0 with a sum of 1, got {list(shares)}")
    return shares


def _related(table: TomlTable, size: int) -> Related:
    related = table.table("related", ("predicate", "values", "table"))
    values = related.texts("values", least=2)
    rows = related.list_of("table")
    place = related.place.at("table")
    if len(rows) != size:
        place.refuse(f"must have a row for each of {size} values, got {len(rows)}")
    checked = (number_list(row, place, len(values)) for row in rows)
    return Related(
        related.text("predicate"), values, tuple(_shares(row, place, 0.0) for row in checked)
    )


def _field(entry: Any, place: TomlPath) -> Field:
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if kind not in _FIELD_KEYS:
        place.at("kind").refuse(f"must be one of {sorted(_FIELD_KEYS)}, got {kind!r}")
    table = TomlTable.of(entry, place, ("name", "kind", *_FIELD_KEYS[kind]))
    name = table.text("name")
    if kind == "name":
        return NameField(name, _parts(table), table.text("joiner", " ", blank=True))
    if kind == "choice":
        return ChoiceField(name, table.texts("choices"))
    if kind == "year":
        return ChoiceField(name, table.whole_numbers("years"), kind="year")
    weight = table.number("weight", 0.0)
    return FlagField(name, weight) if kind == "flag" else _number_field(table, name, kind, weight)


def _number_field(table: TomlTable, name: str, kind: str, weight: float) -> NumberField:
    low, high = table.numbers("range", 2)
    if not low < high:
        table.place.at("range").refuse(f"must rise, got {[low, high]}")
    decimals = table.number("decimals", 0.0) if kind == "number" else 0.0
    if decimals < 0 or decimals != int(decimals):
        table.place.at("decimals").refuse(f"must be a whole number, got {decimals}")
    return NumberField(name, low, high, int(decimals), weight, kind)


def _parts(table: TomlTable) -> tuple[tuple[str, ...], ...]:
    place = table.place.at("parts")
    return tuple(text_list(part, place, blanks=True) for part in table.list_of("parts"))


def _aspect(
    entry: Any, place: TomlPath, domain: str, values: Sequence[str], fields: Sequence[str]
) -> Aspect:
    table = TomlTable.of(entry, place, ("name", "sources", "wordings", "between"))
    name = table.text("name")
    pairs = [f"{low}-{high}" for low, high in pairwise(values)]
    cells = [
        _cell(table.table(kind, keys), key, f"{domain}/{name}/{key}", fields)
        for kind, keys in (("wordings", values), ("between", pairs))
        for key in keys
    ]
    return Aspect(name, table.texts("sources"), tuple(cells))


def _cell(table: TomlTable, key: str, name: str, fields: Sequence[str]) -> WordingCell:
    place = table.place.at(key)
    lines = [line.strip() for line in table.text(key).splitlines() if line.strip()]
    if len(set(lines)) < len(lines):
        place.refuse("has a sentence twice")
    return WordingCell(
        name, tuple(_sentence(line, i, place, fields) for i, line in enumerate(lines, 1))
    )


def _sentence(line: str, number: int, place: TomlPath, fields: Sequence[str]) -> Sentence:
    try:
        sentence = Sentence.parse(line)
        check_slots(sentence, fields)
    except DatasetError as error:
        place.refuse(f"sentence {number}: {error}")
    return sentence
