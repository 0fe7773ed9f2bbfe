"""What is wrong with a workspace, and how to mend it. Looks at everything, changes nothing.

What is looked at in a workspace's store, part by part. Nothing of it is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sqlalchemy import func, select

from lpf.errors import LPFError
from lpf.index.features import known_reader
from lpf.index.vector_file import VectorFile
from lpf.ledger import LedgerReader, load_private, public_bytes, verify
from lpf.ledger.writer import Ledger
from lpf.schema import Schema
from lpf.storage.database import Database
from lpf.storage.driver_errors import translate_errors
from lpf.storage.evidence import StoredEvidence, text_commitment
from lpf.storage.migrations import NEWEST, version_of
from lpf.storage.statements import Prepared
from lpf.storage.tables import facts
from lpf.workspace.checks import WITHOUT_STORE, Check, Examination, reader_id_of
from lpf.workspace.settings import Settings, read_settings
from lpf.workspace.workspace import Workspace, find_folder

RECORDS_LOOKED_AT = 100
NAMES_SHOWN = 3

_FACTS_BY_VALUE = Prepared(
    select(facts.c.predicate, facts.c.value, func.count())
    .where(facts.c.superseded_at.is_(None))
    .group_by(facts.c.predicate, facts.c.value)
    .order_by(facts.c.predicate, facts.c.value)
)


def examine_store(settings: Settings, full: bool) -> Iterator[Check]:
    """Before the workspace opens its store, which would make a missing one and update an old."""
    with Database(settings.store_address, busy_seconds=settings.store.busy_seconds) as database:
        if database.path is not None and not database.path.exists():
            yield Check("store", "fault", f"{database.path} is missing", "restore a backup of it")
            return
        version = version_of(database)
        found = [*_version(database, version), *_sqlite(database, full)]
        yield from found or [Check("store", "ok", f"{database.name} opens, version {version}")]


def _version(database: Database, version: int) -> Iterator[Check]:
    message = f"{database.name} is of version {version}, this program's is {NEWEST}"
    if version > NEWEST:
        yield Check("store", "fault", message, "use the newer lpf that wrote it")
    elif version < NEWEST:
        remedy = "make a backup; the next command that uses the store brings it there"
        yield Check("store version", "warning", message, remedy)


def _sqlite(database: Database, full: bool) -> Iterator[Check]:
    if not database.is_sqlite:
        return
    with translate_errors(database.name):
        pragma = "integrity_check" if full else "quick_check"
        (verdict,) = database.connection.execute(f"PRAGMA {pragma}(1)").fetchone()
        (journal,) = database.connection.execute("PRAGMA journal_mode").fetchone()
    if verdict != "ok":
        yield Check("store", "fault", f"the file is damaged: {verdict}", "restore a backup")
    if journal != "wal":
        yield Check(
            "store",
            "warning",
            f"the journal is in mode {journal!r}: readers and writers wait for each other",
            "keep the store on a local disk, where WAL works",
        )


def _evidence(workspace: Workspace, full: bool) -> Iterator[Check]:
    items = workspace.evidence.count()
    if not items:
        yield Check("evidence", "warning", "there is none", "add some: lpf ingest FILE")
        return
    reader_id = reader_id_of(workspace)
    lacking = items - _vectors(workspace, reader_id)
    if lacking:
        yield Check(
            "evidence",
            "warning",
            f"{lacking:,} of {items:,} items have no features of the reader {reader_id}",
            "nothing to do: they are read when first asked about, which takes a while",
        )
    else:
        yield Check("evidence", "ok", f"{items:,} items, all with features")
    changed = _changed_texts(workspace) if full else []
    if changed:
        yield Check(
            "evidence",
            "fault",
            f"{len(changed):,} texts are not those that were ingested: {_some(changed)}",
            "restore a backup; 'lpf ledger replay ID --deep' tells which answers they touch",
        )


def _changed_texts(workspace: Workspace) -> list[str]:
    """Items whose text or claim does not fit the salted hash that was made of it."""
    changed, last = [], 0
    while page := workspace.evidence.page(limit=1000, after_row=last):
        last = page[-1].row_id
        changed += [one.evidence.evidence_id for one in page if not _is_genuine(one)]
    return changed


def _is_genuine(stored: StoredEvidence) -> bool:
    evidence = stored.evidence
    found = text_commitment(stored.salt, evidence.text_content, evidence.claim)
    return found == stored.commitment


def _vectors(workspace: Workspace, reader_id: str) -> int:
    """How many items a reader has read; it is not made known to the store for being asked about."""
    number = known_reader(workspace.evidence, reader_id)
    return 0 if number is None else workspace.evidence.state(number)[0]


def _erasures(workspace: Workspace, _: bool) -> Iterator[Check]:
    pending = [item.evidence_id for item in workspace.evidence.pending_erasures()]
    if pending:
        yield Check(
            "erasures",
            "warning",
            f"{len(pending):,} begun and not finished: {_some(pending)}; caches, indexes or "
            "files may hold something of them still",
            "see that Redis answers, if one is used, end what else uses the store, and repeat: "
            "lpf evidence erase ID...",
        )


def _facts(workspace: Workspace, _: bool) -> Iterator[Check]:
    rows = workspace.database.rows(_FACTS_BY_VALUE)
    total = sum(count for _, _, count in rows)
    strange = [row for row in rows if not _in_schema(workspace.schema, row[0], row[1])]
    if strange:
        lost = sum(count for _, _, count in strange)
        names = _some([f"{predicate} = {value}" for predicate, value, _ in strange])
        yield Check(
            "facts",
            "warning",
            f"{lost:,} of {total:,} have a predicate or value that the schema lacks: {names}",
            "put it back into lpf.toml; or find them with 'lpf facts list --predicate NAME', and "
            "correct or withdraw them",
        )
    else:
        yield Check("facts", "ok", f"{total:,} count")


def _in_schema(schema: Schema, predicate: str, value: str) -> bool:
    return any(one.name == predicate and value in one.values for one in schema)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _index(workspace: Workspace, _: bool) -> Iterator[Check]:
    if not workspace.evidence.count():
        return
    reader_id = reader_id_of(workspace)
    file = VectorFile.of_reader(workspace.folder / "vectors", reader_id)
    loaded, vectors = file.load(), _vectors(workspace, reader_id)
    if loaded is not None:
        yield Check("index", "ok", f"{loaded[0].kind}, {loaded[0].count:,} of {vectors:,} vectors")
    elif file.path.exists():
        remedy = "nothing to do: the next search makes it anew"
        yield Check("index", "warning", f"{file.path} is damaged or of another version", remedy)
    else:
        yield Check("index", "ok", "not built yet: the first search by text does it")


def _keys(workspace: Workspace, _: bool) -> Iterator[Check]:
    key_file, identity = workspace.settings.key_file, workspace.records.identity
    if not key_file.exists():
        message = f"{key_file} is missing: answers are recorded, but not signed"
        yield Check("key", "warning", message, "put the key of this ledger there, if you have it")
    elif public_bytes(load_private(key_file)) != identity.public_key:
        message = f"{key_file} is not the key of the ledger {identity.origin}"
        yield Check("key", "fault", message, "put the key there that the ledger was made with")
    else:
        yield Check("key", "ok", f"{key_file} is the ledger's, and only its owner can read it")


def _ledger(workspace: Workspace, full: bool) -> Iterator[Check]:
    records = workspace.records
    if full:
        verify(workspace.database, records.identity.public_key).require_ok()
    else:
        Ledger(workspace.database).close()  # compares tree and last checkpoint, signs nothing
        _require_sound_end(records)
    size, signed = records.size, records.latest_checkpoint()
    tail = size - (signed.size if signed else 0)
    looked = "all verified" if full else "the end of it looks sound; --full verifies all"
    if tail:
        message = f"{tail:,} of {size:,} records are not signed yet"
        yield Check("ledger", "warning", message, "sign them: lpf ledger checkpoint")
    else:
        yield Check("ledger", "ok", f"{size:,} records, {looked}")


def _require_sound_end(records: LedgerReader) -> None:
    signed = records.latest_checkpoint()
    if signed is not None:
        signed.verify()
    for _ in records.records(max(1, records.size - RECORDS_LOOKED_AT + 1)):
        pass  # reading a record compares it with its hash


WITH_STORE: dict[str, Examination] = {
    "evidence": _evidence,
    "erasures": _erasures,
    "facts": _facts,
    "index": _index,
    "key": _keys,
    "ledger": _ledger,
}


__all__ = ["Check", "examine"]


def examine(folder: Path | str | None = None, *, full: bool = False) -> list[Check]:
    """Everything about the workspace in ``folder`` (or the nearest one). Never raises: whatever is
    broken becomes a fault. ``full`` verifies the whole ledger and every page of the store."""
    try:
        settings = read_settings(find_folder(folder))
    except Exception as error:
        return [_fault("settings", error)]
    checks = [Check("settings", "ok", f"{settings.folder} is a workspace")]
    sound = _run("store", partial(examine_store, settings, full))
    checks += sound
    with Workspace(settings) as workspace:
        examinations = WITHOUT_STORE if _unusable(sound) else {**WITH_STORE, **WITHOUT_STORE}
        for name, examination in examinations.items():
            checks += _run(name, partial(examination, workspace, full))
    return checks


def _unusable(store: list[Check]) -> bool:
    """A store that is broken, or that looking further would bring to a newer version."""
    return any(check.state == "fault" or check.name == "store version" for check in store)


def _run(name: str, work: Callable[[], Iterator[Check]]) -> list[Check]:
    """What was found, up to and with the fault that ended the search."""
    found: list[Check] = []
    try:
        found.extend(work())
    except Exception as error:
        found.append(_fault(name, error))
    return found


def _fault(name: str, error: Exception) -> Check:
    """Our own messages say how to mend it; those of others are shown with their kind."""
    if isinstance(error, LPFError):
        return Check(name, "fault", str(error))
    return Check(name, "fault", f"{type(error).__name__}: {error}", "report this as a fault of lpf")
