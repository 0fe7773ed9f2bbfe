"""Verdicts without labels as a row of an evaluation."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lpf.baselines import ZERO_LABEL
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.plan import DEFAULT_METHODS, EvaluationPlan
from lpf.evaluation.specs import Cell, EvalSpec, TrainSpec
from lpf.evaluation.workbench import Workbench
from lpf.reading import stance_is_installed
from small_specs import all_three, file_data, in_splits, kept_folder, written

needs_stance = pytest.mark.skipif(
    not stance_is_installed(), reason="the package lpf-stance is not installed"
)
TOWNS = ("Bern", "Oslo", "Lima", "Rome", "Kyiv", "Doha")


def rows(
    values: tuple[str, ...] = ("SUPPORTS", "REFUTES"), claims: bool = True, count: int = 72
) -> list[dict]:
    made = []
    for place in range(count):
        town, label = TOWNS[place % len(TOWNS)], values[(place // len(TOWNS)) % len(values)]
        bridge = "open" if label == values[0] else "closed"
        made.append(
            {
                "entity_id": f"C{place}",
                "label": label,
                "evidence": [
                    {
                        "evidence_id": f"E{place}",
                        "text": f"The bridge number {place} in {town} is {bridge} today.",
                    }
                ],
                **({"claim": f"Bridge number {place} in {town} is open."} if claims else {}),
            }
        )
    return in_splits(made, all_three)


@cache
def bench(values: tuple[str, ...] = ("SUPPORTS", "REFUTES")) -> Workbench:
    folder = kept_folder(f"zero-{'-'.join(values)}")
    path = written(folder / "claims.jsonl", rows(values))
    return Workbench(TrainSpec(file_data(path), seeds=(1,)), folder)


@needs_stance
def test_it_uses_no_labels_and_gets_no_temperature() -> None:
    cell = Cell(bench().train_spec, EvalSpec(), ZERO_LABEL)
    found = bench().predict(cell)
    assert found.error is None
    assert found.temperature is None
    np.testing.assert_array_equal(found.raw, found.tempered)
    method = bench().fitted(ZERO_LABEL)
    test = bench().test_examples(EvalSpec())
    others = [replace(one, labels={"label": "REFUTES"}) for one in test.dataset]
    relabelled = replace(test, dataset=replace(test.dataset, entities=tuple(others)))
    np.testing.assert_array_equal(method.predict_proba(relabelled), found.raw)
    assert not bench().model_cache.folder.exists()  # no network was trained for it


@needs_stance
def test_a_value_without_a_counterpart_is_an_error_row_that_names_it() -> None:
    other = bench(("SUPPORTS", "REFUTES", "DISPUTED"))
    found = other.predict(Cell(other.train_spec, EvalSpec(), ZERO_LABEL))
    assert "DISPUTED" in str(found.error)


def evaluator(tmp_path: Path, given: list[dict], **changes) -> Evaluator:
    path = written(tmp_path / "claims.jsonl", given)
    return Evaluator.of(EvaluationPlan(path, seeds=(1,), **changes))


@needs_stance
def test_it_is_a_default_method_where_claims_have_verdicts(tmp_path: Path) -> None:
    assert evaluator(tmp_path, rows()).methods == (*DEFAULT_METHODS, "claim_only", ZERO_LABEL)
    assert ZERO_LABEL not in evaluator(tmp_path, rows(), methods=("prior",)).methods
    assert ZERO_LABEL not in evaluator(tmp_path, rows(claims=False)).methods
    disputed = evaluator(tmp_path, rows(("SUPPORTS", "REFUTES", "DISPUTED")))
    assert ZERO_LABEL not in disputed.methods


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    from lpf.evaluation.data_checks import unmatched_verdicts

    def notes(*values: str, claims: bool = True) -> list[str]:
        dataset = evaluator(tmp_path, rows(values, claims)).dataset
        return unmatched_verdicts(dataset, dataset.schema["label"].values)

    (note,) = notes("SUPPORTS", "REFUTES", "DISPUTED")
    assert "'DISPUTED'" in note
    assert notes("SUPPORTS", "REFUTES") == []
    assert notes("good", "bad") == []
    assert notes("SUPPORTS", "REFUTES", "DISPUTED", claims=False) == []
