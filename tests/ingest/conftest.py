from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore
from lpf.storage.migrations import migrate


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EvidenceStore]:
    """A SQLite store, for tests that do not depend on the database."""
    with Database(tmp_path / "store.db", busy_seconds=10.0) as database:
        migrate(database)
        yield EvidenceStore(database)


@pytest.fixture
def either_store(store_url: str) -> Iterator[EvidenceStore]:
    """A SQLite store and a PostgreSQL store in turn."""
    with Database(store_url, busy_seconds=10.0) as database:
        migrate(database)
        yield EvidenceStore(database)
