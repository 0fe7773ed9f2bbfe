from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from lpf import metrics
from lpf.storage.atomic_files import write_atomically
from lpf_paper.exhibits import StudyResult, Value
from lpf_paper.plan import full_plan, quick_plan
from lpf_paper.studies.copying import (
    ASKED,
    TITLES,
    WORLDS,
    CopyingRun,
    CopyingStudy,
    labelled,
    run_path,
    seeds,
    stored_run,
)
from lpf_paper.studies.copying_world import STRONG, copying_answers
from lpf_paper.studies.study import ResultReader

QUICK = quick_plan()


def test_it_needs_no_networks() -> None:
    assert CopyingStudy().cells(QUICK) == []
    assert CopyingStudy().cells(full_plan()) == []


def test_a_run_is_scored_once_and_stored(tmp_path: Path) -> None:
    first = stored_run(50, 1, STRONG, tmp_path, 300)
    outcome = copying_answers(50, 300, 1, STRONG)
    assert first.scores.keys() == TITLES.keys()
    for method, rows in outcome.answers.items():
        assert first.scores[method]["nll"] == metrics.nll(rows, outcome.labels)
        assert first.scores[method]["accuracy"] == metrics.accuracy(rows, outcome.labels)
    path = run_path(50, 1, STRONG, tmp_path, 300)
    document = json.loads(path.read_bytes())
    document["scores"]["stacking"]["nll"] = 7.0
    path.write_text(json.dumps(document))
    assert stored_run(50, 1, STRONG, tmp_path, 300).scores["stacking"]["nll"] == 7.0


def test_every_run_has_a_place_of_its_own(tmp_path: Path) -> None:
    plan = full_plan()
    places = {
        run_path(labels, seed, world, tmp_path, ASKED)
        for labels in labelled(plan)
        for seed in seeds(plan)
        for world in WORLDS.values()
    }
    assert len(places) == len(labelled(plan)) * len(seeds(plan)) * len(WORLDS)


def keep_made(folder: Path, best: str, *, found: bool = True) -> None:
    """NLLs of .5 and a little more with every seed, but .1 for the best; one of each world is
    infinite."""
    for world in WORLDS.values():
        for labels in labelled(QUICK):
            for seed in seeds(QUICK):
                scores: dict[str, dict[str, float | None]] = {
                    method: {"accuracy": 0.8, "nll": 0.5 + 0.01 * seed, "ece": 0.05}
                    for method in TITLES
                }
                scores[best]["nll"] = 0.1
                scores["exact_posterior"]["nll"] = 0.09
                scores["dawid_skene"]["nll"] = None if seed == 1 else 9.0
                path = run_path(labels, seed, world, folder, ASKED)
                write_atomically(path, json.dumps(asdict(CopyingRun(scores, found))).encode())


@pytest.fixture
def shown(tmp_path: Path) -> StudyResult:
    keep_made(tmp_path, "lpf_copies_known")
    return CopyingStudy().result(QUICK, ResultReader(tmp_path))


def test_one_table_per_world(shown: StudyResult) -> None:
    assert [table.name for table in shown.tables] == ["copying_strong", "copying_moderate"]
    for table in shown.tables:
        assert {row.name for row in table.rows} == TITLES.keys()
        assert table.rows[0].name == "lpf_copies_known"
        assert (table.rows[-1].name, table.rows[-1].standing) == ("exact_posterior", "reference")
        stacking = next(row for row in table.rows if row.name == "stacking").cells[1]
        assert isinstance(stacking, Value)
        assert (stacking.value, stacking.sd) == pytest.approx((0.52, 0.01))


def test_an_infinite_loss_is_shown(shown: StudyResult) -> None:
    row = next(row for row in shown.tables[0].rows if row.name == "dawid_skene")
    assert row.cells[1] == Value(None)
    assert row.note == "NLL is infinite in at least one run"


def test_one_line_per_method_over_labelled_entities(shown: StudyResult) -> None:
    for figure in shown.figures:
        assert len(figure.series) == len(TITLES) - 1
        for line in figure.series:
            assert line.x == labelled(QUICK)
            assert all(value is not None for value in line.y)


def test_findings_name_the_winner(shown: StudyResult, tmp_path: Path) -> None:
    for sentence in shown.findings:
        assert "is that of LPF that knows of the copies or finds them (0.100;" in sentence
        assert "3 of 3 runs with 50" in sentence
        assert "below it in 0 of 3 runs" in sentence
    keep_made(tmp_path / "other", "stacking", found=False)
    for sentence in CopyingStudy().result(QUICK, ResultReader(tmp_path / "other")).findings:
        assert "is that of Stacking (0.100;" in sentence
        assert "0 of 3 runs with 500" in sentence
