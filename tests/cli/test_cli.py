from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from lpf.cli.main import app
from lpf.version import __version__

RUN = CliRunner()


def test_help_names_the_commands() -> None:
    done = RUN.invoke(app, ["--help"])
    assert done.exit_code == 0
    assert "demo" in done.output


def test_version() -> None:
    assert RUN.invoke(app, ["--version"]).output.strip() == f"lpf {__version__}"


def test_an_unknown_command_exits_with_2() -> None:
    assert RUN.invoke(app, ["dance"]).exit_code == 2


def test_demo_prints_three_answers_and_the_evidence() -> None:
    done = RUN.invoke(app, ["demo"])
    assert done.exit_code == 0
    for part in ("Paper mode", "Robust mode", "audit_outcome", "E005"):
        assert part in done.output


def test_demo_json_is_one_document_whose_parts_add_up() -> None:
    document = json.loads(RUN.invoke(app, ["demo", "--json"]).output)
    for answer in document["answers"].values():
        assert sum(answer["distribution"].values()) == pytest.approx(1.0)
        assert len(answer["contributions"]) == len(document["evidence"])
    robust = document["answers"]["robust"]["distribution"]["high"]
    assert document["answers"]["robust_with_fact"]["distribution"]["high"] < robust
    assert document["answers"]["paper"]["distribution"]["high"] < robust
