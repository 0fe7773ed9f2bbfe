"""scikit-learn's own tools accept the classifier."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from classifier_examples import FAST, CountingReader, fitted, suppliers, texts_of
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from lpf import LPFClassifier
from lpf.errors import ConfigError, TrainingError


def test_parameters_are_stored_unchanged() -> None:
    hidden = [32, 16]
    classifier = LPFClassifier(hidden=hidden, mode="paper")
    assert classifier.get_params()["hidden"] is hidden
    assert repr(classifier) == "LPFClassifier(mode='paper', hidden=[32, 16])"
    assert classifier.set_params(members=3, alpha=0.1) is classifier
    assert (classifier.members, classifier.alpha) == (3, 0.1)
    with pytest.raises(ConfigError, match="'depth' is not a parameter of LPFClassifier"):
        classifier.set_params(members=4, depth=2)
    assert classifier.members == 3


def test_a_clone_is_unfitted_and_has_the_same_parameters() -> None:
    copy = clone(fitted())
    assert copy.get_params() == fitted().get_params()
    assert is_classifier(copy)
    check_is_fitted(fitted())
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "explain", "uncertainty"])
def test_an_unfitted_classifier_raises_the_error_of_sklearn_and_ours(ask: str) -> None:
    with pytest.raises(NotFittedError) as caught:
        getattr(LPFClassifier(), ask)([["late"]])
    assert isinstance(caught.value, TrainingError)
    assert "fit(X, y)" in (caught.value.hint or "")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again.args) == str(caught.value.args)


def test_a_pipeline_passes_entities_through() -> None:
    X, y = suppliers(12)
    pipeline = make_pipeline(FunctionTransformer(texts_of), LPFClassifier(**FAST)).fit(X, y)
    check_is_fitted(pipeline)
    assert pipeline.predict(X).shape == (12,)
    assert pipeline.score(X, y) > 0.5


def test_cross_validation_reads_every_text_once() -> None:
    X, y = suppliers(12)
    reader = CountingReader()
    classifier = LPFClassifier(**FAST, reader=reader)
    scoring = ["accuracy", "neg_log_loss"]
    found = cross_validate(classifier, X, y, cv=2, scoring=scoring, error_score="raise")
    assert np.isfinite(found["test_neg_log_loss"]).all()
    assert found["test_accuracy"].shape == (2,)
    assert reader.count == len({item["text"] for entity in X for item in entity})


def test_a_search_over_parameters_sets_them_and_keeps_the_best() -> None:
    X, y = suppliers(12)
    grid = {"learning_rate": np.array([1e-5, 3e-3])}
    search = GridSearchCV(LPFClassifier(**FAST), grid, cv=2, error_score="raise")
    search.fit(texts_of(X), y)
    assert search.best_params_["learning_rate"] in grid["learning_rate"]
    assert search.classes_.tolist() == ["bad", "good"]
    assert search.predict(texts_of(X)).shape == (12,)


def test_fit_accepts_groups_arrays_and_numbers() -> None:
    X, y = suppliers(12)
    entities = np.empty(12, object)
    entities[:] = texts_of(X)
    labels = np.array([10 if label == "good" else 3 for label in y])
    answers = cross_val_predict(
        LPFClassifier(**FAST),
        entities,
        labels,
        cv=2,
        params={"groups": np.arange(12) // 2},
        method="predict_proba",
    )
    np.testing.assert_allclose(answers.sum(axis=1), 1.0)


def test_it_can_be_pickled_to_another_process() -> None:
    X, _ = suppliers(5)
    copy = pickle.loads(pickle.dumps(fitted()))
    np.testing.assert_allclose(copy.predict_proba(X), fitted().predict_proba(X), atol=1e-6)
    assert pickle.loads(pickle.dumps(clone(fitted()))).get_params() == fitted().get_params()
