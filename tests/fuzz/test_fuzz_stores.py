"""Two hundred damaged stores: every command ends with a named error or an answer, never a
traceback, and never changes an answer without saying so."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workspaces
from fuzz.fork_server import Ended, ForkServer
from fuzz.hostile import PAYLOADS, problems

pytestmark = pytest.mark.slow

STORES = 200
CALLS = (
    ("evidence", "list"),
    ("facts", "list"),
    ("ledger", "list"),
    ("ledger", "verify"),
    ("ledger", "replay", "INF00000001"),
    ("doctor", "--full"),
)
QUERY = ("query", "C0001", "level", "--json")
# What a cell may hold instead of what belongs there.
DAMAGE: tuple[Any, ...] = (
    *(None, "", b"", "text", b"\xff\xfe\x00", 0, -1, 2**63 - 1, -(2**63), 1e308, -0.5, 7.5),
    *("nan", b"\x00" * 3, b"\x00" * 1535, "9" * 400, "x" * 100_000),
    *(one.encode("utf-8", "replace").decode() for one in PAYLOADS),
)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as running:
        yield running


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory, server: ForkServer) -> Path:
    """A workspace with evidence, facts and records, its write-ahead log merged into the store."""
    folder = tmp_path_factory.mktemp("fuzz") / "workspace"
    workspaces.make(folder).close()
    for words in (
        ("facts", "set", "C0001", "outcome", "clean", "--confidence", "0.8"),
        QUERY,
        QUERY,
    ):
        ended = server.run(*words, "--workspace", folder)
        assert ended.code == 0, ended.text
    with sqlite3.connect(folder / "store.db") as database:
        database.execute("pragma wal_checkpoint(truncate)")
    return folder


@pytest.mark.parametrize("kind", ["bytes", "cells"])
def test_damaged_stores(kind: str, server: ForkServer, pristine: Path, tmp_path: Path) -> None:
    usual = answer(server.run(*QUERY, "--workspace", shutil.copytree(pristine, tmp_path / "usual")))
    workspace = tmp_path / "workspace"
    failed: list[tuple[str, ...]] = []
    for number in range(STORES // 2):
        generator = random.Random(f"{kind} {number}")
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.copytree(pristine, workspace)
        done = damage(workspace / "store.db", kind, generator)
        ended = server.run(*QUERY, "--workspace", workspace)
        wrong = problems(ended)
        if ended.code == 0 and is_changed_silently(answer(ended), usual):
            wrong.append("another answer, and no word about it")
        other = CALLS[number % len(CALLS)]
        wrong += [
            f"{other}: {one}" for one in problems(server.run(*other, "--workspace", workspace))
        ]
        if wrong:
            failed.append((f"{kind} {number}: {done}", *wrong))
    assert not failed, (len(failed), failed[:5])


def is_changed_silently(given: dict[str, Any], usual: dict[str, Any]) -> bool:
    return given["distribution"] != usual["distribution"] and given["notes"] == usual["notes"]


def answer(ended: Ended) -> dict[str, Any]:
    text = ended.text
    document: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return document


def damage(store: Path, kind: str, generator: random.Random) -> str:
    if kind == "bytes":
        content = bytearray(store.read_bytes())
        place = generator.randrange(len(content))
        length = generator.choice((1, 4, 64, 4096))
        content[place : place + length] = generator.randbytes(length)
        if generator.random() < 0.1:
            del content[place:]
        store.write_bytes(content)
        return f"{length} bytes at {place}"
    with sqlite3.connect(store) as database:
        found = database.execute("select name from sqlite_master where type = 'table'")
        tables = [name for (name,) in found if not name.startswith("sqlite_")]
        table = generator.choice(tables)
        columns = [row[1] for row in database.execute(f'pragma table_info("{table}")')]
        column = generator.choice(columns)
        value = generator.choice(DAMAGE)
        try:
            database.execute(f'update "{table}" set "{column}" = ? where rowid = 1', (value,))
        except sqlite3.IntegrityError:  # the store itself refuses this value here
            return "nothing"
    return f"{table}.{column} = {value!r}"[:200]
