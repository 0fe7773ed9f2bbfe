"""Prediction sets, deferral with its reasons, and what is said of an answer's reliability."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lpf.engine import Items
from lpf.items import LeftOut
from lpf.metrics.prediction_sets import surprise
from lpf.model.held_out import HeldOutAnswers
from lpf.orchestrator.judging import judge
from lpf.results import FactUsed, QueryResult
from lpf.sureness import TrackRecord, by_probability
from lpf.types import QueryOptions

VALUES = ("low", "medium", "high")
BOTH = QueryOptions(coverage=0.9, max_risk=0.1)


def held_out(count: int = 300, **changes: Any) -> HeldOutAnswers:
    """Answers with the confidences .34, ... .99. The surest two thirds are right; then one of two.
    Every third entity has each value."""
    confidence = np.linspace(0.99, 0.34, count)
    labels = np.arange(count) % 3
    right = (np.arange(count) < 2 * count / 3) | (np.arange(count) % 2 == 0)
    top = np.where(right, labels, (labels + 1) % 3)
    distribution = np.repeat((1 - confidence)[:, None] / 2, 3, axis=1)
    distribution[np.arange(count), top] = confidence
    made = HeldOutAnswers.from_answers("apart", distribution, labels, np.arange(count))
    return replace(made, **changes)


def items(count: int, **changes: Any) -> Items:
    ones = np.ones(count)
    used = Items(
        np.zeros((count, 1), np.float32),
        [f"E{number}" for number in range(count)],
        credibility=ones,
        groups=np.full(count, -1),
        sources=np.arange(count),
        scores=ones,
        considered=count,
        weight=ones,
        potential=np.tile([0.5, 0.3, 0.2], (count, 1)),
    )
    for name, value in changes.items():
        setattr(used, name, value)
    return used


def result(probabilities: list[float], options: QueryOptions = BOTH, **changes: Any) -> QueryResult:
    asked = QueryResult(
        "C", "level", VALUES, probabilities, "inference", "spn", options, 1, 1,
        evidence=items(2), threshold="model",
    )  # fmt: skip
    for name, value in changes.items():
        setattr(asked, name, value)
    return asked


SURE, UNSURE = [0.98, 0.01, 0.01], [0.36, 0.34, 0.3]


def test_a_sure_answer_is_given_and_its_set_is_small() -> None:
    asked, held = result(SURE), held_out()
    judge(asked, held)
    assert asked.decision is not None
    assert asked.decision.answered
    assert not asked.is_deferred
    assert asked.decision.cutoff == held.deferral_cutoff(0.1)
    assert asked.decision.reasons == ()
    assert asked.prediction_set is not None
    assert asked.prediction_set.values == ("low",)
    assert asked.track_record is not None
    assert (asked.track_record.right, asked.track_record.nearest) == (60, 60)
    assert asked.track_record.verdict == "reliable"


def test_an_unsure_answer_is_deferred_and_its_set_is_large() -> None:
    asked = result(UNSURE)
    judge(asked, held_out())
    assert asked.is_deferred
    assert asked.decision is not None
    assert asked.decision.reasons == ("too_little_evidence",)
    assert asked.prediction_set is not None
    assert asked.prediction_set.values == VALUES
    assert asked.track_record is not None
    assert asked.track_record.verdict == "unreliable"


def test_the_set_is_worked_out_from_its_cutoffs() -> None:
    asked, held = result([0.7, 0.2, 0.1]), held_out()
    judge(asked, held)
    assert asked.prediction_set is not None
    cutoffs = asked.prediction_set.cutoffs
    assert cutoffs is not None
    wanted = tuple(
        value
        for value, p in zip(VALUES, surprise(np.array([0.7, 0.2, 0.1])), strict=True)
        if p <= (np.inf if cutoffs[value] is None else cutoffs[value])
    )
    assert asked.prediction_set.values == wanted


def test_without_the_options_only_the_track_record_is_told() -> None:
    asked = result(SURE, QueryOptions())
    judge(asked, held_out())
    assert asked.prediction_set is None
    assert asked.decision is None
    assert asked.track_record is not None


def test_a_model_that_does_not_know_says_nothing() -> None:
    asked = result(SURE, QueryOptions())
    judge(asked, None)
    assert asked.track_record is None
    assert asked.to_dict()["track_record"] is None


def blank(count: int) -> dict[str, Any]:
    """``count`` of two items have no word."""
    marks = np.arange(2) < count
    return {"wordless": marks, "familiarity": np.where(marks, 0.0, 1.0)}


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({}, ("too_little_evidence",)),
        (blank(1), ("unreadable_text",)),
        (blank(2), ("unreadable_text",)),
        ({"familiarity": np.array([0.1, 0.9])}, ("far_from_training",)),
        ({"familiarity": np.array([0.6, 0.9])}, ("too_little_evidence",)),
        (
            {"potential": np.array([[0.98, 0.01, 0.01], [0.01, 0.01, 0.98]])},
            ("contradicting_evidence",),
        ),
        (
            {
                "potential": np.array([[0.98, 0.01, 0.01], [0.01, 0.01, 0.98]]),
                "familiarity": np.array([0.1, 0.1]),
            },
            ("far_from_training", "contradicting_evidence"),
        ),
        ({"damaged": [object(), object()]}, ("unreadable_text",)),
    ],
)
def test_the_reasons_of_a_deferral(changes: dict[str, Any], reasons: tuple[str, ...]) -> None:
    asked = result(UNSURE, evidence=items(2, **changes))
    judge(asked, held_out())
    assert asked.decision is not None
    assert asked.decision.reasons == reasons
    assert asked.decision.why


def test_a_value_that_no_held_out_entity_has_is_deferred_however_sure() -> None:
    held = held_out()
    known = held.labels != 0
    parts = {name: getattr(held, name)[known]
             for name in ("labels", "top", "label_surprise", "top_surprise", "groups")}  # fmt: skip
    asked = result(SURE)
    judge(asked, replace(held, **parts))
    assert asked.decision is not None
    assert not asked.decision.answered
    assert asked.decision.reasons == ("value_never_seen",)


def test_a_risk_out_of_reach_says_what_would_help() -> None:
    few, many = result(SURE, replace(BOTH, max_risk=0.001)), result(SURE)
    judge(few, held_out())
    wrong = held_out()
    judge(many, replace(wrong, top=(wrong.labels + 1) % 3))
    for asked in (few, many):
        assert asked.decision is not None
        assert not asked.decision.reachable
        assert asked.decision.reasons == ("risk_out_of_reach",)
    assert few.decision is not None
    assert many.decision is not None
    assert "2,995 held-out entities" in str(few.decision.help)
    assert few.decision.smallest_risk == held_out().smallest_risk
    assert f"--max-risk {few.decision.smallest_risk:g}" in str(few.decision.help)
    assert "wrong" in str(many.decision.help)
    assert many.decision.smallest_risk is None


@pytest.mark.parametrize("source", ["related", "facts", "none"])
def test_without_evidence_of_its_own_all_values_are_in_the_set(source: str) -> None:
    asked = result(SURE, source=source, evidence=None, none_of=LeftOut())
    judge(asked, held_out())
    assert asked.prediction_set is not None
    assert (asked.prediction_set.values, asked.prediction_set.cutoffs) == (VALUES, None)
    assert asked.decision is not None
    assert asked.decision.reasons == ("too_little_evidence",)
    assert asked.track_record is None


def test_damaged_evidence_alone_is_unreadable() -> None:
    asked = result(SURE, source="none", evidence=None, none_of=LeftOut(damaged=2))
    judge(asked, held_out())
    assert asked.decision is not None
    assert asked.decision.reasons == ("unreadable_text", "too_little_evidence")


@pytest.mark.parametrize(
    ("confidence", "answered", "values"),
    [(0.95, True, ("low",)), (0.7, False, ("low", "medium"))],
)
def test_an_answer_from_a_fact_is_as_sure_as_the_fact(
    confidence: float, answered: bool, values: tuple[str, ...]
) -> None:
    rest = (1 - confidence) / 2
    asked = result(
        [confidence, rest, rest], replace(BOTH, coverage=0.8), source="canonical",
        method="canonical", evidence=None,
    )  # fmt: skip
    judge(asked, None)
    assert asked.decision is not None
    assert asked.decision.answered is answered
    assert asked.decision.reasons == (() if answered else ("uncertain_fact",))
    assert asked.prediction_set is not None
    assert asked.prediction_set.values == values


def test_caveats_say_how_an_answer_differs_from_held_out_ones() -> None:
    fact = FactUsed(1, "outcome", "clean", 0.9, 1, "soft", 0.9)
    asked = result(SURE, QueryOptions(temperature=2.0), facts=(fact,), threshold="given")
    judge(asked, held_out(groups=np.arange(300) % 4))
    assert asked.track_record is not None
    groups, facts, settings = asked.track_record.caveats
    assert "4 groups" in groups
    assert "known facts" in facts
    assert "temperature, min_credibility" in settings
    assert all(one in asked.track_record.sentence for one in asked.track_record.caveats)


def test_texts_unlike_the_training_texts_are_not_to_be_relied_on() -> None:
    asked = result(SURE, evidence=items(2, familiarity=np.array([0.1, 0.2])))
    judge(asked, held_out())
    assert asked.track_record is not None
    assert asked.track_record.verdict == "unreliable"
    assert "unlike" in asked.track_record.sentence


@pytest.mark.parametrize(
    ("right", "of", "verdict"),
    [
        (90, 100, "reliable"),
        (89, 100, "check"),
        (70, 100, "check"),
        (69, 100, "unreliable"),
        (19, 19, "unknown"),
    ],
)
def test_verdicts(right: int, of: int, verdict: str) -> None:
    record = TrackRecord(right, of, 500, apart=True)
    assert record.verdict == verdict
    assert "\n" not in record.sentence


def test_values_by_probability() -> None:
    chances = {"a": 0.2, "b": 0.5, "c": 0.3}
    assert by_probability(chances, 0.5) == ("b",)
    assert by_probability(chances, 0.8) == ("b", "c")
    assert by_probability(chances, 0.81) == ("a", "b", "c")
