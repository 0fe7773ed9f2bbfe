"""init and models: creating a workspace and giving it a model."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import workspaces
from builders import model_config
from lpf.cli.main import app
from lpf.workspace import Workspace


def init(folder: Path, *words: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["init", str(folder), *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def test_init_shows_the_workspace_and_the_next_steps(tmp_path: Path) -> None:
    done = init(tmp_path / "new", "--predicate", "level=low,medium,high")
    for part in ("lpf.toml", "ledger.key", "level: low, medium, high", "lpf ingest"):
        assert part in done.stdout
    assert (tmp_path / "new" / "keys" / "ledger.key").stat().st_mode & 0o077 == 0


def test_predicates_priors_and_relations_reach_the_settings(tmp_path: Path) -> None:
    init(
        tmp_path,
        *("--predicate", "level=low:0.2, medium:0.3, high:0.5"),
        *("--predicate", "outcome=clean,qualified"),
        *("--related", "level,outcome"),
    )
    schema = Workspace.open(tmp_path).schema
    assert schema["level"].prior == (0.2, 0.3, 0.5)
    assert schema.related("level") == ("outcome",)


def test_the_next_step_names_a_predicate_if_there_are_several(tmp_path: Path) -> None:
    one, more = ("--predicate", "level=low,high"), ("--predicate", "outcome=clean,qualified")
    assert "lpf query ENTITY        ask a question" in init(tmp_path / "one", *one).stdout
    assert "lpf query ENTITY PREDICATE" in init(tmp_path / "two", *one, *more).stdout


def test_a_schema_file_does_the_same(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text('[[predicates]]\nname = "level"\nvalues = ["low", "high"]\n')
    document = json.loads(init(tmp_path / "new", "--schema", file, "--json").stdout)
    assert document["predicates"] == {"level": ["low", "high"]}
    assert Path(document["key"]).exists()
    assert len(document["public_key"]) == 64


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--predicate: is missing"),
        (["--predicate", "level"], "NAME=VALUE,VALUE"),
        (["--predicate", "level=low:0.5,high"], "every value a prior, or none"),
        (["--predicate", "level=low:half,high:0.5"], "must be a number"),
        (["--predicate", "level=low:0.5,high:0.6"], "sums to 1.1"),
        (["--predicate", "level=low,high", "--related", "level,colour"], "colour"),
        (["--schema", "missing.toml"], "missing.toml: No such file"),
        (["--schema", "s.toml", "--predicate", "level=low"], "Leave --predicate"),
        (["--predicate", "level=low,high", "--store", "mysql://x/y"], "store.url"),
    ],
)
def test_a_failed_init_is_reported_and_leaves_nothing(
    words: list[str], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "new"
    assert message in init(folder, *words, code=2).stderr
    assert json.loads(init(folder, *words, "--json", code=2).stdout)["error"]["kind"]
    assert not (folder / "lpf.toml").exists()


def test_a_workspace_is_not_created_twice(tmp_path: Path) -> None:
    init(tmp_path, "--predicate", "level=low,high")
    done = init(tmp_path, "--predicate", "other=a,b", code=2)
    assert "is a workspace already" in done.stderr
    settings = (tmp_path / "lpf.toml").read_text()
    assert "level" in settings
    assert settings.count("\nstaleness_days = ") == settings.count("[[predicates]]")


def test_the_first_model_added_is_used_and_others_only_with_use(lpf, tmp_path: Path) -> None:
    (first,) = lpf.json("models", "list")["models"]
    assert first["active"]
    assert first["predicates"] == ["level", "outcome"]
    with Workspace.create(tmp_path / "other", workspaces.schema()) as other:
        second = workspaces.give_model(other, members=1)
    source = tmp_path / "other" / "models" / second
    output = {"version": second, "active": False, "was_here": False, "lacks": []}
    assert lpf.json("models", "add", source) == output
    assert f"lpf models use {second}" in lpf("models", "add", source).stdout
    assert lpf.json("models", "use", second)["active"]
    assert f"{second} is here already and answers." in lpf("models", "add", source).stdout
    assert second in lpf("models", "list").stdout
    (tmp_path / "other" / "models" / "active").unlink()
    shutil.copytree(source, tmp_path / second)
    shutil.rmtree(source)
    there = type(lpf)(tmp_path / "other")
    assert "no model yet" in there("models", "list").stdout
    assert there.json("models", "add", tmp_path / second)["active"]


def test_a_model_that_lacks_a_predicate_is_used_only_with_use(lpf, tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "other", workspaces.schema()) as other:
        partial = workspaces.give_model(other, predicates=model_config().predicates[:1])
    source = tmp_path / "other" / "models" / partial
    shutil.rmtree(lpf.folder / "models")
    shown = lpf("models", "add", source).stdout
    assert "It lacks outcome" in shown
    assert f"lpf models use {partial}" in shown
    output = lpf.json("models", "add", source)
    assert (output["active"], output["was_here"], output["lacks"]) == (False, True, ["outcome"])
    assert lpf.json("models", "add", source, "--use")["active"]


def test_a_model_that_was_changed_is_listed_and_refused(lpf) -> None:
    (model,) = lpf.json("models", "list")["models"]
    card = lpf.folder / "models" / model["version"] / "card.json"
    card.write_text(card.read_text().replace("tests", "all purposes"))
    (listed,) = lpf.json("models", "list")["models"]
    assert "hashes to" in listed["error"]
    assert "cannot be loaded" in lpf("models", "list").stdout
    assert "hashes to" in lpf.error("models", "use", model["version"])
    assert "has no model" in lpf.error("models", "use", "nonsense")


def everything(folder: Path) -> dict[Path, bytes | None]:
    return {path: None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("--store", "postgresql://nobody@127.0.0.1:1/none"),
        ("--store", "mysql://h/x"),
        ("--store", "sqlite:///missing/folder/store.db"),
        ("--store", "sqlite:///theirs.db"),
    ],
)
def test_a_failed_init_leaves_nothing_behind(
    tmp_path: Path, words: tuple[str, ...], existed: bool
) -> None:
    folder = tmp_path / "above" / "new"
    if existed:
        folder.mkdir(parents=True)
        (folder / "notes.txt").write_text("mine")
    if "theirs" in words[1]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "theirs.db").touch()
    before = everything(tmp_path)
    init(folder, "--predicate", "level=low,high", *words, code=2)
    assert everything(tmp_path) == before


def test_a_key_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "keys").write_text("not a folder")
    before = everything(tmp_path)
    init(folder, "--predicate", "level=low,high", code=2)
    assert everything(tmp_path) == before


def test_all_files_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    old = os.umask(0)
    try:
        with workspaces.make(folder) as workspace:
            workspace.__dict__["reader"] = workspaces.reader()
            workspace.ingest([{"entity_id": "C0001", "predicate": "taste", "text": "a"}])
            workspace.vectors.search("a text", k=1)
            workspace.query("C0001", "level")
            modes = {path: path.stat().st_mode & 0o777 for path in folder.rglob("*")}
    finally:
        os.umask(old)
    assert {path for path in modes if path.suffix == ".faiss"}
    assert {path for path in modes if path.name.endswith(".rejects.jsonl")}
    wide = {path for path, mode in modes.items() if mode & 0o077}
    assert {path.name for path in wide} <= {"ledger.pub"}


def test_a_description_becomes_the_claim_if_it_is_one(tmp_path: Path) -> None:
    one, asked = ("--predicate", "level=low,high"), ("--description", "Is the firm reliable?")
    made = json.loads(init(tmp_path / "asked", *one, *asked, "--json").stdout)
    assert made["claim"] == "Is the firm reliable?"
    with Workspace(tmp_path / "asked") as space:
        assert space.schema["level"].description == "Is the firm reliable?"
        assert space.settings.reader.description_as_claim
    named = ("--description", "Reliability of the firm")
    assert json.loads(init(tmp_path / "named", *one, *named, "--json").stdout)["claim"] is None
    more = ("--predicate", "outcome=clean,qualified")
    assert "--schema" in init(tmp_path / "two", *one, *more, *asked, code=2).output
    assert not (tmp_path / "two").exists()
