"""What a search asks of the store beyond the evidence store's own look-ups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import bindparam, select

from lpf.storage.database import Row
from lpf.storage.evidence import EvidenceStore, RowNumbers
from lpf.storage.evidence_rows import vectors_of
from lpf.storage.statements import Prepared
from lpf.storage.tables import evidence, features
from lpf.types import Float32Array

# As many keys at once; a last, shorter batch repeats its last key, so one statement serves all.
KEYS_AT_ONCE = 256
_KEYS = tuple(f"key{number}" for number in range(KEYS_AT_ONCE))
_OF_READER = features.c.reader == bindparam("reader")

_ENTRIES = Prepared(
    select(
        evidence.c.row_id,
        evidence.c.evidence_id,
        evidence.c.entity_id,
        evidence.c.predicate,
        evidence.c.credibility,
    ).where(evidence.c.row_id.in_([bindparam(key) for key in _KEYS])),
    *_KEYS,
)
_VECTORS = Prepared(
    select(features.c.row_id, features.c.vector).where(
        _OF_READER, features.c.row_id.in_([bindparam(key) for key in _KEYS])
    ),
    "reader",
    *_KEYS,
)
_ENTITY_VECTORS = Prepared(
    select(features.c.row_id, features.c.vector)
    .join_from(evidence, features, features.c.row_id == evidence.c.row_id)
    .where(evidence.c.entity_id == bindparam("entity_id"), _OF_READER)
    .order_by(features.c.row_id),
    "entity_id",
    "reader",
)


def entries(store: EvidenceStore, row_ids: Iterable[int]) -> dict[int, Row]:
    """(row_id, evidence_id, entity_id, predicate, credibility) of the rows that are there."""
    return {row[0]: row for row in _looked_up(store, _ENTRIES, row_ids)}


def vectors_of_rows(
    store: EvidenceStore, reader: int, width: int, row_ids: Iterable[int]
) -> tuple[RowNumbers, Float32Array]:
    """The rows that are there and their vectors, in no order."""
    return vectors_of(list(_looked_up(store, _VECTORS, row_ids, reader)), width)


def vectors_of_entity(
    store: EvidenceStore, reader: int, width: int, entity_id: str
) -> tuple[RowNumbers, Float32Array]:
    """All vectors of one entity, in the order of the rows."""
    return vectors_of(store.database.rows(_ENTITY_VECTORS, (entity_id, reader)), width)


def _looked_up(
    store: EvidenceStore, statement: Prepared, keys: Iterable[int], *fixed: int
) -> Iterator[Row]:
    wanted = [int(key) for key in keys]
    for start in range(0, len(wanted), KEYS_AT_ONCE):
        some = wanted[start : start + KEYS_AT_ONCE]
        filled = some + some[-1:] * (KEYS_AT_ONCE - len(some))
        yield from store.database.rows(statement, (*fixed, *filled))
