"""Small ledgers for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lpf.ledger import (
    Draft,
    Ledger,
    QueryText,
    canonical,
    public_bytes,
    query_text_commitment,
    reference,
)
from lpf.storage.database import Database
from lpf.storage.migrations import migrate

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
SETTINGS = canonical({"mode": "robust", "temperature": 0.8})


def draft(number: int = 0, **fields: object) -> Draft:
    return Draft(content_of(number, **fields), (SETTINGS,))


def content_of(number: int = 0, **fields: object) -> dict[str, object]:
    return {
        "entity_id": f"C{number:04d}",
        "distribution": {"high": 0.25 + number / 4096, "low": 1e-7, "medium": 1.0},
        "note": f'Zoë said "{number}"\n',
        "settings": reference(SETTINGS),
        **fields,
    }


def asked_in(words: str, number: int = 0) -> tuple[Draft, QueryText]:
    """A record of a question asked in ``words``."""
    salt = f"salt {number}".encode()
    text = QueryText(query_text_commitment(salt, words), salt, words)
    content = content_of(number, query_text=text.commitment.hex())
    return Draft(content, (SETTINGS,), (text,)), text


def created(url: str | Path, key: Ed25519PrivateKey = KEY) -> Database:
    """A migrated store with a ledger of ``key``."""
    database = Database(url)
    migrate(database)
    Ledger.create(database, public_bytes(key))
    return database


@contextmanager
def opened(url: str | Path, **settings: float) -> Iterator[tuple[Database, Ledger]]:
    with created(url) as database, Ledger(database, KEY, **settings) as ledger:
        yield database, ledger


def execute(database: Database, statement: str, *arguments: object) -> None:
    """A change from outside, in SQLite's words."""
    words = statement if database.is_sqlite else statement.replace("?", "%s")
    database.connection.execute(words, arguments)


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def append_from_another_process(url: str, count: int) -> None:
    """What a spawned process runs; importable by its name."""
    with Database(url) as database, Ledger(database, KEY, checkpoint_seconds=0.02) as ledger:
        for number in range(count):
            ledger.append(draft(number))
