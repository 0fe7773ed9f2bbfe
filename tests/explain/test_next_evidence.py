"""What to collect next: exact for facts, between nothing and all doubt for items, and greedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import workspaces
from lpf import NewFact
from lpf.circuits import joint_probability
from lpf.errors import ConfigError, UnknownPredicateError
from lpf.explain import Changes, CollectionPlan, Offer, next_sentences
from lpf.explain.future import Future
from lpf.explain.future import Path as SupposedPath
from lpf.explain.stored_pool import stored_pool
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from workspaces import LEVELS, add, days_ago, evidence, make

OUTCOMES = ("clean", "qualified")
SMALL = CollectionPlan(pool=16)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """C0001 has items about its level, C0002 three more, ten others have four each, and the circuit
    knows that clean outcomes go with high levels."""
    with make(Path(tmp_path_factory.mktemp("next") / "space")) as space:
        for number in range(10):
            add(space, evidence(f"D{number:04d}", 4, start=number))
        outcome = evidence("C0001", 1, predicate="outcome", evidence_id="C0001_O")
        add(space, outcome)
        add(space, evidence("U0001", 1, credibility=0.6))  # undecided
        pairs = [("high", "clean")] * 30 + [("low", "qualified")] * 30 + [("medium", "clean")] * 10
        space.facts.add(
            NewFact(f"K{number:03d}", name, value, timestamp=days_ago(1))
            for number, pair in enumerate(pairs)
            for name, value in zip(("level", "outcome"), pair, strict=True)
        )
        space.learn_circuit()
        yield space


def bits(joint: np.ndarray) -> float:
    """Mutual information of a table, by its definition."""
    outer = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float(sum(p * np.log2(p / q) for p, q in zip(joint.flat, outer.flat, strict=True) if p))


def offer(workspace: Workspace, entity: str, kind: str, **changes: object) -> Offer:
    found = workspace.next_evidence(entity, "level", SMALL, QueryOptions(**changes))
    return next(one for one in found.offers if one.kind == kind)


@pytest.mark.parametrize("entity", ["C0001", "C0002", "U0001"])
def test_a_fact_is_exact(workspace: Workspace, entity: str) -> None:
    """Against the circuit's worlds, one by one, times what the items say."""
    plain = QueryOptions(related_evidence=False)
    parts = workspace.explain(entity, "level", plain, audit="off")
    said = 2.0 ** sum(item.added for item in parts.items)
    circuit = workspace.background.circuit
    joint = np.array(
        [
            [joint_probability(circuit, {"level": y, "outcome": r}) * said[place] for r in OUTCOMES]
            for place, y in enumerate(LEVELS)
        ]
    )
    joint /= joint.sum()
    now = joint.sum(axis=1)
    found = offer(workspace, entity, "fact:outcome", related_evidence=False)
    assert found.bits == pytest.approx(bits(joint), abs=1e-6)
    assert found.confidence == pytest.approx(joint.max(axis=0).sum(), abs=1e-6)
    changed = [r for r in range(2) if joint[:, r].argmax() != now.argmax()]
    assert found.changes == pytest.approx(joint[:, changed].sum(), abs=1e-6)
    assert found.stored is None


def test_a_fact_counts_with_evidence_about_it(workspace: Workspace) -> None:
    """The chance of its values is the answer about it, and each leads to what a fact would."""
    chances = np.array(workspace.query("C0001", "outcome", audit="off").probabilities)
    after = np.array(
        [
            workspace.what_if("C0001", "level", Changes(facts={"outcome": value})).probabilities
            for value in OUTCOMES
        ]
    )
    found = offer(workspace, "C0001", "fact:outcome")
    assert found.bits == pytest.approx(bits(chances[:, None] * after), abs=1e-5)


@pytest.mark.parametrize(
    "options",
    [QueryOptions(), QueryOptions.paper(), QueryOptions(variant="learned")],
    ids=["robust", "paper", "learned"],
)
@pytest.mark.parametrize("entity", ["C0001", "U0001", "D0001"])
def test_gains_are_at_most_the_doubt(
    workspace: Workspace, entity: str, options: QueryOptions
) -> None:
    found = workspace.next_evidence(entity, "level", SMALL, options)
    asked = workspace.query(entity, "level", options, audit="off")
    np.testing.assert_allclose(found.probabilities, asked.probabilities, atol=1e-5)
    kinds = {one.kind for one in found.offers}
    assert {"any", "source:source 0", "source:source 1", "source:source 2"} <= kinds
    assert ("fact:outcome" in kinds) == (options.variant == "spn")
    for one in found.offers:
        assert 0.0 <= one.bits <= found.doubt + 1e-9
        assert 0.0 <= one.changes <= 1.0
        # Nobody can expect to become less sure.
        assert one.confidence >= found.confidence - 1e-6


def test_the_best_comes_first_and_nothing_is_recorded(workspace: Workspace) -> None:
    before = workspace.records.size
    found = workspace.next_evidence("U0001", "level", SMALL)
    gains = [one.bits for one in found.offers]
    assert gains == sorted(gains, reverse=True)
    assert found.steps[0].offer == found.offers[0]
    again = workspace.next_evidence("U0001", "level", SMALL)
    assert again.to_dict() == found.to_dict()
    assert workspace.records.size == before


def test_items_that_do_not_count_tell_nothing(workspace: Workspace) -> None:
    """Below the minimum credibility no item would be used."""
    found = workspace.next_evidence("U0001", "level", SMALL, QueryOptions(min_credibility=0.99))
    items = [one for one in found.offers if one.stored is not None]
    assert items
    assert all(one.bits < 1e-12 and one.changes == 0.0 for one in items)


def test_of_very_many_items_some_are_looked_at(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Always the same ones, from all over the store, and the output says so."""
    monkeypatch.setattr("lpf.explain.stored_pool.MOST_ROWS", 20)
    found = workspace.next_evidence("U0001", "level", SMALL)
    every = next(one for one in found.offers if one.kind == "any")
    assert (every.stored, every.drawn) == (20, 16)
    assert any("20 items" in reason for reason in found.left_out)
    assert workspace.next_evidence("U0001", "level", SMALL).to_dict() == found.to_dict()
    pool = stored_pool(workspace.index.source, "U0001", "level", 20, 0)
    numbers = {name.split("_")[0] for name in pool.items.ids}
    assert len(numbers) > 6  # of ten entities


def test_costs_change_the_order(workspace: Workspace) -> None:
    plain = workspace.next_evidence("U0001", "level", SMALL)
    best, worst = plain.offers[0], plain.offers[-1]
    cost = 10.0 * best.bits / worst.bits
    costs = {best.kind: cost}
    found = workspace.next_evidence("U0001", "level", CollectionPlan(costs=costs, pool=16))
    assert found.offers[-1].kind == best.kind
    assert found.offers[-1].bits_per_cost == pytest.approx(best.bits / cost)
    assert found.steps[0].offer.kind != best.kind
    assert len(next_sentences(found)) == 2  # another one would remove more


def test_steps_add_up(workspace: Workspace) -> None:
    plan = CollectionPlan(steps=3, least=0.0, pool=16, costs={"any": 2.0})
    found = workspace.next_evidence("U0001", "level", plan)
    assert len(found.steps) == 3
    assert found.steps[-1].bits == pytest.approx(sum(one.offer.bits for one in found.steps))
    assert found.steps[-1].cost == sum(one.offer.cost for one in found.steps)
    assert found.steps[-1].bits <= found.doubt + 0.05  # steps are averaged over samples
    kinds = [one.offer.kind for one in found.steps]
    assert kinds.count("fact:outcome") <= 1
    first = workspace.next_evidence("U0001", "level", CollectionPlan(least=0.0, pool=16))
    assert first.offers[0].bits >= found.steps[0].offer.bits


def test_a_fact_that_was_taken_changes_what_comes_after(workspace: Workspace) -> None:
    dear = dict.fromkeys(("any", *(f"source:source {number}" for number in range(3))), 1e6)
    plan = CollectionPlan(steps=2, least=0.0, pool=16, costs=dear)
    found = workspace.next_evidence("U0001", "level", plan)
    assert found.steps[0].offer.kind == "fact:outcome"
    assert found.steps[1].offer.kind != "fact:outcome"
    doubts = [
        workspace.what_if("U0001", "level", Changes(facts={"outcome": value})).probabilities
        for value in OUTCOMES
    ]
    most = max(float(-(row * np.log2(row)).sum()) for row in doubts)
    assert found.steps[1].offer.bits <= most


@pytest.mark.parametrize("value", OUTCOMES)
def test_a_path_with_a_fact_has_the_answer_with_that_fact(workspace: Workspace, value: str) -> None:
    for entity in ("C0001", "U0001"):
        result = workspace.orchestrator.suppose(entity, "level")
        future = Future(result, workspace.engine, workspace.background, None)
        now = future.now(SupposedPath((), {"outcome": value}))
        supposed = workspace.what_if(entity, "level", Changes(facts={"outcome": value}))
        np.testing.assert_allclose(now, supposed.probabilities, atol=1e-6)


def test_enough_is_enough(workspace: Workspace) -> None:
    found = workspace.next_evidence("U0001", "level", CollectionPlan(pool=16, enough=0.01))
    assert found.is_enough
    assert found.steps == ()
    assert found.offers
    first = found.offers[0].confidence
    plan = CollectionPlan(pool=16, steps=4, enough=(found.confidence + first) / 2.0)
    planned = workspace.next_evidence("U0001", "level", plan)
    assert len(planned.steps) == 1
    assert not planned.is_enough


def test_what_tells_little_is_not_worth_collecting(workspace: Workspace) -> None:
    found = workspace.next_evidence("U0001", "level", CollectionPlan(pool=16, least=2.0))
    assert found.steps == ()
    assert "Nothing on offer" in next_sentences(found)[0]


def test_a_known_fact_is_not_on_offer(workspace: Workspace) -> None:
    workspace.facts.add([NewFact("D0009", "outcome", "clean", timestamp=days_ago(1))])
    found = workspace.next_evidence("D0009", "level", SMALL)
    assert "fact:outcome" not in [one.kind for one in found.offers]
    assert any("fact:outcome" in reason for reason in found.left_out)
    with pytest.raises(ConfigError, match="known fact") as error:
        workspace.next_evidence("D0009", "outcome")
    assert error.value.field == "entity_id"


def test_what_cannot_be_asked_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="nothing is stored"):
        workspace.next_evidence("nobody", "level")
    with pytest.raises(UnknownPredicateError):
        workspace.next_evidence("C0001", "colour")
    with pytest.raises(ConfigError, match="not on offer") as error:
        workspace.next_evidence("U0001", "level", CollectionPlan(costs={"source:moon": 1.0}))
    assert error.value.field == "costs"


@pytest.mark.parametrize(
    "wrong",
    [
        *({"steps": 0}, {"steps": 11}, {"enough": 1.0}, {"enough": 0.0}, {"least": -1.0}),
        *({"least": float("nan")}, {"pool": 2}, {"seed": -1}, {"costs": {"any": 0.0}}),
        *({"costs": {"any": float("inf")}}, {"costs": {"any": float("nan")}}),
    ],
)
def test_a_plan_is_checked(wrong: dict) -> None:
    with pytest.raises(ConfigError) as error:
        CollectionPlan(**wrong)
    assert error.value.field == next(iter(wrong))


def test_without_other_entities_there_is_nothing_to_compare(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "alone", workspaces.schema()) as space:
        add(space, evidence("C0001"))
        workspaces.give_model(space)
        with pytest.raises(ConfigError, match="other entities") as error:
            space.next_evidence("C0001", "level")
        assert error.value.hint
