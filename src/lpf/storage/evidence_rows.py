"""Rows of the evidence tables: conversion to and from items, text commitments, and SQL."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    SmallInteger,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    union_all,
    update,
)

from lpf.errors import EvidenceError, NonFiniteError
from lpf.storage.database import Row
from lpf.storage.seals import (
    FIELDS_CHANGED,
    TEXT_CHANGED,
    VECTOR_CHANGED,
    DamagedItem,
    damaged_error,
    printable,
    row_seal,
    text_commitment,
    text_is_intact,
    vector_is_intact,
)
from lpf.storage.statements import KEYS, Prepared, any_of
from lpf.storage.tables import (
    counters,
    erased_evidence,
    evidence,
    evidence_version,
    features,
    pending_erasures,
    readers,
    superseded_evidence,
)
from lpf.storage.values import from_micros, name_problem, to_micros
from lpf.types import Evidence, Float32Array

RowNumbers = NDArray[np.int64]

SALT_BYTES = 16
NAMES = ("evidence_id", "entity_id", "predicate", "source", "report_id", "supports_value")
COLUMNS = tuple(evidence.c.keys())
# Of a row of COLUMNS: the fields under its seal, except for the version.
_SEALED = slice(COLUMNS.index("evidence_id"), COLUMNS.index("ingested_at") + 1)
_TEXT_PLACES = [COLUMNS.index(name) for name in ("salt", "text_content", "claim", "commitment")]
_EVIDENCE_ID, _VERSION, _SEAL = (COLUMNS.index(n) for n in ("evidence_id", "version", "seal"))
_VECTOR = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class NewEvidence:
    """An item to be added.

    ``content_key`` is a hash of its text and claim (``lpf.factors.keys``), ``content_hash`` a hash
    of all its fields but the ID (``lpf.ingest.evidence_drafts``). ``numbered`` is True if the ID
    was generated: then the content must be new, or the item would be stored twice.
    """

    evidence: Evidence
    content_key: bytes
    content_hash: bytes
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    """One row of the store. ``evidence.embedding_id`` equals ``row_id``, which also identifies the
    item's vectors; ``ingested_at`` is in microseconds since 1970. ``version`` counts from 1; a
    version that was replaced has the time in ``superseded_at``."""

    row_id: int
    evidence: Evidence
    content_key: bytes
    content_hash: bytes
    salt: bytes
    commitment: bytes
    ingested_at: int
    version: int = 1
    superseded_at: int | None = None


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """A version of an item that was removed from the store but perhaps not yet from elsewhere.
    Indexes know it by ``row_id``, caches by ``content_key``. The key is all zeros once it is no
    longer needed."""

    evidence_id: str
    row_id: int
    content_key: bytes


def check_names(items: Iterable[NewEvidence]) -> None:
    """Raise EvidenceError for the first item with an invalid ID or other name."""
    for item in items:
        for name in NAMES:
            text = getattr(item.evidence, name)
            problem = None if text is None else name_problem(text)
            if problem:
                raise EvidenceError(
                    f"{problem} (evidence {item.evidence.evidence_id!r}).",
                    field=name,
                    hint="Nothing was added; correct it and try again.",
                )


def row_to_insert(row_id: int, item: NewEvidence, ingested_at: int, version: int = 1) -> Row:
    """The values of COLUMNS, with a new random salt."""
    content, salt = item.evidence, secrets.token_bytes(SALT_BYTES)
    credibility, timestamp = content.credibility, content.timestamp
    fields = (
        content.evidence_id,
        content.entity_id,
        content.predicate,
        None if credibility is None else float(credibility),
        None if timestamp is None else to_micros(timestamp),
        content.evidence_type,
        content.source,
        content.report_id,
        content.supports_value,
        item.content_key,
        item.content_hash,
        salt,
        text_commitment(salt, content.text_content, content.claim),
        ingested_at,
    )
    seal = row_seal((*fields, version))
    return (row_id, *fields, content.claim, content.text_content, version, seal)


def evidence_from_row(row: Row) -> StoredEvidence:
    """Convert a row of COLUMNS, which may be followed by ``superseded_at``."""
    (row_id, evidence_id, entity_id, predicate, credibility, timestamp, evidence_type) = row[:7]
    (source, report_id, supports_value, content_key, content_hash, salt, commitment) = row[7:14]
    ingested_at, claim, text_content, version, _, *superseded_at = row[14:]
    content = Evidence(
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
    return StoredEvidence(
        row_id,
        content,
        content_key,
        content_hash,
        salt,
        commitment,
        ingested_at,
        version,
        *superseded_at,
    )


def vector_bytes(features: Float32Array, rows: int, width: int) -> list[bytes]:
    """Each row of ``features`` as float32 little-endian bytes."""
    if features.shape != (rows, width):
        raise EvidenceError(
            f"have shape {features.shape}, expected (items, reader width) = {(rows, width)}. "
            "Nothing was written.",
            field="features",
        )
    if not np.isfinite(features).all():
        raise NonFiniteError("contain NaN or infinity. Nothing was written.", field="features")
    return [row.tobytes() for row in features.astype(_VECTOR)]


def item_damage(row: Row) -> str | None:
    """What is wrong with a row of COLUMNS, or None."""
    if row_seal((*row[_SEALED], row[_VERSION])) != row[_SEAL]:
        return FIELDS_CHANGED
    intact = text_is_intact(*(row[place] for place in _TEXT_PLACES))
    return None if intact else TEXT_CHANGED


def damaged_rows(rows: Iterable[Row]) -> Iterator[DamagedItem]:
    """The damaged ones among rows of COLUMNS."""
    for row in rows:
        problem = item_damage(row)
        if problem is not None:
            yield DamagedItem(printable(row[_EVIDENCE_ID]), problem)


def sound_items(
    rows: Iterable[Row], damaged: list[DamagedItem] | None = None
) -> list[StoredEvidence]:
    """The items of rows of COLUMNS. Damaged ones are added to ``damaged``; without that list,
    StoreDamagedError names them."""
    rows = list(rows)
    found = list(damaged_rows(rows))
    if not found:
        return [evidence_from_row(row) for row in rows]
    if damaged is None:
        raise damaged_error(found, "Nothing was read.")
    damaged += found
    return [evidence_from_row(row) for row in rows if item_damage(row) is None]


def vectors_from_rows(
    rows: Sequence[Row], width: int, reader_id: str
) -> tuple[RowNumbers, Float32Array]:
    """Convert rows of SEALED_VECTOR to row numbers [N] and vectors [N, width]. StoreDamagedError
    if one does not match its seal."""
    damaged = [
        DamagedItem(printable(evidence_id), VECTOR_CHANGED)
        for _, evidence_id, commitment, vector, seal in rows
        if not vector_is_intact(commitment, reader_id, vector, seal)
    ]
    if damaged:
        raise damaged_error(damaged, "Nothing was read.")
    numbers = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
    joined = np.frombuffer(b"".join(row[3] for row in rows), dtype=_VECTOR)
    return numbers, joined.reshape(len(rows), width).astype(np.float32, copy=False)


VECTOR_COLUMNS = ("row_id", "reader", "vector", "seal")

SEALED_COLUMNS = (*(evidence.c[name] for name in COLUMNS[_SEALED]), evidence.c.version)
CANDIDATES = Prepared(
    select(
        *SEALED_COLUMNS,
        evidence.c.seal,
        features.c.seal,
        evidence.c.row_id,
        evidence.c.claim.is_not(None),
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
WITH_CLAIM = Prepared(
    select(evidence.c.evidence_id).where(
        any_of(evidence.c.evidence_id), evidence.c.claim.is_not(None)
    ),
    *KEYS,
)
BY_ROWS = Prepared(select(evidence).where(any_of(evidence.c.row_id)), *KEYS)
HASHES_BY_IDS = Prepared(
    select(evidence.c.evidence_id, evidence.c.content_hash).where(any_of(evidence.c.evidence_id)),
    *KEYS,
)
SOURCES_BY_IDS = Prepared(
    select(evidence.c.evidence_id, evidence.c.source).where(any_of(evidence.c.evidence_id)), *KEYS
)
IDS_BY_ENTITIES = Prepared(
    select(evidence.c.entity_id, evidence.c.evidence_id).where(any_of(evidence.c.entity_id)), *KEYS
)
DATED_BY_ENTITIES = Prepared(
    select(
        evidence.c.entity_id,
        evidence.c.predicate,
        evidence.c.source,
        evidence.c.timestamp,
        evidence.c.evidence_id,
    ).where(
        any_of(evidence.c.entity_id),
        evidence.c.timestamp.is_not(None),
        evidence.c.ingested_at < bindparam("before", type_=BigInteger),
    ),
    *KEYS,
    "before",
)
BY_CONTENT = Prepared(select(evidence.c.content_hash).where(any_of(evidence.c.content_hash)), *KEYS)
SUPERSEDED_BY_CONTENT = Prepared(
    select(superseded_evidence.c.content_hash).where(any_of(superseded_evidence.c.content_hash)),
    *KEYS,
)
ERASED_BY_IDS = Prepared(
    select(erased_evidence.c.evidence_id, erased_evidence.c.erased_at).where(
        any_of(erased_evidence.c.evidence_id)
    ),
    *KEYS,
)
INSERT = Prepared(insert(evidence).values({name: bindparam(name) for name in COLUMNS}), *COLUMNS)
VERSIONS_BY_IDS = Prepared(
    select(superseded_evidence).where(any_of(superseded_evidence.c.evidence_id)), *KEYS
)
SUPERSEDE = Prepared(
    insert(superseded_evidence).from_select(
        superseded_evidence.c.keys(),
        select(*evidence.c, bindparam("moment", type_=BigInteger)).where(
            evidence.c.row_id == bindparam("row")
        ),
    ),
    "moment",
    "row",
)
# Row and content key of all versions, for erasure: readable even if the rows are damaged.
ROWS_TO_ERASE = Prepared(
    union_all(
        select(evidence.c.row_id, evidence.c.content_key).where(
            evidence.c.evidence_id == bindparam("evidence_id")
        ),
        select(superseded_evidence.c.row_id, superseded_evidence.c.content_key).where(
            superseded_evidence.c.evidence_id == bindparam("same_id")
        ),
    ).order_by("row_id"),
    "evidence_id",
    "same_id",
)
TO_REPLACE = Prepared(
    select(evidence.c.evidence_id, evidence.c.row_id, evidence.c.content_hash).where(
        any_of(evidence.c.evidence_id)
    ),
    *KEYS,
)
EARLIER_HASHES = Prepared(
    select(superseded_evidence.c.evidence_id, superseded_evidence.c.content_hash).where(
        any_of(superseded_evidence.c.evidence_id)
    ),
    *KEYS,
)
DELETE_VERSIONS = Prepared(
    delete(superseded_evidence).where(
        superseded_evidence.c.evidence_id == bindparam("evidence_id")
    ),
    "evidence_id",
)
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
READER_ID = Prepared(
    select(readers.c.reader_id).where(readers.c.reader == bindparam("reader")), "reader"
)
READERS_OF_ROW = Prepared(
    select(features.c.reader).where(features.c.row_id == bindparam("row")), "row"
)
PUT_VECTOR = Prepared(
    insert(features).values({name: bindparam(name) for name in VECTOR_COLUMNS}), *VECTOR_COLUMNS
)
SEALED_VECTOR = (
    features.c.row_id,
    evidence.c.evidence_id,
    evidence.c.commitment,
    features.c.vector,
    features.c.seal,
)
WITH_ITEMS = features.outerjoin(evidence, features.c.row_id == evidence.c.row_id)
VECTORS = Prepared(
    select(*SEALED_VECTOR)
    .select_from(WITH_ITEMS)
    .where(features.c.reader == bindparam("reader"), features.c.row_id > bindparam("after_row"))
    .order_by(features.c.row_id),
    "reader",
    "after_row",
)
_OF_READER = features.c.reader == bindparam("reader")
# The number of vectors is read from a counter: counting rows as long as these is slow.
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
ALL_VECTORS = Prepared(
    select(*SEALED_VECTOR, readers.c.reader_id)
    .select_from(WITH_ITEMS.outerjoin(readers, features.c.reader == readers.c.reader))
    .order_by(features.c.row_id, features.c.reader)
)
ALL_ITEMS = Prepared(select(evidence).order_by(evidence.c.row_id))
ALL_SUPERSEDED = Prepared(select(superseded_evidence).order_by(superseded_evidence.c.row_id))
VECTORS_OF_ROWS = Prepared(
    select(*SEALED_VECTOR).select_from(WITH_ITEMS).where(any_of(features.c.row_id), _OF_READER),
    *KEYS,
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
    select(evidence.c.row_id, evidence.c.commitment).where(
        any_of(evidence.c.row_id), _WITHOUT_VECTOR
    ),
    *KEYS,
    "reader",
)

MARK_ERASED = Prepared(
    insert(erased_evidence).values(
        evidence_id=bindparam("evidence_id"), erased_at=bindparam("erased_at")
    ),
    "evidence_id",
    "erased_at",
)
_PENDING_COLUMNS = tuple(pending_erasures.c.keys())
ADD_PENDING_ERASURE = Prepared(
    insert(pending_erasures).values({name: bindparam(name) for name in _PENDING_COLUMNS}),
    *_PENDING_COLUMNS,
)
PENDING_ERASURES = Prepared(
    select(
        pending_erasures.c.evidence_id, pending_erasures.c.row_id, pending_erasures.c.content_key
    ).order_by(pending_erasures.c.row_id)
)
OVERWRITE_ERASED_KEY = Prepared(
    update(pending_erasures)
    .values(content_key=bindparam("content_key"))
    .where(pending_erasures.c.row_id == bindparam("row")),
    "content_key",
    "row",
)
REMOVE_PENDING_ERASURE = Prepared(
    delete(pending_erasures).where(pending_erasures.c.evidence_id == bindparam("this")), "this"
)


@cache
def page_statement(*columns: str) -> Prepared:
    """Rows after a given row, in order, filtered by the values of ``columns``."""
    same = [evidence.c[name] == bindparam(name) for name in columns]
    statement = select(evidence).where(evidence.c.row_id > bindparam("after_row"), *same)
    ordered = statement.order_by(evidence.c.row_id).limit(bindparam("limit"))
    return Prepared(ordered, *columns, "after_row", "limit")
