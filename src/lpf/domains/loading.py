"""Loads declarations from TOML files: those of this package, or a user's own."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

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
from lpf.domains.toml_tables import TomlPath, TomlTable, number_list, text_list
from lpf.domains.wordings import MONTH, Sentence, WordingCell, check_slots
from lpf.errors import DatasetError

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
    """Return the names of the domains in this package."""
    names = (entry.name for entry in _DECLARATIONS.iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)))


def load_domain(name_or_path: str | Path) -> Domain:
    """Load a domain by its name, or from a TOML file. Raises DatasetError."""
    if isinstance(name_or_path, str) and name_or_path in domain_names():
        return _built_in(name_or_path)
    path = Path(name_or_path)
    if path.suffix != SUFFIX and not path.exists():
        raise DatasetError(
            f"unknown domain {str(name_or_path)!r}. Nothing was loaded.",
            hint=f"Choose from {list(domain_names())}, or give a TOML file.",
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
    """Parse a declaration. DatasetError names ``file`` and the key."""
    path = TomlPath(file)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{file}: not valid TOML: {error}. Nothing was loaded.") from error
    table = TomlTable.of(document, path, _KEYS)
    name, values = table.text("name"), table.texts("values", least=2)
    fields = tuple(_field(entry, path) for entry, path in table.tables("fields"))
    names = [field.name for field in fields if field.is_text]
    domain = Domain(
        name=name,
        letter=table.text("letter"),
        task=" ".join(table.text("task").split()),
        predicate=table.text("predicate"),
        values=values,
        shares=_shares(table.numbers("shares", len(values)), path.at("shares")),
        value_meanings=_meanings(table, len(values)),
        score_field=table.text("score_field"),
        related=_related(table, len(values)),
        fields=fields,
        aspects=tuple(
            _aspect(entry, path, name, values, names) for entry, path in table.tables("aspects")
        ),
        evidence_letter=table.text("evidence_letter", "E"),
        grouped_by=document.get("grouped_by"),
    )
    _check_consistency(domain, path)
    return domain


def _check_consistency(domain: Domain, path: TomlPath) -> None:
    """Check what depends on several keys."""
    names = [field.name for field in domain.fields]
    for name in (domain.score_field, domain.predicate, domain.related.predicate, MONTH):
        if name in names:
            path.at("fields").refuse(f"{name!r} cannot be used as the name of a field")
    for kind, given in (("fields", names), ("aspects", [a.name for a in domain.aspects])):
        if len(set(given)) < len(given):
            path.at(kind).refuse("names must be unique")
    if not any(field.weight for field in domain.fields):
        path.at("fields").refuse("no field has a weight, so nothing determines the value")
    if domain.grouped_by is not None and not domain.years:
        path.at("grouped_by").refuse(f"must name a field of kind year, got {domain.grouped_by!r}")
    if domain.related.predicate == domain.predicate:
        path.at("related.predicate").refuse("must differ from the main predicate")


def _meanings(table: TomlTable, count: int) -> tuple[str, ...]:
    meanings = table.texts("value_meanings", count)
    if len(meanings) != count:
        table.path.at("value_meanings").refuse(f"must be {count}, got {len(meanings)}")
    return meanings


def _shares(shares: tuple[float, ...], path: TomlPath, least: float = 1e-12) -> tuple[float, ...]:
    if min(shares) < least or abs(math.fsum(shares) - 1.0) > 1e-9:
        path.refuse(f"must be above 0 with a sum of 1, got {list(shares)}")
    return shares


def _related(table: TomlTable, size: int) -> Related:
    related = table.table("related", ("predicate", "values", "table"))
    values = related.texts("values", least=2)
    rows = related.list_of("table")
    path = related.path.at("table")
    if len(rows) != size:
        path.refuse(f"must have a row for each of {size} values, got {len(rows)}")
    checked = (number_list(row, path, len(values)) for row in rows)
    return Related(
        related.text("predicate"), values, tuple(_shares(row, path, 0.0) for row in checked)
    )


def _field(entry: Any, path: TomlPath) -> Field:
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if kind not in _FIELD_KEYS:
        path.at("kind").refuse(f"must be one of {sorted(_FIELD_KEYS)}, got {kind!r}")
    table = TomlTable.of(entry, path, ("name", "kind", *_FIELD_KEYS[kind]))
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
        table.path.at("range").refuse(f"must increase, got {[low, high]}")
    decimals = table.number("decimals", 0.0) if kind == "number" else 0.0
    if decimals < 0 or decimals != int(decimals):
        table.path.at("decimals").refuse(f"must be a whole number, got {decimals}")
    return NumberField(name, low, high, int(decimals), weight, kind)


def _parts(table: TomlTable) -> tuple[tuple[str, ...], ...]:
    path = table.path.at("parts")
    return tuple(text_list(part, path, blanks=True) for part in table.list_of("parts"))


def _aspect(
    entry: Any, path: TomlPath, domain: str, values: Sequence[str], fields: Sequence[str]
) -> Aspect:
    table = TomlTable.of(entry, path, ("name", "sources", "wordings", "between"))
    name = table.text("name")
    pairs = [f"{low}-{high}" for low, high in pairwise(values)]
    cells = [
        _cell(table.table(kind, keys), key, f"{domain}/{name}/{key}", fields)
        for kind, keys in (("wordings", values), ("between", pairs))
        for key in keys
    ]
    return Aspect(name, table.texts("sources"), tuple(cells))


def _cell(table: TomlTable, key: str, name: str, fields: Sequence[str]) -> WordingCell:
    path = table.path.at(key)
    lines = [line.strip() for line in table.text(key).splitlines() if line.strip()]
    if len(set(lines)) < len(lines):
        path.refuse("has duplicate sentences")
    return WordingCell(
        name, tuple(_sentence(line, i, path, fields) for i, line in enumerate(lines, 1))
    )


def _sentence(line: str, number: int, path: TomlPath, fields: Sequence[str]) -> Sentence:
    try:
        sentence = Sentence.parse(line)
        check_slots(sentence, fields)
    except DatasetError as error:
        path.refuse(f"sentence {number}: {error}")
    return sentence
