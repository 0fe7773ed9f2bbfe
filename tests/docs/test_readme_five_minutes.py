"""The README's own-data section, command by command, as a newcomer types them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lpf.cli.demo import OWN_DATA
from lpf.cli.exits import EXIT_NO_ANSWER
from lpf.cli.main import app

ROOT = Path(__file__).parent.parent.parent
RUN = CliRunner()


def commands(heading: str = "## Your own data in five minutes") -> list[list[str]]:
    """The section's ``lpf`` lines without their comments."""
    text = (ROOT / "README.md").read_text()
    section = text.split(heading)[1].split("\n## ")[0]
    lines = re.findall(r"^    (lpf .*)$", section, re.MULTILINE)
    return [shlex.split(line.split(" && ")[0], comments=True)[1:] for line in lines]


def test_the_environment_is_activated_before_the_first_command() -> None:
    text = (ROOT / "README.md").read_text()
    first = re.search(r"^    lpf ", text, re.MULTILINE)
    assert first is not None
    before = text[: first.start()]
    assert "    make demo" in before
    assert "    . .venv/bin/activate" in before
    section = text.split("## Your own data in five minutes")[1]
    assert ". .venv/bin/activate" in section.split("\n    lpf ")[0]
    assert f"\n    {OWN_DATA}\n" in section  # what the demo ends with


def test_make_demo_installs_what_the_readme_imports() -> None:
    """The README's first examples need pandas, and lpf train draws its report."""
    recipe = (ROOT / "Makefile").read_text().split("\n$(DEMO):")[1].split("\n\n")[0]
    extras = re.search(r"-e '\.\[([a-z,]+)\]'", recipe)
    assert extras is not None
    assert {"frames", "report"} <= set(extras[1].split(","))
    assert "torch" in recipe


def test_the_commands_do_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = {}
    for arguments in commands():
        done = RUN.invoke(app, arguments)
        assert done.exit_code == 0, (arguments, done.output)
        said[" ".join(arguments)] = done.output
        if arguments[0] == "init":
            monkeypatch.chdir(tmp_path / arguments[1])
    assert len(said) == 6
    flat = " ".join(said["train"].replace("│", " ").split())
    assert "8 of 8 unseen entities were answered correctly" in flat
    assert "fitted on 8 entities only" in flat
    assert "supplier: reliable, 9" in said["query S09"]
    assert "take them as rough" in said["query S09"]
    assert "the items contradict each other" in said["query S10"]
    said = {}
    for arguments in commands("## Why, what if, how sure"):
        done = RUN.invoke(app, arguments)
        # Eight held-out entities cannot show that an answer is hardly ever wrong.
        deferred = "--max-risk" in arguments
        assert done.exit_code in ((0, EXIT_NO_ANSWER) if deferred else (0,)), done.output
        said[" ".join(arguments)] = done.output
    assert len(said) == 4
    assert "about equally likely" in said["explain S10"]
    assert "what if" in said["explain S10 --drop S10_E001"]
    assert Path("case.html").read_text().startswith("<!DOCTYPE html>")
    said = {}
    for arguments in commands("## What next, who disagrees, does it hold"):
        done = RUN.invoke(app, arguments)
        assert done.exit_code == 0, (arguments, done.output)
        said[" ".join(arguments[:2])] = done.output
    assert len(said) == 5
    assert "bits of doubt" in said["next S10"]
    assert "S10" in said["review queue"]


def test_opposite_claims_get_the_answers_in_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heading = "## Claims, without labels"
    section = (ROOT / "README.md").read_text().split(heading)[1].split("\n## ")[0]
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    answered = 0
    for arguments in commands(heading):
        done = RUN.invoke(app, arguments)
        assert done.exit_code == 0, (arguments, done.output)
        if arguments[0] == "init":
            monkeypatch.chdir(tmp_path / arguments[1])
        if arguments[0] == "query":
            answered += 1
            first = done.output.splitlines()[0]
            verdict, percent = re.fullmatch(r".* · verdict: (\w+), ([\d.]+) %", first).groups()
            shown = re.search(rf"{arguments[1]} · verdict: (\w+), ([\d.]+) %", section)
            assert shown is not None
            assert verdict == shown[1]
            assert float(percent) == pytest.approx(float(shown[2]), abs=0.5)
    assert answered == 2
