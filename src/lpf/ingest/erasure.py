"""Erase evidence so that nothing of its text is left in the files of the workspace.

An erasure has two steps. ``begin_erasure`` removes the item and records a pending erasure; then
the caller makes its indexes and caches forget the item; ``finish_erasure`` rewrites the store's
files and removes the record. After an interruption, erasing the same ID again continues from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lpf.errors import StorageError
from lpf.ingest.rejects import ErasedContent, clean_rejects, locked_folder
from lpf.storage.database import Database
from lpf.storage.driver_errors import translate_errors
from lpf.storage.evidence import DamagedItem, EvidenceStore, PendingErasure

DEFAULT_WAIT_SECONDS = 10.0
TABLES = ("evidence", "superseded_evidence", "features", "pending_erasures", "query_texts")
_RETRY = (
    "stop other programs that use the store and erase the same item again, or call "
    "lpf.ingest.scrub."
)


@dataclass(frozen=True)
class Erasure:
    """The versions of items that were removed, in the order given. Indexes must forget each
    ``row_id`` and caches each ``content_key``. ``warnings`` say where parts of a text may remain
    and what to do. ``rejects_removed`` counts the lines of rejects files that were removed or
    cleared."""

    items: tuple[PendingErasure, ...]
    rejects_removed: int
    warnings: tuple[str, ...] = ()


def erase_evidence(
    evidence_ids: str | Sequence[str],
    store: EvidenceStore,
    rejects_folder: str | Path,
    *,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
) -> Erasure:
    """Both steps, for items that no index or cache holds. The time depends on the size of the
    store's files, not on the number of items, so erase many items in one call."""
    begun = begin_erasure(evidence_ids, store, rejects_folder)
    return finish_erasure(begun, store, wait_seconds=wait_seconds)


def begin_erasure(
    evidence_ids: str | Sequence[str],
    store: EvidenceStore,
    rejects_folder: str | Path,
    other_rejects: Sequence[Path] = (),
) -> Erasure:
    """Remove items from the rejects files and from the store. An erasure that was interrupted is
    continued. UnknownEvidenceError, before anything is removed, if an item was never in the store
    or its erasure is finished.

    Rejects come first: their lines are recognised by the text, which is gone afterwards.
    ``other_rejects`` are the rejects folders of other workspaces that use the same store.
    """
    wanted = [evidence_ids] if isinstance(evidence_ids, str) else list(dict.fromkeys(evidence_ids))
    with locked_folder(rejects_folder):
        pending: dict[str, list[PendingErasure]] = {}
        for item in store.pending_erasures():
            pending.setdefault(item.evidence_id, []).append(item)
        damaged: list[DamagedItem] = []  # recognised by their IDs alone
        stored = {name: store.versions(name, damaged) for name in wanted if name not in pending}
        content = ErasedContent(wanted, (one.evidence for all in stored.values() for one in all))
        removed = clean_rejects(rejects_folder, content)
        for folder in other_rejects:
            with locked_folder(folder):
                removed += clean_rejects(folder, content)
        for name in stored:
            pending[name] = store.erase(name)
    return Erasure(tuple(item for name in wanted for item in pending[name]), removed)


def finish_erasure(
    begun: Erasure, store: EvidenceStore, *, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> Erasure:
    """The second step, after indexes and caches have forgotten the items. An erasure that ends
    with a warning stays pending."""
    store.clear_erased_keys(begun.items)
    warning = scrub(store.database, wait_seconds)
    if warning:
        begun = replace(begun, warnings=(*begun.warnings, warning))
    if begun.warnings:
        return begun
    store.finish_erasures(item.evidence_id for item in begun.items)
    return begun


def scrub(database: Database, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> str | None:
    """Rewrite the files of the store so that nothing deleted is left in them. Return a warning if
    that is not possible now, else None."""
    try:
        with translate_errors(database.name):
            if database.is_sqlite:
                return _rewrite_sqlite(database, wait_seconds)
            for table in TABLES:
                database.connection.execute(f"VACUUM (FULL) {table}")
    except StorageError as error:
        return f"{error} The item is deleted, but its bytes may still be in the files: {_RETRY}"
    return None


def _rewrite_sqlite(database: Database, wait_seconds: float) -> str | None:
    """Rewrite the database file and truncate its write-ahead log; return a warning if the log is
    still in use.

    ``secure_delete`` overwrites deleted rows, but a deletion can move other rows between pages, and
    the copies they leave behind are not overwritten when those rows are deleted later.
    """
    connection = database.connection
    connection.execute(f"PRAGMA busy_timeout={int(wait_seconds * 1000)}")
    connection.execute("PRAGMA temp_store=FILE")  # the temporary copy may not fit in memory
    try:
        connection.execute("VACUUM")
        blocked, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA busy_timeout={int(database.busy_seconds * 1000)}")
    if not blocked:
        return None
    return (
        f"{database.name}: the item is deleted, but another process is reading the store, so its "
        f"write-ahead log {database.path}-wal could not be truncated and may still contain the "
        f"text: {_RETRY}"
    )
