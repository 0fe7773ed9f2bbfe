"""Convert rows to evidence items, some of which still need an ID."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import get_args

from lpf.errors import UnknownPredicateError, UnknownValueError
from lpf.factors.keys import content_key
from lpf.ingest.cell_values import CellReader
from lpf.ingest.input_rows import CLAIM_NAMES, TEXT_NAMES, InputFile, InputRow
from lpf.ingest.row_fields import (
    FieldReader,
    RowError,
    Values,
    identifier_field,
    label_field,
    moment_field,
    required,
    share_field,
    shown,
    text_field,
)
from lpf.schema import Schema
from lpf.storage.evidence import NewEvidence
from lpf.storage.values import to_micros
from lpf.types import Evidence, EvidenceType

_NO_ID = "?"
_TYPES: tuple[EvidenceType, ...] = get_args(EvidenceType)
_CANONICAL = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class EvidenceDraft:
    """An item read from ``row``. If ``has_id`` is False, it still needs an ID."""

    row: InputRow
    evidence: Evidence
    has_id: bool
    content_hash: bytes

    def with_id(self, evidence_id: str) -> EvidenceDraft:
        return replace(self, evidence=replace(self.evidence, evidence_id=evidence_id))

    def as_new(self) -> NewEvidence:
        key = content_key(self.evidence.text_content, self.evidence.claim)
        return NewEvidence(self.evidence, key, self.content_hash, numbered=not self.has_id)


class DraftReader:
    """Converts rows according to a schema. ``cells`` reads dates and numbers, and notes what it
    assumes. ``predicate`` is that of rows that name none."""

    def __init__(
        self,
        schema: Schema,
        cells: CellReader | None = None,
        unit: str = "line",
        predicate: str | None = None,
    ) -> None:
        self._schema = schema
        self.cells = cells or CellReader()
        self._unit = unit
        self._names = [predicate.name for predicate in schema]
        only = self._names[0] if len(self._names) == 1 else None
        self._only_predicate = only if predicate is None else schema[predicate].name
        self.default_claim: str | None = None  # of rows without one

    def check_columns(self, file: InputFile) -> None:
        """InputFileError if the file lacks a required column."""
        predicate = [] if self._only_predicate else [("predicate",)]
        file.require(("entity_id",), TEXT_NAMES, *predicate)

    def draft(self, row: InputRow) -> EvidenceDraft:
        """RowError if the row is invalid; it has everything that is wrong with the row."""
        if row.error:
            raise RowError(row.error)
        values, place, fields = row.values, f"{self._unit} {row.line}", FieldReader()
        evidence_id = fields.take(identifier_field, values, "evidence_id")
        predicate = fields.take(self._predicate, values, place)
        entity_id = fields.take(_required_entity, values)
        text = fields.take(required_text, values)
        credibility = fields.take(share_field, values, "credibility", self.cells, place)
        timestamp = fields.take(moment_field, values, "timestamp", self.cells)
        kind = fields.take(self._evidence_type, values, place)
        source = fields.take(identifier_field, values, "source")
        label = fields.take(self._supports_value, values, predicate, place)
        claim = fields.take(claim_field, values) or self.default_claim
        report_id = fields.take(identifier_field, values, "report_id")
        fields.finish()
        if entity_id is None or predicate is None or text is None or kind is None:
            raise AssertionError("finish raises if one of them is missing")
        evidence = Evidence(
            evidence_id=evidence_id or _NO_ID,
            entity_id=entity_id,
            predicate=predicate,
            text_content=text,
            credibility=credibility,
            timestamp=timestamp,
            evidence_type=kind,
            source=source,
            supports_value=label,
            claim=claim,
            report_id=report_id,
        )
        return EvidenceDraft(row, evidence, evidence_id is not None, content_hash(evidence))

    def _predicate(self, values: Values, place: str) -> str:
        named = {"predicate": text_field(values, "predicate") or self._only_predicate}
        given = required(identifier_field(named, "predicate"), "predicate")
        try:
            return self._schema[self.cells.one_of(given, self._names, place)].name
        except UnknownPredicateError as error:
            raise RowError(error.message.rstrip("."), field="predicate") from None

    def _supports_value(self, values: Values, predicate: str | None, place: str) -> str | None:
        """Not checked if the predicate is invalid."""
        value = label_field(values, "supports_value")
        if value is None or predicate is None:
            return None
        known = self._schema[predicate]
        value = self.cells.one_of(value, known.values, place)
        try:
            known.position(value)
        except UnknownValueError as error:
            raise RowError(error.message.rstrip("."), field="supports_value") from None
        return value

    def _evidence_type(self, values: Values, place: str) -> EvidenceType:
        given = text_field(values, "evidence_type") or "text"
        found = self.cells.one_of(given.strip(), _TYPES, place)
        for kind in _TYPES:
            if kind == found:
                return kind
        raise RowError(f"must be one of {_TYPES}, got {shown(given)}", field="evidence_type")


def content_hash(evidence: Evidence) -> bytes:
    """A 16-byte hash of all fields but the ID. It is stored, so its definition must not change."""
    timestamp = evidence.timestamp
    content = [
        evidence.entity_id,
        evidence.predicate,
        evidence.text_content,
        evidence.claim,
        None if evidence.credibility is None else float(evidence.credibility),
        None if timestamp is None else to_micros(timestamp),
        evidence.evidence_type,
        evidence.source,
        evidence.supports_value,
        evidence.report_id,
    ]
    return hashlib.blake2b(_CANONICAL.encode(content).encode(), digest_size=16).digest()


def claim_field(values: Values) -> str | None:
    """The claim that a text is read with, or the question."""
    claim, question = (text_field(values, name) for name in CLAIM_NAMES)
    return claim or question


def required_text(values: Values) -> str:
    """The text of an item, under either name. RowError if it is missing, or given twice."""
    short, full = (text_field(values, name) for name in TEXT_NAMES)
    if full is not None and short is not None and full != short:
        raise RowError(
            "differs from text_content, which is the same field; give only one", field="text"
        )
    return required(full or short, "text")


def _required_entity(values: Values) -> str:
    return required(identifier_field(values, "entity_id"), "entity_id")
