from __future__ import annotations

import numpy as np
import pytest

from lpf.engine import Engine
from lpf.errors import ConfigError
from lpf.items import Items, Segments
from lpf.model.runtime import Runtime
from lpf.model.zero_label import (
    VERDICT_NAMES,
    ZeroLabelNumbers,
    verdict_meant,
    without_counterpart,
)
from lpf.reading.stance import STANCE_WIDTH
from lpf.schema import Predicate, Schema

NUMBERS = ZeroLabelNumbers(
    ("supported", "refuted", "not_enough"),
    ((0.9, 0.1, 0.0), (-0.1, 1.1, 0.0), (-0.2, 0.2, 0.9)),
    (0.3, 0.1, -0.4),
    (0.1, 0.2, 0.7),
    1000,
    {},
)
READER, WIDTH = "pair(hash@4)+stance(cue)", 4 * 4 + STANCE_WIDTH
LOGITS = np.array([[3.0, -1.0, 0.5], [-1.0, 0.2, 2.0], [0.4, 2.5, -1.0]])


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("SUPPORTS", "supported"),
        ("True", "supported"),
        ("Entailment", "supported"),
        ("CONTRADICT", "refuted"),
        ("false", "refuted"),
        ("NOT ENOUGH INFO", "not_enough"),
        ("not-enough-evidence", "not_enough"),
        ("unverified", "not_enough"),
        ("DISPUTED", None),
        ("accept", None),
    ],
)
def test_usual_names_of_verdicts_are_understood(name: str, verdict: str | None) -> None:
    assert verdict_meant(name) == verdict


def test_no_name_stands_for_two_verdicts() -> None:
    names = [name for names in VERDICT_NAMES.values() for name in names]
    assert len(set(names)) == len(names)
    assert set(VERDICT_NAMES) == set(NUMBERS.values)
    assert all(verdict_meant(name) is not None for name in names)


def test_values_without_a_counterpart_of_their_own_are_named() -> None:
    assert without_counterpart(("SUPPORTS", "REFUTES")) == ()
    assert without_counterpart(("SUPPORTS", "DISPUTED", "nei")) == ("DISPUTED",)
    assert without_counterpart(("true", "supported")) == ("supported",)
    with pytest.raises(ConfigError, match="DISPUTED"):
        NUMBERS.head(("SUPPORTS", "REFUTES", "DISPUTED"))


def worked_out(counts: list[int]) -> np.ndarray:
    """P ∝ s^(1 - Σa) Π softmax(xW + c)^a over the three verdicts, entity by entity."""
    logits = LOGITS @ np.array(NUMBERS.weight) + np.array(NUMBERS.bias)
    said = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    stances = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    relevance = (1.0 - stances[:, 2]) ** 2
    found, first = [], 0
    for count in counts:
        rows = slice(first, first + count)
        first += count
        shares = relevance[rows] / max(1.0, relevance[rows].sum())
        scores = (1.0 - shares.sum()) * np.log(NUMBERS.prior)
        scores = scores + (shares[:, None] * np.log(said[rows])).sum(axis=0)
        found.append(np.exp(scores) / np.exp(scores).sum())
    return np.array(found)


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        (("SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO"), [0, 1, 2]),
        (("unverified", "false", "true"), [2, 1, 0]),
        (("REFUTES", "SUPPORTS"), [1, 0]),
    ],
)
def test_the_model_answers_by_the_formula(values: tuple[str, ...], columns: list[int]) -> None:
    """Without a value for not enough, the others share its probability."""
    runtime = Runtime(*NUMBERS.model("label", values, READER, WIDTH))
    prior = tuple(NUMBERS.head(values).silent.tolist())
    engine = Engine(runtime, Schema((Predicate("label", values, prior),)))
    features = np.zeros((3, WIDTH), np.float32)
    features[:, -3:] = LOGITS
    counts = [2, 1, 0]
    found = engine.answer(Items(features, segments=Segments.of_counts(counts)), "label")
    expected = worked_out(counts)[:, columns]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.distribution, expected, rtol=1e-5)


def test_a_reader_of_plain_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="stances"):
        NUMBERS.model("label", ("true", "false"), "hash@4", 4)
