"""A row as an evidence item that may still lack its id.

What is wrong with a row, for people and for the file of rejects.

Fields of a row as values of the right type. RowError names the field that is wrong.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import get_args

from lpf.errors import UnknownPredicateError, UnknownValueError
from lpf.factors.keys import content_key
from lpf.ingest.input_files import TEXT_NAMES, InputFile, InputRow
from lpf.schema import Schema
from lpf.storage.evidence import NewEvidence
from lpf.storage.facts import FIRST_YEAR
from lpf.storage.values import LONGEST_NAME, to_micros, too_long, unkeepable
from lpf.types import Evidence, EvidenceType


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that was not taken: where it stands, which field is wrong and how, and the row, which
    is None where it could not be told apart into fields."""

    file: str
    line: int
    field: str | None
    error: str
    row: object = None
    unit: str = "line"

    def __str__(self) -> str:
        named = "" if self.field is None else f"{self.field}: "
        return f"{self.file}, {self.unit} {self.line}: {named}{self.error}"

    def as_json(self) -> str:
        """One line. What JSON does not know, such as a date from Parquet, is written as text."""
        entry = {name: getattr(self, name) for name in ("file", "line", "field", "error", "row")}
        return json.dumps(entry, ensure_ascii=False, default=_as_text)


def _as_text(value: object) -> str:
    """Bytes are only counted: written out they would be a text that no erasure recognises."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


class RowError(Exception):
    """Within this room: a field of the row at hand cannot be used."""

    def __init__(self, name: str | None, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


Values = Mapping[str, object]


def text_field(values: Values, name: str) -> str | None:
    """A text, or None where there is none."""
    value = values.get(name)
    if value is None or value == "":
        return None
    problem = unkeepable(value)
    if problem:
        raise RowError(name, problem)
    return str(value)


def name_field(values: Values, name: str) -> str | None:
    """A text without the blanks around it: no two names may differ by what nobody sees."""
    text = text_field(values, name)
    return None if text is None else text.strip()


def label_field(values: Values, name: str) -> str | None:
    """The same; a whole number is taken as the text of its digits."""
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return name_field(values, name)
    if value.bit_length() > LONGEST_NAME:
        raise RowError(name, f"is a number of more than {LONGEST_NAME} bits; give it as a text")
    return str(value)


def identifier_field(values: Values, name: str) -> str | None:
    """The same where things go by it: it must be short enough for an index."""
    label = label_field(values, name)
    problem = None if label is None else too_long(label, name)
    if problem:
        raise RowError(name, problem)
    return label


def required(value: str | None, name: str) -> str:
    if value is None:
        raise RowError(name, "is missing")
    return value


def share_field(values: Values, name: str) -> float | None:
    """A number in [0, 1], also as text."""
    value = values.get(name)
    if value is None or value == "":
        return None
    number = _number(value, name)
    if math.isnan(number) or not 0.0 <= number <= 1.0:
        raise RowError(name, f"must lie in [0, 1], got {value!r}")
    return number + 0.0  # -0.0 and 0.0 are one number with two hashes


def moment_field(values: Values, name: str) -> datetime | None:
    """A moment in UTC, from ISO 8601 or a time of Parquet. One without a zone is in UTC."""
    value = values.get(name)
    if value is None or value == "":
        return None
    moment = _in_utc(_moment(value, name))
    if moment is None or moment.year < FIRST_YEAR:
        years = f"{FIRST_YEAR} to 9999"
        raise RowError(name, f"lies outside the years {years}, probably a slip, got {_told(value)}")
    return moment


def _number(value: object, name: str) -> float:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise RowError(name, f"must be a number, got {value!r}")


def _in_utc(moment: datetime) -> datetime | None:
    """None where the year would be less than 1 or more than 9999."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return None


def _told(value: object) -> str:
    """As it stands in a file."""
    return repr(value.isoformat() if isinstance(value, date) else value)


def _moment(value: object, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            pass
    raise RowError(name, f"must be a time in ISO 8601, such as 2026-01-25T15:42:33Z, got {value!r}")


_NO_ID = "?"
_TYPES: tuple[EvidenceType, ...] = get_args(EvidenceType)
_CANONICAL = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class EvidenceDraft:
    """An item read from ``row``. Where ``has_id`` is false, its evidence still needs a name."""

    row: InputRow
    evidence: Evidence
    has_id: bool
    content_hash: bytes

    def named(self, evidence_id: str) -> EvidenceDraft:
        named = replace(self.evidence, evidence_id=evidence_id)
        return EvidenceDraft(self.row, named, self.has_id, self.content_hash)

    def as_new(self) -> NewEvidence:
        key = content_key(self.evidence.text_content, self.evidence.claim)
        return NewEvidence(self.evidence, key, self.content_hash, numbered=not self.has_id)


class DraftReader:
    """Reads rows against a schema. With ``needs_claim`` a row without a claim is refused."""

    def __init__(self, schema: Schema, needs_claim: bool) -> None:
        self._schema = schema
        self._needs_claim = needs_claim
        names = [predicate.name for predicate in schema]
        self._only_predicate = names[0] if len(names) == 1 else None

    def check_columns(self, file: InputFile) -> None:
        """InputFileError where the file lacks a column that every row needs."""
        predicate = [] if self._only_predicate else [("predicate",)]
        claim = [("claim",)] if self._needs_claim else []
        file.require(("entity_id",), TEXT_NAMES, *predicate, *claim)

    def draft(self, row: InputRow) -> EvidenceDraft:
        """RowError where the row cannot be used."""
        if row.error:
            raise RowError(None, row.error)
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
            claim=self._claim(values),
            report_id=identifier_field(values, "report_id"),
        )
        return EvidenceDraft(row, evidence, evidence_id is not None, content_hash(evidence))

    def _predicate(self, values: Values) -> str:
        named = {"predicate": text_field(values, "predicate") or self._only_predicate}
        given = required(identifier_field(named, "predicate"), "predicate")
        try:
            return self._schema[given].name
        except UnknownPredicateError as error:
            raise RowError("predicate", str(error).rstrip(".")) from None

    def _supports_value(self, values: Values, predicate: str) -> str | None:
        value = name_field(values, "supports_value")
        if value is not None:
            try:
                self._schema[predicate].position(value)
            except UnknownValueError as error:
                raise RowError("supports_value", str(error).rstrip(".")) from None
        return value

    def _claim(self, values: Values) -> str | None:
        claim = text_field(values, "claim")
        if claim is None and self._needs_claim:
            raise RowError("claim", "is missing; this reader reads a text against a claim")
        return claim


def content_hash(evidence: Evidence) -> bytes:
    """16 bytes that stand for all fields but the id. The store keeps them: their form is fixed."""
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
        raise RowError("text", "differs from text_content, of which it is another name; give one")
    return required(full or short, "text")


def _evidence_type(values: Values) -> EvidenceType:
    given = text_field(values, "evidence_type") or "text"
    for kind in _TYPES:
        if kind == given:
            return kind
    raise RowError("evidence_type", f"must be one of {_TYPES}, got {given!r}")
