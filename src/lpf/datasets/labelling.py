"""Entities to and from JSON, and the predicate that each label belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lpf.datasets.dataset import DatasetEntity, DatasetItem
from lpf.datasets.json_fields import FieldError, JsonObject, shortened
from lpf.schema import Predicate, Schema

# Key of a plain ``label`` until its predicate is known. No predicate can have this name.
UNNAMED = ""


def parse_entity(values: Mapping[str, object]) -> DatasetEntity:
    """Parse one line. FieldError if a field is missing or of the wrong type.

    Values of labels and facts are checked later, since the allowed values may depend on all lines.
    """
    record = JsonObject(values)
    return DatasetEntity(
        entity_id=record.required_identifier("entity_id"),
        labels=_labels(record),
        evidence=tuple(_item(entry) for entry in record.objects("evidence")),
        claim=record.text("claim") or record.text("question"),
        split=record.split("split"),
        group_id=record.identifier("group_id"),
        facts=record.texts("facts"),
        fields=record.table("fields") or {},
        truth=record.table("truth"),
    )


def entity_to_json(entity: DatasetEntity) -> dict[str, Any]:
    """Return the JSON object that ``parse_entity`` reads. Optional empty fields are left out."""
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


def _item(record: JsonObject) -> DatasetItem:
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


def _labels(record: JsonObject) -> dict[str, str]:
    named = record.texts("labels")
    plain = record.identifier("label")
    if plain is None:
        return named
    if named:
        raise record.error("label", "cannot be given together with labels", "Give one of the two.")
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
    """Assigns labels to predicates.

    ``plain`` is the predicate of a plain ``label`` of an entity, None if unknown. ``item_plain`` is
    the same for items: None unless the file labels a single predicate, since plain labels of
    evidence are often of another kind (a stance, a score).
    """

    schema: Schema
    plain: str | None
    item_plain: str | None

    def resolve(self, entity: DatasetEntity) -> tuple[DatasetEntity, list[str]]:
        """Return the entity with every label assigned to its predicate, and the ignored labels of
        evidence, which are not values. FieldError for an invalid label or fact."""
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
                "Give the predicate (predicate=...), or write labels: {predicate: value}.",
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
                    f"is not a predicate of the schema, which has {known}",
                    "Add it to the schema or remove it from the file.",
                )
            self._check_value(name, value, f"{field}.{name}")

    def _check_value(self, name: str, value: str, field: str) -> None:
        predicate = self.schema[name]
        if value not in predicate.index:
            raise FieldError(
                field,
                f"{shortened(value)} is not a value of {name!r}; its values are "
                f"{list(predicate.values)}",
                "Correct the label or the schema.",
            )


def infer_labelling(
    entities: Sequence[DatasetEntity], schema: Schema | None, predicate: str | None
) -> Labelling:
    """Return the labelling of a file.

    Without a schema, predicates and values are those in the file, and plain labels belong to
    ``predicate`` (default: "label"); at least one entity must have a label then.
    """
    if schema is None:
        schema = _infer_schema(entities, predicate or DEFAULT_PREDICATE)
        plain: str | None = predicate or DEFAULT_PREDICATE
    else:
        plain = predicate or _only(p.name for p in schema)
        if plain is not None:
            schema[plain]
    named = {plain if n == UNNAMED else n for entity in entities for n in entity.labels}
    return Labelling(schema, plain, _only(name for name in named if name is not None))


def _infer_schema(entities: Sequence[DatasetEntity], plain: str) -> Schema:
    """Labelled predicates come first, then those that occur only in evidence and facts."""
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


def _note(values: dict[str, set[str]], labels: Mapping[str, str], plain: str) -> None:
    for name, value in labels.items():
        values.setdefault(plain if name == UNNAMED else name, set()).add(value)


def _only(names: Iterable[str]) -> str | None:
    """Return the name if there is exactly one, else None."""
    remaining: Iterator[str] = iter(names)
    first = next(remaining, None)
    return first if next(remaining, None) is None else None
