"""What an auditor needs: who asked, texts tied to records, and what verifying cannot see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lpf.ledger.check_bundle
from lpf.cli.main import app
from lpf.ledger import create_key, verify
from lpf.ledger.check_bundle import InvalidBundleError, check, check_file
from lpf.ledger.keys import load_public
from lpf.workspace import Workspace
from lpf.workspace.settings import user_and_host

SCRIPT = lpf.ledger.check_bundle.__file__


def script(*words: object) -> subprocess.CompletedProcess[str]:
    """The checker as an auditor runs it: a single file, without this package."""
    line = [sys.executable, "-I", SCRIPT, *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True)


@pytest.fixture
def asked(lpf) -> Any:
    """With two records under a checkpoint."""
    for entity in ("C0001", "C0002"):
        lpf("query", entity, "level")
    lpf("ledger", "checkpoint")
    return lpf


@pytest.fixture
def proof(asked, tmp_path: Path) -> tuple[Path, Path]:
    """The bundle of a record, and the disclosure of one of its texts."""
    bundle, disclosure = tmp_path / "bundle.json", tmp_path / "E001.json"
    asked("ledger", "prove", "INF00000001", "--out", bundle)
    words = ("evidence", "disclose", "C0001_E001", "--record", "INF00000001", "-o", disclosure)
    asked(*words)
    return bundle, disclosure


def test_a_disclosed_text_is_tied_to_its_record(asked, proof: tuple[Path, Path]) -> None:
    bundle, disclosure = proof
    document = json.loads(disclosure.read_text())
    stored = asked.json("evidence", "show", "C0001_E001")
    assert document["text"] == stored["text_content"]
    assert document["commitment"] == stored["commitment"]
    key = asked.folder / "keys" / "ledger.pub"
    done = script(bundle, "--disclosure", disclosure, "--key", key)
    assert done.returncode == 0, done.stderr
    assert "C0001_E001 was used by INF00000001" in done.stdout


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "Another text."},
        {"claim": ""},
        {"claim": "A claim."},
        {"evidence_id": "C0001_E002"},
        {"salt": "0" * 32},
        {"commitment": "0" * 64},
        {"more": 1},
    ],
    ids=str,
)
def test_another_text_is_not_tied_to_the_record(
    proof: tuple[Path, Path], changes: dict[str, Any]
) -> None:
    bundle, disclosure = proof
    disclosure.write_text(json.dumps({**json.loads(disclosure.read_text()), **changes}))
    done = script(bundle, "--disclosure", disclosure)
    assert done.returncode == 1, done.stdout
    assert "does not hold" in done.stderr


def test_a_text_of_another_record_is_not_tied_to_this_one(asked, proof, tmp_path: Path) -> None:
    asked("evidence", "disclose", "C0002_E001", "--out", tmp_path / "other.json")
    done = script(proof[0], "--disclosure", tmp_path / "other.json")
    assert done.returncode == 1
    refused = asked.refused(
        *("evidence", "disclose", "C0002_E001", "--record", "INF00000001"),
        *("--out", tmp_path / "none.json"),
    )
    assert "INF00000001" in refused["message"]
    assert not (tmp_path / "none.json").exists()


def test_a_replaced_version_is_disclosed_for_the_records_that_used_it(
    asked, proof, tmp_path: Path
) -> None:
    old = asked.json("evidence", "show", "C0001_E001")
    asked("evidence", "edit", "C0001_E001", "--text", "C0001: corrected after a complaint.")
    asked("query", "C0001", "level")
    out = tmp_path / "old.json"
    asked("evidence", "disclose", "C0001_E001", "--record", "INF00000001", "--out", out)
    document = json.loads(out.read_text())
    assert document["text"] == old["text_content"]
    assert document["commitment"] == old["commitment"]
    done = script(proof[0], "--disclosure", out)
    assert done.returncode == 0, done.stderr
    for words in ((), ("--record", "INF00000003")):
        asked("evidence", "disclose", "C0001_E001", *words, "--out", out)
        assert json.loads(out.read_text())["text"] == "C0001: corrected after a complaint."
    both = ("--record", "INF00000001", "--record", "INF00000003")
    refused = asked.refused("evidence", "disclose", "C0001_E001", *both, "--out", tmp_path / "no")
    assert "INF00000003" in refused["message"]
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda bundle: bundle["checkpoint"].update(key=bundle["checkpoint"]["key"].upper()),
        lambda bundle: bundle["checkpoint"].update(root=bundle["checkpoint"]["root"].upper()),
        lambda bundle: bundle.update(path=[node.upper() for node in bundle["path"]]),
        lambda bundle: bundle.update(more=1),
        lambda bundle: bundle["checkpoint"].update(more=1),
        lambda bundle: bundle.update(index=False),
    ],
    ids=["key", "root", "path", "field", "checkpoint's field", "index"],
)
def test_the_checker_accepts_one_form_only(proof: tuple[Path, Path], spoil: Any) -> None:
    bundle = json.loads(proof[0].read_text())
    check(bundle)
    spoil(bundle)
    with pytest.raises(InvalidBundleError):
        check(bundle)


def test_a_repeated_key_is_refused(proof: tuple[Path, Path]) -> None:
    text = proof[0].read_text()
    with pytest.raises(InvalidBundleError):
        check_file(text.replace('"index":', '"index":0,"index":', 1).encode(), None, ())


@pytest.fixture
def exported(asked, tmp_path: Path) -> Path:
    asked("query", "C0001", "level")
    asked("ledger", "export", tmp_path / "ledger.jsonl")
    return tmp_path / "ledger.jsonl"


def test_the_checker_takes_an_export_and_says_what_it_cannot_check(
    asked, exported: Path, proof: tuple[Path, Path]
) -> None:
    key = asked.folder / "keys" / "ledger.pub"
    done = script(exported, "--key", key, "--disclosure", proof[1])
    assert done.returncode == 0, done.stderr
    assert "3 records" in done.stdout
    assert "INF00000001, INF00000003" in done.stdout
    assert "Not checked: " in done.stdout
    assert verify(exported).root.hex() in done.stdout
    other = "0" * 64
    assert script(exported, "--key", other).returncode == 1


def test_any_change_of_an_export_is_found(exported: Path) -> None:
    """Each line removed, repeated or with one letter changed."""
    lines = exported.read_bytes().splitlines(keepends=True)
    check_file(b"".join(lines), None, ())
    for place, line in enumerate(lines):
        middle = len(line) // 2
        changed = line[:middle] + bytes([line[middle] ^ 1]) + line[middle + 1 :]
        for instead in ([], [line, line], [changed]):
            spoiled = b"".join([*lines[:place], *instead, *lines[place + 1 :]])
            try:
                said = check_file(spoiled, None, ())
            except (InvalidBundleError, ValueError, LookupError, TypeError):
                continue  # not valid, or no longer an export
            raise AssertionError((place, instead, said))


def test_records_say_who_asked(lpf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPF_USER", raising=False)
    lpf("query", "C0001", "level")
    monkeypatch.setenv("LPF_USER", "ann")
    lpf("query", "C0001", "level")
    lpf("query", "C0001", "level", "--asked-by", "key 7")
    with Workspace.open(lpf.folder, asked_by="service") as space:
        space.query("C0001", "level")
        space.query_many([("C0001", "level")], audit="async")
    newest = lpf.json("ledger", "show", "--last", 5)["records"]
    assert [one["asked_by"] for one in newest] == [
        *("service", "service", "key 7", "ann", user_and_host())
    ]
    assert "ann" in lpf("ledger", "show", "INF00000002").stdout
    assert lpf.json("ledger", "verify")["ok"]
    assert lpf.json("ledger", "replay", "INF00000002")["exact"]


def test_who_asked_can_be_a_pseudonym_or_left_out(lpf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPF_USER", raising=False)
    settings = lpf.folder / "lpf.toml"
    before = settings.read_text()
    for value in ("team blue", ""):
        settings.write_text(
            before.replace("[reader]\n", f'[ledger]\nasked_by = "{value}"\n\n[reader]\n')
        )
        assert "asked_by" in settings.read_text()
        lpf("query", "C0001", "level")
    monkeypatch.setenv("LPF_USER", "ann")
    lpf("query", "C0001", "level")  # turned off for everyone
    records = lpf.json("ledger", "show", "--last", 3)["records"][::-1]
    assert [one.get("asked_by") for one in records] == ["team blue", None, None]
    assert lpf.json("ledger", "verify")["ok"]
    for bad in ("a\nb" * 400, " a"):
        assert lpf.refused("query", "C0001", "level", "--asked-by", bad)["field"] == "asked_by"


def test_verify_requires_the_key_of_the_workspace(asked, tmp_path: Path) -> None:
    keys = asked.folder / "keys"
    output = asked.json("ledger", "verify")
    assert output["ok"]
    assert output["key_from"] == str(keys / "ledger.key")
    assert not output["against_itself_only"]
    (keys / "ledger.key").unlink()
    assert asked.json("ledger", "verify")["key_from"] == str(keys / "ledger.pub")
    (keys / "ledger.pub").unlink()
    output = asked.json("ledger", "verify")
    assert output["key_from"] is None
    assert output["against_itself_only"]
    # Another ledger in the same place, valid in itself: the key says that it is not this one.
    create_key(keys)
    output = asked.json("ledger", "verify", code=1)
    assert any("key" in finding["what"] for finding in output["findings"])
    assert load_public(keys / "ledger.pub").hex() in json.dumps(output)


def test_verify_says_what_it_cannot_see(asked, tmp_path: Path) -> None:
    without = asked.json("ledger", "verify")["cannot_see"]
    assert len(without) == 2
    shown = asked("ledger", "verify").stdout
    assert sum("cannot see" in line for line in shown.splitlines()) == 1
    asked("ledger", "checkpoint", "--out", tmp_path / "checkpoint.json")
    given = asked.json("ledger", "verify", "--trusted", tmp_path / "checkpoint.json")
    assert len(given["cannot_see"]) == 1


def test_the_current_folder_is_searched_only_for_methods_of_your_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    (tmp_path / "data.jsonl").write_text("{}\n")
    CliRunner().invoke(app, ["evaluate", "data.jsonl", "--methods", "prior"])
    assert sys.path == before
    done = CliRunner().invoke(app, ["evaluate", "data.jsonl", "--methods", "mine:Method"])
    assert sys.path[0] == str(tmp_path)
    assert str(tmp_path) in done.stderr


def test_questions_of_a_killed_batch_leave_no_file(lpf, tmp_path: Path) -> None:
    """Killed while it waits for the rest of standard input, and after it has read all of it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    secret = "A name that nobody else has"
    line = [str(Path(sys.executable).parent / "lpf"), *lpf.line("batch", "-", "-")]
    with subprocess.Popen(
        line,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        question = json.dumps({"entity_id": secret, "predicate": "level"}) + "\n"
        process.stdin.write(question.encode() * 20_000)
        process.stdin.close()
        process.stdout.read(1)  # it answers: all questions were read
        process.send_signal(signal.SIGKILL)
    assert not [path for path in folder.rglob("*") if path.is_file()]
