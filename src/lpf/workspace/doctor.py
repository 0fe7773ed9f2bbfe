"""Checks on every part of a workspace: what is wrong, and how to fix it. Nothing is changed, except
that copies of vectors that were erased elsewhere are removed."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sqlalchemy import Column, func, select

from lpf.engine import Engine, Items
from lpf.engine.background import check_values_agree
from lpf.errors import LPFError
from lpf.factors.convert import LARGEST_SHIFT, shift_under_noise
from lpf.index.features import known_reader
from lpf.index.vector_file import VectorFile
from lpf.index.vector_folders import VectorFolders
from lpf.ledger import LedgerReader, load_private, public_bytes, verify
from lpf.ledger.writer import Ledger
from lpf.model.artefact import Artefact
from lpf.monitor.trust_file import DAMAGED
from lpf.orchestrator.orchestrator import CLOCK_TOLERANCE, clock_note
from lpf.reading import ReadRequest, is_pair, stance_is_installed
from lpf.reading.export import STANCE
from lpf.reading.fitted_words import without_words
from lpf.reading.pair import reads_stance
from lpf.schema import Schema
from lpf.storage.cache import open_cache
from lpf.storage.database import Database
from lpf.storage.driver_errors import translate_errors
from lpf.storage.migrations import NEWEST, version_of
from lpf.storage.seals import printable
from lpf.storage.statements import Prepared
from lpf.storage.tables import METADATA, facts, ledger_contents
from lpf.storage.values import iso, now_micros
from lpf.types import QueryOptions
from lpf.workspace.circuit import CIRCUIT_FILE
from lpf.workspace.folder import find_folder, store_files
from lpf.workspace.settings import Settings, read_settings
from lpf.workspace.workspace import Workspace

State = Literal["ok", "warning", "fault"]

RECORDS_CHECKED = 100  # the newest ones, without ``full``
NAMES_SHOWN = 3
OTHERS, OTHERS_ENTER = stat.S_IRWXG | stat.S_IRWXO, stat.S_IXGRP | stat.S_IXOTH
PUBLIC = (".pub", ".lock")
REINDEX = "make it again: lpf ledger reindex"
SQLITE_TYPES = {int: "integer", float: "real", str: "text", bytes: "blob"}
LOW_SPACE, NO_SPACE = 2**30, 100 * 2**20
# What the model is asked about.
PROBE_CLAIM = "The delivery came on time."
PROBE_TEXTS = (
    PROBE_CLAIM,
    "Nothing was paid for three months, and nobody replied.",
    "The report has twelve pages.",
)
ANOTHER_MODEL = "train again: lpf train, or use another: lpf models list, lpf models use VERSION"

_FACTS_BY_VALUE = Prepared(
    select(facts.c.predicate, facts.c.value, func.count())
    .where(facts.c.superseded_at.is_(None))
    .group_by(facts.c.predicate, facts.c.value)
    .order_by(facts.c.predicate, facts.c.value)
)


@dataclass(frozen=True)
class Check:
    """One part of a workspace and its state. ``remedy`` says how to fix it, unless it is ok."""

    name: str
    state: State
    message: str
    remedy: str = ""


# The flag is ``full``: check everything, however long it takes.
CheckFunction = Callable[[Workspace, bool], Iterator[Check]]


def check_workspace(folder: Path | str | None = None, *, full: bool = False) -> list[Check]:
    """Check the workspace in ``folder``, or (None) the nearest one above the current folder.

    Never raises: anything broken is reported as a fault. ``full`` verifies the whole ledger, every
    text and every page of the store.
    """
    try:
        settings = read_settings(find_folder(folder))
    except Exception as error:
        return [_fault("settings", error)]
    checks = [Check("settings", "ok", f"{settings.folder} is a workspace")]
    store_checks = _run("store", partial(_check_store, settings, full))
    checks += store_checks
    # Opening a store of an older version would migrate it.
    usable = all(check.state != "fault" and check.name != "store version" for check in store_checks)
    functions = {**WITH_STORE, **WITHOUT_STORE} if usable else WITHOUT_STORE
    with Workspace(settings.folder) as workspace:
        for name, function in functions.items():
            checks += _run(name, partial(function, workspace, full))
    return checks


def _run(name: str, check: Callable[[], Iterator[Check]]) -> list[Check]:
    """Everything that a check yields; an exception becomes a fault at the end."""
    checks: list[Check] = []
    try:
        checks.extend(check())
    except Exception as error:
        checks.append(_fault(name, error))
    return checks


def _fault(name: str, error: Exception) -> Check:
    """Our own errors say how to fix them; others are shown with their type."""
    if isinstance(error, LPFError):
        return Check(name, "fault", str(error))
    return Check(name, "fault", f"{type(error).__name__}: {error}", "report this as a bug in lpf")


def _check_store(settings: Settings, full: bool) -> Iterator[Check]:
    """Runs before the workspace opens its store, which would migrate an old one."""
    with Database(settings.store_address, busy_seconds=settings.store.busy_seconds) as database:
        if database.path is not None and not database.path.exists():
            yield Check("store", "fault", f"{database.path} is missing", "restore it from a backup")
            return
        version = version_of(database)
        problems = [*_check_version(database, version), *_check_sqlite(database, full)]
        yield from problems or [Check("store", "ok", f"{database.name} opens, version {version}")]


def _check_version(database: Database, version: int) -> Iterator[Check]:
    message = f"{database.name} has schema version {version}; this program uses {NEWEST}"
    if version > NEWEST:
        yield Check("store", "fault", message, "use the newer lpf that wrote it")
    elif version < NEWEST:
        remedy = "make a backup; the next command that uses the store migrates it"
        yield Check("store version", "warning", message, remedy)


def _check_sqlite(database: Database, full: bool) -> Iterator[Check]:
    if not database.is_sqlite:
        return
    with translate_errors(database.name):
        pragma = "integrity_check" if full else "quick_check"
        (verdict,) = database.connection.execute(f"PRAGMA {pragma}(1)").fetchone()
        (journal,) = database.connection.execute("PRAGMA journal_mode").fetchone()
    if verdict != "ok":
        yield Check("store", "fault", f"the file is damaged: {verdict}", "restore a backup")
    if full and verdict == "ok":
        yield from _wrong_types(database)
    if journal != "wal":
        yield Check(
            "store",
            "warning",
            f"the journal is in mode {journal!r}: readers and writers wait for each other",
            "keep the store on a local disk, where WAL works",
        )


def _wrong_types(database: Database) -> Iterator[Check]:
    """SQLite stores a value of any type in any column."""
    with translate_errors(database.name):
        present = {row[0] for row in database.connection.execute("SELECT name FROM sqlite_master")}
        for table in METADATA.sorted_tables:
            if table.name not in present:  # the store is of an older version
                continue
            found = database.connection.execute(f"PRAGMA table_info({table.name})").fetchall()
            for column in (table.c[row[1]] for row in found if row[1] in table.c):
                yield from _wrong_type(database, table.name, column)


def _wrong_type(database: Database, table: str, column: Column[Any]) -> Iterator[Check]:
    kinds = [SQLITE_TYPES[column.type.python_type], *["null"][: int(bool(column.nullable))]]
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    query = f"SELECT rowid FROM {table} WHERE typeof({column.name}) NOT IN ({listed})"
    rows = [str(row[0]) for row in database.connection.execute(query)]
    if rows:
        yield Check(
            "store",
            "fault",
            f"table {table}, column {column.name}: {len(rows):,} values of the wrong type, in the "
            f"rows {', '.join(rows)}",
            REINDEX if table == ledger_contents.name else "restore a backup",
        )


def _check_evidence(workspace: Workspace, full: bool) -> Iterator[Check]:
    items = workspace.evidence.count()
    if not items:
        yield Check("evidence", "warning", "there is none", "add some: lpf ingest FILE")
        return
    reader_id = without_words(_reader_id(workspace))
    lacking = items - _count_vectors(workspace, reader_id)
    if lacking:
        yield Check(
            "evidence",
            "warning",
            f"{lacking:,} of {items:,} items have no features of the reader {reader_id}",
            "nothing to do: they are read when a question needs them, which takes a while",
        )
    else:
        yield Check("evidence", "ok", f"{items:,} items, all with features")
    if full:
        yield from _damaged_items(workspace)


def _damaged_items(workspace: Workspace) -> Iterator[Check]:
    reasons: dict[str, list[str]] = {}
    for item in workspace.evidence.damaged_items():
        reasons.setdefault(item.reason, []).append(item.evidence_id)
    for reason, names in reasons.items():
        yield Check(
            "evidence",
            "fault",
            f"{len(names):,} damaged or changed after ingestion ({reason}): {', '.join(names)}",
            "restore a backup, or erase them: lpf evidence erase ID...; 'lpf ledger replay ID "
            "--deep' shows which answers they affect",
        )


def _count_vectors(workspace: Workspace, reader_id: str) -> int:
    """How many items have features of a reader. Does not register the reader in the store."""
    number = known_reader(workspace.evidence, reader_id)
    return 0 if number is None else workspace.evidence.state(number)[0]


def _check_erasures(workspace: Workspace, _: bool) -> Iterator[Check]:
    pending = list(dict.fromkeys(i.evidence_id for i in workspace.evidence.pending_erasures()))
    behind = VectorFolders(workspace.evidence, workspace.folder).behind()
    if behind:
        yield Check(
            "erasures",
            "warning",
            f"workspaces that use the same store may hold copies of erased vectors: "
            f"{_first_names([str(folder) for folder in behind])}",
            "use each of them once, for example with 'lpf evidence list'",
        )
    if pending:
        yield Check(
            "erasures",
            "warning",
            f"{len(pending):,} begun and not finished: {_first_names(pending)}; caches, indexes "
            "or files may still contain traces of them",
            "make sure that Redis runs (if you use it), stop other programs that use the store, "
            "and erase them again: lpf evidence erase ID...",
        )


def _check_facts(workspace: Workspace, full: bool) -> Iterator[Check]:
    damaged = workspace.facts.damaged() if full else []
    if damaged:
        yield Check(
            "facts",
            "fault",
            f"{len(damaged):,} damaged or changed: {', '.join(map(str, damaged))}",
            "restore a backup, or withdraw them: lpf facts withdraw ID",
        )
    rows = workspace.database.rows(_FACTS_BY_VALUE)
    total = sum(count for _, _, count in rows)
    unknown = [row for row in rows if not _in_schema(workspace.schema, row[0], row[1])]
    if unknown:
        lost = sum(count for _, _, count in unknown)
        pairs = [f"{printable(name)} = {printable(value)}" for name, value, _ in unknown]
        names = _first_names(pairs)
        yield Check(
            "facts",
            "warning",
            f"{lost:,} of {total:,} have a predicate or value that the schema lacks: {names}",
            "put it back into lpf.toml; or find them with 'lpf facts list --predicate NAME', and "
            "correct or withdraw them",
        )
    else:
        yield Check("facts", "ok", f"{total:,} known facts")


def _in_schema(schema: Schema, predicate: str, value: str) -> bool:
    return any(one.name == predicate and value in one.values for one in schema)


def _first_names(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _check_index(workspace: Workspace, _: bool) -> Iterator[Check]:
    if not workspace.evidence.count():
        return
    reader_id = without_words(_reader_id(workspace))
    file = VectorFile.of_reader(workspace.folder / "vectors", reader_id)
    loaded, vectors = file.load(), _count_vectors(workspace, reader_id)
    if loaded is not None:
        yield Check("index", "ok", f"{loaded[0].kind}, {loaded[0].count:,} of {vectors:,} vectors")
    elif file.path.exists():
        remedy = "nothing to do: the next search builds it again"
        yield Check(
            "index", "warning", f"{file.path} is damaged or was written by another version", remedy
        )
    else:
        yield Check("index", "ok", "not built yet: the first search by text builds it")


def _check_key(workspace: Workspace, _: bool) -> Iterator[Check]:
    key_file, identity = workspace.settings.key_file, workspace.records.identity
    if not key_file.exists():
        message = f"{key_file} is missing: answers are recorded, but not signed"
        yield Check("key", "warning", message, "put the key of this ledger there, if you have it")
    elif public_bytes(load_private(key_file)) != identity.public_key:
        message = f"{key_file} is not the key of the ledger {identity.origin}"
        yield Check("key", "fault", message, "put the key there that the ledger was created with")
    else:
        yield Check("key", "ok", f"{key_file} is the ledger's key, and only its owner can read it")


def _check_ledger(workspace: Workspace, full: bool) -> Iterator[Check]:
    records = workspace.records
    if full:
        verify(workspace.database, records.identity.public_key).require_ok()
        wrong = list(islice(workspace.contents.differences(), NAMES_SHOWN))
        if wrong:
            message = f"the ledger's table of contents does not match {', '.join(wrong)}"
            yield Check("contents", "warning", message, REINDEX)
    else:
        Ledger(workspace.database).close()  # compares tree and last checkpoint, signs nothing
        _check_newest_records(records)
    newest, now = records.newest_time(), now_micros()
    if newest is not None and newest > now + CLOCK_TOLERANCE:
        remedy = "set the clock; records are ordered by number, but their times will be wrong"
        yield Check("clock", "warning", clock_note(newest, now), remedy)
    size, signed = records.size, records.latest_checkpoint()
    unsigned = size - (signed.size if signed else 0)
    extent = "all verified" if full else "the newest are intact; --full verifies all"
    if unsigned:
        message = f"{unsigned:,} of {size:,} records are not signed yet"
        yield Check("ledger", "warning", message, "sign them: lpf ledger checkpoint")
    else:
        yield Check("ledger", "ok", f"{size:,} records, {extent}")


def _check_newest_records(records: LedgerReader) -> None:
    signed = records.latest_checkpoint()
    if signed is not None:
        signed.verify()
    for _ in records.records(max(1, records.size - RECORDS_CHECKED + 1)):
        pass  # reading a record compares it with its hash


def _check_model(workspace: Workspace, _: bool) -> Iterator[Check]:
    model = workspace.model
    if model is None:
        remedy = "train one: lpf train, or add one: lpf models add FOLDER"
        yield Check("model", "warning", "there is none: only known facts can answer", remedy)
        return
    heads = {head.name: head.values for head in model.config.predicates}
    check_values_agree(workspace.schema, heads, "model")
    if workspace.reader.reader_id != _reader_id(workspace):
        message = f"{model.version} loads; it was not asked, because its reader is not here"
        yield Check("model", "warning", message, "see the check of the reader")
        return
    problems = [*_failing_predicates(workspace, model), *_model_warnings(workspace, model)]
    yield from problems or [
        Check("model", "ok", f"{model.version} loads and answers all predicates")
    ]


def _failing_predicates(workspace: Workspace, model: Artefact) -> Iterator[Check]:
    """A model may load and still fail at every question, so each predicate is asked once, about
    texts read by the workspace's reader."""
    engine = Engine(model.runtime(), workspace.schema)
    features = workspace.reader.read_many([ReadRequest(text, PROBE_CLAIM) for text in PROBE_TEXTS])
    items = Items(features, credibility=np.array([0.9, np.nan, 0.5]))
    learned = [] if model.config.aggregator is None else [QueryOptions(variant="learned")]
    for name in (head.name for head in model.config.predicates if head.name in workspace.schema):
        try:
            for options in (QueryOptions(), *learned):
                engine.answer(items, name, options)
        except Exception as error:
            message = (
                f"{model.version} loads, but cannot answer {name!r}: {_fault('', error).message}"
            )
            yield Check("model", "fault", message, ANOTHER_MODEL)
            continue
        shift = shift_under_noise(engine.runtime, name, features)
        if shift > LARGEST_SHIFT:
            message = (
                f"{model.version}: rounding errors change its answers about {name!r}: noise of a "
                f"thousandth of the features' spread moves a probability by {100 * shift:.0f} "
                "points on average"
            )
            yield Check("model", "warning", message, ANOTHER_MODEL)


def _model_warnings(workspace: Workspace, model: Artefact) -> Iterator[Check]:
    unknown = {one.name for one in workspace.schema} - {one.name for one in model.config.predicates}
    if unknown:
        yield Check(
            "model",
            "warning",
            f"{model.version} was not trained for {sorted(unknown)}: only facts and related "
            "predicates answer them",
            "if they have evidence of their own, label some of it and train again: lpf train",
        )
    for sentence in model.card.verdicts():
        remedy = "label more entities and train again: lpf train"
        yield Check("model", "warning", f"{model.version}: {sentence}", remedy)


def _check_monitoring(workspace: Workspace, _: bool) -> Iterator[Check]:
    stored, model = workspace.trust.read(), workspace.model
    if model is None:
        return
    if stored is not None and not stored.model:
        yield Check("monitoring", "warning", DAMAGED, "run it again: lpf monitor")
        return
    if stored is None or stored.model != model.version:
        message = "this model was not monitored yet; 'lpf monitor' does when outcomes are known"
        yield Check("monitoring", "ok", message)
        return
    for trust in stored.by_predicate.values():
        message = f"{trust.state}: {trust.reason} ({_when_found(trust.at)})"
        if trust.warning is None:
            yield Check("monitoring", "ok", message)
        else:
            remedy = "see what changed: lpf monitor; then label newer entities and train again"
            yield Check("monitoring", "warning", message, remedy)


def _when_found(micros: int) -> str:
    return f"found {iso(micros)[:10]}"


def _check_reader(workspace: Workspace, _: bool) -> Iterator[Check]:
    if workspace.model is None:  # what reads evidence depends on the store, which may be broken
        yield Check("reader", "ok", f"{workspace.text_reader.reader_id} opens")
        return
    reader_id, of_model = workspace.reader.reader_id, _reader_id(workspace)
    tuned = workspace.model.tuned
    if tuned is not None:
        try:
            tuned.files()
        except LPFError as error:
            yield Check("reader", "fault", str(error), error.hint or "")
            return
    if of_model == reader_id:
        about = _about_stance(reader_id) if tuned is None else f", tuned {tuned.describe()}"
        yield Check("reader", "ok", f"{reader_id} opens{about}")
        return
    remedy = "set [reader] in lpf.toml to the model's, or use a model of this reader"
    if reads_stance(of_model) and not stance_is_installed():
        remedy = STANCE.install_hint
    message = f"the model was trained with {of_model}, the workspace reads with {reader_id}"
    yield Check("reader", "fault", message, remedy)


def _about_stance(reader_id: str) -> str:
    """For a reader of claims, whether it also reads the stance of a text towards its claim."""
    if not is_pair(reader_id):
        return ""
    if reads_stance(reader_id):
        return ", with the stance reader"
    if stance_is_installed():
        return ". The model was trained before the stance reader was installed, and does not use it"
    return f". The stance reader is not installed. {STANCE.install_hint}"


def _reader_id(workspace: Workspace) -> str:
    """The reader of the model, or without a model that of the workspace."""
    model = workspace.model
    return (model and model.config.reader_id) or workspace.reader.reader_id


def _check_circuit(workspace: Workspace, _: bool) -> Iterator[Check]:
    remedy = "learn it again: lpf facts learn"
    try:
        covers = workspace.background.covers
    except LPFError as error:
        message = f"{workspace.folder / CIRCUIT_FILE}: {error}"
        yield Check("circuit", "fault", message, remedy)
        return
    uncovered = [predicate.name for predicate in workspace.schema if not covers(predicate.name)]
    if uncovered:
        yield Check("circuit", "warning", f"it does not cover {uncovered}", remedy)
    else:
        yield Check("circuit", "ok", "covers all predicates")


def _check_cache(workspace: Workspace, _: bool) -> Iterator[Check]:
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


def _check_permissions(workspace: Workspace, _: bool) -> Iterator[Check]:
    """Files hold personal text, keys and what was computed from them."""
    if os.name != "posix":
        return
    places = [workspace.folder, workspace.settings.key_file, *store_files(workspace.settings)]
    exposed = [path for path in places if path.exists() and _is_exposed(path)]
    exposed += [path for path in _files_below(workspace.folder) if path not in exposed]
    if not exposed:
        yield Check("permissions", "ok", "only the owner can read the files")
        return
    names = _first_names([str(path) for path in exposed])
    outside = [path for path in exposed if not path.is_relative_to(workspace.folder)]
    inside = [workspace.folder] if len(outside) < len(exposed) else []
    commands = [f"chmod -R go= {shlex.quote(str(path))}" for path in (*inside, *outside)]
    yield Check(
        "permissions",
        "warning",
        f"other users can read {names}",
        "let only the owner read them: " + " && ".join(commands),
    )


def _files_below(folder: Path) -> Iterator[Path]:
    """Exposed files, if others can enter the folder at all. Public keys do not count."""
    if not folder.stat().st_mode & OTHERS_ENTER:
        return
    for where, _, names in os.walk(folder):
        for path in (Path(where) / name for name in names if not name.endswith(PUBLIC)):
            if not path.is_symlink() and _is_exposed(path):
                yield path


def _is_exposed(path: Path) -> bool:
    return bool(path.stat().st_mode & OTHERS)


def _check_disk(workspace: Workspace, _: bool) -> Iterator[Check]:
    free = shutil.disk_usage(workspace.folder).free
    state: State = "fault" if free < NO_SPACE else "warning" if free < LOW_SPACE else "ok"
    remedy = "" if state == "ok" else "free some space: a full disk stops every answer"
    yield Check("disk", state, f"{free / 2**30:.1f} GiB free", remedy)


WITH_STORE: dict[str, CheckFunction] = {
    "evidence": _check_evidence,
    "erasures": _check_erasures,
    "facts": _check_facts,
    "index": _check_index,
    "key": _check_key,
    "ledger": _check_ledger,
}
WITHOUT_STORE: dict[str, CheckFunction] = {
    "model": _check_model,
    "monitoring": _check_monitoring,
    "reader": _check_reader,
    "circuit": _check_circuit,
    "cache": _check_cache,
    "permissions": _check_permissions,
    "disk": _check_disk,
}
