"""lpf monitor: what it prints, its exit code, and where the verdict shows."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lpf.cli.exits import EXIT_CHECK_FAILED
from lpf.workspace import Workspace
from monitored_workspaces import ASKED, LEVELS, drawn, make_monitored


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with answers, and two files of outcomes beside it."""
    folder = tmp_path_factory.mktemp("asked")
    later = (datetime.now(UTC) + timedelta(days=2)).date().isoformat()
    with make_monitored(folder / "w") as space:
        results = space.query_many([(name, "level") for name in ASKED], audit="off")
    for name, flipped in (("good", 0.0), ("bad", 0.6)):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["entity_id", "predicate", "value", "date"])
            for entity, value in zip(ASKED, drawn(results, flipped=flipped), strict=True):
                rows.writerow([entity, "level", value, later])
    return folder


@pytest.fixture
def run(asked: Path, tmp_path: Path, commands_in: Callable[[Path], Any]) -> Any:
    shutil.copytree(asked / "w", tmp_path / "w")
    return commands_in(tmp_path / "w")


def test_good_outcomes_end_well(run: Any, asked: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = run("monitor", "--outcomes", asked / "good.csv", "--html", page).stdout
    assert "Verdict: trusted" in shown  # nobody asked about the other predicate
    assert "Prediction sets" in shown
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    (report,) = run.json("monitor", "--outcomes", asked / "good.csv", "--predicate", "level")[
        "predicates"
    ]
    assert (report["verdict"], report["outcomes"]) == ("trusted", 80)
    assert sum(one["count"] for one in report["windows"]) == 80


def test_worse_than_promised_is_an_exit_code_and_a_warning(run: Any, asked: Path) -> None:
    document = run.json("monitor", "--outcomes", asked / "bad.csv", code=EXIT_CHECK_FAILED)
    assert (document["verdict"], document["stored"]) == ("not trusted", True)
    report = document["predicates"][0]
    assert report["against_probabilities"]["refuted_after"] <= 80
    answer = run.json("query", ASKED[0], "level")
    assert answer["monitoring"]["verdict"] == "not trusted"
    assert any(answer["monitoring"]["reason"] in note for note in answer["notes"])
    said = " ".join(run("query", ASKED[0], "level").stdout.split())
    assert said.count("Do not rely on it") == 1
    checks = run.json("doctor")["checks"]
    assert "warning" in {one["state"] for one in checks if one["name"] == "monitoring"}
    record = run.json("ledger", "show", answer["record_id"])
    assert "monitoring" not in str(record)  # it is about the model, not about this answer


def test_without_save_nothing_is_stored(run: Any, asked: Path) -> None:
    words = ("monitor", "--outcomes", asked / "bad.csv", "--no-save", "--window", "30d")
    assert run.json(*words, code=EXIT_CHECK_FAILED)["stored"] is False
    assert run.json("query", ASKED[0], "level")["monitoring"] is None


def test_known_facts_are_the_outcomes_by_default(run: Any) -> None:
    assert run.json("monitor")["predicates"][0]["outcomes"] == 0
    run("facts", "set", ASKED[0], "level", LEVELS[0])
    assert run.json("monitor")["predicates"][0]["outcomes"] == 1
    assert run.json("monitor", "--since", "2100-01-01")["predicates"][0]["outcomes"] == 0


def test_wrong_calls_are_refused(run: Any, asked: Path, tmp_path: Path) -> None:
    assert run.refused("monitor", "--window", "soon")["field"] == "--window"
    assert run.refused("monitor", "--since", "soon")["field"] == "--since"
    assert run.refused("monitor", "--sheet", "x")["field"] == "--sheet"
    assert run.refused("monitor", "--predicate", "x")["kind"] == "UnknownPredicateError"
    assert run.refused("monitor", "--html", tmp_path)["field"] == "--html"
    assert run.refused("monitor", "--outcomes", tmp_path / "none.csv")["kind"] == "InputFileError"
    with Workspace(run.folder) as space:
        assert space.trust.read() is None


def test_the_page_does_not_overwrite_the_outcomes(run: Any, asked: Path, tmp_path: Path) -> None:
    file = tmp_path / "outcomes.csv"
    shutil.copy(asked / "good.csv", file)
    before = file.read_bytes()
    assert run.refused("monitor", "--outcomes", file, "--html", file)["field"] == "--html"
    assert file.read_bytes() == before
