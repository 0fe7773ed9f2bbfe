"""Texts are read once, and with their claim if there is one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lpf.datasets import read_dataset
from lpf.evaluation.feature_cache import FeatureCache
from lpf.evaluation.spec_datasets import eval_dataset, train_dataset
from lpf.evaluation.specs import EvalSpec, TrainSpec
from lpf.evaluation.workbench import Workbench
from small_specs import TRAIN_SPEC, all_three, entities, file_data, in_splits, written


def test_what_was_read_before_is_not_read_again(tmp_path: Path) -> None:
    asked = eval_dataset(EvalSpec(), *train_dataset(TRAIN_SPEC)).select(range(4))
    feature_cache = FeatureCache(tmp_path)
    reader = feature_cache.reader(asked)
    first = feature_cache.examples(asked, reader)
    (kept,) = tmp_path.iterdir()
    fewer = replace(asked, entities=tuple(replace(one, evidence=one.evidence[1:]) for one in asked))
    before = kept.stat().st_mtime_ns
    again = feature_cache.examples_of_changed(fewer, reader)
    rows = np.concatenate([np.arange(begin + 1, begin + 3) for begin in range(0, 12, 3)])
    np.testing.assert_array_equal(again.features, first.features[rows])
    once_more = FeatureCache(tmp_path).examples(asked, reader)
    np.testing.assert_array_equal(once_more.features, first.features)
    assert [(path, path.stat().st_mtime_ns) for path in tmp_path.iterdir()] == [(kept, before)]


def test_entities_with_claims_are_read_with_them(tmp_path: Path) -> None:
    rows = [{**row, "claim": f"Part {place} is fine."} for place, row in enumerate(entities(4))]
    claimed = read_dataset(written(tmp_path / "claims.jsonl", rows))
    plain = read_dataset(written(tmp_path / "plain.jsonl", entities(4)))
    feature_cache = FeatureCache(tmp_path / "features")
    assert feature_cache.reader(claimed) is not feature_cache.reader(plain)
    assert feature_cache.reader(plain) is feature_cache.open_reader(with_claim=False)
    wide, narrow = (
        feature_cache.examples(one, feature_cache.reader(one)).features for one in (claimed, plain)
    )
    assert wide.shape[1] > narrow.shape[1]


COUNTED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from hash_reader import HashReader
from lpf.evaluation import evaluate, feature_cache
from lpf.reading import PairReader

FOLDER = Path({folder!r})


class Logged:
    def read_many(self, items, *, progress=None):
        with (FOLDER / "read.txt").open("a") as log:
            for one in items:
                log.write(f"{{self.reader_id}} | {{one.claim}} | {{one.text}}\\n")
        return super().read_many(items)


class LoggedTexts(Logged, HashReader): ...


class LoggedPairs(Logged, PairReader): ...


def open_reader(*, with_claim, **settings):
    return LoggedPairs(HashReader(16)) if with_claim else LoggedTexts(16)


feature_cache.open_reader = open_reader  # also in workers, which run this file first
if __name__ == "__main__":
    evaluate(
        FOLDER / "parts.jsonl",
        methods=["logistic_mean", "lexical_regression", "prior", "deep_sets"],
        seeds=2,
        folds=2,
        workers={workers},
        cache=FOLDER / "kept",
    )
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_an_evaluation_reads_each_text_with_its_claim_once(tmp_path: Path, workers: int) -> None:
    """In all folds, repetitions, methods and processes. ``claim_only`` reads the claims as well."""
    rows = [
        {**row, "claim": f"Part {place // 2} is fine."} for place, row in enumerate(entities(60))
    ]
    rows[2]["evidence"][0]["text"] = rows[3]["evidence"][0]["text"] = "The same text."
    written(tmp_path / "parts.jsonl", rows)
    program = tmp_path / "run.py"
    tests = str(Path(__file__).parent.parent)
    program.write_text(COUNTED.format(tests=tests, folder=str(tmp_path), workers=workers))
    subprocess.run([sys.executable, program], check=True, capture_output=True)
    read = (tmp_path / "read.txt").read_text().splitlines()
    pairs = {(row["claim"], item["text"]) for row in rows for item in row["evidence"]}
    claims = {row["claim"] for row in rows}
    assert len(pairs) < sum(len(row["evidence"]) for row in rows)
    expected = [f"pair(hash@16) | {claim} | {text}" for claim, text in pairs]
    assert sorted(read) == sorted([*expected, *(f"hash@16 | None | {one}" for one in claims)])
    assert not list(tmp_path.rglob("*.lock"))


def test_test_entities_without_claims_are_read_as_the_training_entities_are(tmp_path: Path) -> None:
    rows = in_splits(entities(60, items=1), all_three)
    for row in rows:
        if row["split"] != "test":
            row["claim"] = "The part is fine."
    path = written(tmp_path / "some.jsonl", rows)
    bench = Workbench(TrainSpec(file_data(path), seeds=(1,)), tmp_path)
    width = bench.train.features.shape[1]
    assert bench.test_examples(EvalSpec()).features.shape[1] == width
