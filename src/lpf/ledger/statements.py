"""Every SQL statement of the ledger, compiled once per dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Table, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import ClauseElement

from lpf.storage.database import Database
from lpf.storage.statements import KEYS, Prepared, any_of
from lpf.storage.tables import ledger, ledger_blobs, ledger_identity, ledger_tiles, query_texts

# The advisory lock of PostgreSQL that lets one writer at a time number the records.
SEQUENCER_LOCK = f"SELECT pg_advisory_xact_lock({0x6C70666C})"


class LedgerStatement:
    """A statement built with the insert class of each of the two databases."""

    def __init__(self, build: Callable[[Any], ClauseElement], *names: str) -> None:
        self._sqlite = Prepared(build(sqlite.insert), *names)
        self._postgres = Prepared(build(postgresql.insert), *names)

    def of(self, database: Database) -> Prepared:
        return self._sqlite if database.is_sqlite else self._postgres


def _bound(*names: str) -> dict[str, Any]:
    return {name: bindparam(name) for name in names}


def _if_absent(table: Table, *names: str) -> LedgerStatement:
    return LedgerStatement(
        lambda insert_: insert_(table).values(**_bound(*names)).on_conflict_do_nothing(), *names
    )


def _put_tile(insert_: Any) -> ClauseElement:
    fresh = insert_(ledger_tiles).values(**_bound("level", "number", "hashes"))
    replaced: ClauseElement = fresh.on_conflict_do_update(
        index_elements=["level", "number"], set_={"hashes": fresh.excluded.hashes}
    )
    return replaced


IDENTITY = Prepared(select(ledger_identity.c.origin, ledger_identity.c.public_key))
PUT_IDENTITY = Prepared(
    insert(ledger_identity).values(**_bound("origin", "public_key", "created_at")),
    "origin",
    "public_key",
    "created_at",
)

SIZE = Prepared(select(func.max(ledger.c.seq)))
TIP = Prepared(select(ledger.c.seq, ledger.c.leaf).order_by(ledger.c.seq.desc()).limit(1))
RECORD = Prepared(
    select(ledger.c.leaf, ledger.c.body, ledger.c.checkpoint).where(
        ledger.c.seq == bindparam("place")
    ),
    "place",
)
RECORDS = Prepared(
    select(ledger.c.seq, ledger.c.leaf, ledger.c.body, ledger.c.checkpoint)
    .where(ledger.c.seq.between(bindparam("first"), bindparam("last")))
    .order_by(ledger.c.seq),
    "first",
    "last",
)
RECORDS_OF = Prepared(
    select(ledger.c.seq, ledger.c.leaf, ledger.c.body, ledger.c.checkpoint)
    .where(any_of(ledger.c.seq))
    .order_by(ledger.c.seq),
    *KEYS,
)
LEAVES = Prepared(
    select(ledger.c.leaf)
    .where(ledger.c.seq.between(bindparam("first"), bindparam("last")))
    .order_by(ledger.c.seq),
    "first",
    "last",
)
LATEST_CHECKPOINT = Prepared(
    select(ledger.c.checkpoint)
    .where(ledger.c.checkpoint.is_not(None))
    .where(ledger.c.seq.between(bindparam("first"), bindparam("last")))
    .order_by(ledger.c.seq.desc())
    .limit(1),
    "first",
    "last",
)
PUT_RECORD = Prepared(
    insert(ledger).values(**_bound("seq", "leaf", "body", "checkpoint")),
    "seq",
    "leaf",
    "body",
    "checkpoint",
)
PUT_CHECKPOINT = Prepared(
    update(ledger).where(ledger.c.seq == bindparam("place")).values(checkpoint=bindparam("signed")),
    "signed",
    "place",
)

BLOB = Prepared(
    select(ledger_blobs.c.body).where(ledger_blobs.c.hash == bindparam("digest")), "digest"
)
BLOBS = Prepared(select(ledger_blobs.c.hash, ledger_blobs.c.body).order_by(ledger_blobs.c.hash))
PUT_BLOB = _if_absent(ledger_blobs, "hash", "body")

TILE = Prepared(
    select(ledger_tiles.c.hashes)
    .where(ledger_tiles.c.level == bindparam("at_level"))
    .where(ledger_tiles.c.number == bindparam("at_number")),
    "at_level",
    "at_number",
)
PUT_TILE = LedgerStatement(_put_tile, "level", "number", "hashes")

TEXT = Prepared(
    select(query_texts.c.salt, query_texts.c.text).where(
        query_texts.c.commitment == bindparam("digest")
    ),
    "digest",
)
PUT_TEXT = _if_absent(query_texts, "commitment", "salt", "text")
DELETE_TEXT = Prepared(
    delete(query_texts).where(query_texts.c.commitment == bindparam("digest")), "digest"
)
