"""Taking erased items out of the files of rejects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from lpf.ingest.rejects import rejects_in
from lpf.storage.files import wipe, write_atomically
from lpf.types import Evidence

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
