"""The tables as of the newest migration, as SQLAlchemy tables.

Migrations do not use this module: it changes with the schema, released migrations do not.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

METADATA = MetaData()
# In SQLite, only a primary key of type INTEGER is the row ID itself, which is the fastest key.
_ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")

schema_versions = Table(
    "schema_versions",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("applied_at", BigInteger, nullable=False),
)

counters = Table(
    "counters",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)


def _item_columns(unique_ids: bool) -> list[Column[Any]]:
    return [
        Column("row_id", _ROW_NUMBER, primary_key=True, autoincrement=False),
        Column("evidence_id", Text, nullable=False, unique=unique_ids or None),
        Column("entity_id", Text, nullable=False),
        Column("predicate", Text, nullable=False),
        Column("credibility", Double),
        Column("timestamp", BigInteger),
        Column("evidence_type", Text, nullable=False),
        Column("source", Text),
        Column("report_id", Text),
        Column("supports_value", Text),
        # Hash of text and claim; key of caches and random streams. Erased with the text.
        Column("content_key", LargeBinary, nullable=False),
        # Hash of every field but the ID; makes ingestion idempotent. Erased with the text.
        Column("content_hash", LargeBinary, nullable=False),
        # Records refer to the text by this salted hash, which reveals nothing without the salt.
        Column("salt", LargeBinary, nullable=False),
        Column("commitment", LargeBinary, nullable=False),
        Column("ingested_at", BigInteger, nullable=False),
        Column("claim", Text),
        Column("text_content", Text, nullable=False),
        # 1 for an item that was never replaced.
        Column("version", Integer, nullable=False, server_default="1"),
        # Hash of all fields above except row, text and claim (see ``lpf.storage.seals``).
        Column("seal", LargeBinary, nullable=False, server_default=""),
    ]


evidence = Table("evidence", METADATA, *_item_columns(unique_ids=True))
Index("evidence_by_question", evidence.c.entity_id, evidence.c.predicate)
Index("evidence_by_content", evidence.c.content_hash)

# Earlier versions of items that were replaced. They answer no questions, but records refer to them.
superseded_evidence = Table(
    "superseded_evidence",
    METADATA,
    *_item_columns(unique_ids=False),
    Column("superseded_at", BigInteger, nullable=False),
)
Index("superseded_by_id", superseded_evidence.c.evidence_id)
Index("superseded_by_content", superseded_evidence.c.content_hash)

erased_evidence = Table(
    "erased_evidence",
    METADATA,
    Column("evidence_id", Text, primary_key=True),
    Column("erased_at", BigInteger, nullable=False),
)

# Items removed from the store but not yet from caches, indexes and freed pages. One row per version
# of an item.
pending_erasures = Table(
    "pending_erasures",
    METADATA,
    Column("evidence_id", Text, nullable=False),
    Column("row_id", _ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("content_key", LargeBinary, nullable=False),
    Column("started_at", BigInteger, nullable=False),
)

# Folders with copies of vectors: search indexes of all workspaces that use this store.
vector_folders = Table(
    "vector_folders",
    METADATA,
    Column("folder_id", Text, primary_key=True),
    # Host and path, for messages.
    Column("host", Text, nullable=False),
    Column("path", Text, nullable=False),
    # How many items had been erased from the store when they were last erased from the folder.
    Column("erased_count", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

readers = Table(
    "readers",
    METADATA,
    Column("reader", SmallInteger, primary_key=True, autoincrement=False),
    Column("reader_id", Text, nullable=False, unique=True),
    Column("width", Integer, nullable=False),
)

features = Table(
    "features",
    METADATA,
    Column("row_id", _ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("reader", SmallInteger, primary_key=True, autoincrement=False),
    Column("vector", LargeBinary, nullable=False),
    Column("seal", LargeBinary, nullable=False, server_default=""),
)

# One row. Triggers on evidence and features increment it at every change.
evidence_version = Table(
    "evidence_version", METADATA, Column("version", BigInteger, nullable=False)
)

facts = Table(
    "facts",
    METADATA,
    Column("fact_id", _ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("entity_id", Text, nullable=False),
    Column("predicate", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("confidence", Double, nullable=False),
    Column("timestamp", BigInteger, nullable=False),
    Column("source", Text),
    Column("recorded_at", BigInteger, nullable=False),
    Column("superseded_at", BigInteger),
    Column("superseded_by", BigInteger),
    Column("seal", LargeBinary, nullable=False, server_default=""),
)
Index("facts_by_question", facts.c.entity_id, facts.c.predicate, facts.c.timestamp)

ledger_identity = Table(
    "ledger_identity",
    METADATA,
    Column("origin", Text, primary_key=True),
    Column("public_key", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

ledger = Table(
    "ledger",
    METADATA,
    Column("seq", _ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("leaf", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    # The signed checkpoint over records 1..seq, if there is one.
    Column("checkpoint", LargeBinary),
)

_SIGNED = ledger.c.checkpoint.is_not(None)
Index("ledger_checkpoints", ledger.c.seq, sqlite_where=_SIGNED, postgresql_where=_SIGNED)

ledger_blobs = Table(
    "ledger_blobs",
    METADATA,
    Column("hash", LargeBinary, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

ledger_tiles = Table(
    "ledger_tiles",
    METADATA,
    Column("level", SmallInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("hashes", LargeBinary, nullable=False),
)

# Made from the records, and made again from them if it is lost: see ledger/contents.py.
ledger_contents = Table(
    "ledger_contents",
    METADATA,
    Column("seq", _ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("entity_id", Text, nullable=False),
    Column("predicate", Text, nullable=False),
    Column("value", Text),
    Column("confidence", Double),
    Column("timestamp", BigInteger, nullable=False),
    Column("about", BigInteger),
    Column("context", LargeBinary),
)
_QUESTION = (ledger_contents.c.entity_id, ledger_contents.c.predicate)
Index("contents_by_question", *_QUESTION, ledger_contents.c.kind, ledger_contents.c.seq)
Index(
    "contents_by_predicate",
    ledger_contents.c.predicate,
    ledger_contents.c.kind,
    ledger_contents.c.entity_id,
    ledger_contents.c.seq,
)
_IS_ABOUT = ledger_contents.c.about.is_not(None)
Index(
    "contents_about",
    ledger_contents.c.about,
    sqlite_where=_IS_ABOUT,
    postgresql_where=_IS_ABOUT,
)

query_texts = Table(
    "query_texts",
    METADATA,
    Column("commitment", LargeBinary, primary_key=True),
    Column("salt", LargeBinary, nullable=False),
    Column("text", Text, nullable=False),
)
