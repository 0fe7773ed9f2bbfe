from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_answers import Skill, keep_made

from lpf.evaluation.specs import Cell
from lpf_paper.exhibits import Row, StudyResult, Table, Value
from lpf_paper.plan import ExperimentPlan, full_plan, quick_plan
from lpf_paper.studies.domains import DomainsStudy
from lpf_paper.studies.provenance import ProvenanceStudy, train_spec
from lpf_paper.studies.provenance_errors import recomputed
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.tracing import trace_path

STUDY = ProvenanceStudy()
VALUES = ["low", "medium", "high"]
# Wrong answers of the made traces by domain, each with its confidence.
ERRORS = {"compliance": (0.95, 0.6, 0.9, 0.7), "healthcare": (0.55,)}
ASKED = 30


def item(place: int, says: int) -> dict[str, Any]:
    potential = np.full(3, 0.1)
    potential[says] = 0.8
    return {
        "evidence_id": f"E{place}",
        "text": "word " * 100,
        "source": "a note",
        "credibility": None if place == 0 else 0.9,
        "potential": potential.tolist(),
        "epsilon": 0.05,
        "exponent": 0.9,
        "contributions": (0.9 * np.log(potential)).tolist(),
    }


def answer(place: int, answered: int, truth: int, confidence: float) -> dict[str, Any]:
    """Two items say the answer, one says the truth. The prior is whatever makes the answer have
    this confidence."""
    distribution = np.full(3, (1.0 - confidence) / 2.0)
    distribution[answered] = confidence
    items = [item(number, says) for number, says in enumerate((answered, truth, answered))]
    added = np.sum([one["contributions"] for one in items], axis=0)
    return {
        "entity_id": f"C{place}",
        "truth": truth,
        "distribution": distribution.tolist(),
        "base": (np.log(distribution) - added).tolist(),
        "conflict": 0.1 if answered == truth else 0.7,
        "doubt": {"entropy": 0.5, "aleatoric": 0.4, "epistemic": 0.1},
        # Misled where our answer is wrong and unsure.
        "perfect": np.eye(3)[answered if confidence < 0.65 else truth].tolist(),
        "items": items,
    }


def document(errors: tuple[float, ...]) -> dict[str, Any]:
    sure = np.linspace(0.5, 0.99, ASKED - len(errors)).tolist()
    answers = [answer(place, place % 3, place % 3, one) for place, one in enumerate(sure)]
    answers += [
        answer(len(answers) + place, 0, 2, confidence) for place, confidence in enumerate(errors)
    ]
    fitted = {"temperature": 1.1, "rho": 0.05, "epsilon": 0.02, "slope": 0.4}
    return {"predicate": "level", "values": VALUES, "parameters": fitted, "answers": answers}


def result_of(
    folder: Path, plan: ExperimentPlan | None = None, errors: dict[str, tuple[float, ...]] = ERRORS
) -> StudyResult:
    plan = plan or quick_plan()
    keep_made(folder, STUDY.cells(plan), skill)
    for domain in plan.domains:
        path = trace_path(train_spec(plan, domain), folder)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(document(errors[domain])))
    return STUDY.result(plan, ResultReader(folder))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    return result_of(tmp_path_factory.mktemp("made"))


def skill(cell: Cell) -> Skill:
    if cell.method == "vae_only":
        return Skill(error="TrainingError: it broke")
    return Skill(signal=20.0 if cell.method == "lpf_robust" else 0.5)


def table(found: StudyResult, name: str) -> Table:
    return next(one for one in found.tables if one.name == name)


def value(shown: Table, row: str, column: str) -> Value:
    cell = line(shown, row).cells[[one.name for one in shown.columns].index(column)]
    assert isinstance(cell, Value)
    return cell


def line(shown: Table, name: str) -> Row:
    return next(one for one in shown.rows if one.name == name)


@pytest.mark.parametrize("plan", [quick_plan(), full_plan()], ids=["quick", "full"])
def test_every_cell_is_one_of_the_study_of_domains(plan: ExperimentPlan) -> None:
    cells = STUDY.cells(plan)
    assert len(set(cells)) == len(cells)
    assert set(cells) <= set(DomainsStudy("paper").cells(plan))
    assert {cell.train_spec for cell in cells} == {
        train_spec(plan, domain) for domain in plan.domains
    }


def test_methods_are_those_whose_errors_the_paper_counts() -> None:
    methods = {cell.method for cell in STUDY.cells(quick_plan())}
    assert methods == {"lpf_robust", "lpf_paper_best", "vae_only"}


def test_errors_are_counted_by_domain_and_together(result: StudyResult) -> None:
    shown = table(result, "errors")
    expected = {"compliance": (4, 2, 1), "healthcare": (1, 0, 1), "All": (5, 2, 2)}
    for row, (errors, sure, misled) in expected.items():
        assert value(shown, row, "errors").value == errors
        assert value(shown, row, "high_confidence_errors").value == sure
        assert value(shown, row, "perfect").value == misled
        assert value(shown, row, "items").value == 3 * errors
        assert value(shown, row, "for_truth").value == errors
        assert value(shown, row, "for_answer").value == 2 * errors
    assert value(shown, "compliance", "wrong_conflict").value == pytest.approx(0.7)
    assert value(shown, "compliance", "errors").paper == 3
    assert value(shown, "compliance", "errors").doubt is not None
    assert value(shown, "healthcare", "errors").paper == 1


def test_examples_are_three_right_answers_and_the_surest_errors(result: StudyResult) -> None:
    found = [dict(one.facts) for one in result.examples]
    shown = [(one["Answer"].split("(")[1], float(one["Confidence"])) for one in found]
    right = [(f"{kind})", confidence) for kind, confidence in (("right", 0.99), ("right", 0.5))]
    assert len(shown) == 3 + 3 + 3 + 1
    assert [shown[0], shown[2]] == right
    assert 0.7 < shown[1][1] < 0.8
    assert shown[3:6] == [("wrong)", 0.95), ("wrong)", 0.9), ("wrong)", 0.7)]
    assert shown[9:] == [("wrong)", 0.55)]


def test_what_items_add_sums_up_to_the_log_odds_of_the_answer(result: StudyResult) -> None:
    for one in result.examples:
        *parts, total = [row.cells[-1] for row in one.items.rows]
        added = [cell.value for cell in parts if isinstance(cell, Value)]
        confidence = float(dict(one.facts)["Confidence"])
        odds = math.log(confidence / ((1.0 - confidence) / 2.0))
        assert isinstance(total, Value)
        assert total.value == pytest.approx(odds, abs=1e-3)
        assert sum(number for number in added if number is not None) == pytest.approx(total.value)


def test_an_error_is_held_against_the_truth(result: StudyResult) -> None:
    errors = [one for one in result.examples if "error" in one.title]
    assert errors
    assert all("low against high" in one.items.caption for one in errors)


def test_methods_that_crashed_say_so_and_keep_the_papers_count(result: StudyResult) -> None:
    shown = table(result, "errors_by_method")
    assert value(shown, "lpf_robust", "compliance").value == 0
    worse = value(shown, "lpf_paper_best", "compliance")
    assert worse.value is not None
    assert worse.value > 0
    broken = value(shown, "vae_only", "compliance")
    assert (broken.value, broken.paper) == (None, 6)
    note = line(shown, "vae_only").note
    assert note is not None
    assert "it broke" in note


def test_the_papers_cuts_of_compliance_stand_beside_ours(result: StudyResult) -> None:
    assert value(table(result, "errors_by_label"), "medium", "entities").paper == 70
    counted = [row.cells[0] for row in table(result, "errors_by_label").rows]
    assert sum(cell.value or 0 for cell in counted if isinstance(cell, Value)) == 60
    sure = value(table(result, "selective"), "0.9", "coverage")
    assert (sure.value, sure.paper) == (1.0, 0.696)
    parts = [row.cells[0] for row in table(result, "by_credibility").rows]
    assert sum(cell.value or 0 for cell in parts if isinstance(cell, Value)) == 60


def test_without_compliance_nothing_of_it_is_shown(tmp_path: Path) -> None:
    plan = replace(quick_plan(), domains=("healthcare",))
    assert [one.name for one in result_of(tmp_path, plan).tables] == ["errors", "errors_by_method"]


def test_findings_describe_the_errors(result: StudyResult) -> None:
    told = " ".join(result.findings)
    assert "60 test entities (compliance, healthcare): 5 (8.3%)" in told
    assert "Items behind wrong answers: 15, of which 5 say the truth" in told
    assert "more items for the truth than for the answer: 0 of 5" in told
    assert "contradict each other more than those of right ones" in told
    assert "misleads: 2 of 5. Errors of reading or weighing: 3." in told


def test_findings_of_a_run_without_errors(tmp_path: Path) -> None:
    found = result_of(tmp_path, errors={"compliance": (), "healthcare": ()})
    assert "60 test entities (compliance, healthcare): 0 (0.0%)" in found.findings[0]
    assert "misleads" not in " ".join(found.findings)
    assert len(found.examples) == 6


def test_the_papers_records_come_to_another_answer_than_they_print() -> None:
    assert recomputed("record_c0042", weighted=True)["high"] == pytest.approx(0.9995, abs=1e-4)
    assert recomputed("record_c0089", weighted=True)["high"] > 0.93
    assert recomputed("record_c0089", weighted=False)["high"] > 0.93


def test_everything_shown_survives_the_document_and_fits_its_columns(result: StudyResult) -> None:
    assert (
        StudyResult.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False))) == result
    )
    for shown in (*result.tables, *(one.items for one in result.examples)):
        assert shown.rows
        assert all(len(row.cells) == len(shown.columns) for row in shown.rows)
