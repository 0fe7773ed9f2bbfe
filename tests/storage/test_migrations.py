"""Migrations: of an empty store, from every earlier version, and failing ones."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, Table, create_engine, inspect

from lpf.errors import StorageError, StoreVersionError
from lpf.storage import migrations
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore
from lpf.storage.migrations import MIGRATIONS, NEWEST, Migration, migrate, version_of
from lpf.storage.seals import TEXT_CHANGED, row_seal
from lpf.storage.tables import METADATA

EARLIER = [migration.version for migration in MIGRATIONS[:-1]]
SEALED = 7  # the version from which rows have seals


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    with Database(store_url) as opened:
        yield opened


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    """An independent SQLAlchemy engine on the same store."""
    opened = create_engine(database.url)
    yield opened
    opened.dispose()


def reflected(engine: Engine) -> MetaData:
    found = MetaData()
    found.reflect(engine)
    return found


def form_of(table: Table, engine: Engine) -> dict[str, Any]:
    """Columns in order with their types, primary key, indexes."""
    columns = [
        (column.name, column.type.compile(engine.dialect), column.nullable)
        for column in table.columns
    ]
    indexes = {(index.name, tuple(index.columns.keys())) for index in table.indexes}
    return {"columns": columns, "key": table.primary_key.columns.keys(), "indexes": indexes}


def unique_columns(engine: Engine, table: str) -> set[tuple[str, ...]]:
    found = inspect(engine).get_unique_constraints(table)
    return {tuple(constraint["column_names"]) for constraint in found}


def without_unique_indexes(table: Table, form: dict[str, Any]) -> dict[str, Any]:
    """Databases show a unique column as an index too; those are compared as constraints."""
    named = {index.name for index in table.indexes if not index.unique}
    return {**form, "indexes": {index for index in form["indexes"] if index[0] in named}}


def some_value(column: Any, number: int) -> object:
    kind = column.type.python_type
    values = {int: number, float: number / 4, bytes: bytes([number, 0, 255]), str: f"é {number}"}
    return values[kind]


def fill(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Add two rows to every existing table; return all rows."""
    with engine.begin() as connection:
        for table in reflected(engine).sorted_tables:
            if table.name == "schema_versions":
                continue
            for number in (1, 2):
                row = {column.name: some_value(column, number) for column in table.columns}
                connection.execute(table.insert().values(row))
    return contents(engine)


def columns_of(rows: list[tuple[Any, ...]], number: int) -> list[tuple[Any, ...]]:
    """The first columns: later migrations add theirs at the end."""
    return [row[:number] for row in rows]


def contents(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    with engine.connect() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(table.select())]
            for table in reflected(engine).sorted_tables
        }


def test_versions_are_numbered_from_one_without_gaps() -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, NEWEST + 1))


def test_an_empty_store_is_migrated(database: Database) -> None:
    assert version_of(database) == 0
    assert migrate(database) == 0
    assert version_of(database) == NEWEST
    assert migrate(database) == NEWEST


def test_the_migrated_store_matches_the_declared_tables(database: Database, engine: Engine) -> None:
    migrate(database)
    found = reflected(engine)
    assert found.tables.keys() == METADATA.tables.keys()
    for name, table in METADATA.tables.items():
        real = found.tables[name]
        assert without_unique_indexes(real, form_of(real, engine)) == form_of(table, engine), name
        declared = {(column.name,) for column in table.columns if column.unique}
        assert unique_columns(engine, name) == declared, name


@pytest.mark.parametrize("version", EARLIER)
def test_rows_survive_migration_from_every_earlier_version(
    database: Database, engine: Engine, version: int
) -> None:
    migrate(database, upto=version)
    assert version_of(database) == version
    before = fill(engine)
    assert migrate(database) == version
    after = contents(engine)
    assert version_of(database) == NEWEST
    assert after.keys() == METADATA.tables.keys()
    for name, rows in before.items():
        if name == "evidence_version":  # counts the changes that a migration makes too
            continue
        assert columns_of(after[name][: len(rows)], len(rows[0])) == rows, name


def fill_soundly(engine: Engine) -> None:
    """Two items with vectors and two facts, as the program writes them."""
    tables = reflected(engine).tables
    item = {
        **{"entity_id": "C1", "predicate": "level", "evidence_type": "text", "credibility": 0.9},
        **{"content_key": bytes(16), "content_hash": bytes(16), "salt": bytes(16)},
        **{"commitment": bytes(32), "ingested_at": 3, "text_content": "a text"},
    }
    fact = {"entity_id": "é", "predicate": "level", "value": "low", "confidence": 0.5}
    vector = bytes(8)
    with engine.begin() as connection:
        connection.execute(tables["readers"].insert(), {"reader": 1, "reader_id": "r", "width": 2})
        for row in (1, 2):
            own = {"row_id": row, "evidence_id": f"E{row}"}
            connection.execute(tables["evidence"].insert(), {**item, **own})
            vectors = {"row_id": row, "reader": 1, "vector": vector}
            connection.execute(tables["features"].insert(), vectors)
            dated = {"fact_id": row, "timestamp": row, "recorded_at": row}
            connection.execute(tables["facts"].insert(), {**fact, **dated})


@pytest.mark.parametrize("version", [version for version in EARLIER if 1 < version < SEALED])
def test_migration_seals_sound_rows_of_every_earlier_version(
    database: Database, engine: Engine, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "ROWS_AT_ONCE", 1)
    migrate(database, upto=version)
    fill_soundly(engine)
    migrate(database)
    store = EvidenceStore(database)
    assert len(store.candidates("C1", "level", 1)[0]) == 2
    assert [item.reason for item in store.damaged_items()] == [TEXT_CHANGED] * 2
    after = reflected(engine).tables
    with engine.connect() as connection:
        for row in connection.execute(after["facts"].select()):
            assert row.seal == row_seal(row[1:10])


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE evidence SET credibility = 7 WHERE row_id = 1",
        "UPDATE features SET vector = 'abc' WHERE row_id = 1",
        "UPDATE evidence SET timestamp = 9223372036854775807 WHERE row_id = 1",
    ],
)
def test_migration_does_not_seal_rows_that_cannot_be_used(
    database: Database, engine: Engine, change: str
) -> None:
    migrate(database, upto=6)
    fill_soundly(engine)
    with database.transaction() as connection:
        connection.execute(change)
    migrate(database)
    sound, damaged = EvidenceStore(database).candidates("C1", "level", 1)
    assert [item.evidence_id for item in damaged] == ["E1"]
    assert len(sound) == 1


def open_and_migrate(url: str) -> tuple[int, int]:
    with Database(url) as database:
        return migrate(database), version_of(database)


def test_concurrent_processes_migrate_an_empty_store_once(
    database: Database, store_url: str, engine: Engine
) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        found = list(pool.map(open_and_migrate, [store_url] * 8))
    assert {after for _, after in found} == {NEWEST}
    versions = [row[0] for row in contents(engine)["schema_versions"]]
    assert versions == list(range(1, NEWEST + 1))


def test_a_failed_migration_is_rolled_back(
    database: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(database)
    before = fill(engine)
    statements = (
        "CREATE TABLE half (a INTEGER)",
        "DELETE FROM facts",
        "ALTER TABLE facts ADD COLUMN b INTEGER",
        "INSERT INTO no_such_table VALUES (1)",
    )
    broken = Migration(NEWEST + 1, "fails at its last step", statements)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, broken))
    with pytest.raises(StorageError, match="no_such_table"):
        migrate(database, upto=NEWEST + 1)
    assert contents(engine) == before
    assert version_of(database) == NEWEST


def test_a_failed_first_migration_leaves_the_store_empty(
    database: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Migration(1, "fails", ("CREATE TABLE half (a INTEGER)", "NOT SQL"))
    monkeypatch.setattr(migrations, "MIGRATIONS", (broken,))
    with pytest.raises(StorageError):
        migrate(database)
    assert contents(engine) == {}
    assert version_of(database) == 0


def test_a_newer_store_is_rejected_and_not_changed(database: Database, engine: Engine) -> None:
    migrate(database)
    fill(engine)
    with database.transaction() as connection:
        connection.execute(f"INSERT INTO schema_versions VALUES ({NEWEST + 1}, 0)")
        connection.execute("CREATE TABLE of_the_future (a INTEGER)")
    before = contents(engine)
    with pytest.raises(StoreVersionError, match=f"version {NEWEST + 1}.*up to {NEWEST}"):
        migrate(database)
    assert contents(engine) == before
