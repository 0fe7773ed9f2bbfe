"""Predicates: what can be asked, and which values an answer can take.

A schema knows nothing of networks or stores. It is written in Python or in TOML::

    [[predicates]]
    name = "compliance_level"
    values = ["low", "medium", "high"]
    prior = [0.3, 0.4, 0.3]
    staleness_days = 30

    [[predicates]]
    name = "audit_outcome"
    values = ["clean", "qualified"]

    [[relations]]
    between = ["compliance_level", "audit_outcome"]
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lpf.errors import SchemaError, UnknownPredicateError, UnknownValueError

DEFAULT_STALENESS_DAYS = 30.0
PRIOR_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Predicate:
    """One question: its ordered values, its prior, and how long a known fact stays fresh."""

    name: str
    values: tuple[str, ...]
    prior: tuple[float, ...] = ()
    staleness_days: float = DEFAULT_STALENESS_DAYS
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        _check_name(self.name, "name")
        _check_values(self.values, f"predicate {self.name!r}: values")
        prior = tuple(self.prior) or (1.0 / len(self.values),) * len(self.values)
        _check_prior(prior, self.values, f"predicate {self.name!r}: prior")
        # Whoever uses the prior may rely on it summing to 1 to the last digits.
        object.__setattr__(self, "prior", tuple(p / math.fsum(prior) for p in prior))
        _check_staleness(self.staleness_days, f"predicate {self.name!r}: staleness_days")

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of each value."""
        return {value: position for position, value in enumerate(self.values)}

    def position(self, value: str) -> int:
        """Where ``value`` stands; UnknownValueError if it is none of this predicate's."""
        try:
            return self.index[value]
        except KeyError:
            raise UnknownValueError(
                f"{value!r} is not a value of {self.name!r}; its values are {list(self.values)}."
            ) from None


@dataclass(frozen=True)
class Relation:
    """Says that predicates tell something about each other, so that known facts of one count for
    the other. How much is learned from a table of facts; the schema only says who is related."""

    between: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "between", tuple(self.between))
        if len(set(self.between)) != len(self.between) or len(self.between) < 2:
            raise SchemaError(
                f"relations: between: needs at least two different predicates, "
                f"got {list(self.between)}."
            )


@dataclass(frozen=True)
class Schema:
    """All predicates of a workspace and the relations between them."""

    predicates: tuple[Predicate, ...]
    relations: tuple[Relation, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "predicates", tuple(self.predicates))
        object.__setattr__(self, "relations", tuple(self.relations))
        if not self.predicates:
            raise SchemaError("predicates: a schema needs at least one predicate.")
        _refuse_doubles([p.name for p in self.predicates], "predicates")
        for number, relation in enumerate(self.relations):
            self._check_relation(relation, number)

    def __iter__(self) -> Iterator[Predicate]:
        return iter(self.predicates)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Predicate:
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownPredicateError(
                f"predicate {name!r} is not in the schema; it has {list(self._by_name)}."
            ) from None

    def related(self, name: str) -> tuple[str, ...]:
        """Predicates connected with ``name`` through relations, directly or over others."""
        self[name]
        reached = {name}
        while True:
            grown = {n for r in self.relations if reached & set(r.between) for n in r.between}
            if grown <= reached:
                return tuple(p.name for p in self.predicates if p.name in reached - {name})
            reached |= grown

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the content, whatever file it came from."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def _by_name(self) -> dict[str, Predicate]:
        return {predicate.name: predicate for predicate in self.predicates}

    def _check_relation(self, relation: Relation, number: int) -> None:
        for name in relation.between:
            if name not in self._by_name:
                raise SchemaError(
                    f"relations[{number}].between: {name!r} is not a predicate of this schema; "
                    f"it has {list(self._by_name)}."
                )

    def to_dict(self) -> dict[str, Any]:
        return {
            "predicates": [
                {
                    "name": p.name,
                    "values": list(p.values),
                    "prior": list(p.prior),
                    "staleness_days": p.staleness_days,
                    "description": p.description,
                }
                for p in self.predicates
            ],
            "relations": [{"between": list(r.between)} for r in self.relations],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Schema:
        """Builds from plain data; SchemaError names the path of the field that is wrong."""
        _refuse_unknown(document, {"predicates", "relations"}, "schema")
        entries = _table_list(document, "predicates")
        predicates = [_predicate(entry, f"predicates[{i}]") for i, entry in enumerate(entries)]
        relations = [
            _relation(entry, f"relations[{i}]")
            for i, entry in enumerate(_table_list(document, "relations"))
        ]
        return cls(tuple(predicates), tuple(relations))

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Reads a TOML file; a syntax error is reported with the file and the line."""
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"{path}: not valid TOML: {error}. Nothing was read.") from error
        try:
            return cls.from_dict(document)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from error


def _predicate(entry: Mapping[str, Any], path: str) -> Predicate:
    known = {"name", "values", "prior", "staleness_days", "description"}
    _refuse_unknown(entry, known, path)
    for required in ("name", "values"):
        if required not in entry:
            raise SchemaError(f"{path}.{required}: is missing.")
    for listed in ("values", "prior"):
        if listed in entry and not isinstance(entry[listed], list | tuple):
            raise SchemaError(f"{path}.{listed}: must be a list, got {entry[listed]!r}.")
    try:
        return Predicate(**entry)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error


def _relation(entry: Mapping[str, Any], path: str) -> Relation:
    _refuse_unknown(entry, {"between"}, path)
    if not isinstance(entry.get("between"), list | tuple):
        raise SchemaError(f"{path}.between: must be a list of predicate names.")
    return Relation(tuple(entry["between"]))


def _table_list(document: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    entries = document.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(e, Mapping) for e in entries):
        raise SchemaError(f"{key}: must be a list of tables ([[{key}]]), got {entries!r}.")
    return entries


def _refuse_unknown(entry: Mapping[str, Any], known: set[str], path: str) -> None:
    for key in entry:
        if key not in known:
            raise SchemaError(f"{path}.{key}: unknown field; the fields are {sorted(known)}.")


def _refuse_doubles(names: Sequence[str], path: str) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise SchemaError(f"{path}: {doubled} given more than once.")


def _check_name(name: object, path: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"{path}: must be a non-empty text, got {name!r}.")
    if name != name.strip():
        raise SchemaError(f"{path}: has blanks around it, got {name!r}.")


def _check_values(values: Sequence[object], path: str) -> None:
    if not values:
        raise SchemaError(f"{path}: is empty; a predicate needs at least one value.")
    for value in values:
        _check_name(value, path)
    _refuse_doubles([str(value) for value in values], path)


def _check_prior(prior: Sequence[float], values: Sequence[str], path: str) -> None:
    if len(prior) != len(values):
        raise SchemaError(f"{path}: has {len(prior)} numbers for {len(values)} values.")
    if not all(isinstance(p, int | float) and math.isfinite(p) and p >= 0 for p in prior):
        raise SchemaError(f"{path}: must be finite and not negative, got {list(prior)}.")
    if abs(sum(prior) - 1.0) > PRIOR_TOLERANCE:
        raise SchemaError(f"{path}: sums to {sum(prior):.9g}, not to 1.")


def _check_staleness(days: object, path: str) -> None:
    is_number = isinstance(days, int | float) and not isinstance(days, bool)
    if not is_number or not 0 < days < math.inf:  # type: ignore[operator]
        raise SchemaError(f"{path}: must be a number of days above 0, got {days!r}.")
