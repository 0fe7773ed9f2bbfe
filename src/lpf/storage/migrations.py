"""The store's form, step by step. A migration that was released is never changed again.

Each runs in one transaction together with the note that it ran, under a lock, so two processes
that open a blank store at once do not both build it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, func, insert, select

from lpf.errors import StoreVersionError
from lpf.storage.connections import Prepared
from lpf.storage.database import Connection, Database
from lpf.storage.driver_errors import translate_errors
from lpf.storage.tables import schema_versions
from lpf.storage.values import now_micros

LOCK_NUMBER = 0x6C7066  # "lpf": which advisory lock of a PostgreSQL database is ours


@dataclass(frozen=True)
class Migration:
    """``statements`` are in SQLite's words; those of the types below differ in PostgreSQL. Where
    more than words differs, ``postgres`` stands in their place there."""

    version: int
    what: str
    statements: Sequence[str]
    postgres: Sequence[str] = ()


_POSTGRES_WORDS = {"BLOB": "BYTEA", "ROW_NUMBER": "BIGINT", "DOUBLE": "DOUBLE PRECISION"}
_SQLITE_WORDS = {"ROW_NUMBER": "INTEGER"}
_CHANGED = "UPDATE evidence_version SET version = version + 1"
# By the table's own schema: who changes it may have another one in the search path.
_CHANGED_IN_POSTGRES = (
    "EXECUTE format('UPDATE %I.evidence_version SET version = version + 1', TG_TABLE_SCHEMA)"
)
_COUNTED = (
    "CREATE TABLE evidence_version (version BIGINT NOT NULL)",
    "INSERT INTO evidence_version VALUES (0)",
)

MIGRATIONS: Sequence[Migration] = (
    Migration(
        1,
        "evidence with its vectors",
        (
            "CREATE TABLE counters (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL)",
            "CREATE TABLE evidence (row_id ROW_NUMBER NOT NULL PRIMARY KEY,"
            " evidence_id TEXT NOT NULL UNIQUE, entity_id TEXT NOT NULL,"
            " predicate TEXT NOT NULL, credibility DOUBLE, timestamp BIGINT,"
            " evidence_type TEXT NOT NULL, source TEXT, report_id TEXT,"
            " supports_value TEXT, content_key BLOB NOT NULL, content_hash BLOB NOT NULL,"
            " salt BLOB NOT NULL, commitment BLOB NOT NULL, ingested_at BIGINT NOT NULL,"
            " claim TEXT, text_content TEXT NOT NULL)",
            "CREATE INDEX evidence_by_question ON evidence (entity_id, predicate)",
            "CREATE TABLE erased_evidence (evidence_id TEXT NOT NULL PRIMARY KEY,"
            " erased_at BIGINT NOT NULL)",
            "CREATE TABLE readers (reader SMALLINT NOT NULL PRIMARY KEY,"
            " reader_id TEXT NOT NULL UNIQUE, width INTEGER NOT NULL)",
            "CREATE TABLE features (row_id ROW_NUMBER NOT NULL, reader SMALLINT NOT NULL,"
            " vector BLOB NOT NULL, PRIMARY KEY (row_id, reader))",
        ),
    ),
    Migration(
        2,
        "canonical facts with their history",
        (
            "CREATE TABLE facts (fact_id ROW_NUMBER NOT NULL PRIMARY KEY, entity_id TEXT NOT NULL,"
            " predicate TEXT NOT NULL, value TEXT NOT NULL, confidence DOUBLE NOT NULL,"
            " timestamp BIGINT NOT NULL, source TEXT, recorded_at BIGINT NOT NULL,"
            " superseded_at BIGINT, superseded_by BIGINT)",
            "CREATE INDEX facts_by_question ON facts (entity_id, predicate, timestamp)",
        ),
    ),
    Migration(
        3,
        "the provenance ledger",
        (
            "CREATE TABLE ledger_identity (origin TEXT NOT NULL PRIMARY KEY,"
            " public_key BLOB NOT NULL, created_at BIGINT NOT NULL)",
            "CREATE TABLE ledger (seq ROW_NUMBER NOT NULL PRIMARY KEY, leaf BLOB NOT NULL,"
            " body BLOB NOT NULL, checkpoint BLOB)",
            "CREATE TABLE ledger_blobs (hash BLOB NOT NULL PRIMARY KEY, body BLOB NOT NULL)",
            "CREATE TABLE ledger_tiles (level SMALLINT NOT NULL, number BIGINT NOT NULL,"
            " hashes BLOB NOT NULL, PRIMARY KEY (level, number))",
            "CREATE TABLE query_texts (commitment BLOB NOT NULL PRIMARY KEY, salt BLOB NOT NULL,"
            " text TEXT NOT NULL)",
        ),
    ),
    Migration(
        4,
        "erasures that are not finished, and evidence by its content",
        (
            "CREATE TABLE pending_erasures (evidence_id TEXT NOT NULL PRIMARY KEY,"
            " row_id BIGINT NOT NULL, content_key BLOB NOT NULL, started_at BIGINT NOT NULL)",
            "CREATE INDEX evidence_by_content ON evidence (content_hash)",
        ),
    ),
    Migration(
        5,
        "the newest checkpoint at once, however many records came after it",
        ("CREATE INDEX ledger_checkpoints ON ledger (seq) WHERE checkpoint IS NOT NULL",),
    ),
    Migration(
        6,
        "a count of changes to the evidence, whoever makes them",
        (
            *_COUNTED,
            *(
                f"CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN {_CHANGED}; END"
                for table in ("evidence", "features")
                for event in ("insert", "update", "delete")
            ),
        ),
        (
            *_COUNTED,
            "CREATE FUNCTION evidence_changed() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$BEGIN {_CHANGED_IN_POSTGRES}; RETURN NULL; END$$",
            *(
                f"CREATE TRIGGER {table}_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE"
                f" ON {table} FOR EACH STATEMENT EXECUTE FUNCTION evidence_changed()"
                for table in ("evidence", "features")
            ),
        ),
    ),
)
NEWEST = MIGRATIONS[-1].version

_VERSION = Prepared(select(func.max(schema_versions.c.version)))
_NOTE = Prepared(
    insert(schema_versions).values(
        version=bindparam("version"), applied_at=bindparam("applied_at")
    ),
    "version",
    "applied_at",
)

_KNOWN_TO_SQLITE = "SELECT 1 FROM sqlite_master WHERE name = 'schema_versions'"
# Not by to_regclass(): that one remembers a table's absence beyond the wait for the lock.
_KNOWN_TO_POSTGRES = (
    "SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = 'schema_versions'"
    " AND schemaname = ANY (current_schemas(false))"
)


def migrate(database: Database, upto: int = NEWEST) -> int:
    """Brings the store to ``upto`` and returns the version it was found in (0: blank).
    StoreVersionError where it was written by a newer version of this package."""
    found = version_of(database)
    if found > NEWEST:
        raise StoreVersionError(
            f"{database.name}: is of version {found}, this program knows versions up to {NEWEST}. "
            "Nothing was read or written; use the newer program that wrote it."
        )
    for migration in MIGRATIONS:
        if found < migration.version <= upto:
            _apply(database, migration)
    return found


def version_of(database: Database) -> int:
    """The version a store is in; 0 for a blank one."""
    with translate_errors(database.name):
        return _version_on(database, database.connection)


def _apply(database: Database, migration: Migration) -> None:
    with database.writing() as connection:
        if not database.is_sqlite:
            connection.execute(f"SELECT pg_advisory_xact_lock({LOCK_NUMBER})")
        if _version_on(database, connection) >= migration.version:
            return  # another process was quicker
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_versions"
            " (version INTEGER NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)"
        )
        for statement in _statements(migration, database.is_sqlite):
            connection.execute(statement)
        database.run(connection, _NOTE, (migration.version, now_micros()))


def _version_on(database: Database, connection: Connection) -> int:
    known = _KNOWN_TO_SQLITE if database.is_sqlite else _KNOWN_TO_POSTGRES
    if connection.execute(known).fetchone() is None:
        return 0
    return int(database.run(connection, _VERSION).fetchone()[0] or 0)


def _statements(migration: Migration, for_sqlite: bool) -> Sequence[str]:
    if migration.postgres and not for_sqlite:
        return migration.postgres
    return [_worded(statement, for_sqlite) for statement in migration.statements]


def _worded(statement: str, for_sqlite: bool) -> str:
    for word, meaning in (_SQLITE_WORDS if for_sqlite else _POSTGRES_WORDS).items():
        statement = statement.replace(word, meaning)
    return statement
