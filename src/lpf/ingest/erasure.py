"""Erase evidence so that nothing of its text is left in the files of the workspace.

An erasure has two steps. ``begin_erasure`` removes the item and records a pending erasure; then
the caller makes its indexes and caches forget the item; ``finish_erasure`` rewrites the store's
files and removes the record. After an interruption, erasing the same ID again continues from there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lpf.errors import StorageError
from lpf.ingest.rejects import ErasedContent, clean_rejects, locked_folder, may_have_rejects
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
    cleared. ``rejects_left`` are the rejects folders of other workspaces that could not be cleaned.
    """

    items: tuple[PendingErasure, ...]
    rejects_removed: int
    warnings: tuple[str, ...] = ()
    rejects_left: tuple[Path, ...] = ()


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
    not_cleaned: Collection[Path] = (),
) -> Erasure:
    """Remove items from the rejects files and from the store. An erasure that was interrupted is
    continued. UnknownEvidenceError, before anything is removed, if an item was never in the store
    or its erasure is finished.

    Rejects come first: their lines are recognised by the text, which is gone afterwards.
    ``other_rejects`` are the rejects folders of other workspaces that use the same store; one that
    cannot be cleaned gives a warning. ``not_cleaned`` are those that an earlier erasure could not
    clean.
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
        unknown = not_cleaned if len(stored) < len(wanted) else ()
        left: dict[Path, str] = {}
        for folder in other_rejects:
            try:
                if may_have_rejects(folder):
                    with locked_folder(folder):
                        removed += clean_rejects(folder, content)
                    if folder in unknown and may_have_rejects(folder):
                        left[folder] = "the text is no longer known"
            except (OSError, StorageError) as error:
                left[folder] = str(error).rstrip(".")
        for name in stored:
            pending[name] = store.erase(name)
    items = tuple(item for name in wanted for item in pending[name])
    warnings = tuple(
        f"{folder}: the rejects files of this workspace, which uses the same store, may contain "
        f"the text; they could not be cleaned ({problem}). Delete them, then erase the same items "
        "again."
        for folder, problem in left.items()
    )
    return Erasure(items, removed, warnings, tuple(left))


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
