"""One line of a dataset file as an entity, and an entity as a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lpf.datasets.dataset import DatasetEntity, DatasetItem
from lpf.datasets.fields import Record

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
