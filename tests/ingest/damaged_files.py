"""Files with damaged bytes, and files made to exhaust a reader, ingested in a process with little
memory.

Run as a program it reads every file of a folder, one after the other, and prints what happened to
each as one line of JSON. ``damage`` makes the files, the same ones for the same seed.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

import pyarrow
import pyarrow.parquet
from openpyxl import Workbook as ExcelWorkbook

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a program

from ingest.parts import SCHEMA, HashReader
from lpf.errors import LPFError
from lpf.ingest import ingest, read_facts
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore
from lpf.storage.migrations import migrate

MEMORY = 1024**3
TESTS = Path(__file__).parent.parent
ROWS = [
    {
        "evidence_id": f"E{number}",
        "entity_id": f"C{number % 3}",
        "predicate": "level",
        "text": f"The filing number {number} came late, says Zoë.",
        "credibility": 0.25 * (number % 4),
        "timestamp": datetime(2026, 1, 1 + number, 12, tzinfo=UTC),
        "source": "audit",
        "supports_value": ("low", "medium", "high")[number % 3],
    }
    for number in range(12)
]


def write_valid(path: Path) -> Path:
    """A file of ROWS in the format of its suffix."""
    plain = [{**row, "timestamp": row["timestamp"].isoformat()} for row in ROWS]
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path, row_group_size=5)
    elif path.suffix == ".xlsx":
        book = ExcelWorkbook()
        book.active.append(list(ROWS[0]))
        for row in ROWS:
            book.active.append([*map(_excel, row.values())])
        book.save(path)
    elif path.suffix == ".csv":
        lines = [";".join(ROWS[0]), *(";".join(map(str, row.values())) for row in plain)]
        path.write_text("\n".join(lines), encoding="cp1252")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in plain))
    return path


def _excel(value: object) -> object:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _flip(content: bytearray, draw: random.Random) -> None:
    content[draw.randrange(len(content))] = draw.randrange(256)


def _cut(content: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(content))
    del content[start : start + draw.randrange(1, 40)]


def _repeat(content: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(content))
    content[start:start] = content[start : start + draw.randrange(1, 40)] * draw.randrange(1, 4)


def _insert(content: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(content))
    content[start:start] = draw.randbytes(draw.randrange(1, 12))


CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip,
    _flip,
    _cut,
    _repeat,
    _insert,
)


def _changed(content: bytes, draw: random.Random) -> bytes:
    """Half of the changes are near the end, where Parquet and zip files have their tables of
    contents."""
    changed = bytearray(content)
    for _ in range(draw.randrange(1, 6)):
        change = draw.choice(CHANGES)
        if draw.random() < 0.5:
            tail = changed[-600:]
            change(tail, draw)
            changed[-600:] = tail
        else:
            change(changed, draw)
        changed = changed or bytearray(b"x")
    return bytes(changed)


def _changed_inside(content: bytes, draw: random.Random) -> bytes:
    """A zip file with damage in one of its parts."""
    result = io.BytesIO()
    with ZipFile(io.BytesIO(content)) as old, ZipFile(result, "w") as new:
        chosen = draw.choice(old.namelist())
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, _changed(part, draw) if name == chosen else part)
    return result.getvalue()


def damage(valid: Path, folder: Path, count: int, seed: int) -> None:
    """``count`` copies with a few changes each."""
    folder.mkdir(parents=True, exist_ok=True)
    original = valid.read_bytes()
    for number in range(count):
        draw = random.Random(f"{seed} {number} {valid.suffix}")
        inside = valid.suffix == ".xlsx" and draw.random() < 0.7
        content = (_changed_inside if inside else _changed)(original, draw)
        (folder / f"{number:04d}{valid.suffix}").write_bytes(content)


def outcomes(folder: Path, seconds: float = 120.0) -> dict[str, dict]:
    """What happened to each file, by its name, in a process of limited memory."""
    line = [sys.executable, __file__, str(folder)]
    # Other allocators reserve far more address space than they use, and that is what is limited.
    settings = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=TESTS,
        env={**os.environ, **settings},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    entries = map(json.loads, done.stdout.splitlines())
    return {entry["file"]: entry for entry in entries}


def _peak() -> int:
    """The most memory used so far, in MB; ``ru_maxrss`` would include that of the parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    raise AssertionError("Linux always has this line")


def main(folder: Path) -> None:
    (folder / "store").mkdir()
    with Database(folder / "store" / "store.db") as database:
        migrate(database)
        store = EvidenceStore(database)
        # The limit is set after the imports, whose libraries reserve address space.
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        for path in sorted(each for each in folder.iterdir() if each.is_file()):
            entry = {"file": path.name, "error": None, "bug": None}
            before = store.count()
            added = 0
            try:
                outcome = ingest(
                    path, store, SCHEMA, HashReader(), rejects_folder=folder / "store" / "rejects"
                )
                added = outcome.added
                entry["counts"] = [outcome.added, outcome.updated, outcome.rejected]
            except LPFError as error:
                entry["error"] = f"{type(error).__name__}: {error}"
            except BaseException:
                entry["bug"] = traceback.format_exc()[-3000:]
            if store.count() != before + added:
                entry["bug"] = f"{store.count() - before} items were added, {added} counted"
            try:
                list(read_facts(path))
            except LPFError:
                pass
            except BaseException:
                entry["bug"] = traceback.format_exc()[-3000:]
            entry["megabytes"] = _peak()
            print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    main(Path(sys.argv[1]))
