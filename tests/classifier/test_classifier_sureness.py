"""Prediction sets and deferral of the classifier."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from classifier_examples import FAST, fitted, suppliers

from lpf import LPFClassifier
from lpf.classifier.entities import PREDICATE
from lpf.errors import ConfigError
from lpf.metrics.prediction_sets import surprise
from lpf.model.held_out import HeldOutAnswers

ASKED = suppliers(30, seed=5, first=900)[0]


def held_out(classifier: LPFClassifier) -> HeldOutAnswers:
    return classifier._require_fitted().engine.held_out(PREDICATE, "coverage")


def test_sets_follow_from_the_probabilities_and_the_cutoffs() -> None:
    classifier = fitted()
    probabilities = classifier.predict_proba(ASKED)
    for coverage in (0.5, 0.8, 0.9):
        for by_value in (False, True):
            members = classifier.predict_set(ASKED, coverage, by_value=by_value)
            assert members.dtype == bool
            assert members.shape == (30, 2)
            cutoffs = held_out(classifier).cutoffs(coverage, by_value)
            wanted = surprise(probabilities) <= cutoffs
            wanted[np.arange(30), probabilities.argmax(axis=1)] |= ~wanted.any(axis=1)
            assert np.array_equal(members, wanted)


def test_more_coverage_gives_larger_sets() -> None:
    small, large = (fitted().predict_set(ASKED, coverage) for coverage in (0.6, 0.95))
    assert (small <= large).all()
    assert small.any(axis=1).all()


def test_what_is_not_sure_enough_is_deferred() -> None:
    classifier = fitted()
    chosen = classifier.predict_selective(ASKED, max_risk=0.7)
    cutoff = held_out(classifier).deferral_cutoff(0.7)
    assert cutoff is not None
    sure = surprise(classifier.predict_proba(ASKED)).min(axis=1) < cutoff
    assert [value is not None for value in chosen] == sure.tolist()
    assert (chosen[sure] == classifier.predict(ASKED)[sure]).all()


def test_a_risk_out_of_reach_defers_all() -> None:
    assert list(fitted().predict_selective(ASKED, max_risk=0.0001)) == [None] * 30


def test_without_evidence_all_classes_are_possible_and_none_is_given() -> None:
    classifier = fitted()
    assert classifier.predict_set([[]], 0.5).all()
    assert classifier.predict_selective([[]], 0.5)[0] is None


def test_a_saved_classifier_has_the_same_sets(tmp_path: Path) -> None:
    classifier = fitted()
    classifier.save(tmp_path)
    loaded = LPFClassifier.load(tmp_path)
    assert np.array_equal(loaded.predict_set(ASKED), classifier.predict_set(ASKED))
    assert list(loaded.predict_selective(ASKED)) == list(classifier.predict_selective(ASKED))


@pytest.mark.parametrize("coverage", [0.0, 1.0, float("nan")])
def test_a_coverage_is_between_0_and_1(coverage: float) -> None:
    with pytest.raises(ConfigError):
        fitted().predict_set(ASKED, coverage)


def test_the_learned_variant_does_not_know() -> None:
    with pytest.raises(ConfigError) as raised:
        fitted("learned").predict_set(ASKED)
    assert raised.value.field == "options.coverage"


def test_a_classifier_from_before_says_that_it_must_be_fitted_again(tmp_path: Path) -> None:

    classifier = LPFClassifier(**FAST).fit(*suppliers(24))
    before = classifier._require_fitted()
    config = replace(before.artefact.config, held_out={})
    tensors = {
        name: one
        for name, one in before.artefact.tensors.items()
        if not name.startswith("held_out.")
    }
    old = replace(before, artefact=replace(before.artefact, config=config, tensors=tensors))
    classifier._set_fitted(old)
    assert classifier.predict_proba(ASKED).shape == (30, 2)
    with pytest.raises(ConfigError) as raised:
        classifier.predict_set(ASKED)
    assert "train again" in str(raised.value).lower()
