"""Rejects files: rows that were not ingested, written to a folder so that they can be fixed.

Ingestion adds to these files and erasure rewrites them. Both lock the folder while they do, and
close every file before they release the lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from filelock import FileLock, Timeout

from lpf.errors import StoreBusyError
from lpf.ingest.row_fields import Problem
from lpf.storage.atomic_files import (
    PRIVATE_FILE,
    open_private,
    private_folder,
    sync,
    wipe,
    write_atomically,
)
from lpf.storage.values import iso, text_problem
from lpf.types import Evidence

SUFFIX = ".rejects.jsonl"
UNFINISHED = ".part"
_OLD = ".old"
LOCK = "rejects.lock"
LOCK_SECONDS = 60.0
LONGEST_SOURCE = 120  # bytes; with timestamp and suffix a file name must fit in 255

ErasureTimes = Callable[[Iterable[str]], dict[str, int]]


class RejectsFile:
    """The rejects of one ingestion. The file is created with the first rejected row.

    Its name ends in ``.part`` until it is complete. ``source`` is the path of the input file, whose
    name becomes part of this file's. If a row has the ID of an erased item (``erasure_times`` is
    ``EvidenceStore.erasure_times``), only its ID is written.
    """

    def __init__(self, folder: str | Path, source: str, erasure_times: ErasureTimes) -> None:
        self._folder = Path(folder)
        name = Path(source).name.encode(errors="backslashreplace")
        self._source = name[:LONGEST_SOURCE].decode(errors="ignore")
        self._erasure_times = erasure_times
        self._path: Path | None = None

    def write(self, problems: Sequence[Problem]) -> None:
        if not problems:
            return
        with locked_folder(self._folder):
            lines = [problem.as_json() + "\n" for problem in self._without_erased(problems)]
            if self._path is None:
                self._path = self._unused_path()
            # A lone surrogate, which UTF-8 cannot encode, is written as a JSON escape.
            with open_private(_unfinished(self._path), "ab") as file:
                file.write("".join(lines).encode(errors="backslashreplace"))
                file.flush()
                os.fsync(file.fileno())

    def close(self) -> Path | None:
        """Complete the file and return its path; None if no row was rejected."""
        if self._path is not None:
            with locked_folder(self._folder):
                if not self._path.exists():
                    _unfinished(self._path).replace(self._path)
                    sync(self._folder)
        return self._path

    def _without_erased(self, problems: Sequence[Problem]) -> Iterator[Problem]:
        """Called with the folder locked, so that no erasure can miss a row written here."""
        names = [_evidence_id(problem) for problem in problems]
        erased = self._erasure_times({name for name in names if name})
        for name, problem in zip(names, problems, strict=True):
            if name in erased:
                error = f"was erased at {iso(erased[name])}; the row is not stored"
                row = {"evidence_id": name}
                yield replace(problem, field="evidence_id", error=error, row=row)
            else:
                yield problem

    def _unused_path(self) -> Path:
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        for number in count(1):
            counter = "" if number == 1 else f"-{number}"
            path = self._folder / f"{self._source}.{moment}{counter}{SUFFIX}"
            if not path.exists() and not _unfinished(path).exists():
                return path
        raise AssertionError("numbers do not end")


@contextmanager
def locked_folder(folder: str | Path) -> Iterator[None]:
    """Lock a rejects folder against other writers."""
    private_folder(Path(folder))
    lock = FileLock(Path(folder) / LOCK, timeout=LOCK_SECONDS, mode=PRIVATE_FILE)
    try:
        lock.acquire()
    except Timeout:
        raise StoreBusyError(
            f"{folder}: another process has locked the rejects folder for more than "
            f"{LOCK_SECONDS:.0f} seconds. Nothing was written; try again when it has finished."
        ) from None
    try:
        yield
    finally:
        lock.release()


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + UNFINISHED)


def _evidence_id(problem: Problem) -> str:
    """The ID of the row as text; empty if the row has no valid ID."""
    given = problem.row.get("evidence_id") if isinstance(problem.row, dict) else None
    text = str(given) if isinstance(given, str | int) else ""
    return "" if text_problem(text) else text.strip()


class ErasedContent:
    """Recognises erased items in rejects files by their IDs and, if still known, texts and claims.
    Texts are compared as a whole, without regard to whitespace."""

    def __init__(self, evidence_ids: Iterable[str], items: Iterable[Evidence]) -> None:
        items = list(items)
        self._ids = set(evidence_ids)
        self._texts = {_normalised(item.text_content) for item in items}
        self._claims = {_normalised(item.claim) for item in items if item.claim is not None}

    def redact(self, line: str) -> str | None:
        """The line without erased content: None if it is about an erased item; without its row if
        it only has the same claim; else unchanged."""
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return None  # a partly written line; its content is unknown
        row = entry.get("row") if isinstance(entry, dict) else entry
        if row is None:
            return line
        if not isinstance(row, dict):
            return None
        texts = set(map(_normalised, _texts(row)))
        evidence_id = str(row.get("evidence_id"))
        if {evidence_id, evidence_id.strip()} & self._ids or texts & self._texts:
            return None
        if texts & self._claims:
            return json.dumps({**entry, "row": None}, ensure_ascii=False) + "\n"
        return line


def may_have_rejects(folder: str | Path) -> bool:
    """Return True if there are rejects files, or if the folder cannot be read."""
    try:
        return any(SUFFIX in path.name for path in Path(folder).iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True


def clean_rejects(folder: str | Path, erased: ErasedContent) -> int:
    """Remove erased content from all rejects files, unfinished ones included. Return how many lines
    were removed or lost their row. The caller must have locked the folder.

    Each file is renamed, written again, and only then is the old one overwritten: an interruption
    loses no line, and the renamed file is cleaned by the next erasure like any other.
    """
    return sum(_clean(path, erased) for path in sorted(Path(folder).glob(f"*{SUFFIX}*")))


def _clean(path: Path, erased: ErasedContent) -> int:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        lines = list(file)
    redacted = [erased.redact(line) for line in lines]
    changed = sum(before != after for before, after in zip(lines, redacted, strict=True))
    if changed:
        old = path.with_name(path.name + _OLD)
        path.replace(old)
        content = "".join(line for line in redacted if line is not None)
        write_atomically(path, content.encode(errors="backslashreplace"))
        wipe(old)
    return changed


def _texts(value: object) -> Iterator[str]:
    """All strings in a JSON value, at any depth."""
    remaining = [value]
    while remaining:
        part = remaining.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict | list):
            remaining += part.values() if isinstance(part, dict) else part


def _normalised(text: str) -> str:
    return " ".join(text.split())
