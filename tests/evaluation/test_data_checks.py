"""Warnings about content shared by test and training entities, and about too few groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_evaluations import evaluator, made

from lpf.cli.evaluate_view import show_evaluation
from lpf.evaluation.data_checks import unlearned
from lpf.evaluation.document import evaluation_document
from lpf.metrics import nll
from small_specs import Entity, all_three, entities, in_splits


def with_text(row: Entity, text: str) -> Entity:
    (first, *rest) = row["evidence"]
    return {**row, "evidence": [{**first, "text": text}, *rest]}


def test_no_warning_if_nothing_is_shared(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, seeds=(1,)), tmp_path)
    assert (found.warnings, found.unshared_ids) == ((), None)
    assert found.unshared_scores("prior") is None
    assert "unshared" not in evaluation_document(found)["methods"]["prior"]


def test_shared_texts_are_reported_and_unshared_entities_scored_separately(tmp_path: Path) -> None:
    rows = in_splits(entities(70), all_three)
    asked = [place for place, row in enumerate(rows) if row["split"] == "test"]
    for place in (0, *asked[:4]):
        rows[place] = with_text(rows[place], "The same old story.")
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    assert found.unshared_ids == {rows[place]["entity_id"] for place in asked[4:]}
    (warning,) = found.warnings
    assert "4 of 14 test entities share a text, claim or group" in warning
    assert "1 text of 'test' is also in 'train'" in warning
    (run,) = found.runs["prior"]
    clean = [name in found.unshared_ids for name in run.entity_ids]
    assert evaluation_document(found)["methods"]["prior"]["unshared"]["nll"] == pytest.approx(
        nll(run.answers[clean], run.labels[clean].astype(np.int64))
    )


def test_a_claim_that_is_evidence_elsewhere_is_shared_too(tmp_path: Path) -> None:
    rows = [
        {**row, "claim": f"Claim {place}."}
        for place, row in enumerate(in_splits(entities(70), all_three))
    ]
    asked = next(place for place, row in enumerate(rows) if row["split"] == "test")
    rows[asked]["claim"] = rows[0]["evidence"][0]["text"]
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    assert found.warnings[0] == (
        "1 of 14 test entities share a text, claim or group with training entities. The others are "
        "also scored separately."
    )


def test_no_unshared_scores_if_all_entities_share(tmp_path: Path) -> None:
    rows = [with_text(row, "The same.") for row in in_splits(entities(70), all_three)]
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    assert found.unshared_ids == frozenset()
    assert found.unshared_scores("prior") is None
    assert "14 of 14 test entities" in found.warnings[0]
    assert "others" not in found.warnings[0]


def test_in_folds_the_fold_is_named(tmp_path: Path) -> None:
    rows = entities(70)
    for place in range(0, 40, 2):
        rows[place] = with_text(rows[place], "The same old story.")
    found = made(evaluator(tmp_path, rows, seeds=(1,), folds=3), tmp_path)
    assert "20 of 70 test entities" in found.warnings[0]
    assert "(in fold " in found.warnings[0]


def test_too_few_groups_have_neither_intervals_nor_p_values(tmp_path: Path) -> None:
    rows = [
        {**row, "group_id": row["split"]} if row["split"] == "test" else row
        for row in in_splits(entities(70), all_three)
    ]
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    (warning,) = found.warnings
    assert "The test entities form 1 group." in warning
    assert found.scores("prior").spreads["nll"].low is None
    (one,) = found.comparisons()
    assert "fewer than 6 groups" in (one.note or "")
    assert "nll_interval" not in evaluation_document(found)["methods"]["prior"]


def test_reading_claims_is_reported(tmp_path: Path) -> None:
    rows = [
        {**row, "claim": f"Claim {place}."}
        for place, row in enumerate(in_splits(entities(70), all_three))
    ]
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    assert found.warnings == ()
    assert evaluation_document(found)["claims_read"]


def test_some_entities_may_lack_a_claim(tmp_path: Path) -> None:
    rows = in_splits(entities(70), all_three)
    for place, row in enumerate(rows[3:]):
        row["claim"] = f"Claim {place}."
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    (warning,) = found.warnings
    assert warning.startswith("3 of 70 entities have no claim")
    assert evaluation_document(found)["claims_read"]


def test_not_reading_claims_is_in_the_document(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, seeds=(1,)), tmp_path)
    assert evaluation_document(found)["claims_read"] is False


@pytest.mark.parametrize(("strength", "is_warned"), [(-3.0, True), (9.0, False)])
def test_the_warning_that_nothing_was_learned_comes_first(
    strength: float, is_warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = in_splits(entities(70), all_three)
    rows[-1] = with_text(rows[-1], rows[0]["evidence"][0]["text"])
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path, lpf_robust=strength, prior=0.0)
    warnings = evaluation_document(found)["cautions"]
    show_evaluation(found)
    shown = " ".join(capsys.readouterr().out.split())
    for first in (warnings[0], shown, found.summary()):
        start = "LPF-SPN, robust ensemble is not better than the class shares"
        assert first.startswith(start) is is_warned
    assert evaluation_document(found)["beats_class_shares"] is not is_warned
    assert unlearned(replace(found, runs={"prior": found.runs["prior"]})) == []
