"""Algorithm 5 on a real workspace: which source answers when, and the notes on it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import workspaces
from lpf.circuits import Variable, compile_circuit, prior_circuit
from lpf.errors import EvidenceError, UnknownPredicateError, UnknownValueError, WorkspaceError
from lpf.items import LeftOut
from lpf.ledger import verify
from lpf.results import STAGES, QueryResult
from lpf.schema import Schema
from lpf.storage.facts import NewFact
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from workspaces import NOW, add, days_ago, evidence, give_model

WAYS = {
    "robust": QueryOptions(),
    "sampled": QueryOptions(sampler="orthogonal", n_samples=8, seed=3),
    "moments": QueryOptions(sampler="moments"),
    "paper": QueryOptions.paper(),
    "learned": QueryOptions(variant="learned"),
    "paper learned": QueryOptions(variant="learned", mode="paper"),
}


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with workspaces.make(tmp_path / "here", store_url) as made:
        yield made


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Workspace]:
    with workspaces.make(tmp_path / "here") as made:
        yield made


def fact(value: str, days: float, confidence: float = 1.0, **changes: str) -> NewFact:
    named = {"entity_id": "C0001", "predicate": "level", **changes}
    return NewFact(
        named["entity_id"], named["predicate"], value, days_ago(days), confidence, source="audit"
    )


def test_evidence_is_answered_from_and_recorded(workspace: Workspace) -> None:
    result = workspace.query("C0001", "level")
    assert (result.source, result.method) == ("inference", "spn")
    assert sum(result.probabilities) == pytest.approx(1.0)
    assert result.confidence == max(result.probabilities) == result.distribution[result.top_value]
    assert len(result.evidence_chain) == 5
    assert (result.audit, result.audit_ptr) == ("recorded", "INF00000001")
    assert set(result.stages) == set(STAGES)
    assert sum(result.stages.values()) <= result.execution_time_ms
    record = workspace.records.expand(workspace.records.get("INF00000001"))
    assert record["distribution"] == result.distribution
    assert [name for name, _ in record["evidence_chain"]] == list(result.evidence_chain)
    assert record["context"]["versions"]["model"] == workspace.models.active()


def test_parts_add_up_to_the_answer(embedded: Workspace) -> None:
    result = embedded.query("C0001", "level")
    assert result.evidence is not None
    assert result.base is not None
    scores = result.base + result.evidence.contributions.sum(axis=0)
    weights = np.exp(scores - scores.max())
    np.testing.assert_allclose(weights / weights.sum(), result.probabilities, atol=1e-12)


def test_a_fresh_confident_fact_answers_at_once_and_is_recorded(workspace: Workspace) -> None:
    workspace.facts.add([fact("high", days=2, confidence=0.97)])
    result = workspace.query("C0001", "level")
    assert (result.source, result.top_value, result.confidence) == ("canonical", "high", 0.97)
    assert result.distribution["low"] == pytest.approx(0.015)
    assert result.evidence_chain == ()
    record = workspace.records.get(result.audit_ptr or "").fields
    assert (record["query_type"], record["facts"][0]["value"]) == ("canonical", "high")


@pytest.mark.parametrize(("days", "confidence"), [(31, 0.99), (1, 0.94)])
def test_a_stale_or_doubtful_fact_is_soft_evidence(
    embedded: Workspace, days: float, confidence: float
) -> None:
    before = embedded.query("C0001", "level")
    embedded.facts.add([fact("medium", days, confidence)])
    after = embedded.query("C0001", "level")
    assert after.source == "inference"
    assert [used.role for used in after.facts] == ["soft"]
    assert after.distribution["medium"] > before.distribution["medium"]


def test_paper_mode_leaves_a_stale_fact_of_the_predicate_itself_alone(embedded: Workspace) -> None:
    before = embedded.query("C0001", "level", QueryOptions.paper())
    embedded.facts.add([fact("medium", days=60)])
    assert embedded.query("C0001", "level", QueryOptions.paper()).probabilities == pytest.approx(
        before.probabilities
    )


def test_time_is_an_argument(embedded: Workspace) -> None:
    embedded.facts.add([fact("low", days=100), fact("high", days=2)])
    then = replace(QueryOptions(), as_of=days_ago(90))
    assert embedded.query("C0001", "level").top_value == "high"
    past = embedded.query("C0001", "level", then)
    assert (past.source, past.top_value) == ("canonical", "low")
    long_ago = replace(QueryOptions(), as_of=days_ago(1000))
    assert embedded.query("C0001", "level", long_ago).source == "none"


def test_a_correction_supersedes(embedded: Workspace) -> None:
    (wrong,) = embedded.facts.add([fact("low", days=2)])
    embedded.facts.correct(wrong.fact_id, value="high")
    assert embedded.query("C0001", "level").top_value == "high"
    past = replace(QueryOptions(), as_of=days_ago(1))
    assert embedded.query("C0001", "level", past).top_value == "high"


def related(workspace: Workspace) -> None:
    """Teaches the circuit that clean outcomes go with high levels."""
    pairs = [("high", "clean")] * 30 + [("low", "qualified")] * 30 + [("medium", "clean")] * 10
    facts = [
        fact(value, days=400, entity_id=f"K{number:03d}", predicate=predicate)
        for number, pair in enumerate(pairs)
        for predicate, value in zip(("level", "outcome"), pair, strict=True)
    ]
    workspace.facts.add(facts)
    assert workspace.learn_circuit().entities == 70


def test_known_facts_about_related_predicates_count(workspace: Workspace) -> None:
    related(workspace)
    nothing = workspace.query("C0001", "level")
    workspace.facts.add([fact("qualified", days=1, predicate="outcome")])
    certain = workspace.query("C0001", "level")
    assert [used.role for used in certain.facts] == ["hard"]
    assert certain.distribution["low"] > nothing.distribution["low"]
    alone = workspace.query("C0404", "level")
    assert alone.source == "none"
    workspace.facts.add([fact("qualified", days=1, entity_id="C0404", predicate="outcome")])
    facts_only = workspace.query("C0404", "level")
    assert (facts_only.source, facts_only.top_value) == ("facts", "low")
    assert "known facts alone" in facts_only.notes[0]


def test_an_old_fact_counts_less_the_older_it_is(embedded: Workspace) -> None:
    related(embedded)
    for number, days in enumerate((1, 45, 400)):
        embedded.facts.add([fact("qualified", days, entity_id=f"Z{number}", predicate="outcome")])
    low = [embedded.query(f"Z{n}", "level").distribution["low"] for n in range(3)]
    assert low[0] > low[1] > low[2]


def said_of_facts(result: QueryResult) -> list[str]:
    return [note for note in result.notes if note.startswith("the fact '")]


@pytest.mark.parametrize("way", ["robust", "paper"])
@pytest.mark.parametrize("entity", ["C0001", "C0404"])  # with and without evidence
def test_a_stale_fact_about_a_related_predicate_is_noted(
    embedded: Workspace, way: str, entity: str
) -> None:
    related(embedded)
    embedded.facts.add([fact("qualified", 45, 0.95, entity_id=entity, predicate="outcome")])
    result = embedded.query(entity, "level", WAYS[way])
    (note,) = said_of_facts(result)
    for part in ("'outcome = qualified'", f"{days_ago(45):%Y-%m-%d}", "30 days", "instead of 95 %"):
        assert part in note
    assert f"{100 * result.facts[0].strength:.3g} %" in note
    record = embedded.records.get(result.audit_ptr or "").fields
    assert note in record["notes"]


@pytest.mark.parametrize("days", [60, 4000])
@pytest.mark.parametrize("way", ["robust", "paper", "learned"])
@pytest.mark.parametrize("entity", ["C0001", "C0404"])
def test_a_stale_fact_of_the_predicate_itself_is_noted_in_every_mode(
    embedded: Workspace, way: str, entity: str, days: float
) -> None:
    embedded.facts.add([fact("medium", days, entity_id=entity)])
    result = embedded.query(entity, "level", WAYS[way])
    is_used = way != "paper" and days < 1000
    if is_used and way == "learned" and entity == "C0001":
        assert "known facts were not used" in " ".join(result.notes)
        return
    (note,) = said_of_facts(result)
    assert "'level = medium'" in note
    assert ("counts with" in note) is is_used
    assert len(result.facts) == is_used
    if entity == "C0404" and not is_used:  # nothing counts, so there is no answer
        assert (result.source, result.top_value) == ("none", None)


def test_a_doubtful_fact_that_paper_mode_cannot_use_is_noted(embedded: Workspace) -> None:
    embedded.facts.add([fact("medium", days=1, confidence=0.9)])
    (note,) = said_of_facts(embedded.query("C0001", "level", QueryOptions.paper()))
    assert "90 %" in note
    assert said_of_facts(embedded.query("C0001", "level")) == []  # it takes part, and is shown


def test_a_fact_whose_predicate_the_circuit_lacks_is_noted(embedded: Workspace) -> None:
    uncovered(embedded)
    embedded.facts.add([fact("medium", days=60)])
    (note,) = said_of_facts(embedded.query("C0001", "level"))
    assert "circuit" in note


def test_nothing_known_gives_the_prior_and_says_so(workspace: Workspace) -> None:
    result = workspace.query("C9999", "level")
    assert (result.source, result.method) == ("none", "prior")
    np.testing.assert_allclose(result.probabilities, 1 / 3)
    assert "prior" in result.notes[0]
    assert (result.top_value, result.confidence, result.has_answer) == (None, None, False)
    fields = workspace.records.get(result.audit_ptr or "").fields
    assert fields["query_type"] == "none"
    assert (fields["top_value"], fields["confidence"]) == (None, None)
    assert workspace.replay(result.audit_ptr or "").exact
    assert verify(workspace.database).ok


def test_evidence_below_the_minimum_is_left_out_and_counted(embedded: Workspace) -> None:
    options = replace(QueryOptions(), min_credibility=0.99)
    result = embedded.query("C0001", "level", options)
    assert result.source == "none"
    assert result.notes[1] == "5 items, none of which counts: 5 below credibility 0.99"
    assert result.left_out == LeftOut(below_credibility=5)


def test_the_threshold_of_the_model_applies_unless_one_is_given(embedded: Workspace) -> None:
    """Items of C0001 have credibility 0.95, 0.9, ... 0.75."""
    add(embedded, evidence("C0080", 1, credibility=0.3))
    old = embedded.query("C0080", "level")
    assert (old.source, old.threshold, old.options.min_credibility) == ("none", "default", 0.5)
    give_model(embedded, min_credibility={"level": 0.0})
    new = embedded.query("C0080", "level")
    assert (new.source, new.threshold, new.options.min_credibility) == ("inference", "model", 0.0)
    given = embedded.query("C0080", "level", QueryOptions(min_credibility=0.5))
    assert (given.source, given.threshold) == ("none", "given")
    paper = embedded.query("C0080", "level", QueryOptions.paper())
    assert (paper.source, paper.options.min_credibility) == ("none", 0.5)


def test_the_number_of_the_threshold_is_in_answer_and_record(embedded: Workspace) -> None:
    give_model(embedded, min_credibility={"level": 0.78})
    for result in (
        embedded.query("C0001", "level"),
        *embedded.query_many([("C0001", "level")]),
        embedded.query("C0001", "level", QueryOptions(query_text="late")),
    ):
        assert result.left_out == LeftOut(below_credibility=1)
        assert "the model's threshold" in result.left_out.reasons(result.options, result.threshold)
        document = result.to_dict()
        assert (document["min_credibility"], document["min_credibility_from"]) == (0.78, "model")
        record = embedded.records.expand(embedded.records.get(result.audit_ptr or ""))
        assert record["context"]["hyperparameters"]["min_credibility"] == 0.78
        assert embedded.replay(result.audit_ptr or "").exact
    learned = embedded.query("C0001", "level", QueryOptions(variant="learned"))
    assert learned.left_out == LeftOut()


def test_items_left_out_are_counted_by_reason(embedded: Workspace) -> None:
    add(embedded, evidence("C0081", 1, timestamp=NOW + timedelta(days=30)))
    items = [replace(one, evidence_id=f"{one.evidence_id}x") for one in evidence("C0081", 5)]
    add(embedded, items)  # of credibility 0.95, 0.9, ... 0.75
    options = QueryOptions(min_credibility=0.78, top_k=3)
    for result in (
        embedded.query("C0081", "level", options),
        *embedded.query_many([("C0081", "level")], options),
    ):
        assert result.left_out == LeftOut(later_than_as_of=1, below_credibility=1, beyond_top_k=1)
        document = result.to_dict()
        assert document["left_out"] == {
            "later_than_as_of": 1,
            "below_credibility": 1,
            "beyond_top_k": 1,
            "damaged": 0,
        }
        assert (document["min_credibility"], document["top_k"]) == (0.78, 3)
        assert "left_out" not in embedded.records.get(result.audit_ptr or "").fields


def test_a_fact_that_answers_at_once_leaves_nothing_out(embedded: Workspace) -> None:
    assert embedded.query("C9999", "level").left_out == LeftOut()
    embedded.facts.add([fact("low", days=1)])
    result = embedded.query("C0001", "level", QueryOptions(min_credibility=0.99))
    assert (result.source, result.left_out) == ("canonical", None)
    assert result.to_dict()["left_out"] is None


def test_probabilities_fitted_on_few_entities_have_a_warning(embedded: Workspace) -> None:
    give_model(embedded, calibrated_on={"level": 25})
    (note,) = embedded.query("C0001", "level").notes
    assert note == (
        "probabilities were fitted on 25 entities only: take them as rough, they can be off by 20 "
        "points and more"
    )
    give_model(embedded, calibrated_on={"level": 40})
    assert embedded.query("C0001", "level").notes == ()


def uncovered(workspace: Workspace) -> None:
    """A circuit over the other predicate alone."""
    other = workspace.schema["outcome"]
    circuit = prior_circuit([Variable(other.name, other.values)], {other.name: other.prior})
    workspace.__dict__["background"] = type(workspace.background)(
        Schema(workspace.schema.predicates), compile_circuit(circuit)
    )
    for name in ("engine", "orchestrator"):
        workspace.__dict__.pop(name, None)


def test_the_fallback_learned_has_no_threshold(embedded: Workspace) -> None:
    """The model's threshold was chosen for the circuit; the learned weights take all items."""
    give_model(embedded, min_credibility={"level": 0.99})
    uncovered(embedded)
    fallback = embedded.query("C0001", "level", QueryOptions(fallback="learned"))
    learned = embedded.query("C0001", "level", QueryOptions(variant="learned"))
    assert (fallback.options.min_credibility, learned.options.min_credibility) == (0.0, 0.0)
    assert fallback.probabilities == learned.probabilities
    (many,) = embedded.query_many([("C0001", "level")], QueryOptions(fallback="learned"))
    assert many.evidence_chain == learned.evidence_chain
    averaged = embedded.query("C0001", "level", QueryOptions(fallback="average"))
    assert averaged.options.min_credibility == 0.99
    assert embedded.replay(fallback.audit_ptr or "").exact


@pytest.mark.parametrize("fallback", ["average", "learned"])
def test_a_predicate_outside_the_circuit_is_averaged_and_noted(
    embedded: Workspace, fallback: str
) -> None:
    uncovered(embedded)
    options = QueryOptions(fallback=fallback)  # type: ignore[arg-type]
    result = embedded.query("C0001", "level", options)
    assert result.method == fallback
    assert "does not cover" in result.notes[-1]
    assert embedded.replay(result.audit_ptr or "").exact


def test_the_learned_variant_notes_that_facts_are_ignored(embedded: Workspace) -> None:
    related(embedded)
    embedded.facts.add([fact("qualified", days=1, predicate="outcome")])
    result = embedded.query("C0001", "level", QueryOptions(variant="learned"))
    assert result.facts == ()
    assert "known facts were not used" in result.notes[0]


@pytest.mark.parametrize("way", WAYS)
def test_many_questions_get_the_answers_of_one_by_one(workspace: Workspace, way: str) -> None:
    add(workspace, [*evidence("C0003", 1, 2), *evidence("C0004", 7, 1)])
    workspace.facts.add([fact("high", days=1, entity_id="C0005")])
    entities = ["C0001", "C0002", "C0005", "C0003", "C0009", "C0004", "C0001"]
    questions = [(entity, "level") for entity in entities] + [("C0001", "outcome")]
    options = replace(WAYS[way], as_of=NOW)
    together = workspace.query_many(questions, options)
    assert [result.audit_ptr for result in together] == [f"INF{n:08d}" for n in range(1, 9)]
    for (entity, predicate), many in zip(questions, together, strict=True):
        one = workspace.query(entity, predicate, options)
        np.testing.assert_allclose(one.probabilities, many.probabilities, atol=1e-5)
        assert comparable(one) == comparable(many)
        assert workspace.replay(many.audit_ptr or "").exact, many.audit_ptr


def comparable(result: QueryResult) -> tuple[object, ...]:
    return result.source, result.method, result.top_value, result.evidence_chain, result.notes


def test_cached_factors_change_nothing(embedded: Workspace) -> None:
    first = embedded.query("C0001", "level")
    before = embedded.cache.stats().hits
    add(embedded, evidence("C0003", 1))  # so that the outcome itself is forgotten
    again = embedded.query("C0001", "level")
    assert embedded.cache.stats().hits == before + 5
    np.testing.assert_allclose(first.probabilities, again.probabilities, atol=1e-12)


def test_an_answer_can_be_returned_before_its_record(workspace: Workspace) -> None:
    result = workspace.query("C0001", "level", audit="async")
    assert (result.audit, result.audit_ptr) == ("pending", None)
    workspace.ledger.flush()
    assert workspace.records.size == 1
    fields = workspace.records.get("INF00000001").fields
    assert fields["distribution"] == result.distribution
    workspace.query("C0001", "level", audit="off")
    assert workspace.records.size == 1


def test_query_texts_are_stored_outside_the_record(embedded: Workspace) -> None:
    words = "late payments by Jane Roe"
    result = embedded.query("C0001", "level", QueryOptions(query_text=words))
    record = embedded.records.get(result.audit_ptr or "")
    assert b"Jane" not in record.body
    kept = embedded.records.query_text(bytes.fromhex(record.fields["query_text"]))
    assert kept is not None
    assert kept.text == words


def test_without_a_model_facts_answer_and_evidence_does_not(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "bare", workspaces.schema()) as bare:
        bare.__dict__["reader"] = workspaces.reader()
        add(bare, evidence("C0001", 2))
        assert bare.query("C0404", "level").source == "none"
        with pytest.raises(WorkspaceError, match=r"no model.*lpf models add"):
            bare.query("C0001", "level")
        assert bare.records.size == 1


def test_without_a_model_doubtful_facts_answer_too(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "bare", workspaces.schema()) as bare:
        bare.__dict__["reader"] = workspaces.reader()
        bare.facts.add([fact("high", days=1, confidence=0.6)])
        result = bare.query("C0001", "level")
        assert (result.source, result.top_value) == ("facts", "high")
        assert bare.replay(result.audit_ptr or "").exact
        assert bare.replay(result.audit_ptr or "", deep=True).exact


def test_a_fact_whose_value_the_schema_lost_is_no_answer(tmp_path: Path) -> None:
    with Workspace.create(tmp_path, workspaces.schema()) as before:
        before.facts.add([fact("medium", days=1)])
    path = tmp_path / "lpf.toml"
    path.write_text(path.read_text().replace('"medium"', '"middling"'))
    with Workspace.open(tmp_path) as after:
        after.__dict__["reader"] = workspaces.reader()
        with pytest.raises(UnknownValueError, match=r"fact 1 .*'medium'.*lpf facts correct 1"):
            after.query("C0001", "level")
        assert after.records.size == 0


def test_an_unknown_predicate_is_refused_by_name(embedded: Workspace) -> None:
    with pytest.raises(UnknownPredicateError, match="colour"):
        embedded.query("C0001", "colour")
    assert embedded.records.size == 0


def test_many_items_are_recorded_once_by_hash(embedded: Workspace) -> None:
    items = [
        replace(item, text_content=f"{item.text_content} ({number})")
        for number, item in enumerate(evidence("C0070", 19, credibility=0.9))
    ]
    add(embedded, items)
    result = embedded.query("C0070", "level", QueryOptions(top_k=19))
    assert set(embedded.records.get(result.audit_ptr or "").fields["factors"]) == {"blob"}
    assert embedded.replay(result.audit_ptr or "").exact


def test_uncertainty_on_request(embedded: Workspace) -> None:
    result = embedded.query("C0001", "level", QueryOptions(uncertainty_samples=32))
    assert result.uncertainty is not None
    assert result.uncertainty["epistemic"] >= 0
    assert result.conflict is not None
    assert 0 <= result.conflict <= 1


@pytest.mark.parametrize("entity_id", ["", "  ", 7, None])
def test_an_entity_needs_a_name(embedded: Workspace, entity_id: object) -> None:
    with pytest.raises(EvidenceError, match="entity_id"):
        embedded.query(entity_id, "level")  # type: ignore[arg-type]
    with pytest.raises(EvidenceError, match="entity_id"):
        embedded.query_many([("C0001", "level"), (entity_id, "level")])  # type: ignore[list-item]
    assert embedded.records.size == 0


def test_a_moment_in_the_future_of_the_evidence(embedded: Workspace) -> None:
    add(embedded, evidence("C0080", 1, timestamp=NOW + timedelta(days=30)))
    early = embedded.query("C0080", "level")
    assert (early.source, early.notes[1]) == (
        "none",
        "1 item, which does not count: 1 dated later than the question",
    )
    later = QueryOptions(as_of=NOW + timedelta(days=31))
    assert embedded.query("C0080", "level", later).source == "inference"


def test_threads_ask_at_once(workspace: Workspace) -> None:
    """Same answers as alone, a record each, and no gap among them."""
    options = replace(QueryOptions(sampler="orthogonal", n_samples=8), as_of=NOW)
    entities = ["C0001", "C0002", "C0404"]
    alone = {one: workspace.query(one, "level", options).probabilities for one in entities}
    with ThreadPoolExecutor(8) as pool:
        asked = [entities[number % 3] for number in range(48)]
        results = list(pool.map(lambda one: workspace.query(one, "level", options), asked))
    for result in results:
        np.testing.assert_allclose(result.probabilities, alone[result.entity_id], atol=1e-5)
    given = sorted(result.audit_ptr or "" for result in results)
    assert given == [f"INF{number:08d}" for number in range(4, 52)]
    assert all(workspace.replay(pointer).exact for pointer in given)


def test_without_top_k_robust_mode_uses_all_items_up_to_a_limit(
    embedded: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As scores of training do. Paper mode uses five."""
    workspaces.add(embedded, workspaces.evidence("C0090", 7, credibility=0.9))
    ways = (QueryOptions(), QueryOptions(mode="paper"), QueryOptions(top_k=6))
    for options, used, asked in zip(ways, (7, 5, 6), (100, 5, 6), strict=True):
        result = embedded.query("C0090", "level", options)
        assert (len(result.evidence_chain), result.to_dict()["top_k"]) == (used, asked)
        assert result.left_out == LeftOut(beyond_top_k=7 - used)
        assert any(f"{used} of 7 items" in note for note in result.notes) == (used == 5)
        record = embedded.records.expand(embedded.records.get(result.record_id or ""))
        assert record["context"]["hyperparameters"]["top_k"] == asked
        assert embedded.replay(result.record_id or "", deep=True).agrees
    monkeypatch.setattr("lpf.options.MOST_ITEMS", 6)
    assert len(embedded.query("C0090", "level").evidence_chain) == 6
