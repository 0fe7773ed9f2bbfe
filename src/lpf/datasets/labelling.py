"""Which predicate a label is about, and whether its value is one of the predicate's.

One line of a dataset file as an entity, and an entity as a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lpf.datasets.dataset import DatasetEntity, DatasetItem
from lpf.datasets.json_fields import FieldError, Record, shown
from lpf.schema import Predicate, Schema

# What a plain ``label`` stands under until it is known which predicate it is about. No predicate
# can be called this.
UNNAMED = ""


def entity_of(values: Mapping[str, object]) -> DatasetEntity:
    """FieldError where a field is missing or of the wrong type. Values of labels and facts are not
    checked here: which are allowed may only be known when all lines are read."""
    record = Record(values)
    return DatasetEntity(
        entity_id=record.required_identifier("entity_id"),
        labels=_labels(record),
        evidence=tuple(_item(entry) for entry in record.records("evidence")),
        claim=record.text("claim"),
        split=record.split("split"),
        group_id=record.identifier("group_id"),
        facts=record.texts("facts"),
        fields=record.table("fields") or {},
        truth=record.table("truth"),
    )


def values_of(entity: DatasetEntity) -> dict[str, Any]:
    """What ``entity_of`` reads; fields that hold nothing are left out, but for those that a reader
    of the file expects in every line."""
    return {
        "entity_id": entity.entity_id,
        "claim": entity.claim,
        "labels": dict(entity.labels),
        "split": entity.split,
        "group_id": entity.group_id,
        "evidence": [_item_values(item) for item in entity.evidence],
        **_filled(facts=dict(entity.facts), fields=dict(entity.fields)),
        **_given(truth=_plain(entity.truth)),
    }


def _item(record: Record) -> DatasetItem:
    return DatasetItem(
        evidence_id=record.required_identifier("evidence_id"),
        text=record.required_text("text"),
        labels=_labels(record),
        source=record.identifier("source"),
        credibility=record.share("credibility"),
        timestamp=record.moment("timestamp"),
        report_id=record.identifier("report_id"),
        truth=record.table("truth"),
    )


def _item_values(item: DatasetItem) -> dict[str, Any]:
    moment = None if item.timestamp is None else item.timestamp.isoformat()
    return {
        "evidence_id": item.evidence_id,
        "text": item.text,
        **_filled(labels=dict(item.labels)),
        "source": item.source,
        "credibility": item.credibility,
        "timestamp": moment,
        **_given(report_id=item.report_id, truth=_plain(item.truth)),
    }


def _labels(record: Record) -> dict[str, str]:
    named = record.texts("labels")
    plain = record.identifier("label")
    if plain is None:
        return named
    if named:
        raise record.error("label", "stands beside labels", "Give one of the two.")
    return {UNNAMED: plain}


def _filled(**values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _plain(table: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if table is None else dict(table)


DEFAULT_PREDICATE = "label"


@dataclass(frozen=True, slots=True)
class Labelling:
    """``plain`` is the predicate of a plain ``label``, None where nobody said. ``item_plain`` is
    the same for evidence: None unless the file labels one predicate alone, since a plain label of
    evidence is often of another kind (a stance, a score)."""

    schema: Schema
    plain: str | None
    item_plain: str | None

    def settled(self, entity: DatasetEntity) -> tuple[DatasetEntity, list[str]]:
        """The entity with every label under its predicate, and the labels of evidence that are no
        values and were ignored. FieldError where a label or fact cannot be."""
        ignored: list[str] = []
        items = tuple(self._item(i, item, ignored) for i, item in enumerate(entity.evidence))
        labels = self._entity_labels(entity.labels)
        self._check(entity.facts, "facts")
        return replace(entity, labels=labels, evidence=items), ignored

    def _entity_labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        if UNNAMED not in labels:
            self._check(labels, "labels")
            return labels
        value = labels[UNNAMED]
        if self.plain is None:
            names = [predicate.name for predicate in self.schema]
            raise FieldError(
                "label",
                f"the schema has several predicates: {names}",
                "Say which one it is about (predicate=...), or write labels: {predicate: value}.",
            )
        self._check_value(self.plain, value, "label")
        return {self.plain: value}

    def _item(self, number: int, item: DatasetItem, ignored: list[str]) -> DatasetItem:
        if UNNAMED not in item.labels:
            self._check(item.labels, f"evidence[{number}].labels")
            return item
        value = item.labels[UNNAMED]
        if self.item_plain is not None and value in self.schema[self.item_plain].index:
            return replace(item, labels={self.item_plain: value})
        ignored.append(value)
        return replace(item, labels={})

    def _check(self, values: Mapping[str, str], field: str) -> None:
        for name, value in values.items():
            if name not in self.schema:
                known = [predicate.name for predicate in self.schema]
                raise FieldError(
                    f"{field}.{name}",
                    f"is no predicate of the schema, which has {known}",
                    "Add it to the schema or take it out of the file.",
                )
            self._check_value(name, value, f"{field}.{name}")

    def _check_value(self, name: str, value: str, field: str) -> None:
        predicate = self.schema[name]
        if value not in predicate.index:
            raise FieldError(
                field,
                f"{shown(value)} is not a value of {name!r}; its values are "
                f"{list(predicate.values)}",
                "Correct the label or the schema.",
            )


def labelling_of(
    entities: Sequence[DatasetEntity], schema: Schema | None, predicate: str | None
) -> Labelling:
    """The labelling of a file. Without a schema, its predicates and values are those found; plain
    labels are about ``predicate``, or one called "label"; some entity must have one then."""
    if schema is None:
        schema = _schema_found(entities, predicate or DEFAULT_PREDICATE)
        plain: str | None = predicate or DEFAULT_PREDICATE
    else:
        plain = predicate or _only(p.name for p in schema)
        if plain is not None:
            schema[plain]
    named = {plain if n == UNNAMED else n for entity in entities for n in entity.labels}
    return Labelling(schema, plain, _only(name for name in named if name is not None))


def _schema_found(entities: Sequence[DatasetEntity], plain: str) -> Schema:
    """Predicates that are labelled come before those that are only known as facts."""
    labelled: dict[str, set[str]] = {}
    known: dict[str, set[str]] = {}
    for entity in entities:
        _note(labelled, entity.labels, plain)
        for item in entity.evidence:
            _note(known, {n: v for n, v in item.labels.items() if n != UNNAMED}, plain)
        _note(known, entity.facts, plain)
    names = [*sorted(labelled), *sorted(known.keys() - labelled.keys())]
    values = {name: labelled.get(name, set()) | known.get(name, set()) for name in names}
    return Schema(tuple(Predicate(name, tuple(sorted(values[name]))) for name in names))


def _note(found: dict[str, set[str]], labels: Mapping[str, str], plain: str) -> None:
    for name, value in labels.items():
        found.setdefault(plain if name == UNNAMED else name, set()).add(value)


def _only(names: Iterable[str]) -> str | None:
    found: Iterator[str] = iter(names)
    first = next(found, None)
    return first if next(found, None) is None else None
