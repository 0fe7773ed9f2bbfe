"""In a workspace: prediction sets and deferral, from the question to the ledger and back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from builders import model_config, sharp_tensors
from lpf.cli.answer_view import show_answer
from lpf.errors import ConfigError
from lpf.ledger.verifier import verify
from lpf.model.artefact import save_model
from lpf.model.config import HeldOutConfig
from lpf.model.held_out import HeldOutAnswers
from lpf.orchestrator.replay import judging_faults
from lpf.storage.facts import NewFact
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from workspaces import CARD, add, days_ago, evidence, reader, schema

ENTITIES = 400
# The model is very sure of everything; at this temperature it is of some answers only.
WARM = 8.0
SET = QueryOptions(coverage=0.9, temperature=WARM)
RISK = QueryOptions(max_risk=0.2, temperature=WARM)
BOTH = QueryOptions(coverage=0.9, coverage_by_value=True, max_risk=0.2, temperature=WARM)


def held_out() -> HeldOutAnswers:
    """Sure answers are right, others half of the time."""
    generator = np.random.default_rng(0)
    distribution = generator.dirichlet([0.7] * 3, ENTITIES)
    top = distribution.argmax(axis=1)
    wrong = (distribution.max(axis=1) < 0.75) & (generator.random(ENTITIES) < 0.5)
    labels = np.where(wrong, (top + 1) % 3, top)
    return HeldOutAnswers.from_answers("apart", distribution, labels, np.arange(ENTITIES))


def use_model(space: Workspace, **held: HeldOutAnswers) -> None:
    config = model_config(
        2,
        reader_id=reader().reader_id,
        held_out={name: HeldOutConfig(len(one), one.kind) for name, one in held.items()},
    )
    tensors = sharp_tensors(config)
    for name, one in held.items():
        tensors |= one.tensors(name)
    space.use_model(save_model(space.folder / "models", config, tensors, CARD))


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The model knows how sure it is of the level, not of the outcome."""
    with Workspace.create(tmp_path_factory.mktemp("sure") / "w", schema()) as made:
        add(made, [item for n in range(1, 9) for item in evidence(f"C{n}", 1 + n % 4, start=n)])
        use_model(made, level=held_out())
        yield made


NAMES = [f"C{n}" for n in range(1, 9)]


def recorded(space: Workspace, record_id: str | None) -> dict[str, Any]:
    assert record_id is not None
    return dict(space.records.expand(space.records.get(record_id)))


def test_more_coverage_gives_larger_sets(space: Workspace) -> None:
    for name in NAMES:
        found = []
        for coverage in (0.5, 0.8, 0.95, 0.999):
            result = space.query(name, "level", QueryOptions(coverage=coverage))
            assert result.prediction_set is not None
            assert result.top_value in result.prediction_set.values
            found.append(set(result.prediction_set.values))
        assert found[0] <= found[1] <= found[2] <= found[3]
        assert len(found[3]) == 3  # 400 entities are too few to leave a value out at 99.9 %


def test_a_smaller_risk_defers_what_a_larger_one_defers(space: Workspace) -> None:
    deferred = []
    for max_risk in (0.02, 0.1, 0.4):
        options = QueryOptions(max_risk=max_risk, temperature=WARM)
        answers = space.query_many([(name, "level") for name in NAMES], options)
        deferred.append({one.entity_id for one in answers if one.is_deferred})
    assert deferred[0] == set(NAMES)  # out of reach
    assert deferred[2] < deferred[1] < deferred[0]


def test_many_questions_are_judged_as_one(space: Workspace) -> None:
    many = space.query_many([(name, "level") for name in NAMES], BOTH)
    for one in many:
        alone = space.query(one.entity_id, "level", BOTH)
        assert one.prediction_set == alone.prediction_set
        assert one.decision == alone.decision


def test_what_was_decided_is_in_the_json_document_and_the_table(space: Workspace) -> None:
    answers = space.query_many([(name, "level") for name in NAMES], BOTH)
    table = answers.to_frame()
    for one, row in zip(answers, table.to_dict("records"), strict=True):
        document = one.to_dict()
        assert one.prediction_set is not None
        assert one.decision is not None
        assert document["prediction_set"]["values"] == list(one.prediction_set.values)
        assert document["decision"]["answered"] is one.decision.answered
        assert document["track_record"]["entities"] == ENTITIES
        assert row["set"] == " | ".join(one.prediction_set.values)
        assert (
            row["deferred"] is None or row["deferred"] != row["deferred"]
        ) is not one.is_deferred


@pytest.mark.parametrize("options", [SET, RISK, BOTH])
@pytest.mark.parametrize("entity", ["C1", "C4", "nobody"])
def test_it_is_recorded_replayed_and_verified(
    space: Workspace, entity: str, options: QueryOptions
) -> None:
    result = space.query(entity, "level", options)
    record = recorded(space, result.record_id)
    settings = record["context"]["hyperparameters"]
    for name in ("coverage", "coverage_by_value", "max_risk"):
        assert settings.get(name) == (getattr(options, name) or None)
    for name in ("prediction_set", "decision"):
        part = getattr(result, name)
        assert record.get(name) == (None if part is None else part.to_dict())
    for deep in (False, True):
        replayed = space.replay(result.record_id, deep=deep)
        assert replayed.agrees
        assert replayed.faults == ()
    assert verify(space.database).ok


def test_a_question_without_them_is_recorded_as_before(space: Workspace) -> None:
    record = recorded(space, space.query("C1", "level").record_id)
    assert not {"prediction_set", "decision"} & set(record)
    assert not {"coverage", "coverage_by_value", "max_risk"} & set(
        record["context"]["hyperparameters"]
    )


def test_a_record_whose_set_or_decision_is_not_its_answers_is_found(space: Workspace) -> None:
    given = space.query("C1", "level", BOTH)
    record = recorded(space, given.record_id)
    assert judging_faults(record, held_out()) == ()
    values = record["prediction_set"]["values"]
    other = {**record["prediction_set"], "values": values[1:] or ["low", "medium", "high"]}
    assert judging_faults({**record, "prediction_set": other})
    decision = {**record["decision"], "answered": not record["decision"]["answered"]}
    assert judging_faults({**record, "decision": decision})
    few = replace(held_out(), kind="shared")
    assert judging_faults(record, few) == ()
    another = HeldOutAnswers.from_answers(
        "apart", np.eye(3)[np.arange(30) % 3] * 0.4 + 0.2, np.arange(30) % 3, np.arange(30)
    )
    assert len(judging_faults(record, another)) == 2


def test_the_facts_answer_is_recorded_and_replayed(space: Workspace) -> None:
    space.facts.add([NewFact("F1", "level", "low", days_ago(1), 0.97)])
    result = space.query("F1", "level", BOTH)
    assert result.source == "canonical"
    assert result.prediction_set is not None
    assert result.prediction_set.values == ("low",)
    assert not result.is_deferred
    assert space.replay(result.record_id).agrees


@pytest.mark.parametrize("options", [SET, RISK])
def test_a_model_without_held_out_answers_refuses_and_says_what_to_do(
    space: Workspace, options: QueryOptions
) -> None:
    with pytest.raises(ConfigError) as raised:
        space.query("C1", "outcome", options)
    name = "coverage" if options.coverage else "max_risk"
    assert raised.value.field == f"options.{name}"
    assert "lpf train" in str(raised.value.hint)
    with pytest.raises(ConfigError):
        space.query_many([("C1", "outcome")], options)
    assert space.query("C1", "outcome").track_record is None


@pytest.mark.parametrize("other", [{"mode": "paper"}, {"variant": "learned"}])
@pytest.mark.parametrize("name", ["coverage", "max_risk"])
def test_they_apply_to_the_product_of_robust_mode_only(other: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError) as raised:
        QueryOptions(**{name: 0.5}, **other)
    assert raised.value.field == f"options.{name}"


@pytest.mark.parametrize(
    "wrong",
    [{"coverage": 0.0}, {"coverage": 1.0}, {"max_risk": 0.0}, {"max_risk": 1.0},
     {"max_risk": float("nan")}, {"coverage_by_value": True}],
)  # fmt: skip
def test_a_share_is_between_0_and_1(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        QueryOptions(**wrong)
    assert raised.value.field == f"options.{next(iter(wrong))}"


def shown(space: Workspace, entity: str, options: QueryOptions) -> str:
    output = io.StringIO()
    result = space.query(entity, "level", options)
    show_answer(Console(file=output, width=200, color_system=None), result, {})
    return output.getvalue()


def test_the_terminal_says_how_far_an_answer_may_be_relied_on(space: Workspace) -> None:
    plain = shown(space, "C1", QueryOptions())
    result = space.query("C1", "level")
    assert result.track_record is not None
    assert plain.count(result.track_record.sentence) == 1
    with_set = shown(space, "C1", SET)
    assert "90 % set: " in with_set
    assert "400 held-out" in with_set


def test_the_terminal_says_why_an_answer_is_deferred(space: Workspace) -> None:
    answers = space.query_many([(name, "level") for name in NAMES], RISK)
    for one in answers:
        text = shown(space, one.entity_id, RISK)
        assert one.decision is not None
        assert ("deferred" in text.splitlines()[0]) is one.is_deferred
        assert one.decision.why in text
    unreachable = shown(space, "C1", QueryOptions(max_risk=0.001))
    assert "what would help" in unreachable


def test_paper_mode_says_nothing_of_reliability(space: Workspace) -> None:
    assert space.query("C1", "level", QueryOptions.paper()).track_record is None
