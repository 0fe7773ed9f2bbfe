from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from classifier_examples import FAST, CountingReader, fitted, suppliers

from lpf import LPFClassifier
from lpf.errors import ArtefactFormatError, ArtefactHashError, ConfigError, TrainingError
from lpf.model.config import AggregatorConfig

X, Y = suppliers(8)


@pytest.mark.parametrize("mode", ["robust", "paper"])
def test_a_loaded_classifier_gives_the_saved_answers(mode: str, tmp_path: Path) -> None:
    labels = [label == "good" for label in Y]
    saved = LPFClassifier(
        **FAST,
        mode=mode,
        prior={True: 0.7, False: 0.3},
        temperature=np.float64(0.9),
        aggregator=AggregatorConfig(quality_hidden=(8,)),
    )
    saved.fit(X, labels).save(tmp_path)
    loaded = LPFClassifier.load(tmp_path)
    np.testing.assert_allclose(
        loaded.predict_proba([*X, []]), saved.predict_proba([*X, []]), rtol=0, atol=1e-9
    )
    assert loaded.predict(X).tolist() == saved.predict(X).tolist()
    assert loaded.classes_.tolist() == [False, True]
    assert loaded.warnings_ == saved.warnings_
    assert loaded.aggregator == saved.aggregator
    assert loaded.get_params() == saved.get_params() | {"prior": (0.3, 0.7)}
    assert not list(tmp_path.rglob("*.pkl"))


def test_answering_after_loading_needs_neither_torch_nor_sklearn(tmp_path: Path) -> None:
    fitted().save(tmp_path)
    program = (
        "import sys; from lpf import LPFClassifier\n"
        f"loaded = LPFClassifier.load({str(tmp_path)!r})\n"
        "print(loaded.predict([['Audit 7 found forged invoices.'], []])[0])\n"
        "loaded.explain([['Late.']]); loaded.uncertainty([['Late.']], samples=2)\n"
        "bad = {'torch', 'sklearn', 'transformers'} & set(sys.modules)\nassert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "bad"


def test_a_reader_object_is_passed_to_load(tmp_path: Path) -> None:
    reader = CountingReader()
    LPFClassifier(**FAST, reader=reader).fit(X, Y).save(tmp_path)
    assert LPFClassifier.load(tmp_path, reader=reader).reader is reader
    reader.count = 0
    LPFClassifier.load(tmp_path, reader=reader).predict(X[:1])
    assert reader.count == 1


def test_a_reader_other_than_the_models_is_refused(tmp_path: Path) -> None:
    class Other(CountingReader):
        @property
        def reader_id(self) -> str:
            return "other"

    fitted().save(tmp_path)
    with pytest.raises(ConfigError, match="this is other"):
        LPFClassifier.load(tmp_path, reader=Other()).predict(X)


def test_saving_again_replaces(tmp_path: Path) -> None:
    fitted().save(tmp_path)
    fitted("learned").save(tmp_path)
    assert LPFClassifier.load(tmp_path).variant == "learned"


def test_unsaveable_labels_are_refused_before_writing(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="not fitted"):
        LPFClassifier().save(tmp_path)
    pairs = [(label, 1) for label in Y]
    with pytest.raises(ConfigError, match="only texts, numbers and booleans"):
        LPFClassifier(**FAST).fit(X, pairs).save(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "lpf-classifier/9"}, "format is 'lpf-classifier/9'"),
        ({"model": "../elsewhere"}, "is not a model version"),
        ({"model": 3}, "not a complete classifier"),
        ({"classes": ["bad", "fine"]}, r"\['bad', 'fine'\]"),
        ({"prior": None}, "not a complete classifier"),
    ],
)
def test_a_file_that_was_changed_is_refused(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    fitted().save(tmp_path)
    path = tmp_path / "classifier.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ArtefactFormatError, match=message):
        LPFClassifier.load(tmp_path)


def test_an_incomplete_folder_or_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactFormatError, match="give the folder that"):
        LPFClassifier.load(tmp_path)
    fitted().save(tmp_path)
    (weights,) = tmp_path.rglob("*.safetensors")
    stored = weights.read_bytes()
    weights.write_bytes(stored[:-1] + bytes([stored[-1] ^ 1]))
    with pytest.raises(ArtefactHashError):
        LPFClassifier.load(tmp_path)
