"""A thousand damaged files of five formats: no traceback, nothing half-written, no raw control
character on a terminal, memory below 1 GB."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workspaces
from fuzz.fork_server import ForkServer
from fuzz.hostile import PAYLOADS, mutated, problems

pytestmark = pytest.mark.slow

FILES = 200  # of each format
FIELDS = ("evidence_id", "entity_id", "predicate", "text", "credibility", "timestamp", "source")


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as running:
        yield running


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "workspace"
    workspaces.make(folder).close()
    return folder


def rows(generator: random.Random) -> list[dict[str, Any]]:
    """Ordinary evidence with a hostile text here and there."""
    made = []
    for number in range(6):
        row: dict[str, Any] = {
            "evidence_id": f"F{number}",
            "entity_id": f"X{number % 3}",
            "predicate": generator.choice(("level", "outcome")),
            "text": workspaces.TEXTS[number],
            "credibility": generator.choice((0.5, 1, 0.25, None)),
            "timestamp": generator.choice(("2026-01-25", "2026-05-13T10:00:00+02:00", None)),
            "source": "auditor",
        }
        if generator.random() < 0.5:
            row[generator.choice(FIELDS)] = generator.choice(PAYLOADS)
        made.append(row)
    return made


def as_csv(some: list[dict[str, Any]], generator: random.Random) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, delimiter=generator.choice(",;\t"))
    writer.writeheader()
    writer.writerows(some)
    encoding = generator.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"))
    errors = "surrogatepass" if encoding.startswith("utf") else "replace"
    return text.getvalue().encode(encoding, errors)


def as_jsonl(some: list[dict[str, Any]], _: random.Random) -> bytes:
    return "\n".join(map(json.dumps, some)).encode()


def as_dataset(some: list[dict[str, Any]], generator: random.Random) -> bytes:
    """One entity per line."""
    lines = [
        {
            "entity_id": row["entity_id"] + str(number),
            "label": generator.choice(workspaces.LEVELS),
            "evidence": [
                {"evidence_id": f"D{number}", "text": row["text"], "credibility": 0.5},
            ],
        }
        for number, row in enumerate(some)
    ]
    return "\n".join(map(json.dumps, lines)).encode()


def as_parquet(some: list[dict[str, Any]], generator: random.Random) -> bytes:
    import pyarrow as arrow
    import pyarrow.parquet

    columns: dict[str, Any] = {
        name: [None if row[name] is None else _storable(row[name]) for row in some]
        for name in FIELDS
    }
    if generator.random() < 0.5:
        zone = generator.choice((None, "UTC", "Nowhere/Atlantis", "+99:99"))
        unit = generator.choice(("s", "ms", "us", "ns"))
        largest = 2**52 if unit == "s" else 2**62  # seconds are stored as milliseconds
        moments = [generator.randrange(-largest, largest) for _ in some]
        columns["timestamp"] = arrow.array(moments, arrow.timestamp(unit, zone))
    if generator.random() < 0.3:
        columns["credibility"] = arrow.array([0.5] * len(some)).cast(arrow.float32())
    out = io.BytesIO()
    pyarrow.parquet.write_table(
        arrow.table(columns), out, compression=generator.choice(("none", "snappy", "zstd"))
    )
    return out.getvalue()


def as_xlsx(some: list[dict[str, Any]], generator: random.Random) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(FIELDS)
    for row in some:
        sheet.append([_cell(row[name]) for name in FIELDS])
    out = io.BytesIO()
    book.save(out)
    if generator.random() < 0.5:
        return out.getvalue()
    return _damaged_inside(out.getvalue(), generator)


def _damaged_inside(content: bytes, generator: random.Random) -> bytes:
    """One part of the workbook damaged, the archive itself intact."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        chosen = generator.choice(old.namelist())
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, mutated(part, generator) if name == chosen else part)
    return out.getvalue()


def _storable(value: object) -> str:
    return str(value).encode("utf-8", "replace").decode()


def _cell(value: object) -> object:
    """What a workbook can hold: no control characters."""
    if not isinstance(value, str):
        return value
    return "".join(one for one in _storable(value) if one.isprintable())


FORMATS = {
    "csv": ("csv", as_csv),
    "jsonl": ("jsonl", as_jsonl),
    "dataset": ("jsonl", as_dataset),
    "parquet": ("parquet", as_parquet),
    "xlsx": ("xlsx", as_xlsx),
}


@pytest.mark.parametrize("format_name", FORMATS)
def test_damaged_files(
    format_name: str, server: ForkServer, pristine: Path, tmp_path: Path
) -> None:
    suffix, write = FORMATS[format_name]
    workspace = tmp_path / "workspace"
    failed: list[tuple[str, ...]] = []
    for number in range(FILES):
        generator = random.Random(f"{format_name} {number}")
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.copytree(pristine, workspace)
        content = write(rows(generator), generator)
        damaged = content if generator.random() < 0.2 else mutated(content, generator)
        path = tmp_path / f"file {number}.{suffix}"
        path.write_bytes(damaged)
        strict = ["--strict"] if generator.random() < 0.5 else []
        before = counted(workspace)
        ended = server.run("ingest", path, *strict, "--workspace", workspace)
        wrong = problems(ended)
        if strict and ended.code and counted(workspace) != before:
            wrong.append("refused, but items were added")
        if surplus := left_behind(workspace) - {"rejects"}:
            wrong.append(f"left behind: {surplus}")
        failed += [(f"{format_name} {number}", *wrong)] if wrong else []
        path.unlink()
    assert not failed, (len(failed), failed[:5])


def counted(workspace: Path) -> int:
    """The items in the store, which must be intact and have features for each of them."""
    with sqlite3.connect(workspace / "store.db") as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        (items,) = database.execute("select count(*) from evidence").fetchone()
        (read,) = database.execute("select count(*) from features").fetchone()
    assert items == read
    return int(items)


def left_behind(workspace: Path) -> set[str]:
    """Files and folders that a workspace does not have at first."""
    usual = {
        ".gitignore",
        "lpf.toml",
        "store.db",
        "store.db-wal",
        "store.db-shm",
        "keys",
        "models",
        "active",
    }
    return {path.name for path in workspace.iterdir()} - usual
