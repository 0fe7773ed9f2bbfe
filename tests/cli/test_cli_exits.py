"""How commands end if output fails, a pipe is closed, or the user interrupts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
import typer

from lpf.cli import common
from lpf.cli.main import app
from lpf.workspace import Workspace

PROGRAM = str(Path(sys.executable).parent / "lpf")
FULL = Path("/dev/full")


def program(
    line: list[str], stdout: int | IO[Any] = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *line],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["--json"], [], ["--colour", "--json"]])
def test_output_that_cannot_be_written_is_one_message(lpf, words: list[str]) -> None:
    with FULL.open("w") as full:
        done = program(lpf.line("query", "C0001", "level", *words), full)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if "--colour" not in words:
        assert done.stderr.splitlines() == [
            "lpf: output: No space left on device. What was done before stays done."
        ]


def test_a_terminal_of_ascii_only_gets_ascii_bars(lpf) -> None:
    done = program(
        lpf.line("query", "C0001", "level"), PYTHONIOENCODING="ascii", LC_ALL="C", COLUMNS="80"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "C0001 . level" in done.stdout
    assert "##" in done.stdout
    assert program(["demo", "--worked-example"], PYTHONIOENCODING="ascii").returncode == 0
    assert program(["--help"], PYTHONIOENCODING="ascii").returncode == 0


@pytest.mark.parametrize("words", [["--json"], [], ["--help"]])
def test_a_closed_pipe_is_not_a_failure(lpf, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        done = program(lpf.line("query", "C0001", "level", *words), nobody)
    assert (done.returncode, done.stderr) == (141, "")


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_interruption_prints_one_sentence(lpf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workspace, "query", interrupted)
    done = lpf("query", "C0001", "level", code=130)
    assert (done.stdout, done.stderr) == ("", "lpf: interrupted.\n")
    error = lpf.json("query", "C0001", "level", code=130)["error"]
    assert (error["kind"], error["message"]) == ("Interrupted", "interrupted.")


def test_an_interruption_before_any_command_prints_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(typer.Typer, "__call__", interrupted)
    with pytest.raises(SystemExit) as ended:
        app(["demo"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "lpf: interrupted.\n"


def test_an_interrupted_ingest_reports_its_progress(
    lpf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("entity_id,predicate,text\nC0007,level,Filed on time\n")
    second.write_text("entity_id,predicate,text\nC0008,level,Filed on time\n")
    ingest = Workspace.ingest

    def cut_short(
        space: Workspace, path: Path, *, progress: Callable[..., None], **options: Any
    ) -> Any:
        outcome = ingest(space, path, progress=progress, **options)
        return outcome if path == first else interrupted()

    monkeypatch.setattr(Workspace, "ingest", cut_short)
    done = lpf("ingest", first, second, code=130)
    assert "interrupted; 1 rows of" in done.stderr
    assert "first.csv" in done.stdout
    output = lpf.json("ingest", first, second, code=130)
    assert output["error"]["kind"] == "Interrupted"
    assert [one["read"] for one in output["files"]] == [1, 1]


def test_ctrl_c_at_a_confirmation_is_not_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common.sys.stdin, "isatty", lambda: True, raising=False)

    def at_the_prompt(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise typer.Abort from None

    monkeypatch.setattr(typer, "confirm", at_the_prompt)
    with pytest.raises(KeyboardInterrupt, match="nothing was erased"):
        common.confirm("E001", yes=False)


NOT_UTF8 = os.fsdecode(b"no\xff")


def test_file_names_that_are_not_utf8_work(lpf: Any, tmp_path: Path) -> None:
    """A name of bytes that are no letters, which file systems allow."""
    table = tmp_path / f"{NOT_UTF8}.csv"
    table.write_text("entity_id,predicate,text\nK1,level,a\nK2,mood,b\n")
    words = ["ingest", str(table), "--workspace", str(lpf.folder), "--json"]
    done = program(words)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["files"]
    assert (found["file"], found["added"], found["rejected"]) == (str(table), 1, 1)
    assert "no\\udcff.csv" in program(words[:-1]).stdout
    answers, ranked, records = (tmp_path / f"{NOT_UTF8}-{n}.jsonl" for n in range(3))
    lpf("batch", "--all", answers)
    lpf("rank", "level", ranked)
    lpf("ledger", "export", records)
    assert all(path.stat().st_size for path in (answers, ranked, records))
    lpf("batch", ranked, answers)
    assert "no\\udcff" in lpf("ingest", tmp_path / f"{NOT_UTF8}-missing.csv", code=2).stderr


def test_a_data_set_whose_name_is_not_utf8_is_evaluated(tmp_path: Path) -> None:
    path = tmp_path / f"{NOT_UTF8}.csv"
    rows = [f"C{n},text {n % 2},{'ab'[n % 2]}" for n in range(60)]
    path.write_text("\n".join(["entity_id,text,label", *rows]))
    words = ["evaluate", str(path), "--methods", "prior", "--seeds", "1", "--workers", "1"]
    done = program([*words, "--keep", str(tmp_path / "kept"), "--json"])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["methods"]["prior"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["query", NOT_UTF8], "entity"),
        (["query", "C", "--workspace", NOT_UTF8], "--workspace"),
        (["query", "C", "--asked-by", NOT_UTF8], "--asked-by"),
        (["ingest", "a.csv", "--predicate", NOT_UTF8], "--predicate"),
        (["init", NOT_UTF8], "folder"),
    ],
)
def test_other_text_that_is_not_utf8_is_refused_and_shown(
    tmp_path: Path, words: list[str], field: str
) -> None:
    done = program([*words, "--json"])
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert (error["kind"], error["field"]) == ("ConfigError", field)
    assert "no\\udcff" in error["message"]
    assert "rename" not in error["message"]
