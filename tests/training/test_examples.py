from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_examples import made_up

from hash_reader import HashReader
from lpf.errors import EvidenceError, TrainingError
from lpf.training import make_examples, read_features


def test_selecting_keeps_items_with_their_entities() -> None:
    examples = made_up(10, splits=False)
    chosen = examples.select(np.array([7, 2]))
    ids = [item.evidence_id for item in chosen.dataset.items]
    assert ids == ["C0007_E0", "C0007_E1", "C0007_E2", "C0002_E0", "C0002_E1", "C0002_E2"]
    np.testing.assert_array_equal(chosen.features[3], examples.features[6])
    assert chosen.items.segments.counts.tolist() == [3, 3]


def test_items_of_one_report_or_one_text_are_copies() -> None:
    examples = made_up(2, splits=False)
    first, second = examples.dataset.entities
    a, b, c = first.evidence
    first = replace(first, evidence=(replace(a, report_id="r"), b, replace(c, report_id="r")))
    d, e, f = second.evidence
    second = replace(second, evidence=(d, replace(e, text=f.text), f))
    dataset = replace(examples.dataset, entities=(first, second))
    groups = make_examples(dataset, examples.features, None).groups.tolist()
    assert groups == [0, -1, 0, -1, 1, 1]


def test_features_are_read_once_and_cached(tmp_path: Path) -> None:
    dataset, reader = made_up(5, splits=False).dataset, HashReader()
    first = read_features(dataset, reader, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    kept = file.stat().st_mtime_ns
    np.testing.assert_array_equal(read_features(dataset, reader, folder=tmp_path), first)
    assert file.stat().st_mtime_ns == kept
    file.write_bytes(b"nonsense")
    with pytest.raises(TrainingError, match="cannot be read"):
        read_features(dataset, reader, folder=tmp_path)


def test_features_that_are_not_the_items_are_refused() -> None:
    examples = made_up(5, splits=False)
    with pytest.raises(EvidenceError, match="14 rows of features for 15 items"):
        make_examples(examples.dataset, examples.features[:14])
