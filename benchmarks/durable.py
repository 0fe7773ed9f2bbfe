"""The cost of an answer with its record on disk, compared with a bare durable append."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.engine import VALUES, BareNumPy, features
from benchmarks.measure import Row, paired_ratio
from lpf.factors.keys import content_key
from lpf.ingest import content_hash
from lpf.ledger.group_commit import GroupCommit
from lpf.ledger.records import Draft, Receipt
from lpf.model.artefact import ModelCard, save_model
from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.layout import fresh_tensors
from lpf.results import QueryResult
from lpf.schema import Predicate, Schema
from lpf.storage.cache import NoCache
from lpf.storage.evidence import NewEvidence
from lpf.storage.facts import OF_QUESTION, NewFact
from lpf.types import Evidence, Float32Array, QueryOptions
from lpf.workspace import Workspace

ITEMS, ENTITIES = 5, 200
MANY, MANY_ENTITY = 1000, 9_000_000  # an entity with a thousand items
READER = "benchmark"
# Calls per turn: enough for the CPU's caches to be warm on both sides, as in a busy service.
PER_TURN = 40
THREADS, APPENDS = 32, 25
CARD = ModelCard("benchmark", "none", "benchmarks", "anything else")


def run() -> list[Row]:
    with benchmark_workspace() as workspace, appending(workspace.folder) as append:
        return [
            one_query(workspace, append),
            *explained(workspace),
            cached_factors(workspace, append),
            *parts(workspace, append),
            canonical(workspace),
            *group_commit(workspace, append),
            batch(workspace),
            memory(workspace),
        ]


@contextmanager
def benchmark_workspace() -> Iterator[Workspace]:
    """Entities with five items each, one known fact, a model with the paper's layer widths."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        schema = Schema((Predicate("level", VALUES),))
        with Workspace.create(Path(folder) / "workspace", schema) as workspace:
            config = ModelConfig((PredicateHead("level", VALUES),), reader_id=READER)
            tensors = fresh_tensors(config, [0])
            models = workspace.folder / "models"
            workspace.use_model(save_model(models, config, tensors, CARD))
            add_evidence(workspace, range(ENTITIES))
            moment = datetime.now(UTC) - timedelta(days=1)
            workspace.facts.add([NewFact("F", "level", "high", moment, 0.99)])
            yield workspace


def add_evidence(workspace: Workspace, entities: range, count: int = ITEMS) -> None:
    moment = datetime.now(UTC)
    items = [
        Evidence(
            f"C{entity:07d}_E{item:03d}",
            f"C{entity:07d}",
            "level",
            f"what item {item} says about entity {entity}",
            0.6 + 0.05 * (item % 5),
            moment - timedelta(days=30 * item),
            source=f"source {item}",
        )
        for entity in entities
        for item in range(count)
    ]
    rows = [NewEvidence(i, content_key(i.text_content, None), content_hash(i)) for i in items]
    store = workspace.evidence
    store.add(rows, vectors(len(rows), entities.start), store.reader_number(READER, 384))


def vectors(count: int, seed: int) -> Float32Array:
    drawn = np.random.default_rng(seed).standard_normal((count, 384), dtype=np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


@contextmanager
def appending(folder: Path) -> Iterator[Callable[[], None]]:
    """A function that appends one kilobyte to a file next to the store and waits for the disk."""
    handle = os.open(folder / "append", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    kilobyte = os.urandom(1024)

    def append() -> None:
        os.write(handle, kilobyte)
        os.fdatasync(handle)

    yield append
    os.close(handle)


def rotating(workspace: Workspace) -> Callable[[], QueryResult]:
    """A function that asks about the next entity at each call."""
    ask = workspace.orchestrator.query
    state = {"entity": 0}

    def question() -> QueryResult:
        state["entity"] = (state["entity"] + 1) % ENTITIES
        return ask(f"C{state['entity']:07d}", "level")

    return question


def one_query(workspace: Workspace, append: Callable[[], None]) -> Row:
    """Nothing cached except the features: choice of items, networks, combination, record, disk."""
    assert workspace.model is not None
    bare, inputs = BareNumPy(workspace.model.runtime()), features(ITEMS)

    def reference() -> None:
        append()
        at_mean(bare, inputs)

    with without_cache(workspace):
        paired = paired_ratio(rotating(workspace), reference, 25, PER_TURN, PER_TURN)
    ratio = 1.0 / paired.ratio
    return Row(
        "one durable query, features stored",
        1e6 * paired.candidate_seconds,
        "us",
        "a 1 KB fdatasync'd append and a bare NumPy pass of the networks",
        ratio,
        "<= 2.5",
        ratio <= 2.5,
    )


def explained(workspace: Workspace) -> list[Row]:
    """A recorded question that is also taken apart, and an entity of a thousand items."""
    asked = rotating(workspace)

    def ask_and_explain() -> None:
        workspace.explain_result(asked())

    paired = paired_ratio(ask_and_explain, rotating(workspace), 25, PER_TURN, PER_TURN)
    ratio = 1.0 / paired.ratio
    add_evidence(workspace, range(MANY_ENTITY, MANY_ENTITY + 1), MANY)
    many = workspace.query(
        f"C{MANY_ENTITY:07d}", "level", QueryOptions(top_k=MANY, min_credibility=0.0), "off"
    )
    assert many.evidence is not None
    assert len(many.evidence) == MANY
    seconds = sorted(measured(lambda: workspace.explain_result(many)) for _ in range(15))[7]
    return [
        Row(
            "one durable query, explained as well",
            1e6 * paired.candidate_seconds,
            "us",
            "the same query",
            ratio,
            "<= 3",
            ratio <= 3.0,
        ),
        Row(
            "explaining an answer of 1,000 items",
            1e3 * seconds,
            "ms",
            "",
            None,
            "<= 50 ms",
            seconds <= 0.05,
        ),
    ]


def measured(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def at_mean(bare: BareNumPy, inputs: np.ndarray) -> np.ndarray:
    """The networks in few NumPy calls, decoding at the mean as the default mode does."""
    hidden = inputs
    for weight, bias in zip(bare.weights[:2], bare.biases[:2], strict=True):
        hidden = np.maximum(hidden @ weight + bias, 0)
    hidden = (hidden @ bare.weights[2] + bare.biases[2])[:, :64]
    for weight, bias in zip(bare.weights[3:5], bare.biases[3:5], strict=True):
        hidden = np.maximum(hidden @ weight + bias, 0)
    logits = hidden @ bare.weights[5] + bare.biases[5]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@contextmanager
def without_cache(workspace: Workspace) -> Iterator[None]:
    cache = workspace.__dict__.pop("cache", None)
    workspace.__dict__["cache"] = NoCache()
    workspace.invalidate(Workspace.engine, Workspace.orchestrator)
    yield
    workspace.invalidate(Workspace.engine, Workspace.orchestrator)
    workspace.__dict__.pop("cache")
    if cache is not None:
        workspace.__dict__["cache"] = cache


def cached_factors(workspace: Workspace, append: Callable[[], None]) -> Row:
    """As in normal use: the factors of the items are in the cache."""
    question = rotating(workspace)
    for _ in range(ENTITIES):
        question()
    paired = paired_ratio(question, append, 25, PER_TURN, PER_TURN)
    return Row(
        "one durable query, factors cached",
        1e6 * paired.candidate_seconds,
        "us",
        "a 1 KB fdatasync'd append",
        1.0 / paired.ratio,
        "",
        None,
    )


def parts(workspace: Workspace, append: Callable[[], None]) -> list[Row]:
    """The time of a question in parts: the database's own commit of a row, and everything
    else without waiting for the disk."""
    connection = workspace.database.connection
    connection.execute("CREATE TABLE floor (seq INTEGER PRIMARY KEY, leaf BLOB, body BLOB)")
    leaf, body = os.urandom(32), os.urandom(1400)

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO floor (leaf, body) VALUES (?, ?)", (leaf, body))
        connection.execute("COMMIT")

    bare = paired_ratio(commit, append, 25, PER_TURN, PER_TURN)
    connection.execute("DROP TABLE floor")
    connection.execute("PRAGMA synchronous=OFF")
    no_wait = paired_ratio(rotating(workspace), append, 25, PER_TURN, PER_TURN)
    connection.execute("PRAGMA synchronous=FULL")
    against = "a 1 KB fdatasync'd append"
    return [
        Row("part: SQLite's own commit of such a row", 1e6 * bare.candidate_seconds, "us",
            against, 1.0 / bare.ratio, "", None),
        Row("part: a query with cached factors, without the wait for the disk",
            1e6 * no_wait.candidate_seconds, "us", against, 1.0 / no_wait.ratio, "", None),
    ]  # fmt: skip


def canonical(workspace: Workspace) -> Row:
    """A known fact that answers at once; its record is written in the background."""
    database, ask = workspace.database, workspace.orchestrator.query
    options = workspace.settings.query
    connection = database.connection
    text, arguments = OF_QUESTION.bound(database.dialect, ("F", "level"))

    def reference() -> None:
        connection.execute(text, arguments).fetchone()

    def candidate() -> None:
        ask("F", "level", options, "async")

    paired = paired_ratio(candidate, reference, 25, PER_TURN, PER_TURN, settle=0.05)
    workspace.ledger.flush()
    ratio = 1.0 / paired.ratio
    return Row(
        "a known fact, record pending",
        1e6 * paired.candidate_seconds,
        "us",
        "a bare indexed SELECT on the same connection",
        ratio,
        "<= 3",
        ratio <= 3.0,
    )


def group_commit(workspace: Workspace, append: Callable[[], None]) -> list[Row]:
    """Records per second from 32 threads, against one commit per record and one bare fdatasync
    each."""
    record = {"entity_id": "C0001", "predicate": "level", "confidence": 0.5, "top_value": "high"}
    draft = Draft(record)

    def from_many_threads() -> None:
        from_threads(lambda: workspace.ledger.append(draft))

    def one_by_one() -> None:
        for _ in range(THREADS * APPENDS):
            workspace.ledger.append(draft)

    def bare_appends() -> None:
        for _ in range(THREADS * APPENDS):
            append()

    def commit(drafts: Sequence[Draft]) -> list[Receipt]:
        append()
        return [Receipt("", 0, b"") for _ in drafts]

    shared = GroupCommit(commit)

    def shared_appends() -> None:
        from_threads(lambda: shared.submit([draft]))

    grouped = paired_ratio(from_many_threads, one_by_one, repeats=9)
    floor = paired_ratio(shared_appends, one_by_one, repeats=9)
    against_bare = paired_ratio(from_many_threads, bare_appends, repeats=9)
    rate = THREADS * APPENDS / grouped.candidate_seconds
    return [
        Row(f"ledger appends, {THREADS} threads", rate, "per second",
            "the same appends, one commit each", grouped.ratio, "", None),
        Row(f"ledger appends, {THREADS} threads", rate, "per second",
            "one bare 1 KB append and fdatasync each", against_bare.ratio, "", None),
        Row(f"floor: {THREADS} threads sharing bare appends",
            THREADS * APPENDS / floor.candidate_seconds, "per second",
            "the same appends, one commit each", floor.ratio, "", None),
    ]  # fmt: skip


def from_threads(work: Callable[[], object]) -> None:
    def several() -> None:
        for _ in range(APPENDS):
            work()

    threads = [threading.Thread(target=several) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def batch(workspace: Workspace) -> Row:
    """A thousand questions at once, recorded together, against one by one."""
    questions = [(f"C{number % ENTITIES:07d}", "level") for number in range(1000)]
    ask = workspace.orchestrator.query

    def one_by_one() -> None:
        for entity_id, predicate in questions:
            ask(entity_id, predicate)

    paired = paired_ratio(lambda: workspace.query_many(questions), one_by_one, repeats=5)
    rate = len(questions) / paired.candidate_seconds
    against = "the same questions one by one"
    return Row("a batch of 1,000 questions", rate, "per second", against, paired.ratio, "", None)


# Run in a new process, because this one has run other benchmarks.
_ASKING = """
import re, sys
from pathlib import Path
from lpf.workspace import Workspace
with Workspace.open(sys.argv[1]) as workspace:
    for number in range(200):
        workspace.query(f"C{number:07d}", "level")
# Not ru_maxrss, which includes the process that this one was forked from.
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def memory(workspace: Workspace) -> Row:
    command = [sys.executable, "-c", _ASKING, str(workspace.folder)]
    peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    reference = "a fresh process that asked 200 questions"
    return Row("peak memory of a process", peak, "MB", reference, None, "", None)
