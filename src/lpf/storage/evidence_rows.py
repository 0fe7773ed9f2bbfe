"""Evidence as it is kept: one row an item, and what stands for a text where it is not shown.

The statements of the evidence store, each written once for both databases.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    SmallInteger,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
)

from lpf.errors import EvidenceError, NonFiniteError
from lpf.storage.connections import Prepared
from lpf.storage.database import Row
from lpf.storage.lookups import KEYS, any_of
from lpf.storage.tables import (
    counters,
    erased_evidence,
    evidence,
    evidence_version,
    features,
    readers,
)
from lpf.storage.values import from_micros, to_micros, unusable_name
from lpf.types import Evidence, Float32Array

RowNumbers = NDArray[np.int64]

SALT_BYTES = 16
NAMES = ("evidence_id", "entity_id", "predicate", "source", "report_id", "supports_value")
NO_CLAIM = b"\xff" * 8
COLUMNS = tuple(evidence.c.keys())
_VECTOR = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class NewEvidence:
    """An item to be added. ``content_key`` stands for its text and claim (``factors.keys``),
    ``content_hash`` for all of its fields but the id (``ingest.drafts``). Where ``numbered``, the
    id was made up: then the content must be new, or the item would be there twice."""

    evidence: Evidence
    content_key: bytes
    content_hash: bytes
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    """One row. ``evidence.embedding_id`` is the row's number, by which its vector is known too;
    ``ingested_at`` is in microseconds since 1970."""

    row_id: int
    evidence: Evidence
    content_key: bytes
    content_hash: bytes
    salt: bytes
    commitment: bytes
    ingested_at: int


def text_commitment(salt: bytes, text: str, claim: str | None) -> bytes:
    """SHA-256 over ``salt``, the text and the claim; both as UTF-8 after their length in bytes as
    8 bytes big-endian. No claim is the length FFFFFFFFFFFFFFFF with nothing after it."""
    digest = hashlib.sha256(salt)
    for part in (text, claim):
        encoded = b"" if part is None else part.encode()
        digest.update(NO_CLAIM if part is None else len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.digest()


def check_names(items: Iterable[NewEvidence]) -> None:
    """EvidenceError names the first item with an id, or another name, that nothing can go by."""
    for item in items:
        for name in NAMES:
            text = getattr(item.evidence, name)
            problem = None if text is None else unusable_name(text)
            if problem:
                raise EvidenceError(
                    f"evidence {item.evidence.evidence_id!r}: {name}: {problem}. Nothing was "
                    "added; correct it and repeat."
                )


def row_to_insert(row_id: int, item: NewEvidence, ingested_at: int) -> Row:
    """The values of COLUMNS. The salt is drawn here: a text that is added again gets another."""
    kept, salt = item.evidence, secrets.token_bytes(SALT_BYTES)
    return (
        row_id,
        kept.evidence_id,
        kept.entity_id,
        kept.predicate,
        kept.credibility,
        _micros(kept.timestamp),
        kept.evidence_type,
        kept.source,
        kept.report_id,
        kept.supports_value,
        item.content_key,
        item.content_hash,
        salt,
        text_commitment(salt, kept.text_content, kept.claim),
        ingested_at,
        kept.claim,
        kept.text_content,
    )


def stored(row: Row) -> StoredEvidence:
    """A row of COLUMNS."""
    (row_id, evidence_id, entity_id, predicate, credibility, timestamp, evidence_type) = row[:7]
    (source, report_id, supports_value, content_key, content_hash, salt, commitment) = row[7:14]
    ingested_at, claim, text_content = row[14:]
    kept = Evidence(
        evidence_id=evidence_id,
        entity_id=entity_id,
        predicate=predicate,
        text_content=text_content,
        credibility=credibility,
        timestamp=None if timestamp is None else from_micros(timestamp),
        evidence_type=evidence_type,
        source=source,
        supports_value=supports_value,
        claim=claim,
        embedding_id=row_id,
        report_id=report_id,
    )
    return StoredEvidence(row_id, kept, content_key, content_hash, salt, commitment, ingested_at)


def vector_bytes(features: Float32Array, rows: int, width: int) -> list[bytes]:
    """One vector a row, float32 little-endian."""
    if features.shape != (rows, width):
        raise EvidenceError(
            f"features: are of shape {features.shape}, {(rows, width)} is needed: a row an item, "
            "as wide as the reader. Nothing was written."
        )
    if not np.isfinite(features).all():
        raise NonFiniteError("features: hold NaN or infinity. Nothing was written.")
    return [row.tobytes() for row in features.astype(_VECTOR)]


def vectors_of(rows: Sequence[Row], width: int) -> tuple[RowNumbers, Float32Array]:
    """Rows of (row_id, vector) as arrays [N] and [N, width]."""
    numbers = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
    joined = np.frombuffer(b"".join(row[1] for row in rows), dtype=_VECTOR)
    return numbers, joined.reshape(len(rows), width).astype(np.float32, copy=False)


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


VECTOR_COLUMNS = ("row_id", "reader", "vector")

CANDIDATES = Prepared(
    select(
        evidence.c.row_id,
        evidence.c.evidence_id,
        evidence.c.credibility,
        evidence.c.timestamp,
        evidence.c.source,
        evidence.c.report_id,
        evidence.c.content_key,
        evidence.c.commitment,
        features.c.vector,
    )
    .select_from(evidence)
    .outerjoin(
        features,
        and_(
            features.c.row_id == evidence.c.row_id,
            features.c.reader == bindparam("reader", type_=SmallInteger),
        ),
    )
    .where(
        evidence.c.entity_id == bindparam("entity_id"),
        evidence.c.predicate == bindparam("predicate"),
    )
    .order_by(evidence.c.row_id),
    "reader",
    "entity_id",
    "predicate",
)

BY_IDS = Prepared(select(evidence).where(any_of(evidence.c.evidence_id)), *KEYS)
BY_ROWS = Prepared(select(evidence).where(any_of(evidence.c.row_id)), *KEYS)
HASHES_BY_IDS = Prepared(
    select(evidence.c.evidence_id, evidence.c.content_hash).where(any_of(evidence.c.evidence_id)),
    *KEYS,
)
IDS_BY_ENTITIES = Prepared(
    select(evidence.c.entity_id, evidence.c.evidence_id).where(any_of(evidence.c.entity_id)), *KEYS
)
BY_CONTENT = Prepared(select(evidence.c.content_hash).where(any_of(evidence.c.content_hash)), *KEYS)
ERASED_BY_IDS = Prepared(
    select(erased_evidence.c.evidence_id, erased_evidence.c.erased_at).where(
        any_of(erased_evidence.c.evidence_id)
    ),
    *KEYS,
)
INSERT = Prepared(insert(evidence).values({name: bindparam(name) for name in COLUMNS}), *COLUMNS)
DELETE = Prepared(delete(evidence).where(evidence.c.row_id == bindparam("row")), "row")
DELETE_FEATURES = Prepared(delete(features).where(features.c.row_id == bindparam("row")), "row")
READER = Prepared(
    select(readers.c.reader, readers.c.width).where(readers.c.reader_id == bindparam("reader_id")),
    "reader_id",
)
READER_WIDTH = Prepared(
    select(readers.c.width).where(readers.c.reader == bindparam("reader")), "reader"
)
ADD_READER = Prepared(
    insert(readers).values(
        reader=bindparam("reader"), reader_id=bindparam("reader_id"), width=bindparam("width")
    ),
    "reader",
    "reader_id",
    "width",
)
READERS_OF_ROW = Prepared(
    select(features.c.reader).where(features.c.row_id == bindparam("row")), "row"
)
PUT_VECTOR = Prepared(
    insert(features).values({name: bindparam(name) for name in VECTOR_COLUMNS}), *VECTOR_COLUMNS
)
VECTORS = Prepared(
    select(features.c.row_id, features.c.vector)
    .where(features.c.reader == bindparam("reader"), features.c.row_id > bindparam("after_row"))
    .order_by(features.c.row_id),
    "reader",
    "after_row",
)
_OF_READER = features.c.reader == bindparam("reader")
# The number of vectors is a counter: to count rows that are as long as these takes its time.
STATE = Prepared(
    select(
        select(counters.c.value).where(counters.c.name == bindparam("counter")).scalar_subquery(),
        select(features.c.row_id)
        .where(_OF_READER)
        .order_by(features.c.row_id.desc())
        .limit(literal_column("1"))
        .scalar_subquery(),
        select(func.count()).select_from(erased_evidence).scalar_subquery(),
    ),
    "counter",
    "reader",
)
COUNT = Prepared(select(func.count()).select_from(evidence))
VERSION = Prepared(select(evidence_version.c.version))
_WITHOUT_VECTOR = ~exists().where(features.c.row_id == evidence.c.row_id, _OF_READER)
MISSING = Prepared(
    select(evidence)
    .where(_WITHOUT_VECTOR, evidence.c.row_id > bindparam("after_row"))
    .order_by(evidence.c.row_id)
    .limit(bindparam("limit")),
    "reader",
    "after_row",
    "limit",
)

ROWS_WITHOUT_VECTOR = Prepared(
    select(evidence.c.row_id).where(any_of(evidence.c.row_id), _WITHOUT_VECTOR), *KEYS, "reader"
)


@cache
def listing(*columns: str) -> Prepared:
    """Rows after one, in order, that have the given values in ``columns``."""
    same = [evidence.c[name] == bindparam(name) for name in columns]
    statement = select(evidence).where(evidence.c.row_id > bindparam("after_row"), *same)
    ordered = statement.order_by(evidence.c.row_id).limit(bindparam("limit"))
    return Prepared(ordered, *columns, "after_row", "limit")
