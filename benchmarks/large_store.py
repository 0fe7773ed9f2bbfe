"""Compare lookups in a large store with those in a small one, and measure proofs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.durable import ENTITIES, ITEMS, add_evidence, benchmark_workspace, without_cache
from benchmarks.measure import Row
from lpf.ledger.proofs import prove_inclusion
from lpf.ledger.records import Draft, record_id
from lpf.ledger.verifier import verify
from lpf.workspace import Workspace

ROWS = 1_000_000
CHUNK = 2_000
RECORDS = 1_000_000


def run() -> list[Row]:
    with benchmark_workspace() as workspace, without_cache(workspace):
        small = lookup_seconds(workspace, ENTITIES)
        for start in range(ENTITIES, ROWS // ITEMS, CHUNK):
            add_evidence(workspace, range(start, min(start + CHUNK, ROWS // ITEMS)))
        large = lookup_seconds(workspace, ROWS // ITEMS)
        return [lookup_row(small, large), *proof_rows(workspace)]


def lookup_seconds(workspace: Workspace, entities: int) -> float:
    """Median time of lookups of entities spread over the store. Each is done twice, so that the
    second one does not wait for the disk."""
    as_of = time.time_ns() // 1000

    def one(number: int) -> None:
        entity = f"C{number * 7919 % entities:07d}"
        workspace.index.retrieve(entity, "level", top_k=5, min_credibility=0.5, as_of=as_of)

    for number in range(300):
        one(number)
    return median_seconds(one, 300)


def median_seconds(work: Callable[[int], object], repeats: int) -> float:
    seconds = []
    for number in range(repeats):
        started = time.perf_counter()
        work(number)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def lookup_row(small: float, large: float) -> Row:
    ratio = large / small
    return Row(
        f"look-up among {ROWS:,} rows",
        1e6 * large,
        "us",
        f"among {ENTITIES * ITEMS:,} rows",
        ratio,
        "<= 2",
        ratio <= 2.0,
    )


def proof_rows(workspace: Workspace) -> list[Row]:
    """Inclusion proofs among a million records, and verification of all of them."""
    record = {"entity_id": "C0001", "predicate": "level", "confidence": 0.5, "top_value": "high"}
    drafts = [Draft(record)] * CHUNK
    started = time.perf_counter()
    for _ in range(RECORDS // CHUNK):
        workspace.ledger.append_many(drafts)
    rate = RECORDS / (time.perf_counter() - started)
    workspace.ledger.checkpoint()
    proof = median_seconds(
        lambda number: prove_inclusion(workspace.database, record_id(1 + number * 7919 % RECORDS)),
        200,
    )
    started = time.perf_counter()
    checked = verify(workspace.database)
    assert checked.ok, checked.findings
    verified = checked.records / (time.perf_counter() - started)
    return [
        Row(f"a proof of inclusion among {RECORDS:,} records", 1e3 * proof, "ms",
            "", None, "<= 2 ms", proof <= 2e-3),
        Row("records appended in groups", rate, "per second", f"groups of {CHUNK:,}",
            None, "", None),
        Row("records verified", verified, "per second", "all rebuilt from raw records",
            None, "", None),
    ]  # fmt: skip
