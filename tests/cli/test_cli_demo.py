"""The demo as a newcomer runs it: the real encoder, real training, a real ledger."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lpf.cli.demo import activation
from lpf.cli.main import app
from lpf.workspace import Workspace

RUN = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "workspace"


@pytest.fixture(scope="module")
def first(folder: Path) -> dict[str, Any]:
    done = RUN.invoke(app, ["demo", "--workspace", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_demo_shows_three_answers(first: dict[str, Any]) -> None:
    assert first["query"] == {
        "entity_id": "C0001",
        "predicate": "compliance_level",
        "label": "medium",
    }
    for name, method in (("spn", "spn"), ("learned", "learned"), ("canonical", "canonical")):
        answer = first[name]
        assert answer["method"] == method
        assert sum(answer["distribution"].values()) == pytest.approx(1.0)
        assert answer["audit_ptr"].startswith("INF")
    assert len(first["spn"]["evidence"]) == 5
    assert first["canonical"]["top_value"] == "medium"
    assert first["spn"]["top_value"] == "medium"
    assert first["spn"]["confidence"] < 0.99, "its notes contradict each other"


def test_the_demo_says_which_variant_to_believe(folder: Path, first: dict[str, Any]) -> None:
    believe, metrics = first["believe"], first["metrics"]
    nll = {name: metrics[f"compliance_level/test/{name}/nll"] for name in ("spn", "learned")}
    assert believe["nll"] == nll
    assert believe["variant"] == min(nll, key=nll.__getitem__)
    for name, title in (("spn", "LPF-SPN"), ("learned", "LPF-Learned")):
        assert f"{nll[name]:.3f}" in believe["reason"]
        if first["spn"]["top_value"] != first["learned"]["top_value"]:
            assert f"{title} says {first[name]['top_value']}" in believe["reason"]
    done = RUN.invoke(app, ["demo", "--workspace", str(folder)])
    assert believe["reason"] in " ".join(done.stdout.split())


def test_the_demo_ends_with_commands_that_work(
    folder: Path, first: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As run by make, without an activated environment: lpf is not on the path."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "base_prefix", "/elsewhere")
    shown = RUN.invoke(app, ["demo", "--workspace", str(folder)]).stdout
    steps = [line.strip() for line in shown.split("What to try next")[1].strip().splitlines()]
    activate = Path(shlex.split(steps[0], comments=True)[1])
    assert activate.absolute() == Path(sys.prefix) / "bin" / "activate"
    assert next(n for n, step in enumerate(steps) if step.startswith("lpf ")) > 0
    monkeypatch.chdir(folder)
    for step in steps:
        words = shlex.split(step.split(" && ")[0], comments=True)
        if words[:2] == ["lpf", "init"]:
            monkeypatch.chdir(folder.parent)
        if words[0] == "lpf":
            done = RUN.invoke(app, words[1:])
            assert done.exit_code == 0, (step, done.output)
    assert words[:2] == ["lpf", "init"]


def test_an_activated_environment_is_not_activated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "bin" / "lpf"
    command.parent.mkdir()
    command.write_text("")
    command.chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    assert activation() == ". bin/activate"
    monkeypatch.setenv("PATH", str(command.parent))
    assert activation() is None


def test_the_demo_model_is_accurate_and_the_ledger_valid(first: dict[str, Any]) -> None:
    assert first["metrics"]["compliance_level/test/spn/accuracy"] > 0.95
    assert first["metrics"]["compliance_level/test/learned/accuracy"] > 0.9
    assert first["ledger"] == {"ok": True, "records": 3}
    assert first["model"]["trained_now"]


def test_a_known_fact_about_the_company_counts(folder: Path, first: dict[str, Any]) -> None:
    """The circuit learned how the audit's outcome goes with compliance."""
    with Workspace.open(folder) as workspace:
        circuit = workspace.background.circuit
        alone = circuit.log_joint("compliance_level", {"audit_outcome": "adverse"})
        other = circuit.log_joint("compliance_level", {"audit_outcome": "unqualified"})
    assert alone.argmax() == 0
    assert other.argmax() == 2


def test_a_second_run_trains_nothing_and_asks_again(folder: Path, first: dict[str, Any]) -> None:
    done = RUN.invoke(app, ["demo", "--workspace", str(folder)])
    assert done.exit_code == 0, done.output
    for words in ("from an earlier run", "LPF-SPN", "LPF-Learned", "a known fact answers"):
        assert words in done.output
    assert "The ledger is intact: 6 records" in done.output
    again = json.loads(RUN.invoke(app, ["demo", "--workspace", str(folder), "--json"]).stdout)
    assert again["spn"]["distribution"] == pytest.approx(first["spn"]["distribution"], abs=1e-6)
    assert not again["model"]["trained_now"]
