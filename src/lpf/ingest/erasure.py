"""Taking an item out so that nothing of its text is left in the workspace's files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lpf.errors import StorageError
from lpf.ingest.rejects import rejects_in
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore, StoredEvidence
from lpf.storage.failures import told_plainly

DEFAULT_WAIT_SECONDS = 10.0
_AGAIN = "end what uses the store and call lpf.ingest.scrub, or erase another item."


@dataclass(frozen=True)
class Erasure:
    """What was removed. The ``content_key`` of an item is what caches go by: they must forget it
    too. ``warnings`` say where something of a text may still be, and what to do."""

    items: tuple[StoredEvidence, ...]
    rejects_removed: int
    warnings: tuple[str, ...] = ()


def erase_evidence(
    evidence_ids: str | Sequence[str],
    store: EvidenceStore,
    rejects_folder: str | Path,
    *,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
) -> Erasure:
    """Removes items from the store and from the files of rejects; UnknownEvidenceError, before
    anything is done, where one is not there. Scrubbing the store's files takes time with their
    size, whatever is erased: many items are best erased in one call.

    The rejects come first: if this is interrupted the items are still there, to be erased again.
    """
    wanted = [evidence_ids] if isinstance(evidence_ids, str) else list(dict.fromkeys(evidence_ids))
    items = [store.get(evidence_id) for evidence_id in wanted]
    paths = rejects_in(rejects_folder)
    removed = sum(_erase_from(path, item) for path in paths for item in items)
    gone = tuple(store.erase(evidence_id) for evidence_id in wanted)
    warning = scrub(store.database, wait_seconds)
    return Erasure(gone, removed, (warning,) if warning else ())


def scrub(database: Database, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> str | None:
    """Rewrites the files of the store, so that they hold nothing of what was deleted; says so if
    that cannot be done now."""
    try:
        with told_plainly(database.name):
            if database.is_sqlite:
                return _rewrite_sqlite(database, wait_seconds)
            for table in ("evidence", "features"):
                database.connection.execute(f"VACUUM (FULL) {table}")
    except StorageError as error:
        return f"{error} What was deleted is deleted, but its bytes may be there still: {_AGAIN}"
    return None


def _rewrite_sqlite(database: Database, wait_seconds: float) -> str | None:
    """What is deleted is overwritten at once, but where a deletion moved rows to other pages, the
    places they left keep a copy of them, which nobody overwrites when they are deleted in turn.
    Then the log, which holds pages as they were, is cut as soon as nobody reads an older state."""
    connection = database.connection
    connection.execute(f"PRAGMA busy_timeout={int(wait_seconds * 1000)}")
    connection.execute("PRAGMA temp_store=FILE")  # the copy may be larger than the memory
    try:
        connection.execute("VACUUM")
        blocked, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA busy_timeout={int(database.busy_seconds * 1000)}")
    if not blocked:
        return None
    return (
        f"{database.name}: what was deleted is deleted, but a process that reads the store keeps "
        f"its log from being cut, so {database.path}-wal may hold the text still: {_AGAIN}"
    )


def _erase_from(path: Path, item: StoredEvidence) -> int:
    """Removes the lines that carry the item; returns how many. The old bytes are overwritten
    before their file is given up."""
    with path.open(encoding="utf-8", newline="\n") as file:
        lines = list(file)
    kept = [line for line in lines if not _carries(line, item)]
    if len(kept) < len(lines):
        _replace_securely(path, "".join(kept))
    return len(lines) - len(kept)


def _carries(line: str, item: StoredEvidence) -> bool:
    try:
        row = json.loads(line).get("row")
    except ValueError:  # a process was killed while it wrote this
        row = line
    if _names(row, item.evidence.evidence_id):
        return True
    forms = _forms(item.evidence.text_content)
    return any(form in text for text in _texts(row) for form in forms)


def _names(row: object, evidence_id: str) -> bool:
    """Whether a row is about the id. Of one that could not be read only the letters are known."""
    if isinstance(row, dict):
        return str(row.get("evidence_id")) == evidence_id
    if isinstance(row, list):
        return evidence_id in row
    return re.search(rf"(?<!\w){re.escape(evidence_id)}(?!\w)", str(row)) is not None


def _texts(value: object) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _forms(text: str) -> set[str]:
    """A text as it stands in a cell, and in a line that was put aside unread."""
    escaped = {json.dumps(text, ensure_ascii=choice)[1:-1] for choice in (True, False)}
    return {text, text.replace('"', '""'), *escaped}


def _replace_securely(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
