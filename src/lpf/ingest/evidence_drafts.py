"""Convert rows to evidence items, some of which still need an ID."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import get_args

from lpf.errors import UnknownPredicateError, UnknownValueError
from lpf.factors.keys import content_key
from lpf.ingest.input_files import TEXT_NAMES, InputFile, InputRow
from lpf.ingest.row_fields import (
    RowError,
    Values,
    identifier_field,
    moment_field,
    name_field,
    required,
    share_field,
    text_field,
)
from lpf.schema import Schema
from lpf.storage.evidence import NewEvidence
from lpf.storage.values import to_micros
from lpf.types import SPLIT_TEXT, Evidence, EvidenceType, length_problem_of

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
    """Converts rows according to a schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        names = [predicate.name for predicate in schema]
        self._only_predicate = names[0] if len(names) == 1 else None

    def check_columns(self, file: InputFile) -> None:
        """InputFileError if the file lacks a required column."""
        predicate = [] if self._only_predicate else [("predicate",)]
        file.require(("entity_id",), TEXT_NAMES, *predicate)

    def draft(self, row: InputRow) -> EvidenceDraft:
        """RowError if the row is invalid."""
        if row.error:
            raise RowError(row.error)
        values = row.values
        evidence_id = identifier_field(values, "evidence_id")
        predicate = self._predicate(values)
        evidence = Evidence(
            evidence_id=evidence_id or _NO_ID,
            entity_id=required(identifier_field(values, "entity_id"), "entity_id"),
            predicate=predicate,
            text_content=_text(values),
            credibility=share_field(values, "credibility"),
            timestamp=moment_field(values, "timestamp"),
            evidence_type=_evidence_type(values),
            source=identifier_field(values, "source"),
            supports_value=self._supports_value(values, predicate),
            claim=_claim(values),
            report_id=identifier_field(values, "report_id"),
        )
        return EvidenceDraft(row, evidence, evidence_id is not None, content_hash(evidence))

    def _predicate(self, values: Values) -> str:
        named = {"predicate": text_field(values, "predicate") or self._only_predicate}
        given = required(identifier_field(named, "predicate"), "predicate")
        try:
            return self._schema[given].name
        except UnknownPredicateError as error:
            raise RowError(error.message.rstrip("."), field="predicate") from None

    def _supports_value(self, values: Values, predicate: str) -> str | None:
        value = name_field(values, "supports_value")
        if value is not None:
            try:
                self._schema[predicate].position(value)
            except UnknownValueError as error:
                raise RowError(error.message.rstrip("."), field="supports_value") from None
        return value


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


def _text(values: Values) -> str:
    short, full = (text_field(values, name) for name in TEXT_NAMES)
    if full is not None and short is not None and full != short:
        raise RowError(
            "differs from text_content, which is the same field; give only one", field="text"
        )
    text = required(full or short, "text")
    _refuse_long(text, "text")
    return text


def _claim(values: Values) -> str | None:
    claim = text_field(values, "claim")
    if claim is not None:
        _refuse_long(claim, "claim")
    return claim


def _refuse_long(text: str, name: str) -> None:
    problem = length_problem_of(text)
    if problem is not None:
        raise RowError(f"{problem}. {SPLIT_TEXT.rstrip('.')}", field=name)


def _evidence_type(values: Values) -> EvidenceType:
    given = text_field(values, "evidence_type") or "text"
    for kind in _TYPES:
        if kind == given:
            return kind
    raise RowError(f"must be one of {_TYPES}, got {given!r}", field="evidence_type")
