"""Schema migrations of the store. A released migration is never changed.

Each runs under a lock, in the same transaction that records its version, so two processes that
open an empty store at the same time do not both create it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import bindparam, func, insert, select

from lpf.errors import StoreVersionError
from lpf.storage.database import Connection, Database, Row, any_text
from lpf.storage.driver_errors import translate_errors
from lpf.storage.seals import (
    FACT_KINDS,
    ITEM_KINDS,
    is_sound,
    row_seal,
    vector_is_sound,
    vector_seal,
)
from lpf.storage.sqlite_file import APPLICATION_ID
from lpf.storage.statements import Prepared
from lpf.storage.tables import schema_versions
from lpf.storage.values import now_micros

LOCK_NUMBER = 0x6C7066  # "lpf": the number of our advisory lock in PostgreSQL


@dataclass(frozen=True)
class Migration:
    """``statements`` use placeholder types that are replaced per database (see below). If the SQL
    differs further, ``postgres`` holds the statements for PostgreSQL. ``then`` runs afterwards, in
    the same transaction."""

    version: int
    description: str
    statements: Sequence[str]
    postgres: Sequence[str] = ()
    then: Callable[[Database, Connection], None] | None = None


_POSTGRES_TYPES = {"BLOB": "BYTEA", "ROW_NUMBER": "BIGINT", "DOUBLE": "DOUBLE PRECISION"}
_SQLITE_TYPES = {"ROW_NUMBER": "INTEGER"}
_CHANGED = "UPDATE evidence_version SET version = version + 1"
# In the table's own schema: the session that changes it may have another search path.
_CHANGED_IN_POSTGRES = (
    "EXECUTE format('UPDATE %I.evidence_version SET version = version + 1', TG_TABLE_SCHEMA)"
)
_COUNTED = (
    "CREATE TABLE evidence_version (version BIGINT NOT NULL)",
    "INSERT INTO evidence_version VALUES (0)",
)

_SEALED_EVIDENCE = (
    "evidence_id, entity_id, predicate, credibility, timestamp, evidence_type, source, report_id,"
    " supports_value, content_key, content_hash, salt, commitment, ingested_at"
)
_SEALED_FACTS = (
    "entity_id, predicate, value, confidence, timestamp, source, recorded_at, superseded_at,"
    " superseded_by"
)
_ITEM_COLUMNS = (
    " entity_id TEXT NOT NULL, predicate TEXT NOT NULL, credibility DOUBLE, timestamp BIGINT,"
    " evidence_type TEXT NOT NULL, source TEXT, report_id TEXT, supports_value TEXT,"
    " content_key BLOB NOT NULL, content_hash BLOB NOT NULL, salt BLOB NOT NULL,"
    " commitment BLOB NOT NULL, ingested_at BIGINT NOT NULL, claim TEXT,"
    " text_content TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 1,"
    " seal BLOB NOT NULL DEFAULT '',"
)
ROWS_AT_ONCE = 1000


def _seal_rows(database: Database, connection: Connection) -> None:
    """Seal the sound rows that the store holds now; others keep their empty seal. Mark the file of
    a SQLite store as ours."""
    if database.is_sqlite:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    mark = "?" if database.is_sqlite else "%s"
    with any_text(database, connection):
        for table, key, fields, kinds in (
            ("evidence", "row_id", f"{_SEALED_EVIDENCE}, version", ITEM_KINDS),
            ("facts", "fact_id", _SEALED_FACTS, FACT_KINDS),
        ):
            _in_chunks(
                connection,
                f"SELECT {key}, {fields} FROM {table} WHERE {key} > {mark} ORDER BY {key}",
                f"UPDATE {table} SET seal = {mark} WHERE {key} = {mark}",
                (0,),
                partial(_sealed, kinds),
            )
        _in_chunks(
            connection,
            "SELECT features.row_id, features.reader, commitment, reader_id, vector, width"
            " FROM features"
            " LEFT JOIN evidence ON evidence.row_id = features.row_id"
            " LEFT JOIN readers ON readers.reader = features.reader"
            f" WHERE (features.row_id, features.reader) > ({mark}, {mark})"
            " ORDER BY features.row_id, features.reader",
            f"UPDATE features SET seal = {mark} WHERE row_id = {mark} AND reader = {mark}",
            (0, 0),
            _sealed_vector,
        )


def _sealed(kinds: Sequence[str], row: Row) -> Row:
    key, *values = row
    return row_seal(values) if is_sound(values, kinds) else b"", key


def _sealed_vector(row: Row) -> Row:
    row_id, reader, commitment, reader_id, vector, width = row
    sound = isinstance(reader_id, str) and vector_is_sound(vector, width)
    return vector_seal(commitment, reader_id, vector) if sound else b"", row_id, reader


def _in_chunks(
    connection: Connection,
    query: str,
    change: str,
    start: Row,
    changed: Callable[[Row], Row],
) -> None:
    """Apply ``change`` to all rows of ``query``, which begin with the key that orders them."""
    last = start
    while rows := connection.execute(f"{query} LIMIT {ROWS_AT_ONCE}", last).fetchall():
        connection.cursor().executemany(change, [changed(tuple(row)) for row in rows])
        last = tuple(rows[-1][: len(start)])


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
        "pending erasures, and an index of evidence by content",
        (
            "CREATE TABLE pending_erasures (evidence_id TEXT NOT NULL PRIMARY KEY,"
            " row_id BIGINT NOT NULL, content_key BLOB NOT NULL, started_at BIGINT NOT NULL)",
            "CREATE INDEX evidence_by_content ON evidence (content_hash)",
        ),
    ),
    Migration(
        5,
        "an index that finds the newest checkpoint",
        ("CREATE INDEX ledger_checkpoints ON ledger (seq) WHERE checkpoint IS NOT NULL",),
    ),
    Migration(
        6,
        "a counter of all changes to the evidence",
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
    Migration(
        7,
        "seals, superseded versions of items, and folders with copies of vectors",
        (
            "ALTER TABLE evidence ADD COLUMN version INTEGER NOT NULL DEFAULT 1",
            "ALTER TABLE evidence ADD COLUMN seal BLOB NOT NULL DEFAULT ''",
            "ALTER TABLE features ADD COLUMN seal BLOB NOT NULL DEFAULT ''",
            "ALTER TABLE facts ADD COLUMN seal BLOB NOT NULL DEFAULT ''",
            "CREATE TABLE superseded_evidence (row_id ROW_NUMBER NOT NULL PRIMARY KEY,"
            f" evidence_id TEXT NOT NULL,{_ITEM_COLUMNS} superseded_at BIGINT NOT NULL)",
            "CREATE INDEX superseded_by_id ON superseded_evidence (evidence_id)",
            "CREATE TABLE pending_versions (evidence_id TEXT NOT NULL,"
            " row_id ROW_NUMBER NOT NULL PRIMARY KEY, content_key BLOB NOT NULL,"
            " started_at BIGINT NOT NULL)",
            "INSERT INTO pending_versions"
            " SELECT evidence_id, row_id, content_key, started_at FROM pending_erasures",
            "DROP TABLE pending_erasures",
            "ALTER TABLE pending_versions RENAME TO pending_erasures",
            "CREATE TABLE vector_folders (folder_id TEXT NOT NULL PRIMARY KEY, host TEXT NOT NULL,"
            " path TEXT NOT NULL, erased_count BIGINT NOT NULL, updated_at BIGINT NOT NULL)",
        ),
        then=_seal_rows,
    ),
    Migration(
        8,
        "superseded versions by their content",
        ("CREATE INDEX superseded_by_content ON superseded_evidence (content_hash)",),
    ),
    Migration(
        9,
        "a table of contents of the ledger",
        (
            "CREATE TABLE ledger_contents (seq ROW_NUMBER NOT NULL PRIMARY KEY,"
            " kind TEXT NOT NULL, entity_id TEXT NOT NULL, predicate TEXT NOT NULL, value TEXT,"
            " confidence DOUBLE, timestamp BIGINT NOT NULL, about BIGINT, context BLOB)",
            "CREATE INDEX contents_by_question"
            " ON ledger_contents (entity_id, predicate, kind, seq)",
            "CREATE INDEX contents_by_predicate"
            " ON ledger_contents (predicate, kind, entity_id, seq)",
            "CREATE INDEX contents_about ON ledger_contents (about) WHERE about IS NOT NULL",
        ),
    ),
)
NEWEST = MIGRATIONS[-1].version

_VERSION = Prepared(select(func.max(schema_versions.c.version)))
_RECORD_VERSION = Prepared(
    insert(schema_versions).values(
        version=bindparam("version"), applied_at=bindparam("applied_at")
    ),
    "version",
    "applied_at",
)

_TABLE_EXISTS_SQLITE = "SELECT 1 FROM sqlite_master WHERE name = 'schema_versions'"
# Not to_regclass(): it may answer from a catalogue cache that is older than the wait for the lock.
_TABLE_EXISTS_POSTGRES = (
    "SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = 'schema_versions'"
    " AND schemaname = ANY (current_schemas(false))"
)


def migrate(database: Database, upto: int = NEWEST) -> int:
    """Migrate the store to version ``upto`` and return the version it had before (0 if empty).
    StoreVersionError if a newer version of this package has written it."""
    version = version_of(database)
    if version > NEWEST:
        raise StoreVersionError(
            f"{database.name} has schema version {version}; this version of lpf supports up to "
            f"{NEWEST}. Nothing was read or written; upgrade lpf."
        )
    for migration in MIGRATIONS:
        if version < migration.version <= upto:
            _apply(database, migration)
    return version


def version_of(database: Database) -> int:
    """The schema version of a store; 0 if it is empty."""
    with translate_errors(database.name):
        return _version_on(database, database.connection)


def _apply(database: Database, migration: Migration) -> None:
    with database.transaction() as connection:
        if not database.is_sqlite:
            connection.execute(f"SELECT pg_advisory_xact_lock({LOCK_NUMBER})")
        if _version_on(database, connection) >= migration.version:
            return  # another process has just applied it
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_versions"
            " (version INTEGER NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)"
        )
        for statement in _statements(migration, database.is_sqlite):
            connection.execute(statement)
        if migration.then is not None:
            migration.then(database, connection)
        database.run(connection, _RECORD_VERSION, (migration.version, now_micros()))


def _version_on(database: Database, connection: Connection) -> int:
    table_exists = _TABLE_EXISTS_SQLITE if database.is_sqlite else _TABLE_EXISTS_POSTGRES
    if connection.execute(table_exists).fetchone() is None:
        return 0
    return int(database.run(connection, _VERSION).fetchone()[0] or 0)


def _statements(migration: Migration, for_sqlite: bool) -> Sequence[str]:
    if migration.postgres and not for_sqlite:
        return migration.postgres
    return [_replace_types(statement, for_sqlite) for statement in migration.statements]


def _replace_types(statement: str, for_sqlite: bool) -> str:
    for placeholder, type_name in (_SQLITE_TYPES if for_sqlite else _POSTGRES_TYPES).items():
        statement = statement.replace(placeholder, type_name)
    return statement
