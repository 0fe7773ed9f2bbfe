"""Baselines with scikit-learn's tools, and their error messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from classifier_examples import FAST, CountingReader, suppliers, texts_of
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils.validation import check_is_fitted

from lpf import BaselineClassifier, LPFClassifier
from lpf.baselines import TransformerConfig
from lpf.baselines.linear import LogisticMean
from lpf.errors import ConfigError, DatasetError, EvidenceError, TrainingError
from lpf.training import small_data
from thread_counts import threads, two_threads


def quick(**parameters: object) -> BaselineClassifier:
    return BaselineClassifier(**{"method": "deep_sets", **parameters})


def test_parameters_are_stored_unchanged() -> None:
    seeds = [1, 2]
    classifier = BaselineClassifier("stacking", seeds=seeds)
    assert classifier.get_params()["seeds"] is seeds
    assert repr(classifier) == "BaselineClassifier(method='stacking', seeds=[1, 2])"
    with pytest.raises(ConfigError, match="'variant' is not a parameter of BaselineClassifier"):
        classifier.set_params(variant="spn")


def test_a_clone_is_unfitted_and_has_the_same_parameters() -> None:
    fitted = quick(temperature=True).fit(*suppliers(20))
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert is_classifier(fresh)
    check_is_fitted(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    with pytest.raises(NotFittedError, match="fit") as caught:
        fresh.predict([["late"]])
    assert isinstance(caught.value, TrainingError)


def test_cross_validation_reads_every_text_once() -> None:
    X, y = suppliers(24)
    reader = CountingReader()
    scores = cross_val_score(
        quick(reader=reader, validation_share=0.3),
        X,
        y,
        cv=2,
        scoring="neg_log_loss",
        error_score="raise",
    )
    assert np.isfinite(scores).all()
    assert reader.count == len({item["text"] for entity in X for item in entity})


def test_a_search_chooses_between_methods() -> None:
    X, y = suppliers(40)
    grid = [
        {"method": ["prior", "deep_sets"], "temperature": np.array([False, True])},
        {"method": np.array(["majority_vote"]), "seeds": [(1, 2)]},
    ]
    search = GridSearchCV(quick(), grid, cv=2, scoring="neg_log_loss", error_score="raise")
    search.fit(texts_of(X), y)
    assert search.best_params_["method"] in ("deep_sets", "majority_vote")
    assert search.classes_.tolist() == ["bad", "good"]
    assert search.predict(texts_of(X)).shape == (40,)


def test_fit_accepts_groups_arrays_and_numbers() -> None:
    X, y = suppliers(40)
    entities = np.empty(40, object)
    entities[:] = texts_of(X)
    labels = np.array([10 if label == "good" else 3 for label in y])
    answers = cross_val_predict(
        quick(validation_share=0.3),
        entities,
        labels,
        cv=2,
        params={"groups": np.arange(40) // 2},
        method="predict_proba",
    )
    np.testing.assert_allclose(answers.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "majority_votes"}, "unknown method 'majority_votes'.*'majority_vote'"),
        ({"method": None}, "method: unknown method None"),
        ({"temperature": 2.0}, "temperature: must be True or False, got 2.0"),
        ({"seeds": "eleven"}, "seeds: must be numbers or one of"),
        ({"validation_share": 0.0}, "validation_share: must lie between 0 and 1"),
        ({"random_state": None}, "random_state: must be a whole number"),
        ({"copy_similarity": 2.0}, "copy_similarity"),
        ({"reader": "maxilm"}, "reader: must be"),
        ({"prior": (0.5, 0.4)}, "prior: must have a number above 0"),
        ({"checkpoint": "some"}, "checkpoint: is only for the method 'transformer'"),
        ({"transformer": TransformerConfig()}, "transformer: is only for the method 'transformer'"),
    ],
)
def test_settings_are_checked_by_fit(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        quick(**parameters).fit(*suppliers(20))


def test_the_transformer_is_the_one_of_the_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded"):
        quick(method="transformer", checkpoint=tmp_path).fit(*suppliers(20))


def test_too_few_entities_are_refused_with_what_to_do() -> None:
    X, y = suppliers(20)
    with pytest.raises(DatasetError, match=r"0 of the 1 validation.*validation_share, or give"):
        quick().fit(X[:5], y[:5])  # six would just do
    with pytest.raises(DatasetError, match=r"1 of the .* train entities are of the class"):
        quick().fit(X[:3], y[:3], validation=(X[3:6], y[3:6]))
    with pytest.raises(DatasetError, match=r"'dawid_skene' needs at least 5"):
        quick(method="dawid_skene").fit(X[:4], y[:4], validation=(X[4:], y[4:]))
    few = quick().fit(X[:4], y[:4], validation=(X[4:], y[4:]))
    assert few.predict(X).shape == (20,)


def test_an_earlier_fit_survives_a_failed_one() -> None:
    X, y = suppliers(20)
    classifier = quick().fit(X, y)
    before = classifier.predict_proba(X)
    with pytest.raises(EvidenceError, match=r"X\[0\]: is a text"):
        classifier.fit(["late"], ["bad"])
    np.testing.assert_array_equal(classifier.predict_proba(X), before)


def test_settings_changed_after_fit_are_refused() -> None:
    X, y = suppliers(20)
    classifier = quick().fit(X, y)
    for changed in ({"method": "stacking"}, {"method": "deep_sets", "temperature": True}):
        with pytest.raises(TrainingError, match="fitted with method='deep_sets' and temperature"):
            classifier.set_params(**changed).predict(X)
    assert classifier.set_params(temperature=False).predict(X).shape == (20,)


def test_predict_needs_entities_in_the_form_of_fit() -> None:
    classifier = quick().fit(*suppliers(20))
    with pytest.raises(EvidenceError, match="fitted without claims"):
        classifier.predict([{"claim": "It is late.", "evidence": ["late"]}])


def test_a_given_prior_is_used_by_the_circuit_and_for_entities_without_evidence() -> None:
    X, y = suppliers(20)
    given = BaselineClassifier("spn_only", seeds=(1, 2), prior={"good": 0.1, "bad": 0.9})
    plain = clone(given).set_params(prior=None).fit(X, y)
    given.fit(X, y)
    np.testing.assert_allclose(given.predict_proba([[]]), [[0.9, 0.1]])
    assert (given.predict_proba(X)[:, 0] > plain.predict_proba(X)[:, 0]).all()
    assert any("prior gives 'bad' 90%" in warning for warning in given.warnings_)


def test_fitting_uses_one_thread_and_gives_the_others_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both classifiers; what they train is small."""
    seen: list[set[int]] = []

    def noted(original: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **named: object) -> object:
            seen.append(threads())
            return original(*given, **named)

        return call

    monkeypatch.setattr(LogisticMean, "fit", noted(LogisticMean.fit))
    monkeypatch.setattr(small_data, "finish", noted(small_data.finish))
    with two_threads():
        BaselineClassifier("logistic_mean").fit(*suppliers(24))
        LPFClassifier(**FAST).fit(*suppliers(12))
        assert threads() == {2}
    assert seen == [{1}, {1}]
