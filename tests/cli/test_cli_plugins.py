"""Commands that other packages add through the entry-point group ``lpf.commands``."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lpf.cli import plugins
from lpf.cli.main import app

GREETING = typer.Typer(name="greeting", help="Greetings.")


@GREETING.command()
def hello() -> None:
    """Greet."""
    typer.echo("hello from a plug-in")


@GREETING.command()
def bye() -> None:
    """Leave."""


def install(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    """Makes these entry points the only plug-ins."""
    points = EntryPoints(EntryPoint(name, value, plugins.GROUP) for name, value in values.items())
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)


def run(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, (done.output, done.exception)
    return done


def test_a_plug_in_adds_its_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, greeting=f"{__name__}:GREETING")
    assert "hello from a plug-in" in run("greeting", "hello").stdout
    assert "greeting" in run("--help").stdout


def test_a_broken_plug_in_causes_only_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, broken="no_such_module:app", greeting=f"{__name__}:GREETING")
    shown = run("--help")
    assert "'broken'" in shown.stderr
    assert "greeting" in shown.stdout
    assert "hello" in run("greeting", "hello").stdout
    error = json.loads(run("broken", "--json", code=2).stdout)["error"]
    assert "'broken'" in error["message"]


def test_an_object_that_is_not_a_typer_is_a_broken_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, broken="json:dumps")
    assert "json:dumps" in run("broken", code=2).stderr.replace("\n", "")


def test_plug_ins_do_not_replace_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, domains="no_such_module:app")
    assert run("domains", "list").exit_code == 0


def test_without_lpf_paper_experiment_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    assert "pip install lpf-paper" in run("experiment", "paper", code=2).stderr.replace("\n", " ")
    assert "experiment" not in run("--help").stdout
