"""A workspace as used from Python: opened by path, fed from memory, results as data frames."""

from __future__ import annotations

import json
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas
import pytest

import workspaces
from lpf.errors import ConfigError, InputFileError, MissingPackageError
from lpf.results import QueryResults
from lpf.schema import Predicate, Schema
from lpf.workspace import Workspace, wiring

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    with Workspace.create(tmp_path, Schema((Predicate("level", ("low", "high")),))) as created:
        created.__dict__["reader"] = workspaces.reader()
        yield created


def test_a_path_opens_a_workspace(tmp_path: Path) -> None:
    Workspace.create(tmp_path, workspaces.schema()).close()
    for folder in (tmp_path, str(tmp_path)):
        with Workspace(folder) as opened:
            assert opened.folder == tmp_path
            assert repr(opened) == f"Workspace({str(tmp_path)!r})"


def test_rows_and_data_frames_are_ingested_like_files(workspace: Workspace) -> None:
    rows = [
        {"entity_id": "C1", "text": "Filed on time.", "credibility": 0.9},
        {"entity_id": 2, "text": "Filed late.", "timestamp": "2025-01-02"},
    ]
    assert workspace.ingest(row for row in rows).added == 2
    assert workspace.ingest(rows).unchanged == 2
    frame = pandas.DataFrame(
        {
            "Entity_ID": ["C3", "C4"],
            "text": ["Never filed.", "Filed twice."],
            "credibility": [np.nan, 0.5],
            "timestamp": pandas.to_datetime(["2025-03-01", None]),
            "source": pandas.array(["register", pandas.NA], dtype="string"),
        }
    )
    assert workspace.ingest(frame).added == 2
    third, fourth = (workspace.evidence.get(f"C{n}_E001").evidence for n in (3, 4))
    assert (third.credibility, fourth.credibility) == (None, 0.5)
    assert (third.timestamp, fourth.timestamp) == (datetime(2025, 3, 1, tzinfo=UTC), None)
    assert (third.source, fourth.source) == ("register", None)
    assert workspace.evidence.get("2_E001").evidence.text_content == "Filed late."


def test_rows_that_cannot_be_used_are_named_by_number_and_column(workspace: Workspace) -> None:
    rows = [
        {"entity_id": "C1", "text": "Filed on time.", "credibility": np.float64(7)},
        {"entity_id": "C1", "text": "Filed late.", "credibility": np.nan},
        "Filed never.",
    ]
    with pytest.raises(InputFileError, match="row 1: credibility") as caught:
        workspace.ingest(rows, strict=True)
    assert "row 3: must be a dict" in str(caught.value)
    assert workspace.evidence.count() == 0
    outcome = workspace.ingest(rows)
    assert (outcome.added, outcome.rejected) == (1, 2)
    assert [(problem.line, problem.field) for problem in outcome.problems] == [
        (1, "credibility"),
        (3, None),
    ]
    assert outcome.rejects_file is not None
    kept = [json.loads(line) for line in outcome.rejects_file.read_text().splitlines()]
    assert kept[0]["row"]["credibility"] == 7.0


def test_data_frames_without_the_needed_columns_are_refused(workspace: Workspace) -> None:
    with pytest.raises(InputFileError, match="entity_id"):
        workspace.ingest(pandas.DataFrame({"entity": ["C1"], "text": ["Late."]}))
    with pytest.raises(InputFileError, match="text"):
        workspace.ingest(
            pandas.DataFrame([["C1", "a", "b"]], columns=["entity_id", "text", "text"])
        )
    for wrong in ({"entity_id": "C1", "text": "Late."}, 3):
        with pytest.raises(ConfigError, match="list of dicts"):
            workspace.ingest(wrong)


def test_results_become_data_frames(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        results = workspace.query_many([("C0001", "level"), ("C0001", "outcome")])
        frame = results.to_frame()
        assert frame["entity_id"].tolist() == ["C0001", "C0001"]
        assert frame["p_high"].tolist()[0] == results[0].distribution["high"]
        assert frame["p_high"].isna().tolist() == [False, True]
        assert frame["record_id"].tolist() == [result.audit_ptr for result in results]
        assert frame["asked_at"][0] == results[0].asked_at
        assert results[0].to_frame()["top_value"].tolist() == [results[0].top_value]
        items = results[0].evidence_frame()
        assert items["evidence_id"].tolist() == list(results[0].evidence_chain)
        np.testing.assert_allclose(
            items[[f"contribution_{value}" for value in workspaces.LEVELS]],
            results[0].evidence.contributions,
        )
        nothing = workspace.query("nobody", "level")
        assert len(nothing.evidence_frame()) == 0
        frame = nothing.to_frame()
        assert frame["top_value"].tolist() == [None]
        assert frame["confidence"].isna().tolist() == [True]
        assert frame["confidence"].dtype == float
        assert frame["p_high"].tolist() == [nothing.distribution["high"]]
        for html in (nothing._repr_html_(), QueryResults([nothing])._repr_html_()):
            assert "no answer" in html
        assert len(QueryResults().to_frame()) == 0


def test_times_and_record_ids_have_plain_names(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        before = datetime.now(UTC)
        result = workspace.query("C0001", "level")
        assert before <= result.asked_at <= datetime.now(UTC)
        assert result.as_of_time.utcoffset() is not None
        assert result.record_id == result.audit_ptr == result.to_dict()["record_id"]
        assert "C0001" in repr(result)
        assert len(repr(result)) < 200


def test_entity_ids_are_enough_if_there_is_one_predicate(workspace: Workspace) -> None:
    assert [r.predicate for r in workspace.query_many(["C1", "C2"])] == ["level", "level"]


def test_notebooks_get_escaped_text(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        workspaces.add(workspace, workspaces.evidence(HOSTILE))
        result = workspace.query(HOSTILE, "level")
    results = QueryResults([result] * 100)
    for html in (result._repr_html_(), results._repr_html_()):
        assert "&lt;img" in html
        assert "<img" not in html
    assert "and 40 more" in results._repr_html_()


def test_answers_are_shown_in_notebooks_with_their_evidence(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        html = workspace.query("C0001", "level")._repr_html_()
        assert "C0001_E001" in html
        assert "INF00000001" in html


def test_a_missing_pandas_is_an_error_that_says_what_to_install(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = workspace.query("C1")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError) as caught:
        result.to_frame()
    assert "lpf[frames]" in (caught.value.hint or "")


def test_no_engine_of_the_old_model_survives_a_change_of_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread is building the engine while another changes the model."""
    with workspaces.make(tmp_path, members=1) as workspace:
        first = workspace.models.active()
        second = workspaces.give_model(workspace, members=2)
        workspace.use_model(str(first))
        building = threading.Event()
        original = wiring.Engine

        def slow_engine(*arguments: object) -> object:
            building.set()
            time.sleep(0.3)
            return original(*arguments)

        monkeypatch.setattr(wiring, "Engine", slow_engine)
        thread = threading.Thread(target=lambda: workspace.engine)
        thread.start()
        assert building.wait(10)
        workspace.use_model(second)
        thread.join()
        assert workspace.model.version == second
        assert workspace.engine.runtime.version == second


def test_a_part_under_construction_is_closed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces.make(tmp_path).close()
    workspace = Workspace(tmp_path)
    building, closed = threading.Event(), []

    class SlowLedger(wiring.Ledger):
        def __init__(self, *arguments: object, **named: object) -> None:
            building.set()
            time.sleep(0.3)
            super().__init__(*arguments, **named)

        def close(self) -> None:
            closed.append(True)
            super().close()

    monkeypatch.setattr(wiring, "Ledger", SlowLedger)
    thread = threading.Thread(target=lambda: workspace.ledger)
    thread.start()
    assert building.wait(10)
    workspace.close()
    thread.join()
    assert closed == [True]
    assert "ledger" not in vars(workspace)
