"""Repeated questions are answered and recorded each time, from the current store."""

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


TIMES = ("as_of", "execution_time_ms", "timestamp")


def record_of(workspace: Workspace, result: QueryResult) -> dict[str, object]:
    return workspace.records.get(result.audit_ptr or "").fields


@pytest.mark.parametrize("way", WAYS)
def test_the_same_answer_is_recorded_each_time(workspace: Workspace, way: str) -> None:
    results = [workspace.query("C0001", "level", WAYS[way]) for _ in range(3)]
    first, *later = results
    assert len({result.audit_ptr for result in results}) == 3
    assert len({result.timestamp for result in results}) == 3
    for again in later:
        assert again.probabilities == first.probabilities
        assert (again.notes, again.uncertainty) == (first.notes, first.uncertainty)
        assert set(again.stages) == set(STAGES)
        assert workspace.replay(again.audit_ptr or "").exact


def test_repeated_records_differ_only_in_times_and_verify(workspace: Workspace) -> None:
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


def test_a_batch_gives_the_same_answers_and_consecutive_records(embedded: Workspace) -> None:
    asked = [("C0001", "level"), ("C0002", "level")]
    first = embedded.query_many(asked)
    again = embedded.query_many([*asked, *asked])
    assert [result.audit_ptr for result in again] == [f"INF{n:08d}" for n in range(3, 7)]
    for one, other in zip(first + first, again, strict=True):
        np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-5)
        assert one.evidence_chain == other.evidence_chain


def test_changing_a_result_does_not_change_later_answers(embedded: Workspace) -> None:
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


def test_items_erased_by_another_process_are_not_used(workspace: Workspace) -> None:
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
    assert (again.facts, again.probabilities) == ((), first.probabilities)


def test_other_options_and_another_model_count_at_once(embedded: Workspace) -> None:
    first = embedded.query("C0001", "level")
    warmer = embedded.query("C0001", "level", QueryOptions(temperature=2.0))
    assert warmer.probabilities != first.probabilities
    workspaces.give_model(embedded, members=3)
    again = embedded.query("C0001", "level")
    assert again.probabilities != first.probabilities
    version = embedded.records.expand(embedded.records.get(again.audit_ptr or ""))["context"]
    assert version["versions"]["model"] == embedded.models.active()


def test_a_fallback_is_noted(embedded: Workspace) -> None:
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


def test_a_query_text_is_recorded_under_a_new_salt_each_time(embedded: Workspace) -> None:
    asked = QueryOptions(query_text="late payments")
    first, again = (embedded.query("C0001", "level", asked) for _ in range(2))
    names = [record_of(embedded, result)["query_text"] for result in (first, again)]
    assert len(set(names)) == 2


def test_without_a_cache_the_answer_is_the_same(embedded: Workspace) -> None:
    embedded.__dict__["cache"] = NoCache()
    first, again = (embedded.query("C0001", "level") for _ in range(2))
    np.testing.assert_array_equal(first.probabilities, again.probabilities)


def test_an_answer_ahead_of_its_record_is_recorded_as_given(embedded: Workspace) -> None:
    again = embedded.query("C0001", "level", audit="async")
    embedded.ledger.flush()
    fields = embedded.records.get("INF00000001").fields
    assert fields["distribution"] == again.distribution


def change(result: QueryResult) -> None:
    """All that a caller can do to an answer in its hands."""
    if isinstance(result.probabilities, list):
        result.probabilities[0] = 0.123
    result.notes = ("changed",)
    result.execution_time_ms = -1.0
    if result.uncertainty is not None:
        result.uncertainty["aleatoric"] = 9.0  # type: ignore[index]
    if result.evidence is not None:
        result.evidence.potential = result.evidence.contributions
    if result.base is not None:
        with pytest.raises(ValueError, match="read-only"):
            result.base[0] = 0.0


@pytest.mark.parametrize("entity", ["C0001", "C0404", "known"])
@pytest.mark.parametrize("together", [False, True])
def test_changes_by_the_caller_are_not_recorded(
    embedded: Workspace, entity: str, together: bool
) -> None:
    """From evidence, from nothing and from a fact; each first record is written later."""
    embedded.facts.add([NewFact("known", "level", "high", days_ago(1))])
    asked = QueryOptions(uncertainty_samples=8)
    if together:
        (result,) = embedded.query_many([(entity, "level")], asked, audit="async")
    else:
        result = embedded.query(entity, "level", asked, audit="async")
    expected, notes = result.distribution, list(result.notes)
    change(result)
    embedded.ledger.flush()
    embedded.query(entity, "level", asked)
    for name in ("INF00000001", "INF00000002"):
        fields = embedded.records.get(name).fields
        assert fields["distribution"] == expected
        assert fields.get("notes", []) == notes
        assert fields["execution_time_ms"] >= 0.0
        assert fields.get("uncertainty", {}).get("aleatoric") != 9.0
        assert embedded.replay(name).exact
