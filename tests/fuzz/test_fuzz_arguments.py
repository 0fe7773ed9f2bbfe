"""Three hundred strange arguments through every command: never a traceback."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import workspaces
from fuzz.fork_server import ForkServer
from fuzz.hostile import PAYLOADS, problems

pytestmark = pytest.mark.slow

CALLS = 300
STRANGE = (
    *("", " ", "-", "--", "---", "-x", "--json", "=", "a=b", "\udcff\udcfe", "é", "名前", "🙂"),
    *("0", "-0", "-1", "1e999", "nan", "inf", "-inf", "1e-400", str(2**63), str(-(2**63) - 1)),
    *(str(10**30), "9" * 5000, "0x10", "1_000", "١٢٣", "1,5", "1.5", "true", "None"),
    *("0001-01-01", "9999-12-31T23:59:59.999999+00:00", "0001-01-01T00:00:00+14:00", "now"),
    *("9999-12-31T23:59:59-14:00", "10000-01-01", "2026-02-30", "24:00", "-1-1-1"),
    *("/", "/dev/null", "/nonexistent/file.csv", ".", "..", "x" * 5000, "a/b\\c", "~", "*"),
    *("INF00000001", "INF99999999999999999999", "inf1", "C0001", "level", "low", "[" * 3000),
    # An argument has no NUL, and only those surrogates that stand for bytes.
    *(one.replace("\x00", "").replace("\ud800", "\udc80") for one in PAYLOADS),
)
CALLED = (
    ("query", "{}"),
    ("query", "C0001", "{}"),
    ("query", "C0001", "level", "--as-of", "{}"),
    ("query", "C0001", "level", "--top-k", "{}"),
    ("query", "C0001", "level", "--min-credibility", "{}"),
    ("query", "C0001", "level", "--query-text", "{}"),
    ("query", "C0001", "level", "--temperature", "{}"),
    ("query", "C0001", "level", "--uncertainty-samples", "{}"),
    ("query", "C0001", "level", "--seed", "{}"),
    ("query", "C0001", "level", "--mode", "paper", "--n-samples", "{}"),
    ("query", "C0001", "level", "--mode", "paper", "--alpha", "{}"),
    ("query", "C0001", "level", "--variant", "{}"),
    ("batch", "{}", "{}"),
    ("batch", "{}", "out.jsonl"),
    ("ingest", "{}"),
    ("ingest", "{}", "{}"),
    ("evidence", "list", "--entity", "{}"),
    ("evidence", "show", "{}"),
    ("evidence", "search", "{}", "--limit", "{}"),
    ("evidence", "search", "{}"),
    ("evidence", "erase", "{}", "--yes"),
    ("facts", "add", "{}"),
    ("facts", "set", "{}", "level", "low"),
    ("facts", "set", "C0001", "level", "{}"),
    ("facts", "set", "C0001", "level", "low", "--confidence", "{}"),
    ("facts", "set", "C0001", "level", "low", "--at", "{}"),
    ("facts", "set", "C0001", "level", "low", "--source", "{}"),
    ("facts", "correct", "{}", "--value", "low"),
    ("facts", "withdraw", "{}"),
    ("facts", "history", "{}"),
    ("ledger", "show", "{}"),
    ("ledger", "replay", "{}"),
    ("ledger", "list", "--limit", "{}"),
    ("models", "use", "{}"),
    ("models", "add", "{}"),
    ("models", "show", "{}"),
    ("train", "{}"),
    ("evaluate", "{}"),
    ("init", "{}", "--predicate", "{}"),
    ("init", "made", "--predicate", "{}"),
    ("init", "made", "--schema", "{}"),
    ("init", "made", "--predicate", "a=b,c", "--store", "{}"),
    ("domains", "show", "{}"),
    ("domains", "generate", "compliance", "--entities", "{}"),
    ("doctor", "--{}"),
    ("{}",),
    ("{}", "{}"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as running:
        yield running


def test_strange_arguments(server: ForkServer, tmp_path: Path) -> None:
    pristine = tmp_path / "pristine"
    workspaces.make(pristine).close()
    workspace = tmp_path / "workspace"
    failed: list[tuple[str, ...]] = []
    for number in range(CALLS):
        generator = random.Random(number)
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.copytree(pristine, workspace)
        # Every call occurs, and every string in some call.
        strange = STRANGE[number % len(STRANGE)]
        words = [
            word.replace("{}", strange if generator.random() < 0.8 else generator.choice(STRANGE))
            for word in CALLED[generator.randrange(len(CALLED))]
        ]
        ended = server.run(*words, folder=workspace)
        if wrong := problems(ended):
            failed.append((f"{number}: {words!r}"[:300], *wrong))
    assert not failed, (len(failed), failed[:5])
