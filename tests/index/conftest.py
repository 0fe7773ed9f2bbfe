from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_up import Filled

from lpf.reading.reader import Reader
from lpf.storage.database import Database
from lpf.storage.migrations import migrate


@pytest.fixture
def filled(store_url: str) -> Iterator[Filled]:
    """A blank store of each kind in turn."""
    with Database(store_url) as database:
        migrate(database)
        yield Filled(database)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Filled]:
    """A blank SQLite store, where the kind of store plays no part."""
    with Database(tmp_path / "small.db") as database:
        migrate(database)
        yield Filled(database)


@pytest.fixture
def never_opened() -> Callable[[], Reader]:
    def refuse() -> Reader:
        raise AssertionError("the reader must not be opened")

    return refuse
