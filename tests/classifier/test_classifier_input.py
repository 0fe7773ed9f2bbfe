"""The accepted forms of X and y, and the errors for all others."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from classifier_examples import FAST, CountingReader, fitted, suppliers

from lpf import Evidence, LPFClassifier
from lpf.classifier.entities import read_entities
from lpf.classifier.features import TextFeatureCache
from lpf.classifier.fitting import LabelledPart, make_dataset
from lpf.classifier.labels import Classes, read_labels
from lpf.errors import ConfigError, DatasetError, EvidenceError, TrainingError

TEXT = "Late again."


def evidence(**more: object) -> Evidence:
    return Evidence("E1", "S1", "level", TEXT, **more)


def test_all_forms_of_evidence_give_the_same_answer() -> None:
    ways = [TEXT, {"text": TEXT}, evidence(), np.str_(TEXT)]
    read = read_entities([[way] for way in ways])
    assert {entity.evidence[0].text_content for entity in read} == {TEXT}
    assert read_entities([{"evidence": [TEXT], "claim": "It is late."}])[0].claim == "It is late."
    assert read_entities([[evidence(claim="It is late.")]])[0].claim == "It is late."
    assert read_entities(np.array([[TEXT, "Early."]]))[0].evidence[1].text_content == "Early."
    assert read_entities(pd.Series([[TEXT], []]))[1].evidence == ()


def test_evidence_fields_are_read_and_missing_ones_are_none() -> None:
    full = {"text": TEXT, "credibility": 1, "timestamp": "2026-01-25", "report_id": 7}
    blank = {"text": TEXT, "credibility": np.nan, "timestamp": pd.NaT, "source": pd.NA}
    first, second = read_entities([[full, blank]])[0].evidence
    assert (first.credibility, first.report_id) == (1.0, "7")
    assert first.timestamp == datetime(2026, 1, 25, tzinfo=UTC)
    assert (second.credibility, second.timestamp, second.source) == (None, None, None)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([TEXT], r"X\[0\]: is a text; an entity is a list of evidence"),
        ([[TEXT], evidence()], r"X\[1\]: .*Evidence; an entity is a list of evidence"),
        ([{"text": TEXT}], r"X\[0\]: an entity is a list of evidence, .*'text'"),
        ([3.5], r"X\[0\]: is an object of the type float; an entity is a list of evidence"),
        (TEXT, "X: must be a list of entities, got a text"),
        ([[TEXT, "  "]], r"X\[0\]\[1\]: the text is empty"),
        ([[{"text": None}]], r"X\[0\]\[0\]: must be a text, got an object of the type NoneType"),
        ([[3]], r"X\[0\]\[0\]: is an object of the type int; evidence is a text"),
        ([[{"text": TEXT, "trust": 1}]], r"X\[0\]\[0\]: evidence has the unknown field .trust."),
        ([[{"text": TEXT, "credibility": 1.5}]], r"X\[0\]\[0\].*credibility must lie in \[0, 1\]"),
        ([[{"text": TEXT, "credibility": "high"}]], r"X\[0\]\[0\]: credibility must be a number"),
        ([[{"text": TEXT, "timestamp": "now"}]], r"X\[0\]\[0\]: timestamp is not a time"),
        ([{"claim": "c"}], r"X\[0\]: has no field 'evidence'"),
        ([{"claim": " ", "evidence": []}], r"X\[0\]\['claim'\]: the text is empty"),
        ([{"claim": "c", "evidence": TEXT}], r"X\[0\]\['evidence'\]: is a text"),
        ([[evidence(claim="a"), evidence(claim="b")]], r"X\[0\]: its items have several claims"),
        ([{"claim": "a", "evidence": [evidence(claim="b")]}], r"X\[0\]: its evidence has the"),
    ],
)
def test_invalid_evidence_is_refused_with_its_place(X: object, message: str) -> None:
    with pytest.raises(EvidenceError, match=message):
        read_entities(X)
    with pytest.raises(EvidenceError):
        fitted().predict(X)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[TEXT]] * 3, ["a", "b"], DatasetError, "y: 2 labels for 3 entities"),
        ([[TEXT]] * 3, "abc", DatasetError, "y: 0 labels for 3 entities"),
        ([[TEXT]] * 2, ["a", "a"], DatasetError, "y: all labels are 'a'"),
        ([], [], DatasetError, "y: all labels are None"),
        ([[TEXT]] * 2, ["a", float("nan")], DatasetError, r"y\[1\]: is nan, not a label"),
        ([[TEXT]] * 2, ["a", None], DatasetError, r"y\[1\]: is None, not a label"),
        ([[TEXT]] * 2, ["a", ["b"]], DatasetError, r"y\[1\]: is of the type list"),
        ([[TEXT]] * 2, ["a", 1], DatasetError, "labels cannot be sorted"),
        ([[TEXT], []], ["a", "b"], DatasetError, r"fewer than 2 entities are labelled"),
    ],
)
def test_invalid_labels_are_refused(
    X: list[object], y: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        LPFClassifier(**FAST).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"variant": "spm"}, "variant"),
        ({"mode": "robust", "alpha": 2.0}, "alpha"),
        ({"seeds": "eleven"}, "seeds: must be numbers or one of"),
        ({"seeds": (1, 1)}, "seeds: must be 1 to"),
        ({"members": 0}, "members"),
        ({"validation_share": 1.0}, "validation_share: must lie between 0 and 1"),
        ({"random_state": None}, "random_state: must be a whole number"),
        ({"copy_similarity": 2.0}, "copy_similarity"),
        ({"reader": "maxilm"}, "reader: must be"),
        ({"prior": (0.5, 0.4)}, "prior: must have a number above 0 for each of the classes"),
        ({"prior": {"good": 1.0}}, "prior: must have"),
        ({"prior": (1.0, 0.0)}, "prior: must have"),
    ],
)
def test_settings_are_checked_by_fit(parameters: dict[str, object], message: str) -> None:
    X, y = suppliers(8)
    with pytest.raises(ConfigError, match=message):
        LPFClassifier(**{**FAST, **parameters}).fit(X, y)


def test_a_variant_that_was_not_trained_is_refused() -> None:
    X, y = suppliers(8)
    with pytest.raises(TrainingError, match="'learned' cannot be trained on 8 entities"):
        LPFClassifier(**FAST, variant="learned").fit(X, y)
    plain = LPFClassifier(**FAST).fit(X, y)
    with pytest.raises(TrainingError, match="fit again with variant='learned'"):
        plain.set_params(variant="learned").predict(X)
    paper = plain.set_params(variant="spn", mode="paper").predict_proba(X)
    assert np.abs(paper - plain.set_params(mode="robust").predict_proba(X)).max() > 1e-6


def test_claims_are_given_to_fit_and_predict_alike() -> None:
    with pytest.raises(EvidenceError, match="fitted without claims"):
        fitted().predict([{"claim": "It is late.", "evidence": [TEXT]}])


def test_some_entities_may_lack_a_claim() -> None:
    X, y = suppliers(8)
    some = [{"claim": "It is late.", "evidence": x} if n % 2 else x for n, x in enumerate(X)]
    classifier = LPFClassifier(**FAST).fit(some, y)
    with_claim, without = (
        classifier.predict_proba([entity])
        for entity in ({"claim": "It is late.", "evidence": X[0]}, X[0])
    )
    assert np.abs(with_claim - without).max() > 1e-9


def test_validation_must_have_the_same_classes() -> None:
    X, y = suppliers(8)
    for labels, message in (
        (["good"] * 4, "the class 'bad' has no entity"),
        (["good", "bad", "bad", "odd"], "the class 'odd' is not in y"),
    ):
        with pytest.raises(DatasetError, match=message):
            LPFClassifier(**FAST).fit(X[:4], y[:4], validation=(X[4:], labels))
    with pytest.raises(DatasetError, match="must be \\(X, y\\)"):
        LPFClassifier(**FAST).fit(X, y, validation=X)


def test_classes_are_sorted_and_of_the_kind_of_the_labels() -> None:
    assert Classes.of(["b", "a", "b"]).array.tolist() == ["a", "b"]
    assert Classes.of(read_labels(np.array([3, 1]), 2)).values == ("1", "3")
    pairs = Classes.of([(1, "x"), (0, "y")])
    assert pairs.array.tolist() == [(0, "y"), (1, "x")]
    assert Classes.of(["", "a"]).values == ("class 0", "class 1")


def test_a_prior_goes_by_class_or_by_position() -> None:
    classes = Classes.of(["a", "b"])
    for prior in ({"b": 0.2, "a": 0.8}, (0.8, 0.2), np.array([0.8, 0.2])):
        assert classes.predicate(prior, ["a", "b"]).prior == pytest.approx((0.8, 0.2))


def test_items_keep_the_value_that_they_support_themselves() -> None:
    X = [[{"text": TEXT, "supports_value": "1"}, {"text": "Early.", "supports_value": "odd"}]]
    part = LabelledPart.training([*X, [TEXT]], [0, 1], None, False)
    dataset = make_dataset([part], Classes.of(part.labels), None)
    assert dataset.item_labels("label").tolist() == [1, 0, 1]
    assert dataset.exclusions == (
        "1 supports_value is no class and was ignored (first: 'odd' of X[0][1]).",
    )


def test_the_feature_cache_drops_the_oldest_and_still_gives_every_row() -> None:
    reader, cache = CountingReader(), TextFeatureCache(max_cached=2)
    first = read_entities([["One.", "Two."], ["Three.", "One."]])
    rows = cache.features(reader, first)
    assert rows.shape == (4, reader.width)
    assert reader.count == 3
    np.testing.assert_array_equal(rows[0], rows[3])
    np.testing.assert_array_equal(cache.features(reader, first[1:])[0], rows[2])
    assert reader.count == 4  # "One." was the oldest
    assert cache.features(reader, ()).shape == (0, reader.width)


def test_all_methods_take_the_same_input() -> None:
    classifier = fitted()
    assert classifier.explain([]) == []
    assert classifier.uncertainty([], samples=2).entropy.shape == (0,)
    assert classifier.predict_proba([]).shape == (0, 2)
    for ask in (classifier.explain, classifier.uncertainty, classifier.predict_proba):
        with pytest.raises(EvidenceError, match=r"X\[0\]: is a text") as caught:
            ask([TEXT, TEXT])
        assert caught.value.field == "X[0]"
