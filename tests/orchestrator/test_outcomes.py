"""A question asked again: worked out once, answered and recorded every time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import rfc8785

import workspaces
from lpf.circuits import Variable, compile_circuit, prior_circuit
from lpf.engine import Background
from lpf.ledger import verify
from lpf.orchestrator.recording import TIMES
from lpf.results import STAGES, QueryResult
from lpf.storage.cache import NoCache
from lpf.storage.facts import NewFact
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from workspaces import NOW, add, days_ago, evidence

WAYS = {
    "robust": QueryOptions(),
    "paper": QueryOptions.paper(),
    "learned": QueryOptions(variant="learned"),
    "with uncertainty": QueryOptions(uncertainty_samples=8),
    "at a moment": QueryOptions(as_of=NOW + timedelta(days=1)),
}


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with workspaces.make(tmp_path / "here", store_url) as made:
        yield made


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Workspace]:
    with workspaces.make(tmp_path / "here") as made:
        yield made


def is_kept(first: QueryResult, again: QueryResult) -> bool:
    assert first.evidence is not None
    assert again.evidence is not None
    return first.evidence.weight is again.evidence.weight


def record_of(workspace: Workspace, result: QueryResult) -> dict[str, object]:
    return workspace.records.get(result.audit_ptr or "").fields


@pytest.mark.parametrize("way", WAYS)
def test_the_same_answer_is_recorded_anew(workspace: Workspace, way: str) -> None:
    results = [workspace.query("C0001", "level", WAYS[way]) for _ in range(3)]
    first, *later = results
    assert all(is_kept(first, again) for again in later)
    assert len({result.audit_ptr for result in results}) == 3
    assert len({result.timestamp for result in results}) == 3
    for again in later:
        assert again.probabilities == first.probabilities
        assert (again.notes, again.uncertainty) == (first.notes, first.uncertainty)
        assert set(again.stages) == set(STAGES)
        assert workspace.replay(again.audit_ptr or "").exact


def test_its_record_differs_in_its_times_alone_and_verifies(workspace: Workspace) -> None:
    results = [workspace.query("C0001", "level") for _ in range(3)]
    records = [record_of(workspace, result) for result in results]
    for result, record in zip(results, records, strict=True):
        assert record["execution_time_ms"] <= result.execution_time_ms
        body = workspace.records.get(result.audit_ptr or "").body
        assert rfc8785.dumps(json.loads(body)) == body
    assert len({record["timestamp"] for record in records}) == 3
    same = [
        {name: value for name, value in record.items() if name not in (*TIMES, "record_id")}
        for record in records
    ]
    assert same[0] == same[1] == same[2]
    assert verify(workspace.database).ok


def test_many_questions_at_once_use_and_leave_outcomes_too(embedded: Workspace) -> None:
    asked = [("C0001", "level"), ("C0002", "level")]
    first = embedded.query_many(asked)
    again = embedded.query_many([*asked, *asked])
    assert [result.audit_ptr for result in again] == [f"INF{n:08d}" for n in range(3, 7)]
    assert all(is_kept(*pair) for pair in zip(first + first, again, strict=True))
    assert is_kept(first[0], embedded.query("C0001", "level"))


def test_what_the_caller_changes_stays_with_the_caller(embedded: Workspace) -> None:
    first = embedded.query("C0001", "level")
    expected = list(first.probabilities)
    first.probabilities[0] = 7.0  # type: ignore[index]
    first.stages.clear()
    assert first.evidence is not None
    assert first.evidence.potential is not None
    with pytest.raises(ValueError, match="read-only"):
        first.evidence.potential[0] = 0.0
    assert embedded.query("C0001", "level").probabilities == expected


def test_new_evidence_counts_at_once(workspace: Workspace) -> None:
    first = workspace.query("C0001", "level")
    with Workspace.open(workspace.folder) as another:
        add(another, evidence("C0001", 6)[5:])
    again = workspace.query("C0001", "level", QueryOptions(top_k=6))
    assert again.evidence_chain == (*first.evidence_chain, "C0001_E006")
    assert not is_kept(first, workspace.query("C0001", "level"))


def test_what_another_process_erased_is_gone(workspace: Workspace) -> None:
    first = workspace.query("C0001", "level")
    with Workspace.open(workspace.folder) as another:
        another.erase("C0001_E001")
    again = workspace.query("C0001", "level")
    assert again.evidence_chain == first.evidence_chain[1:]
    assert workspace.replay(first.audit_ptr or "").exact


def test_a_fact_counts_at_once_and_until_it_is_withdrawn(workspace: Workspace) -> None:
    first = workspace.query("C0001", "level")
    (fact,) = workspace.facts.add([NewFact("C0001", "level", "high", days_ago(60), 0.9)])
    with_fact = workspace.query("C0001", "level")
    assert with_fact.facts[0].fact_id == fact.fact_id
    assert with_fact.probabilities != first.probabilities
    workspace.facts.withdraw(fact.fact_id)
    again = workspace.query("C0001", "level")
    assert (again.facts, is_kept(first, again)) == ((), True)


def test_other_options_and_another_model_are_worked_out(embedded: Workspace) -> None:
    first = embedded.query("C0001", "level")
    assert not is_kept(first, embedded.query("C0001", "level", QueryOptions(temperature=2.0)))
    workspaces.give_model(embedded, members=3)
    again = embedded.query("C0001", "level")
    assert not is_kept(first, again)
    version = embedded.records.expand(embedded.records.get(again.audit_ptr or ""))["context"]
    assert version["versions"]["model"] == embedded.models.active()


def test_a_fallback_is_told_apart_from_what_was_asked_for(embedded: Workspace) -> None:
    """Both answer the learned way; only one says that it had to."""
    variables = [Variable("outcome", ("clean", "qualified"))]
    circuit = compile_circuit(prior_circuit(variables, {"outcome": (0.5, 0.5)}))
    embedded.__dict__["background"] = Background(embedded.schema, circuit)
    asked = [
        QueryOptions(variant="spn", fallback="learned"),
        QueryOptions(variant="learned", fallback="learned"),
    ]
    for _ in range(2):
        fallen, learned = (embedded.query("C0001", "level", each) for each in asked)
        assert fallen.method == learned.method == "learned"
        assert any("does not cover" in note for note in fallen.notes)
        assert learned.notes == ()
        assert record_of(embedded, fallen)["context"] != record_of(embedded, learned)["context"]


def test_words_are_recorded_and_never_kept(embedded: Workspace) -> None:
    asked = QueryOptions(query_text="late payments")
    first, again = (embedded.query("C0001", "level", asked) for _ in range(2))
    assert not is_kept(first, again)
    names = [record_of(embedded, result)["query_text"] for result in (first, again)]
    assert len(set(names)) == 2


def test_without_a_cache_every_number_is_computed_anew(embedded: Workspace) -> None:
    embedded.__dict__["cache"] = NoCache()
    first, again = (embedded.query("C0001", "level") for _ in range(2))
    assert not is_kept(first, again)
    np.testing.assert_array_equal(first.probabilities, again.probabilities)


def test_an_answer_ahead_of_its_record_is_kept_as_well(embedded: Workspace) -> None:
    first = embedded.query("C0001", "level")
    again = embedded.query("C0001", "level", audit="async")
    embedded.ledger.flush()
    assert is_kept(first, again)
    fields = embedded.records.get("INF00000002").fields
    assert fields["distribution"] == again.distribution


def spoil(result: QueryResult) -> None:
    """All that a caller can do to an answer in its hands."""
    if isinstance(result.probabilities, list):
        result.probabilities[0] = 0.123
    result.notes = ("spoilt",)
    result.execution_time_ms = -1.0
    if result.uncertainty is not None:
        result.uncertainty["aleatoric"] = 9.0  # type: ignore[index]
    if result.base is not None:
        with pytest.raises(ValueError, match="read-only"):
            result.base[0] = 0.0


@pytest.mark.parametrize("entity", ["C0001", "C0404", "known"])
@pytest.mark.parametrize("together", [False, True])
def test_what_the_caller_changes_is_not_recorded(
    embedded: Workspace, entity: str, together: bool
) -> None:
    """Of evidence, of nothing, and of a fact; the first record of each is made a moment later."""
    embedded.facts.add([NewFact("known", "level", "high", days_ago(1))])
    asked = QueryOptions(uncertainty_samples=8)
    if together:
        (result,) = embedded.query_many([(entity, "level")], asked, audit="async")
    else:
        result = embedded.query(entity, "level", asked, audit="async")
    expected, notes = result.distribution, list(result.notes)
    spoil(result)
    embedded.ledger.flush()
    embedded.query(entity, "level", asked)
    for name in ("INF00000001", "INF00000002"):
        fields = embedded.records.get(name).fields
        assert fields["distribution"] == expected
        assert fields.get("notes", []) == notes
        assert fields["execution_time_ms"] >= 0.0
        assert fields.get("uncertainty", {}).get("aleatoric") != 9.0
        assert embedded.replay(name).exact
