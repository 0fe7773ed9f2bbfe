"""The workspace as a whole: creating, opening, settings, and how its parts work together."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import lpf.ledger.check_bundle
import workspaces
from lpf.cli.main import app
from lpf.errors import (
    CacheUnavailableError,
    LedgerKeyError,
    StoreFullError,
    UnknownEvidenceError,
    WorkspaceError,
)
from lpf.ledger.proofs import prove_inclusion
from lpf.ledger.verifier import verify
from lpf.storage.facts import NewFact
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from servers import RedisServer

SECRET = "Ms Ruth Quillfeather, born 4 May 1961, admitted to the ward with gangrene"
SETTINGS = "lpf.toml"


def test_a_workspace_is_found_in_a_parent_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.create(tmp_path / "here", workspaces.schema()).close()
    below = tmp_path / "here" / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert Workspace.open().folder == tmp_path / "here"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkspaceError, match="lpf init"):
        Workspace.open()


def test_settings_survive_the_round_trip(tmp_path: Path) -> None:
    schema = workspaces.schema()
    with Workspace.create(tmp_path / 'with "quotes"', schema) as made:
        assert made.schema == schema
        assert made.schema.hash == schema.hash


def test_creating_a_workspace_twice_is_refused(tmp_path: Path) -> None:
    Workspace.create(tmp_path, workspaces.schema()).close()
    before = (tmp_path / SETTINGS).read_bytes()
    with pytest.raises(WorkspaceError, match="already"):
        Workspace.create(tmp_path, workspaces.schema())
    assert (tmp_path / SETTINGS).read_bytes() == before


def test_only_the_owner_can_read_the_key(tmp_path: Path) -> None:
    Workspace.create(tmp_path, workspaces.schema()).close()
    key = tmp_path / "keys" / "ledger.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.chmod(0o644)
    with Workspace.open(tmp_path) as opened, pytest.raises(LedgerKeyError, match="600"):
        opened.query("C0001", "level")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[store\n", "not valid TOML"),
        ("[shop]\n", "shop: unknown section"),
        ("[cache]\nurl = 3\n", "cache.url: must be of type str"),
        ("[query]\ntop_k = 0\n", "top_k"),
        ("[facts]\nmin_confidence = 2\n", "facts.min_confidence"),
        ("[index.ranking]\nrecency = -1\n", "index.ranking.recency"),
        ("[index.vectors]\nkind = 'tree'\n", "kind"),
        ("[ledger]\nsize = 1\n", "ledger.size: unknown field"),
        ("[index]\nranking = 3\n", "index.ranking: must be a table"),
        ("[query]\ntemperature = '0.5'\n", "query.temperature: must be of type float"),
        ("[query]\nas_of = '2026-01-01'\n", "query.as_of: must be of type datetime"),
        ("[query]\nas_of = 2026-01-01T00:00:00\n", "as_of"),
        ("[query]\nsampler = 'bogus'\n", "sampler"),
        ("[query]\nn_samples = 'x'\n", "query.n_samples: must be of type int"),
        ("[query]\nmode = 3\n", "query.mode: must be of type str"),
        ("[ledger]\ncheckpoint_seconds = -5\n", "ledger.checkpoint_seconds"),
        ("[cache]\nttl_seconds = 0\n", "cache.ttl_seconds"),
        ("[facts]\ncertain = 0.8\n", "facts.certain"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(tmp_path: Path, text: str, expected: str) -> None:
    Workspace.create(tmp_path, workspaces.schema()).close()
    path = tmp_path / SETTINGS
    path.write_text(text + path.read_text())
    with pytest.raises(WorkspaceError) as caught:
        Workspace.open(tmp_path)
    assert str(path) in str(caught.value)
    assert expected in str(caught.value)


def test_an_environment_variable_selects_another_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.create(tmp_path / "here", workspaces.schema()).close()
    (tmp_path / "here" / "store.db").rename(tmp_path / "other.db")
    monkeypatch.setenv("LPF_STORE_URL", f"sqlite:///{tmp_path / 'other.db'}")
    assert Workspace.open(tmp_path / "here").database.path == tmp_path / "other.db"


def test_a_lost_store_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    Workspace.create(tmp_path, workspaces.schema()).close()
    (tmp_path / "store.db").unlink()
    with Workspace.open(tmp_path) as opened, pytest.raises(WorkspaceError, match="missing"):
        opened.facts.count()
    assert not (tmp_path / "store.db").exists()


def test_a_store_is_created_inside_a_folder_of_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "what?now#100%"
    Workspace.create(folder, workspaces.schema()).close()
    assert (folder / "store.db").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_closed_workspace_cannot_be_used(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        workspace.query("C0001", "level")
    with pytest.raises(WorkspaceError, match="was closed"):
        workspace.query("C0001", "level")
    workspace.close()


def test_a_key_file_named_by_the_environment_must_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.create(tmp_path, workspaces.schema()):
        pass
    monkeypatch.setenv("LPF_LEDGER_KEY", str(tmp_path / "nowhere.key"))
    with Workspace.open(tmp_path) as opened, pytest.raises(LedgerKeyError, match="LPF_LEDGER_KEY"):
        opened.ledger  # noqa: B018


def test_learning_from_too_few_facts_is_reported(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        workspace.facts.add([NewFact("K1", "level", "high", workspaces.days_ago(1))])
        learned = workspace.learn_circuit()
        assert (learned.entities, learned.found_nothing) == (1, True)


def test_parts_are_built_once_for_all_threads(tmp_path: Path) -> None:
    workspaces.make(tmp_path).close()
    with Workspace.open(tmp_path) as workspace:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _: workspace.ledger, range(8)))
        assert len({id(ledger) for ledger in made}) == 1


def test_a_second_host_joins_a_shared_store_without_its_key(
    tmp_path: Path, postgres: object
) -> None:
    url = postgres.fresh_url()  # type: ignore[attr-defined]
    with workspaces.make(tmp_path / "first", url) as first:
        first.query("C0001", "level")
    with Workspace.create(tmp_path / "second", workspaces.schema(), store_url=url) as second:
        assert not (tmp_path / "second" / "keys").exists()
        result = second.query("C0404", "level")
        assert (result.audit_ptr, "not signed" in result.notes[-1]) == ("INF00000002", True)
        assert verify(second.database).unsigned_tail == 1
    with Workspace.open(tmp_path / "first") as first:
        first.query("C0001", "level")
    with Workspace.open(tmp_path / "first") as first:
        checked = verify(first.database)
        assert (checked.ok, checked.unsigned_tail, checked.records) == (True, 0, 3)


def every_file(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def found_in(folder: Path, text: str) -> list[Path]:
    """Files that hold the text, or half of it, in any of the forms it is written in."""
    forms = {text.encode(), json.dumps(text)[1:-1].encode(), text.encode("utf-16-le")}
    forms |= {form[: len(form) // 2] for form in forms} | {form[len(form) // 2 :] for form in forms}
    files = every_file(folder)
    return [path for path, content in files.items() if any(form in content for form in forms)]


def standalone_check(bundle: Path) -> int:
    script = lpf.ledger.check_bundle.__file__
    done = subprocess.run([sys.executable, "-I", script, str(bundle)], capture_output=True)
    return done.returncode


def with_secret(workspace: Workspace, folder: Path) -> None:
    """The text as evidence, and once more in a row that is rejected."""
    rows = [
        {"evidence_id": "S1", "entity_id": "C0001", "predicate": "level", "text": SECRET},
        {"evidence_id": "S2", "entity_id": "C0001", "predicate": "colour", "text": SECRET},
        {"evidence_id": "S3", "entity_id": "C0001", "predicate": "level", "text": "Öffentlich."},
    ]
    path = folder / "secret.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    workspace.__dict__["reader"] = workspaces.reader()
    outcome = workspace.ingest(path)
    assert (outcome.added, outcome.rejected) == (2, 1)


def test_erased_items_are_gone_and_proofs_stay_valid(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    with workspaces.make(folder) as workspace:
        with_secret(workspace, tmp_path)
        result = workspace.query("C0001", "level", QueryOptions(top_k=8))
        assert "S1" in result.evidence_chain
        workspace.vectors.search("gangrene", k=1)
        workspace.ledger.checkpoint()
        bundle = tmp_path / "bundle.json"
        bundle.write_text(json.dumps(prove_inclusion(workspace.database, result.audit_ptr or "")))
        assert found_in(folder, SECRET)
        vector = workspace.reader.read(SECRET)
        assert holders(folder, vector)

        outcome = workspace.erase("S1")
        assert (outcome.rejects_removed, outcome.warnings) == (1, ())
        assert found_in(folder, SECRET) == []
        assert holders(folder, vector) == []
        with pytest.raises(UnknownEvidenceError, match="erased"):
            workspace.evidence.get("S1")
        assert workspace.replay(result.audit_ptr or "").exact
        assert "S1" not in workspace.query("C0001", "level").evidence_chain
        assert all(hit.evidence_id != "S1" for hit in workspace.vectors.search("gangrene", k=5))
        checked = verify(workspace.database)
        assert checked.ok, checked.findings
        again = workspace.ingest(tmp_path / "secret.jsonl")
        assert (again.added, again.rejected) == (0, 2)
    assert standalone_check(bundle) == 0
    with Workspace.open(folder) as reopened:
        assert verify(reopened.database).ok


def test_erasure_reaches_copies_in_all_workspaces_of_the_store(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    url = f"sqlite:///{first / 'store.db'}"
    with workspaces.make(first) as workspace:
        with_secret(workspace, tmp_path)
        vector = workspace.reader.read(SECRET)
    with Workspace.create(second, workspaces.schema(), store_url=url) as other:
        workspaces.give_model(other)
        other.__dict__["reader"] = workspaces.reader()
        other.vectors.search("gangrene", k=1)
        for folder in (first, second):
            caches = folder / "searches" / "features"
            caches.mkdir(parents=True)
            np.save(caches / "cache.npy", np.stack([vector, vector]))
        left_over = second / "vectors" / f".x.{2**22}.partial"
        left_over.write_bytes(vector.tobytes())
        assert {path.relative_to(tmp_path).parts[0] for path in holders(tmp_path, vector)} == {
            "first",
            "second",
        }
        with Workspace.open(first) as workspace:
            assert workspace.erase("S1").warnings == ()
        assert holders(tmp_path, vector) == []
        assert found_in(first, SECRET) == []
        assert other.vectors.search("gangrene", k=3)


def test_an_erasure_is_pending_until_a_remote_workspace_has_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with workspaces.make(first) as workspace:
        with_secret(workspace, tmp_path)
        vector = workspace.reader.read(SECRET)
    url = f"sqlite:///{first / 'store.db'}"
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "elsewhere")
        with Workspace.create(second, workspaces.schema(), store_url=url) as other:
            workspaces.give_model(other)
            other.__dict__["reader"] = workspaces.reader()
            other.vectors.search("gangrene", k=1)
            (second / "searches" / "features").mkdir(parents=True)
            np.save(second / "searches" / "features" / "cache.npy", vector[None])
    done = CliRunner().invoke(
        app, ["evidence", "erase", "S1", "--yes", "--json", "--workspace", str(first)]
    )
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["pending"] is True
    assert "elsewhere" in document["warnings"][0]
    assert holders(second, vector)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "elsewhere")
        with Workspace.open(second) as other:
            assert other.evidence.pending_erasures()
    assert holders(second, vector) == []
    with Workspace.open(first) as workspace:
        assert workspace.erase("S1").warnings == ()
        assert workspace.evidence.pending_erasures() == []


def two_that_rejected(tmp_path: Path) -> tuple[Path, Path]:
    """Two workspaces of one store, the second with nothing but a rejected row with the text."""
    first, second = tmp_path / "first", tmp_path / "second"
    with workspaces.make(first) as workspace:
        with_secret(workspace, tmp_path)
    url = f"sqlite:///{first / 'store.db'}"
    row = {"evidence_id": "X", "entity_id": "C0001", "predicate": "colour", "text": SECRET}
    with Workspace.create(second, workspaces.schema(), store_url=url) as other:
        other.__dict__["reader"] = workspaces.reader()
        assert other.ingest([row]).rejected == 1
    assert found_in(second, SECRET)
    return first, second


def test_erasure_reaches_the_rejects_of_every_workspace_of_the_store(tmp_path: Path) -> None:
    first, second = two_that_rejected(tmp_path)
    with Workspace.open(first) as workspace:
        outcome = workspace.erase("S1")
        assert (outcome.rejects_removed, outcome.warnings) == (2, ())
    assert found_in(first, SECRET) + found_in(second, SECRET) == []


def test_an_erasure_is_pending_while_rejects_cannot_be_cleaned(tmp_path: Path) -> None:
    first, second = two_that_rejected(tmp_path)
    rejects = second / "rejects"
    unreadable = rejects / "a.rejects.jsonl"
    unreadable.mkdir()
    with Workspace.open(first) as workspace:
        (warning,) = workspace.erase("S1").warnings
        assert str(rejects) in warning
        assert workspace.evidence.pending_erasures()
        unreadable.rmdir()
        # The text is gone from the store, so nothing can recognise it there any more.
        (warning,) = workspace.erase("S1").warnings
        assert str(rejects) in warning
        with Workspace.open(second) as other:
            assert other.evidence.pending_erasures()
        assert workspace.erase("S1").warnings
        shutil.rmtree(rejects)
        assert workspace.erase("S1").warnings == ()
        assert workspace.evidence.pending_erasures() == []


def test_erasure_leaves_temporary_files_of_others_alone(tmp_path: Path) -> None:
    with workspaces.make(tmp_path / "here") as workspace:
        mine = tmp_path / "here" / "notes" / f".draft.{2**22}.partial"
        mine.parent.mkdir()
        mine.write_text("not a copy of a vector")
        left_over = tmp_path / "here" / "vectors" / f".x.{2**22}.partial"
        left_over.parent.mkdir(exist_ok=True)
        left_over.write_bytes(bytes(16))
        workspace.erase("C0001_E001")
        assert mine.read_text() == "not a copy of a vector"
        assert not left_over.exists()


def test_a_query_text_can_be_erased(tmp_path: Path) -> None:
    with workspaces.make(tmp_path / "here") as workspace:
        workspace.__dict__["reader"] = workspaces.reader()
        result = workspace.query("C0001", "level", QueryOptions(query_text=SECRET))
        assert found_in(tmp_path, SECRET)
        assert workspace.erase_query_texts(result.audit_ptr or "") == (1, ())
        assert found_in(tmp_path, SECRET) == []
        assert verify(workspace.database).ok
        assert workspace.replay(result.audit_ptr or "").exact


def holders(folder: Path, vector: np.ndarray) -> list[Path]:
    """Files that hold a run of the vector's numbers."""
    run = vector[10:20].astype("<f4").tobytes()
    return [path for path, content in every_file(folder).items() if run in content]


def test_erasing_an_unknown_item_changes_nothing(tmp_path: Path) -> None:
    with (
        workspaces.make(tmp_path) as workspace,
        pytest.raises(UnknownEvidenceError, match="nobody"),
    ):
        workspace.erase("nobody")


def test_redis_lost_or_flushed_changes_no_answer(
    tmp_path: Path, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = workspaces.make(tmp_path / "plain")
    expected = plain.query("C0001", "level").probabilities
    monkeypatch.setenv("LPF_CACHE_URL", redis_server.url)
    shared = workspaces.make(tmp_path / "shared")

    def ask_afresh() -> list[float]:
        with Workspace.open(shared.folder) as opened:
            return list(opened.query("C0001", "level").probabilities)

    try:
        assert ask_afresh() == pytest.approx(expected, abs=1e-5)
        assert ask_afresh() == pytest.approx(expected, abs=1e-5)  # kept factors
        redis_server.flush()
        assert ask_afresh() == pytest.approx(expected, abs=1e-5)
        redis_server.stop()
        assert ask_afresh() == pytest.approx(expected, abs=1e-5)
        with pytest.raises(CacheUnavailableError):
            shared.erase("C0001_E001")
        assert [item.evidence_id for item in shared.evidence.pending_erasures()] == ["C0001_E001"]
    finally:
        redis_server.start()
    shared.erase("C0001_E001")
    assert shared.evidence.pending_erasures() == []
    shared.close()
    plain.close()


def test_a_circuit_is_learned_and_used_by_the_next_opening(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        pairs = [("high", "clean"), ("low", "qualified")] * 20
        facts = [
            NewFact(f"K{n}", predicate, value, workspaces.days_ago(5))
            for n, pair in enumerate(pairs)
            for predicate, value in zip(("level", "outcome"), pair, strict=True)
        ]
        workspace.facts.add(facts)
        assert workspace.learn_circuit().entities == 40
        workspace.facts.add([NewFact("Z", "outcome", "clean", workspaces.days_ago(1))])
        here = workspace.query("Z", "level").probabilities
    with Workspace.open(tmp_path) as reopened:
        assert reopened.query("Z", "level").probabilities == here
        assert reopened.query("Z", "level").top_value == "high"


def test_a_question_about_stored_evidence_opens_no_reader(tmp_path: Path) -> None:
    workspaces.make(tmp_path).close()
    with Workspace.open(tmp_path) as workspace:
        workspace.query("C0001", "level")
        assert "reader" not in workspace.__dict__


def test_nothing_is_left_open_after_closing(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        workspace.query("C0001", "level")
    handles = {str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.exists()}
    assert not [handle for handle in handles if str(tmp_path) in handle]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes, where the tests may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here (it takes root)")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def ask_until_full(workspace: Workspace) -> int:
    """How many questions were answered before the disk was full."""
    for answered in range(10_000):
        try:
            workspace.query("C0001", "level")
        except StoreFullError:
            return answered
    raise AssertionError("the disk never filled up")


def test_a_full_disk_is_reported_and_leaves_an_intact_workspace(
    tmp_path: Path, small_disk: Path
) -> None:
    folder = small_disk / "here"
    with workspaces.make(folder) as workspace:
        first = workspace.query("C0001", "level")
        filler = small_disk / "filler"
        filler.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 4096))
        answered = ask_until_full(workspace)
        path = tmp_path / "more.csv"
        path.write_text("entity_id,predicate,text\n" + "C0001,level,another text\n")
        workspace.__dict__["reader"] = workspaces.reader()
        with pytest.raises(StoreFullError):
            workspace.ingest(path)
        filler.unlink()
        assert workspace.query("C0001", "level").audit_ptr == f"INF{answered + 2:08d}"
        assert workspace.ingest(path).added == 1
        assert workspace.replay(first.audit_ptr or "").exact
        checked = verify(workspace.database)
        assert (checked.ok, checked.records) == (True, answered + 2)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that another user can enter; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


# Asked once as root, so that all modules are loaded: another user may not even see the library.
AS_NOBODY = """
import os, sys
from lpf.errors import LPFError
from lpf.workspace import Workspace
with Workspace.open(sys.argv[1]) as workspace:
    workspace.query("C0001", "level", audit="off")
os.setgid(65534), os.setuid(65534)
try:
    Workspace.open(sys.argv[1]).query("C0001", "level")
except LPFError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without rights")
def test_an_unwritable_folder_is_reported(open_to_all: Path) -> None:
    folder = open_to_all / "here"
    with workspaces.make(folder) as workspace:
        workspace.query("C0001", "level")
    shutil.rmtree(folder / "keys")  # it would be the first thing to be refused
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    command = [sys.executable, "-c", AS_NOBODY, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.startswith("StoreReadOnlyError"), done.stderr
    assert "permissions" in done.stdout
    with Workspace.open(folder) as workspace:
        assert verify(workspace.database).records == 1
