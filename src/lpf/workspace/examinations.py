"""What is looked at in a workspace, part by part. Each yields what it found and changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lpf.engine.background import check_values_agree
from lpf.errors import LedgerBrokenError, LPFError
from lpf.index.files import VectorFile
from lpf.ledger import LedgerReader, load_private, public_bytes, verify
from lpf.ledger.merkle import leaf_hash
from lpf.ledger.writer import Ledger
from lpf.storage.cache import open_cache
from lpf.storage.database import Database
from lpf.storage.failures import told_plainly
from lpf.storage.migrations import NEWEST, version_of
from lpf.workspace.circuits import FILE_NAME as CIRCUIT_FILE
from lpf.workspace.settings import Settings
from lpf.workspace.workspace import Workspace

State = Literal["ok", "warning", "fault"]

LOW_SPACE, NO_SPACE = 2**30, 100 * 2**20
RECORDS_LOOKED_AT = 100


@dataclass(frozen=True)
class Check:
    """One thing looked at. ``remedy`` says how to mend it, where it is not ok."""

    name: str
    state: State
    message: str
    remedy: str = ""


Examination = Callable[[Workspace, bool], Iterator[Check]]


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
    with told_plainly(database.name):
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


def _evidence(workspace: Workspace, _: bool) -> Iterator[Check]:
    items = workspace.evidence.count()
    if not items:
        yield Check("evidence", "warning", "there is none", "add some: lpf ingest FILE")
        return
    source = workspace.index.source
    lacking = items - source.store.state(source.number)[0]
    if lacking:
        yield Check(
            "evidence",
            "warning",
            f"{lacking:,} of {items:,} items have no features of the reader {source.reader_id}",
            "nothing to do: they are read when first asked about, which takes a while",
        )
    else:
        yield Check("evidence", "ok", f"{items:,} items, all with features")


def _index(workspace: Workspace, _: bool) -> Iterator[Check]:
    if not workspace.evidence.count():
        return
    source = workspace.index.source
    file = VectorFile(workspace.folder / "vectors", source.reader_id)
    loaded, vectors = file.load(), source.store.state(source.number)[0]
    if loaded is not None:
        yield Check("index", "ok", f"{loaded[0].kind}, {loaded[0].count:,} of {vectors:,} vectors")
    elif file.path.exists():
        remedy = "nothing to do: the next search makes it anew"
        yield Check("index", "warning", f"{file.path} is damaged or of another version", remedy)
    else:
        yield Check("index", "ok", "not built yet: the first search by text does it")


def _model(workspace: Workspace, _: bool) -> Iterator[Check]:
    model = workspace.model
    if model is None:
        remedy = "add one: lpf models add FOLDER"
        yield Check("model", "warning", "there is none: only known facts can answer", remedy)
        return
    heads = {head.name: head.values for head in model.config.predicates}
    check_values_agree(workspace.schema, heads, "model")
    unknown = {one.name for one in workspace.schema} - heads.keys()
    if unknown:
        yield Check(
            "model",
            "warning",
            f"{model.version} knows nothing of {sorted(unknown)}",
            "train a model for all predicates, or take these out of lpf.toml",
        )
    else:
        yield Check("model", "ok", f"{model.version} loads and knows all predicates")


def _reader(workspace: Workspace, _: bool) -> Iterator[Check]:
    reader_id, model = workspace.reader.reader_id, workspace.model
    wanted = reader_id if model is None else model.config.reader_id or reader_id
    if wanted == reader_id:
        yield Check("reader", "ok", f"{reader_id} opens")
        return
    yield Check(
        "reader",
        "fault",
        f"the model was trained with {wanted}, the workspace reads with {reader_id}",
        "set [reader] in lpf.toml to the model's, or use a model of this reader",
    )


def _circuit(workspace: Workspace, _: bool) -> Iterator[Check]:
    remedy = "learn it again: lpf facts learn"
    try:
        covers = workspace.background.covers
    except LPFError as error:
        message = f"{workspace.folder / CIRCUIT_FILE}: {error}"
        yield Check("circuit", "fault", message, remedy)
        return
    uncovered = [one.name for one in workspace.schema if not covers(one.name)]
    if uncovered:
        yield Check("circuit", "warning", f"it does not cover {uncovered}", remedy)
    else:
        yield Check("circuit", "ok", "covers all predicates")


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
    for record in records.records(max(1, records.size - RECORDS_LOOKED_AT + 1)):
        if leaf_hash(record.body) != record.leaf:
            finding = f"{record.record_id}: its body is not the one that was recorded"
            raise LedgerBrokenError(
                f"{finding}. Run 'lpf ledger verify' and restore a backup.", (finding,)
            )


def _cache(workspace: Workspace, _: bool) -> Iterator[Check]:
    settings = workspace.settings
    cache = open_cache(settings.cache_url, ttl_seconds=settings.cache.ttl_seconds)
    try:
        cache.get_many([bytes(16)], b"doctor")
        stats = cache.stats()
    finally:
        cache.close()
    if stats.failures:
        remedy = "start Redis, or set [cache] url = 'memory' in lpf.toml"
        message = "the shared cache does not answer: questions work, erasing does not"
        yield Check("cache", "warning", message, remedy)
    else:
        yield Check("cache", "ok", f"{stats.kind} answers")


def _disk(workspace: Workspace, _: bool) -> Iterator[Check]:
    free = shutil.disk_usage(workspace.folder).free
    state: State = "fault" if free < NO_SPACE else "warning" if free < LOW_SPACE else "ok"
    remedy = "" if state == "ok" else "free some space: a full disk stops every answer"
    yield Check("disk", state, f"{free / 2**30:.1f} GiB free", remedy)


WITHOUT_STORE: dict[str, Examination] = {
    "model": _model,
    "reader": _reader,
    "circuit": _circuit,
    "cache": _cache,
    "disk": _disk,
}
WITH_STORE: dict[str, Examination] = {
    "evidence": _evidence,
    "index": _index,
    "key": _keys,
    "ledger": _ledger,
}
