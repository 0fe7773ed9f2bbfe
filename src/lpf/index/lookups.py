"""What a search asks of the store beyond the evidence store's own look-ups."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import bindparam, func, select

from lpf.storage.database import Row
from lpf.storage.evidence import EvidenceStore, RowNumbers
from lpf.storage.evidence_rows import vectors_of
from lpf.storage.evidence_statements import READER
from lpf.storage.keyed import KEYS, any_of, look_up
from lpf.storage.statements import Prepared
from lpf.storage.tables import erased_evidence, evidence, features
from lpf.types import Float32Array

_OF_READER = features.c.reader == bindparam("reader")

_ENTRIES = Prepared(
    select(
        evidence.c.row_id,
        evidence.c.evidence_id,
        evidence.c.entity_id,
        evidence.c.predicate,
        evidence.c.credibility,
    ).where(any_of(evidence.c.row_id)),
    *KEYS,
)
_VECTORS = Prepared(
    select(features.c.row_id, features.c.vector).where(any_of(features.c.row_id), _OF_READER),
    *KEYS,
    "reader",
)
_ENTITY_VECTORS = Prepared(
    select(features.c.row_id, features.c.vector)
    .join_from(evidence, features, features.c.row_id == evidence.c.row_id)
    .where(evidence.c.entity_id == bindparam("entity_id"), _OF_READER)
    .order_by(features.c.row_id),
    "entity_id",
    "reader",
)
_ERASED = Prepared(select(func.count()).select_from(erased_evidence))


def entries(store: EvidenceStore, row_ids: Iterable[int]) -> dict[int, Row]:
    """(row_id, evidence_id, entity_id, predicate, credibility) of the rows that are there."""
    return {row[0]: row for row in look_up(store.database, _ENTRIES, row_ids)}


def vectors_of_rows(
    store: EvidenceStore, reader: int, width: int, row_ids: Iterable[int]
) -> tuple[RowNumbers, Float32Array]:
    """The rows that are there and their vectors, in no order."""
    return vectors_of(list(look_up(store.database, _VECTORS, row_ids, reader)), width)


def vectors_of_entity(
    store: EvidenceStore, reader: int, width: int, entity_id: str
) -> tuple[RowNumbers, Float32Array]:
    """All vectors of one entity, in the order of the rows."""
    return vectors_of(store.database.rows(_ENTITY_VECTORS, (entity_id, reader)), width)


def known_reader(store: EvidenceStore, reader_id: str) -> int | None:
    """The number of a reader, if it has one: unlike ``reader_number`` this gives out none."""
    found = store.database.row(READER, (reader_id,))
    return None if found is None else int(found[0])


def count_erased(store: EvidenceStore) -> int:
    """How many items were ever erased."""
    found = store.database.row(_ERASED)
    assert found is not None, "a count always has a row"
    return int(found[0])
