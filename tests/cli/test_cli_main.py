from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lpf.cli.main import app
from lpf.version import __version__
from lpf.workspace import Workspace

RUN = CliRunner()
WITHOUT_WORKSPACE = {"domains", "evaluate", "experiment", "init"}


def commands(group: typer.Typer, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of all commands, with those of the groups they are in."""
    for command in group.registered_commands:
        assert command.epilog, f"{command} has no example"
        assert "Example" in command.epilog
        yield (*path, command.name or command.callback.__name__)
    for inner in group.registered_groups:
        yield from commands(inner.typer_instance, (*path, inner.typer_instance.info.name))


ALL = list(commands(app))


def test_help_names_the_commands() -> None:
    done = RUN.invoke(app, ["--help"])
    assert done.exit_code == 0
    for path in ALL:
        assert path[0] in done.output


def test_version() -> None:
    assert RUN.invoke(app, ["--version"]).output.strip() == f"lpf {__version__}"


def test_an_unknown_command_exits_with_2() -> None:
    assert RUN.invoke(app, ["dance"]).exit_code == 2


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_help_with_an_example_of_itself(path: tuple[str, ...]) -> None:
    done = RUN.invoke(app, [*path, "--help"], terminal_width=200)
    assert done.exit_code == 0
    assert f"Example: lpf {' '.join(path)}" in done.output
    assert "--json" in done.output
    assert ("--workspace" in done.output) == (path[0] not in WITHOUT_WORKSPACE)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_is_described(path: tuple[str, ...]) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "commands.md"
    assert f"lpf {' '.join(path)}" in page.read_text()


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["query", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    program = (
        f"import sys; sys.argv = ['lpf', *{words}]\nfrom lpf.cli.main import app\n"
        "try: app()\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'sqlalchemy', 'torch', 'onnxruntime', 'faiss'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_outside_a_workspace_the_error_says_how_to_create_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = RUN.invoke(app, ["query", "C0001"])
    assert done.exit_code == 2
    assert "lpf init" in done.stderr
    assert done.stdout == ""


def test_the_nearest_workspace_above_is_used(lpf, monkeypatch: pytest.MonkeyPatch) -> None:
    (lpf.folder / "deep" / "deeper").mkdir(parents=True)
    monkeypatch.chdir(lpf.folder / "deep" / "deeper")
    done = RUN.invoke(app, ["evidence", "list", "--json"])
    assert len(json.loads(done.stdout)["evidence"]) == 8


def test_lpf_runs_as_a_program(lpf) -> None:
    """Exit codes and streams as a shell sees them."""

    def program(*words: str) -> subprocess.CompletedProcess[str]:
        line = [str(Path(sys.executable).parent / "lpf"), *lpf.line(*words)]
        return subprocess.run(line, capture_output=True, text=True)

    answered = program("query", "C0001", "level", "--json")
    assert answered.returncode == 0, answered.stderr
    assert json.loads(answered.stdout)["audit"] == "recorded"
    assert answered.stderr == ""
    refused = program("query", "C0001", "colour")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'colour' is not in the schema" in refused.stderr


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["query"], "rgument"),
        (["query", "C0001", "--colour"], "--colour"),
        (["query", "C0001", "--top-k", "few"], "--top-k"),
        (["evidence", "list", "--limit", "0"], "--limit"),
        (["evidence", "dance"], "dance"),
        (["dance"], "dance"),
        (["--colour", "query"], "--colour"),
    ],
)
def test_usage_errors_are_json_documents_too(words: list[str], part: str) -> None:
    output = RUN.invoke(app, [*words, "--json"])
    assert output.exit_code == 2
    error = json.loads(output.stdout)["error"]
    assert error["kind"] == "UsageError"
    assert part in error["message"]
    assert part in output.stderr
    plain = RUN.invoke(app, words)
    assert (plain.exit_code, plain.stdout) == (2, "")


def test_a_bug_has_its_own_exit_code_and_prints_no_answer(
    lpf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(Workspace, "query", broken)
    output = lpf("query", "C0001", "level", code=3)
    assert output.stdout == ""
    assert "Traceback" in output.stderr
    assert "ZeroDivisionError: by nought" in output.stderr
    error = lpf.json("query", "C0001", "level", code=3)["error"]
    assert error["kind"] == "InternalError"
    assert "report it" in error["message"]


def test_a_full_disk_is_not_reported_as_a_bug(lpf, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Workspace, "query", full)
    assert "No space left" in lpf.error("query", "C0001", "level")


def test_as_of_selects_by_date() -> None:
    for name in ("query", "batch"):
        assert "dated later" in RUN.invoke(app, [name, "--help"], terminal_width=200).output


def test_the_worked_example_prints_three_answers_and_the_evidence() -> None:
    done = RUN.invoke(app, ["demo", "--worked-example"])
    assert done.exit_code == 0
    for part in ("Paper mode", "Robust mode", "audit_outcome", "E005"):
        assert part in done.output


def test_the_worked_example_as_json_is_one_document_whose_parts_add_up() -> None:
    document = json.loads(RUN.invoke(app, ["demo", "--worked-example", "--json"]).output)
    for answer in document["answers"].values():
        assert sum(answer["distribution"].values()) == pytest.approx(1.0)
        assert len(answer["contributions"]) == len(document["evidence"])
    robust = document["answers"]["robust"]["distribution"]["high"]
    assert document["answers"]["robust_with_fact"]["distribution"]["high"] < robust
    assert document["answers"]["paper"]["distribution"]["high"] < robust
