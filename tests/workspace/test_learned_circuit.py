"""How predicates are related is learned from facts and labels, and stored only if all went well."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import workspaces
from lpf.schema import Predicate, Relation, Schema
from lpf.storage.facts import NewFact
from lpf.types import Evidence
from lpf.workspace.circuit import learn_from_rows, read_circuit


def labelled(entity_id: str, predicate: str, values: Sequence[str]) -> list[Evidence]:
    """One item per value, which it supports."""
    return [
        replace(
            item,
            predicate=predicate,
            supports_value=value,
            evidence_id=f"{entity_id}_{predicate}_{number}",
        )
        for number, (item, value) in enumerate(
            zip(workspaces.evidence(entity_id, len(values)), values, strict=True)
        )
    ]


def test_a_circuit_is_learned_from_labels_too_and_facts_come_first(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        items: list[Evidence] = []
        for number in range(30):
            level, outcome = (("high", "clean"), ("low", "qualified"))[number % 2]
            items += labelled(f"K{number}", "level", [level, level, "medium"])
            items += labelled(f"K{number}", "outcome", [outcome])
        items += labelled("TIE", "level", ["low", "high"]) + labelled("TIE", "outcome", ["clean"])
        workspaces.add(workspace, items, read=False)
        from_labels = workspace.learn_circuit()
        (relation,) = from_labels.relations
        assert (from_labels.entities, relation.entities, relation.cells) == (31, 30, 6)
        assert relation.nats > 0.2
        assert relation.has_few
        assert relation.needed == 60
        assert len(from_labels.warnings) == 1
        assert any("TIE" in note for note in from_labels.notes)
        # A fact contradicts the labels of every entity but the tie: it counts instead of them.
        workspace.facts.add(
            [
                NewFact(f"K{number}", "outcome", ("qualified", "clean")[number % 2], stated)
                for number in range(30)
                for stated in [workspaces.days_ago(5)]
            ]
        )
        assert workspace.learn_circuit().entities == 31
        tilted = workspace.background.circuit.marginals({"outcome": "qualified"})["level"]
        assert tilted.argmax() == workspaces.LEVELS.index("high")


def test_only_entities_with_both_values_count_for_a_relation(tmp_path: Path) -> None:
    with workspaces.make(tmp_path) as workspace:
        facts = [NewFact(f"L{n}", "level", "high", workspaces.days_ago(5)) for n in range(40)]
        facts += [NewFact(f"L{n}", "outcome", "clean", workspaces.days_ago(5)) for n in range(7)]
        # Below a confidence of 0.5 a fact speaks for the other values.
        facts += [NewFact("L8", "outcome", "clean", workspaces.days_ago(5), 0.2)]
        workspace.facts.add(facts)
        (relation,) = workspace.learn_circuit().relations
        assert relation.entities == 7


def test_learning_that_fails_leaves_the_circuit_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with workspaces.make(tmp_path) as workspace:
        facts = [
            NewFact(f"K{n}", predicate, value, workspaces.days_ago(5))
            for n in range(40)
            for predicate, value in (("level", "high"), ("outcome", "clean"))
        ]
        workspace.facts.add(facts[:60])
        workspace.learn_circuit()
        before = (tmp_path / "circuit.json").read_bytes()
        workspace.facts.add(facts[60:])

        def fail(*_: object) -> float:
            raise MemoryError

        monkeypatch.setattr("lpf.workspace.circuit.mutual_information", fail)
        with pytest.raises(MemoryError):
            workspace.learn_circuit()
        assert (tmp_path / "circuit.json").read_bytes() == before
        (tmp_path / "circuit.json").unlink()
        with pytest.raises(MemoryError):
            workspace.learn_circuit()
        assert not (tmp_path / "circuit.json").exists()


def test_predicates_with_many_values_are_learned_in_the_time_of_their_table(tmp_path: Path) -> None:
    names = [tuple(f"{letter}{number}" for number in range(400)) for letter in "ab"]
    schema = Schema(
        (Predicate("first", names[0]), Predicate("second", names[1])),
        (Relation(("first", "second")),),
    )
    rows = [{"first": f"a{number % 400}", "second": f"b{number % 400}"} for number in range(4000)]
    tracemalloc.start()
    try:
        learned = learn_from_rows(tmp_path, schema, rows)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert learned.relations[0].nats > 0.0
    assert most < 100e6
    compiled = read_circuit(tmp_path)
    assert compiled is not None
    assert compiled.marginals({"second": "b7"})["first"].argmax() == 7
