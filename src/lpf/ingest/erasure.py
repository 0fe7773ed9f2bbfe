"""Taking an item out so that nothing of its text is left in the workspace's files.

It has two halves. The first removes the item and notes that its erasure is under way; between them
the caller makes its indexes and caches forget it; the second rewrites the store's files and takes
the note away. If any of this is interrupted, erasing the same id again goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lpf.errors import StorageError
from lpf.ingest.rejects import Traces, alone_with, clean_rejects
from lpf.storage.database import Database
from lpf.storage.driver_errors import translate_errors
from lpf.storage.evidence import EvidenceStore, PendingErasure, StoredEvidence

DEFAULT_WAIT_SECONDS = 10.0
TABLES = ("evidence", "features", "pending_erasures", "query_texts")
_AGAIN = "end what uses the store and erase the same item again, or call lpf.ingest.scrub."


@dataclass(frozen=True)
class Erasure:
    """What was removed, in the order asked for. Indexes must forget an item's ``row_id`` and caches
    its ``content_key``. ``warnings`` say where something of a text may still be, and what to do."""

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
    """Both halves, where no index or cache holds anything of the items. Scrubbing the store's files
    takes time with their size, whatever is erased: many items are best erased in one call."""
    begun = begin_erasure(evidence_ids, store, rejects_folder)
    return finish_erasure(begun, store, wait_seconds=wait_seconds)


def begin_erasure(
    evidence_ids: str | Sequence[str], store: EvidenceStore, rejects_folder: str | Path
) -> Erasure:
    """Removes items from the files of rejects and from the store. UnknownEvidenceError, before
    anything is done, where one was never there or its erasure is finished; one whose erasure was
    begun is taken up again.

    The rejects come first: their lines are recognised by the text, which is gone afterwards.
    """
    wanted = [evidence_ids] if isinstance(evidence_ids, str) else list(dict.fromkeys(evidence_ids))
    with alone_with(rejects_folder):
        begun = {item.evidence_id: item for item in store.pending_erasures()}
        present = _present(store, (name for name in wanted if name not in begun))
        traces = Traces(wanted, (item.evidence for item in present.values()))
        removed = clean_rejects(rejects_folder, traces)
        for name in present:
            begun[name] = store.erase(name)
    return Erasure(tuple(begun[name] for name in wanted), removed)


def finish_erasure(
    begun: Erasure, store: EvidenceStore, *, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> Erasure:
    """Call it once indexes and caches have forgotten the items. An erasure that ends with a warning
    stays one of the store's ``pending_erasures``."""
    store.clear_erased_keys(begun.items)
    warning = scrub(store.database, wait_seconds)
    if warning:
        return replace(begun, warnings=(*begun.warnings, warning))
    store.finish_erasures(item.evidence_id for item in begun.items)
    return begun


def _present(store: EvidenceStore, evidence_ids: Iterable[str]) -> dict[str, StoredEvidence]:
    return {name: store.get(name) for name in evidence_ids}


def scrub(database: Database, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> str | None:
    """Rewrites the files of the store, so that they hold nothing of what was deleted; says so if
    that cannot be done now."""
    try:
        with translate_errors(database.name):
            if database.is_sqlite:
                return _rewrite_sqlite(database, wait_seconds)
            for table in TABLES:
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
