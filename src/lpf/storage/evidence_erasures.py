"""Erasures that were begun: what must still be forgotten elsewhere, until it is.

An item's row goes first, and with it all that tells what caches and indexes hold of it. So the
same transaction notes that here: whoever is interrupted finds what is left to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, select, update

from lpf.storage.database import Connection, Database
from lpf.storage.evidence_rows import StoredEvidence
from lpf.storage.statements import Prepared
from lpf.storage.tables import erased_evidence, pending_erasures


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """An item that is no longer in the store. ``row_id`` is what indexes know it by and
    ``content_key`` what caches do; zeros stand for a key that everybody has forgotten already."""

    evidence_id: str
    row_id: int
    content_key: bytes


_TOMBSTONE = Prepared(
    insert(erased_evidence).values(
        evidence_id=bindparam("evidence_id"), erased_at=bindparam("erased_at")
    ),
    "evidence_id",
    "erased_at",
)
_COLUMNS = tuple(pending_erasures.c.keys())
_BEGIN = Prepared(
    insert(pending_erasures).values({name: bindparam(name) for name in _COLUMNS}), *_COLUMNS
)
_PENDING = Prepared(
    select(
        pending_erasures.c.evidence_id, pending_erasures.c.row_id, pending_erasures.c.content_key
    ).order_by(pending_erasures.c.row_id)
)
_THIS = pending_erasures.c.evidence_id == bindparam("this")
_OVERWRITE = Prepared(
    update(pending_erasures).values(content_key=bindparam("content_key")).where(_THIS),
    "content_key",
    "this",
)
_DONE = Prepared(delete(pending_erasures).where(_THIS), "this")


def note_begun(
    database: Database, connection: Connection, gone: StoredEvidence, now: int
) -> PendingErasure:
    """Part of the transaction that removes the item."""
    evidence_id = gone.evidence.evidence_id
    database.run(connection, _TOMBSTONE, (evidence_id, now))
    database.run(connection, _BEGIN, (evidence_id, gone.row_id, gone.content_key, now))
    return PendingErasure(evidence_id, gone.row_id, gone.content_key)


def pending(database: Database) -> list[PendingErasure]:
    """In the order of ingestion."""
    return [PendingErasure(*row) for row in database.rows(_PENDING)]


def forget_keys(database: Database, items: Iterable[PendingErasure]) -> None:
    rows = [(bytes(len(item.content_key)), item.evidence_id) for item in items]
    with database.writing() as connection:
        database.run_many(connection, _OVERWRITE, rows)


def note_done(database: Database, evidence_ids: Iterable[str]) -> None:
    with database.writing() as connection:
        database.run_many(connection, _DONE, [(evidence_id,) for evidence_id in evidence_ids])
