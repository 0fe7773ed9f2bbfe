"""A classifier whose reader was tuned: it answers, and is saved, loaded and pickled with it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpf.classifier import LPFClassifier
from lpf.reading import PairReader
from tuned_models import coloured, quick_ladder, tiny_reader

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK: dict[str, Any] = {
    "seeds": (1,),
    "members": 1,
    "max_epochs": 2,
    "hidden": (8,),
    "latent_width": 4,
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> PairReader:
    return tiny_reader(tmp_path_factory.mktemp("reader"))


def entities(count: int) -> tuple[list[dict[str, Any]], list[str]]:
    dataset = coloured(count)
    found = [
        {"claim": entity.claim, "evidence": [item.text for item in entity.evidence]}
        for entity in dataset
    ]
    return found, [entity.labels["verdict"] for entity in dataset]


def test_a_tuned_classifier_is_saved_loaded_and_pickled(
    reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    X, y = entities(80)
    fitted = LPFClassifier(reader=reader, **QUICK).fit(X, y)
    assert fitted._fitted is not None
    assert fitted._fitted.artefact.tuned is not None
    answers = fitted.predict_proba(X[:5])
    fitted.save(tmp_path / "saved")
    loaded = LPFClassifier.load(tmp_path / "saved", reader=reader)
    assert np.array_equal(loaded.predict_proba(X[:5]), answers)
    assert loaded.budget == fitted.budget
    copied = pickle.loads(pickle.dumps(loaded._fitted))
    assert copied.artefact.tuned.digest == fitted._fitted.artefact.tuned.digest


def test_without_a_budget_the_reader_stays_as_it_is(
    reader: PairReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    X, y = entities(80)
    fitted = LPFClassifier(reader=reader, budget=0, **QUICK).fit(X, y)
    assert fitted._fitted is not None
    assert fitted._fitted.artefact.tuned is None
