"""Texts are read once, and with their claim if there is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from lpf.datasets import read_dataset
from lpf.evaluation.feature_cache import FeatureCache
from lpf.evaluation.spec_datasets import eval_dataset, train_dataset
from lpf.evaluation.specs import EvalSpec
from small_specs import TRAIN_SPEC, entities, written


def test_what_was_read_before_is_not_read_again(tmp_path: Path) -> None:
    asked = eval_dataset(EvalSpec(), *train_dataset(TRAIN_SPEC)).select(range(4))
    feature_cache = FeatureCache(tmp_path)
    first = feature_cache.examples(asked)
    (kept,) = tmp_path.iterdir()
    fewer = replace(asked, entities=tuple(replace(one, evidence=one.evidence[1:]) for one in asked))
    before = kept.stat().st_mtime_ns
    again = feature_cache.examples_of_changed(fewer)
    rows = np.concatenate([np.arange(begin + 1, begin + 3) for begin in range(0, 12, 3)])
    np.testing.assert_array_equal(again.features, first.features[rows])
    np.testing.assert_array_equal(FeatureCache(tmp_path).examples(asked).features, first.features)
    assert [(path, path.stat().st_mtime_ns) for path in tmp_path.iterdir()] == [(kept, before)]


def test_entities_with_claims_are_read_with_them(tmp_path: Path) -> None:
    rows = [{**row, "claim": f"Part {place} is fine."} for place, row in enumerate(entities(4))]
    claimed = read_dataset(written(tmp_path / "claims.jsonl", rows))
    plain = read_dataset(written(tmp_path / "plain.jsonl", entities(4)))
    feature_cache = FeatureCache(tmp_path / "features")
    assert feature_cache.reader(claimed) is not feature_cache.reader(plain)
    assert feature_cache.reader(plain) is feature_cache.open_reader(with_claim=False)
    assert (
        feature_cache.examples(claimed).features.shape[1]
        > feature_cache.examples(plain).features.shape[1]
    )
