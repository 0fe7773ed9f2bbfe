"""Rows that were not taken, kept beside the store until somebody mends them.

Ingestions add to these files and erasures rewrite them, so whoever does either is alone with the
folder meanwhile, and no file stays open longer than that.

Taking erased items out of the files of rejects.
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
from lpf.ingest.evidence_rows import Problem
from lpf.storage.atomic_files import sync, wipe, write_atomically
from lpf.storage.values import iso, text_problem
from lpf.types import Evidence

ENDING = ".rejects.jsonl"
UNFINISHED = ".part"
LOCK = "rejects.lock"
LOCK_SECONDS = 60.0
LONGEST_SOURCE = 120  # bytes of a file's name; what is put around it must fit in 255

Erased = Callable[[Iterable[str]], dict[str, int]]


class RejectsFile:
    """Made when the first row is rejected. It has its name once it is complete; what an
    interruption leaves is complete as far as it goes. Of a row whose id is one of ``erased`` (see
    ``EvidenceStore.erased``) nothing but the id is kept. ``source`` is the path of the file that
    the rows come from; the last part of it names this one."""

    def __init__(self, folder: str | Path, source: str, erased: Erased) -> None:
        self._folder = Path(folder)
        self._source = Path(source).name.encode()[:LONGEST_SOURCE].decode(errors="ignore")
        self._erased = erased
        self._path: Path | None = None

    def write(self, problems: Sequence[Problem]) -> None:
        if not problems:
            return
        with alone_with(self._folder):
            lines = [problem.as_json() + "\n" for problem in self._without_erased(problems)]
            if self._path is None:
                self._path = self._free_name()
            # Half a character, which UTF-8 has no bytes for, becomes JSON's escape of it.
            with _unfinished(self._path).open("ab") as file:
                file.write("".join(lines).encode(errors="backslashreplace"))
                file.flush()
                os.fsync(file.fileno())

    def close(self) -> Path | None:
        """Where the rejects are; None if there are none."""
        if self._path is not None:
            with alone_with(self._folder):
                if not self._path.exists():
                    _unfinished(self._path).replace(self._path)
                    sync(self._folder)
        return self._path

    def _without_erased(self, problems: Sequence[Problem]) -> Iterator[Problem]:
        """Asked while no erasure is under way, so that none can miss a row written here."""
        names = [_evidence_id(problem) for problem in problems]
        erased = self._erased({name for name in names if name})
        for name, problem in zip(names, problems, strict=True):
            if name in erased:
                reason = f"was erased at {iso(erased[name])}; its row is not kept"
                bare = {"evidence_id": name}
                yield replace(problem, field="evidence_id", error=reason, row=bare)
            else:
                yield problem

    def _free_name(self) -> Path:
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        for number in count(1):
            ending = "" if number == 1 else f"-{number}"
            path = self._folder / f"{self._source}.{moment}{ending}{ENDING}"
            if not path.exists() and not _unfinished(path).exists():
                return path
        raise AssertionError("numbers do not end")


@contextmanager
def alone_with(folder: str | Path) -> Iterator[None]:
    """Holds back everybody else who writes to a folder of rejects."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    lock = FileLock(Path(folder) / LOCK, timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise StoreBusyError(
            f"{folder}: another process has been writing rejects for more than {LOCK_SECONDS:.0f} "
            "seconds. Nothing was written there; repeat it when that has ended."
        ) from None
    try:
        yield
    finally:
        lock.release()


def rejects_in(folder: str | Path) -> list[Path]:
    """All files of rejects, also what a killed process left unfinished."""
    return sorted(Path(folder).glob(f"*{ENDING}*"))


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + UNFINISHED)


def _evidence_id(problem: Problem) -> str:
    """The id that the row gives, be it a number; empty where it gives none that could be one."""
    given = problem.row.get("evidence_id") if isinstance(problem.row, dict) else None
    text = str(given) if isinstance(given, str | int) else ""
    return "" if text_problem(text) else text.strip()


_OLD = ".old"


class Traces:
    """What erased items are recognised by: their ids, and texts and claims where these are still
    known. Blanks do not matter, other texts that quote one do not count."""

    def __init__(self, evidence_ids: Iterable[str], items: Iterable[Evidence]) -> None:
        items = list(items)
        self._ids = set(evidence_ids)
        self._texts = {_plain(item.text_content) for item in items}
        self._claims = {_plain(item.claim) for item in items if item.claim is not None}

    def without(self, line: str) -> str | None:
        """What may stay of a line: all of it; nothing, where it is about an erased item; or, where
        it shares no more than the claim, what was wrong and where but not the row."""
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return None  # a process was killed while it wrote this; nobody knows what it holds
        row = entry.get("row") if isinstance(entry, dict) else entry
        if row is None:
            return line
        if not isinstance(row, dict):
            return None
        texts = set(map(_plain, _texts(row)))
        evidence_id = str(row.get("evidence_id"))
        if {evidence_id, evidence_id.strip()} & self._ids or texts & self._texts:
            return None
        return _without_row(entry) if texts & self._claims else line


def clean_rejects(folder: str | Path, traces: Traces) -> int:
    """Returns how many lines were removed or lost their row. The caller is alone with the folder.

    Every file is put aside, written anew and only then overwritten: if this is interrupted no line
    is lost, and what was put aside is cleaned by the next erasure like any other."""
    return sum(_clean(path, traces) for path in rejects_in(folder))


def _clean(path: Path, traces: Traces) -> int:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        lines = list(file)
    kept = [traces.without(line) for line in lines]
    changed = sum(before != after for before, after in zip(lines, kept, strict=True))
    if changed:
        old = path.with_name(path.name + _OLD)
        path.replace(old)
        content = "".join(line for line in kept if line is not None)
        write_atomically(path, content.encode(errors="backslashreplace"))
        wipe(old)
    return changed


def _without_row(entry: dict[str, object]) -> str:
    return json.dumps({**entry, "row": None}, ensure_ascii=False) + "\n"


def _texts(value: object) -> Iterator[str]:
    """All texts in a JSON value, however deep."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part


def _plain(text: str) -> str:
    return " ".join(text.split())
