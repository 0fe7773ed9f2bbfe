"""Each part of a workspace is broken in turn: it is reported, and nothing is raised or changed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import workspaces
from lpf.cli.main import app
from lpf.ledger import create_key
from lpf.storage.facts import NewFact
from lpf.storage.values import now_micros
from lpf.workspace import Workspace, doctor
from lpf.workspace.doctor import Check, check_workspace

if TYPE_CHECKING:
    from servers import PostgresServer


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With three records, of which the last are signed."""
    folder = tmp_path_factory.mktemp("pristine") / "workspace"
    with workspaces.make(folder) as workspace:
        for entity in ("C0001", "C0002", "C0099"):
            workspace.query(entity, "level")
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    shutil.copytree(pristine, tmp_path / "workspace")
    return tmp_path / "workspace"


def worst(checks: list[Check], name: str) -> Check:
    found = [check for check in checks if check.name == name]
    assert found, f"nothing was said of {name}: {checks}"
    return max(found, key=lambda check: ("ok", "warning", "fault").index(check.state))


def change(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize("full", [False, True])
def test_an_intact_workspace_has_no_faults(folder: Path, full: bool) -> None:
    checks = check_workspace(folder, full=full)
    assert {check.state for check in checks} == {"ok"}, checks
    assert {check.name for check in checks} == {
        *("settings", "store", "evidence", "facts", "index", "key", "ledger"),
        *("model", "monitoring", "reader", "circuit", "cache", "permissions", "disk"),
    }


def test_checking_changes_nothing(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    check_workspace(folder, full=True)
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before


def test_checking_does_not_register_a_reader(tmp_path: Path) -> None:
    """Evidence without features: a reader gets its number only when it reads."""
    with workspaces.Workspace.create(tmp_path, workspaces.schema()) as workspace:
        workspaces.add(workspace, workspaces.evidence("C0001"), read=False)
    before = dumped(tmp_path)
    assert "5 of 5 items have no features" in worst(check_workspace(tmp_path), "evidence").message
    assert dumped(tmp_path) == before


def dumped(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        return list(connection.iterdump())


def forge(folder: Path) -> None:
    change(folder, "UPDATE ledger SET body = CAST(REPLACE(body, 'C0002', 'C0003') AS BLOB)")


def cut_off(folder: Path) -> None:
    change(folder, "DELETE FROM ledger WHERE seq = 2")


def overwrite_store(folder: Path) -> None:
    (folder / "store.db").write_bytes(b"no database at all, but long enough to be read " * 100)


def swap_key(folder: Path) -> None:
    shutil.rmtree(folder / "keys")
    (folder / "keys").mkdir()
    create_key(folder / "keys")


def other_reader(folder: Path) -> None:
    with workspaces.Workspace.open(folder) as workspace:
        workspaces.give_model(workspace, 1)
        config = workspaces.model_config(1, reader_id="another reader")
        tensors = workspaces.sharp_tensors(config)
        workspace.use_model(
            workspaces.save_model(folder / "models", config, tensors, workspaces.CARD)
        )


def unknown_number(folder: Path) -> None:
    """A model that loads, and fails at every question about one predicate."""
    with workspaces.Workspace.open(folder) as workspace:
        workspaces.give_model(workspace, calibration={"outcome": {"lowest": 0.1}})


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return apply


@pytest.mark.parametrize(
    ("harm", "name", "part"),
    [
        (lambda folder: (folder / "lpf.toml").write_text("= 1"), "settings", "not valid TOML"),
        (lambda folder: (folder / "lpf.toml").unlink(), "settings", "is not a workspace"),
        (edit("lpf.toml", "[store]", "[stores]"), "settings", "unknown section"),
        (lambda folder: (folder / "store.db").unlink(), "store", "is missing"),
        (overwrite_store, "store", "damaged"),
        (
            lambda folder: change(folder, "INSERT INTO schema_versions VALUES (99, 0)"),
            "store",
            "version 99",
        ),
        (forge, "ledger", "its body is not the one"),
        (cut_off, "ledger", "INF0000000"),
        (lambda folder: (folder / "keys" / "ledger.key").chmod(0o644), "key", "chmod 600"),
        (lambda folder: (folder / "keys" / "ledger.key").write_text("?"), "key", "is not"),
        (swap_key, "key", "is not the key of the ledger"),
        (lambda folder: (folder / "models" / "active").write_text("x"), "model", "no model 'x'"),
        (edit("lpf.toml", '"medium"', '"middling"'), "model", "the schema lists"),
        (unknown_number, "model", "'highest', 'rho'"),
        (other_reader, "reader", "trained with another reader"),
        (edit("lpf.toml", '"minilm"', '"maxilm"'), "settings", "must be"),
        (lambda folder: (folder / "circuit.json").write_text("{"), "circuit", "circuit.json: Not"),
    ],
)
def test_damage_is_reported_as_a_fault(
    folder: Path, harm: Callable[[Path], object], name: str, part: str
) -> None:
    harm(folder)
    checks = check_workspace(folder)
    found = worst(checks, name)
    assert found.state == "fault"
    assert part in found.message
    assert [check.name for check in checks].count(name) == 1


def drop_model(folder: Path) -> None:
    (folder / "models" / "active").unlink()


def drop_features(folder: Path) -> None:
    change(folder, "DELETE FROM features WHERE row_id < 3")
    change(folder, "UPDATE counters SET value = value - 2 WHERE name LIKE 'vectors of %'")


def damage_index(folder: Path) -> None:
    with workspaces.Workspace.open(folder) as workspace:
        workspace.vectors.search("late")
    (file,) = (folder / "vectors").glob("*.faiss")
    file.write_bytes(file.read_bytes()[:-1])


def rename_a_value(folder: Path) -> None:
    with workspaces.Workspace.open(folder) as workspace:
        names = (("C0001", "clean"), ("C0002", "qualified"))
        stated = workspaces.days_ago(1)
        workspace.facts.add([NewFact(name, "outcome", value, stated) for name, value in names])
    change(folder, "UPDATE facts SET value = 'spotless' WHERE value = 'clean'")


def rename_a_predicate(folder: Path) -> None:
    rename_a_value(folder)
    change(folder, "UPDATE facts SET predicate = 'result', value = 'clean'")


def stop_an_erasure(folder: Path) -> None:
    with workspaces.Workspace.open(folder) as workspace:
        workspace.evidence.erase("C0001_E001")


@pytest.mark.parametrize(
    ("harm", "name", "part"),
    [
        (rename_a_value, "facts", "1 of 2 have a predicate or value that the schema lacks"),
        (rename_a_predicate, "facts", "lacks: result = clean"),
        (stop_an_erasure, "erasures", "1 begun and not finished: C0001_E001"),
        (drop_model, "model", "there is none"),
        (drop_features, "evidence", "2 of 8 items have no features"),
        (damage_index, "index", "is damaged"),
        (lambda folder: (folder / "keys" / "ledger.key").unlink(), "key", "not signed"),
        (lambda folder: change(folder, "UPDATE ledger SET checkpoint = NULL"), "ledger", "3 of 3"),
        (
            lambda folder: change(folder, "DELETE FROM schema_versions WHERE version > 1"),
            "store version",
            "version 1",
        ),
    ],
)
def test_minor_problems_are_warnings(
    folder: Path, harm: Callable[[Path], object], name: str, part: str
) -> None:
    harm(folder)
    checks = check_workspace(folder)
    found = worst(checks, name)
    assert found.state == "warning"
    assert part in found.message
    assert found.remedy
    assert all(check.state != "fault" for check in checks), checks


def test_a_model_that_cannot_answer_is_named_with_a_remedy(folder: Path) -> None:
    unknown_number(folder)
    active = (folder / "models" / "active").read_text().strip()
    found = worst(check_workspace(folder), "model")
    assert found.message.startswith(active)
    assert "lpf train" in found.remedy
    assert "lpf models use" in found.remedy


def test_a_model_that_follows_rounding_errors_is_a_warning(folder: Path) -> None:
    """A sound model passes, although MiniLM has a feature that is always about 1e-8."""
    assert worst(check_workspace(folder), "model").state == "ok"
    with workspaces.Workspace.open(folder) as workspace:
        config = workspaces.model_config(1, reader_id=workspace.reader.reader_id)
        tensors = workspaces.sharp_tensors(config)
        first = "encoder.trunk.0.weight"
        tensors[first] = tensors[first].copy()
        tensors[first][:, 319] = 1e7
        version = workspaces.save_model(folder / "models", config, tensors, workspaces.CARD)
        workspace.use_model(version)
    found = worst(check_workspace(folder), "model")
    assert found.state == "warning"
    assert version in found.message


def test_reader_ids_are_short_on_the_terminal_and_complete_in_json(folder: Path) -> None:
    words = ["doctor", "--workspace", str(folder)]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "80"}).stdout
    assert "all-MiniLM-L6-v2 (53aa5117) opens" in shown
    assert workspaces.reader().reader_id in CliRunner().invoke(app, [*words, "--json"]).stdout


def test_a_store_on_a_server(tmp_path: Path, postgres: PostgresServer) -> None:
    workspaces.make(tmp_path, postgres.fresh_url()).close()
    assert {check.state for check in check_workspace(tmp_path, full=True)} == {"ok"}


def test_a_server_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPF_STORE_URL", "postgresql://nobody:secret@127.0.0.1:1/none")
    checks = check_workspace(folder)
    found = worst(checks, "store")
    assert found.state == "fault"
    assert "secret" not in found.message
    assert not [check for check in checks if check.name in ("evidence", "ledger", "key")]


def test_a_cache_that_does_not_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPF_CACHE_URL", "redis://127.0.0.1:1/0")
    assert worst(check_workspace(folder), "cache").state == "warning"
    monkeypatch.setenv("LPF_CACHE_URL", "gopher://x")
    assert worst(check_workspace(folder), "cache").state == "fault"


def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 0))
    assert worst(check_workspace(folder), "disk").state == "fault"


def test_doctor_exits_with_1_if_there_is_a_fault(folder: Path) -> None:
    def doctor(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["doctor", "--workspace", str(folder), *words])
        return done.exit_code, done.stdout

    assert doctor()[0] == 0
    drop_model(folder)
    code, shown = doctor("--full")
    assert (code, "→ train one: lpf train, or add one: lpf models add FOLDER" in shown) == (0, True)
    overwrite_store(folder)
    code, output = doctor("--json")
    assert (code, json.loads(output)["ok"]) == (1, False)


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_files_that_others_can_read_are_reported(folder: Path) -> None:
    def found() -> Check:
        return next(one for one in check_workspace(folder) if one.name == "permissions")

    assert found().state == "ok"
    (folder / "store.db").chmod(0o644)
    assert found().state == "warning"
    folder.chmod(0o755)
    check = found()
    assert "store.db" in check.message
    assert f"chmod -R go= {folder}" in check.remedy
    done = subprocess.run(check.remedy.partition(": ")[2], shell=True, check=False)
    assert done.returncode == 0
    assert found().state == "ok"


def test_a_clock_that_was_set_back_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = now_micros() - 3600 * 1_000_000
    with Workspace.open(folder) as workspace:
        assert not any("clock" in note for note in workspace.query("C0001", "level").notes)
    assert all(check.name != "clock" for check in check_workspace(folder))
    for _ in range(2):  # also when the newest record has the earlier time already
        with Workspace.open(folder) as workspace:
            monkeypatch.setattr(workspace.orchestrator, "_clock", lambda: earlier)
            (many,) = workspace.query_many([("C0001", "level")])
            for result in (workspace.query("C0001", "level"), many):
                assert any("clock" in note for note in result.notes)
                fields = workspace.records.get(result.audit_ptr or "").fields
                assert fields["notes"] == list(result.notes)
    monkeypatch.setattr(doctor, "now_micros", lambda: earlier)
    assert worst(check_workspace(folder), "clock").state == "warning"
