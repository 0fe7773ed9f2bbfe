"""The schema: predicates with their values and priors, and relations between predicates.

It is written in Python or in TOML::

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
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lpf.errors import SchemaError, UnknownPredicateError, UnknownValueError

DEFAULT_STALENESS_DAYS = 30.0
LONGEST_STALENESS = 100_000_000  # days; in microseconds just below what a database stores
# What two related predicates depend on is a table with a cell for each pair of values.
MOST_VALUES = 1000
PRIOR_TOLERANCE = 1e-6
# How to tell a description that can be read as a claim from one that only names the predicate.
FEWEST_WORDS = 3
_INDIRECT = re.compile(
    r"(what|how|whether|which|who|whom|whose|why|when|where|if)\b", re.IGNORECASE
)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|does|do|did|can|could|will|would|shall|should|must|may|might"
    r"|cannot|(is|are|was|were|has|have|does|do|did|ca|wo)n['’]t)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Predicate:
    """A predicate: its values in order, its prior (default: uniform), the number of days after
    which a known fact is stale, and what it means, best as a question."""

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
        # Normalise exactly: the check allows small rounding errors.
        object.__setattr__(self, "prior", tuple(float(p / math.fsum(prior)) for p in prior))
        _check_staleness(self.staleness_days, f"predicate {self.name!r}: staleness_days")

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The position of each value."""
        return {value: position for position, value in enumerate(self.values)}

    @property
    def claim(self) -> str | None:
        """The description, if texts can be read as evidence on it: a question, or a statement with
        an auxiliary verb ("The company is reliable."). None for what only names the predicate
        ("Level of compliance.", "Whether it was accepted.")."""
        text = self.description.strip()
        if len(text.split()) < FEWEST_WORDS:
            return None
        is_statement = (
            text.endswith((".", "!"))
            and not _INDIRECT.match(text)
            and _AUXILIARY.search(text) is not None
        )
        return text if text.endswith("?") or is_statement else None

    def position(self, value: str) -> int:
        """Return the position of a value. Raises UnknownValueError."""
        try:
            return self.index[value]
        except KeyError:
            raise UnknownValueError(
                f"{value!r} is not a value of {self.name!r}; its values are {list(self.values)}."
            ) from None


@dataclass(frozen=True)
class Relation:
    """Declares predicates as dependent, so that known facts about one affect the others.

    How they depend on each other is learned from known facts.
    """

    between: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "between", tuple(self.between))
        if len(set(self.between)) != len(self.between) or len(self.between) < 2:
            raise SchemaError(
                f"needs at least two different predicates, got {list(self.between)}.",
                field="relations: between",
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
            raise SchemaError("a schema needs at least one predicate.", field="predicates")
        _refuse_duplicates([p.name for p in self.predicates], "predicates")
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

    @property
    def claim(self) -> str | None:
        """The claim of the only predicate; None if there are several."""
        return self.predicates[0].claim if len(self.predicates) == 1 else None

    def related(self, name: str) -> tuple[str, ...]:
        """Return the predicates related to ``name``, directly or through others."""
        self[name]
        reached = {name}
        while True:
            grown = {n for r in self.relations if reached & set(r.between) for n in r.between}
            if grown <= reached:
                return tuple(p.name for p in self.predicates if p.name in reached - {name})
            reached |= grown

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The predicates that are related to each other, one group after the other; a predicate
        without relations is a group by itself."""
        found: list[tuple[str, ...]] = []
        for predicate in self.predicates:
            if not any(predicate.name in group for group in found):
                found.append((predicate.name, *self.related(predicate.name)))
        return tuple(found)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the content; independent of the file format."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def _by_name(self) -> dict[str, Predicate]:
        return {predicate.name: predicate for predicate in self.predicates}

    def _check_relation(self, relation: Relation, number: int) -> None:
        for name in relation.between:
            if name not in self._by_name:
                raise SchemaError(
                    f"{name!r} is not a predicate of this schema; it has {list(self._by_name)}.",
                    field=f"relations[{number}].between",
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
        """Build a schema from plain data. SchemaError names the wrong field."""
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
        """Read a TOML file. SchemaError names the file and the wrong line or field."""
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise SchemaError(
                f"is not valid TOML: {error}. Nothing was read.", field=str(path)
            ) from error
        try:
            return cls.from_dict(document)
        except SchemaError as error:
            raise _within(str(path), error) from error


def _within(path: str, error: SchemaError) -> SchemaError:
    """Return the error with ``path`` in front of its field."""
    field = path if error.field is None else f"{path}: {error.field}"
    return SchemaError(*error.args, field=field, hint=error.hint)


def _predicate(entry: Mapping[str, Any], path: str) -> Predicate:
    known = {"name", "values", "prior", "staleness_days", "description"}
    _refuse_unknown(entry, known, path)
    for required in ("name", "values"):
        if required not in entry:
            raise SchemaError("is missing.", field=f"{path}.{required}")
    for listed in ("values", "prior"):
        if listed in entry and not isinstance(entry[listed], list | tuple):
            raise SchemaError(f"must be a list, got {entry[listed]!r}.", field=f"{path}.{listed}")
    try:
        return Predicate(**entry)
    except SchemaError as error:
        raise _within(path, error) from error


def _relation(entry: Mapping[str, Any], path: str) -> Relation:
    _refuse_unknown(entry, {"between"}, path)
    if not isinstance(entry.get("between"), list | tuple):
        raise SchemaError("must be a list of predicate names.", field=f"{path}.between")
    return Relation(tuple(entry["between"]))


def _table_list(document: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    entries = document.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(e, Mapping) for e in entries):
        raise SchemaError(f"must be a list of tables ([[{key}]]), got {entries!r}.", field=key)
    return entries


def _refuse_unknown(entry: Mapping[str, Any], known: set[str], path: str) -> None:
    for key in entry:
        if key not in known:
            raise SchemaError(f"unknown field; choose from {sorted(known)}.", field=f"{path}.{key}")


def _refuse_duplicates(names: Sequence[str], path: str) -> None:
    duplicates = sorted(name for name, times in Counter(names).items() if times > 1)
    if duplicates:
        raise SchemaError(f"{duplicates} given more than once.", field=path)


def _check_name(name: object, path: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"must be a non-empty text, got {name!r}.", field=path)
    if name != name.strip():
        raise SchemaError(f"must not have surrounding blanks, got {name!r}.", field=path)


def _check_values(values: Sequence[object], path: str) -> None:
    if not values:
        raise SchemaError("a predicate needs at least one value.", field=path)
    if len(values) > MOST_VALUES:
        raise SchemaError(
            f"has {len(values):,} values; a predicate may have at most {MOST_VALUES:,}.",
            field=path,
            hint="Merge rare values into one, or ask about each group of values in a predicate "
            "of its own.",
        )
    for value in values:
        _check_name(value, path)
    _refuse_duplicates([str(value) for value in values], path)


def _check_prior(prior: Sequence[float], values: Sequence[str], path: str) -> None:
    if len(prior) != len(values):
        raise SchemaError(f"has {len(prior)} numbers for {len(values)} values.", field=path)
    if not all(isinstance(p, int | float) and math.isfinite(p) and p >= 0 for p in prior):
        raise SchemaError(f"must be finite and not negative, got {list(prior)}.", field=path)
    if abs(sum(prior) - 1.0) > PRIOR_TOLERANCE:
        raise SchemaError(f"sums to {sum(prior):.9g}, not to 1.", field=path)


def _check_staleness(days: object, path: str) -> None:
    is_number = isinstance(days, int | float) and not isinstance(days, bool)
    if not is_number or not 0 < days <= LONGEST_STALENESS:  # type: ignore[operator]
        raise SchemaError(
            f"must be a number of days above 0 and at most {LONGEST_STALENESS:,}.", field=path
        )
