"""Prediction from the claim alone, and that nothing else is used."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lpf.baselines.linear import CLAIM_ONLY, ClaimOnly
from lpf.errors import DatasetError
from lpf.evaluation.specs import Cell, EvalSpec, TrainSpec
from lpf.evaluation.workbench import Workbench
from lpf.metrics import accuracy
from lpf.training import Examples
from small_specs import all_three, entities, file_data, in_splits, kept_folder, written

TOLD = {"good": "The part is fine and works.", "bad": "The part does not work at all."}


@cache
def claimed() -> Workbench:
    """Evidence that says nothing, and claims that say all."""
    rows = [
        {**row, "claim": f"{TOLD[row['label']]} ({place})"}
        for place, row in enumerate(entities(60, items=1, right=0.5))
    ]
    folder = kept_folder("claims")
    path = written(folder / "claims.jsonl", in_splits(rows, all_three))
    return Workbench(TrainSpec(file_data(path), seeds=(1,)), folder)


def asked() -> Examples:
    return claimed().test_examples(EvalSpec())


def test_claims_that_reveal_their_label_are_detected() -> None:
    bench = claimed()
    found = bench.predict(Cell(bench.train_spec, EvalSpec(), CLAIM_ONLY))
    assert found.error is None
    assert accuracy(found.answers, found.labels.astype(np.int64)) == 1.0
    assert not (bench.model_cache.folder).exists()  # no network was trained for it


def test_it_never_sees_the_evidence() -> None:
    fitted = claimed().fitted(CLAIM_ONLY)
    others = [
        replace(entity, evidence=tuple(replace(one, text="changed") for one in entity.evidence))
        for entity in asked().dataset
    ]
    changed = replace(asked(), dataset=replace(asked().dataset, entities=tuple(others)))
    np.testing.assert_array_equal(fitted.predict_proba(changed), fitted.predict_proba(asked()))


def test_it_stores_a_regression_and_no_texts() -> None:
    bench = claimed()
    costs = bench.predict(Cell(bench.train_spec, EvalSpec(), CLAIM_ONLY)).costs
    width = bench.feature_cache.open_reader(with_claim=False).width
    assert costs.stored_bytes is not None
    assert costs.stored_bytes <= 8 * (2 * width + 2) * 2
    assert costs.query_ms is not None
    assert costs.query_ms < 1000  # reads a claim; opening a reader each time takes longer


def test_an_entity_without_a_claim_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "plain.jsonl", in_splits(entities(60, items=1), all_three))
    bench = Workbench(TrainSpec(file_data(path), seeds=(1,)), tmp_path)
    with pytest.raises(DatasetError, match=r"entity 0 has no claim.*Leave the method out"):
        ClaimOnly(CLAIM_ONLY, bench.feature_cache.open_reader(with_claim=False)).fit(
            bench.train, bench.validation, "label", 1
        )
    found = bench.predict(Cell(bench.train_spec, EvalSpec(), CLAIM_ONLY))
    assert (found.error or "").startswith("DatasetError: dataset 'plain'")
