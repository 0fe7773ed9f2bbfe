"""Evidence about related predicates: exact by enumeration of all worlds, shown, and recorded.

The chain is level - outcome - grade. The worlds are enumerated from its tables, and the likelihood
of each item is worked out here from its factor: no code of the package combines anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workspaces
from builders import sharp_tensors
from lpf.circuits import CircuitBuilder, Variable, dump_circuit
from lpf.combine.robust import RobustParameters
from lpf.engine import Engine
from lpf.errors import ConfigError, ReplayError
from lpf.index import EvidenceIndex
from lpf.items import Items
from lpf.ledger import verify
from lpf.model.artefact import save_model
from lpf.model.config import AggregatorConfig, ModelConfig, PredicateHead
from lpf.results import QueryResult
from lpf.schema import Predicate, Relation, Schema
from lpf.storage.facts import NewFact
from lpf.types import Evidence, QueryOptions
from lpf.workspace import Workspace
from lpf.workspace.circuit import CIRCUIT_FILE
from workspaces import CARD, LEVELS, days_ago

OUTCOMES, GRADES = ("clean", "qualified"), ("a", "b")
NAMES = ("level", "outcome", "grade")
LEVEL = np.array([0.2, 0.5, 0.3])
OUTCOME = np.array([[0.1, 0.9], [0.4, 0.6], [0.95, 0.05]])  # given the level
GRADE = np.array([[0.85, 0.15], [0.25, 0.75]])  # given the outcome
JOINT = LEVEL[:, None, None] * OUTCOME[:, :, None] * GRADE[None]  # [level, outcome, grade]
SHARES = {"level": (0.3, 0.4, 0.3), "outcome": (0.5, 0.5), "grade": (0.6, 0.4)}
PARAMETERS = {
    "level": RobustParameters(),
    "outcome": RobustParameters(temperature=1.4, rho=0.2, epsilon=0.15, source_epsilon=0.1),
    "grade": RobustParameters(rho=0.1),
}
SCHEMA = Schema(
    (
        Predicate("level", LEVELS, tuple(LEVEL)),
        Predicate("outcome", OUTCOMES),
        Predicate("grade", GRADES),
    ),
    (Relation(("level", "outcome")), Relation(("outcome", "grade"))),
)
OFF = QueryOptions(related_evidence=False)


def chain_circuit() -> str:
    """The chain as nested mixtures, node by node."""
    builder = CircuitBuilder([Variable(one.name, one.values) for one in SCHEMA])
    outcomes = [
        builder.product([builder.indicator("outcome", o, 2), builder.leaf("grade", GRADE[o])])
        for o in range(2)
    ]
    levels = [
        builder.product(
            [builder.indicator("level", place, 3), builder.sum(outcomes, OUTCOME[place])]
        )
        for place in range(3)
    ]
    return dump_circuit(builder.build(builder.sum(levels, LEVEL)))


def model(names: Sequence[str] = NAMES) -> ModelConfig:
    return ModelConfig(
        predicates=tuple(PredicateHead(n, SCHEMA[n].values, SHARES[n]) for n in names),
        aggregator=AggregatorConfig(),
        members=2,
        reader_id=workspaces.reader().reader_id,
        calibration={name: PARAMETERS[name].to_dict() for name in names},
    )


def items(entity_id: str, predicate: str, count: int, **changes: object) -> list[Evidence]:
    found = workspaces.evidence(entity_id, count, start=len(predicate), **changes)
    return [
        replace(
            one,
            predicate=predicate,
            evidence_id=f"{entity_id}_{predicate}_{number}",
            text_content=f"{predicate} of {one.text_content}",
        )
        for number, one in enumerate(found)
    ]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """C1 has evidence about all three predicates, C2 about outcome alone, C3 about level alone."""
    folder = tmp_path / "here"
    with Workspace.create(folder, SCHEMA) as made:
        (folder / CIRCUIT_FILE).write_text(chain_circuit())
        config = model()
        version = save_model(folder / "models", config, sharp_tensors(config), CARD)
        made.use_model(version)
        workspaces.add(
            made,
            [
                *items("C1", "level", 3),
                *items("C1", "outcome", 4),
                *items("C1", "grade", 2),
                *items("C2", "outcome", 2),
                *items("C3", "level", 2),
            ],
        )
        yield made


def likelihood(used: Items, predicate: str) -> np.ndarray:
    """What items say together about their predicate, [V], by the formulas of robust mode."""
    fitted, share = PARAMETERS[predicate], np.array(SHARES[predicate])
    assert used.potential is not None
    exponent = 1.0 / (1.0 + (len(used) - 1) * fitted.rho)
    by_source: dict[int, np.ndarray] = {}
    for place in range(len(used)):
        # Without a fit, an item is uninformative with 1 minus its credibility.
        epsilon = 1.0 - float(used.credibility[place])
        ratio = ((1.0 - epsilon) * used.potential[place] + epsilon * share) / share
        source = int(used.sources[place])
        by_source[source] = by_source.get(source, 1.0) * ratio**exponent
    switch = fitted.source_epsilon
    return np.prod([(1.0 - switch) * each + switch for each in by_source.values()], axis=0)


def enumerated(result: QueryResult, worlds: np.ndarray) -> np.ndarray:
    """The answer from all worlds [level, outcome, grade], times what each predicate's items say."""
    used = {one.predicate: one.items for one in result.related}
    if result.evidence is not None:
        used[result.predicate] = result.evidence
    for name, own in used.items():
        shape = [1, 1, 1]
        shape[NAMES.index(name)] = -1
        worlds = worlds * likelihood(own, name).reshape(shape)
    others = tuple(axis for axis in range(3) if NAMES[axis] != result.predicate)
    answer = worlds.sum(axis=others)
    return np.asarray(answer / answer.sum())


def fact(predicate: str, value: str, days: float = 1, confidence: float = 1.0) -> NewFact:
    return NewFact("C1", predicate, value, days_ago(days), confidence, source="audit")


@pytest.mark.parametrize("predicate", NAMES)
def test_the_answer_is_that_of_all_worlds(workspace: Workspace, predicate: str) -> None:
    result = workspace.query("C1", predicate)
    others = [name for name in NAMES if name != predicate]
    assert [one.predicate for one in result.related] == others
    np.testing.assert_allclose(result.probabilities, enumerated(result, JOINT), atol=1e-12)
    assert result.probabilities != workspace.query("C1", predicate, OFF).probabilities


@pytest.mark.parametrize("entity", ["C1", "C2", "C3"])
def test_facts_related_and_own_evidence_go_together(workspace: Workspace, entity: str) -> None:
    """An uncertain fact about the outcome, whose items count too, and a certain one about grade."""
    for one in (fact("outcome", "clean", confidence=0.8), fact("grade", "b")):
        workspace.facts.add([replace(one, entity_id=entity)])
    result = workspace.query(entity, "level")
    assert {used.predicate: used.role for used in result.facts} == {
        "outcome": "soft",
        "grade": "hard",
    }
    known = JOINT * np.array([0.8, 0.2])[None, :, None] * np.array([0.0, 1.0])[None, None]
    np.testing.assert_allclose(result.probabilities, enumerated(result, known), atol=1e-12)
    assert [one.predicate for one in result.related] == (["outcome"] if entity != "C3" else [])


def test_parts_add_up_to_the_answer(workspace: Workspace) -> None:
    workspace.facts.add([fact("outcome", "clean", confidence=0.8)])
    for entity in ("C1", "C2", "C3"):
        result = workspace.query(entity, "level")
        assert result.base is not None
        scores = result.base + sum(one.contribution for one in result.related)
        if result.evidence is not None:
            assert result.evidence.contributions is not None
            scores = scores + result.evidence.contributions.sum(axis=0)
        weights = np.exp(scores - scores.max())
        np.testing.assert_allclose(weights / weights.sum(), result.probabilities, atol=1e-9)
        # The base is that of the same question without related evidence.
        without = workspace.query(entity, "level", OFF)
        assert without.base is not None
        np.testing.assert_allclose(result.base, without.base, atol=1e-12)


def test_what_related_items_say_is_what_they_answer_themselves(workspace: Workspace) -> None:
    result = workspace.query("C1", "level")
    for one in result.related:
        alone = workspace.query("C1", one.predicate, OFF)
        assert one.evidence_chain == alone.evidence_chain
        np.testing.assert_allclose(one.distribution, alone.probabilities, atol=1e-5)


def test_a_predicate_with_a_certain_fact_is_not_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.facts.add([fact("outcome", "clean"), fact("grade", "a")])
    asked = retrievals(monkeypatch)
    result = workspace.query("C1", "level")
    assert (asked, result.related) == (["level"], ())
    assert result.probabilities == workspace.query("C1", "level", OFF).probabilities


def retrievals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The predicates whose items are looked up from now on."""
    asked: list[str] = []
    retrieve = EvidenceIndex.retrieve

    def noted(self: EvidenceIndex, entity_id: str, predicate: str, **options: Any) -> Items:
        asked.append(predicate)
        return retrieve(self, entity_id, predicate, **options)

    monkeypatch.setattr(EvidenceIndex, "retrieve", noted)
    return asked


def twin_workspace(folder: Path) -> Workspace:
    """Two predicates that are always equal, with heads that read alike."""
    twins = ("outcome", "twin")
    schema = Schema(tuple(Predicate(name, OUTCOMES) for name in twins), (Relation(twins),))
    made = Workspace.create(folder, schema)
    builder = CircuitBuilder([Variable(name, OUTCOMES) for name in twins])
    equal = [
        builder.product([builder.indicator(name, place, 2) for name in twins]) for place in (0, 1)
    ]
    circuit = builder.build(builder.sum(equal, [0.5, 0.5]))
    (folder / CIRCUIT_FILE).write_text(dump_circuit(circuit))
    config = replace(
        model(("outcome",)), predicates=tuple(PredicateHead(n, OUTCOMES) for n in twins)
    )
    config = replace(config, calibration={name: PARAMETERS["outcome"].to_dict() for name in twins})
    tensors = sharp_tensors(config)
    for part in ("embedding.{}", "head.{}.weight", "head.{}.bias"):
        name = f"decoder.{part}"
        tensors[name.format("twin")] = tensors[name.format("outcome")]
    made.use_model(save_model(folder / "models", config, tensors, CARD))
    return made


def test_evidence_about_an_equal_predicate_counts_like_ones_own(tmp_path: Path) -> None:
    with twin_workspace(tmp_path) as made:
        about_twin = [replace(one, predicate="twin") for one in items("T", "outcome", 3)]
        workspaces.add(made, [*items("C1", "outcome", 3), *about_twin])
        texts = [replace(one, predicate="twin", entity_id="C9", evidence_id=f"{one.evidence_id}x")
                 for one in items("C1", "outcome", 3)]  # fmt: skip
        workspaces.add(made, texts)
        own, through = made.query("C1", "outcome"), made.query("C9", "outcome")
        assert (own.source, through.source) == ("inference", "related")
        np.testing.assert_allclose(own.probabilities, through.probabilities, atol=1e-9)
        assert max(own.probabilities) > 0.53  # the items do say something


def test_an_entity_without_own_items_gets_an_answer(workspace: Workspace) -> None:
    result = workspace.query("C2", "level")
    assert (result.source, result.method, result.evidence) == ("related", "spn", None)
    np.testing.assert_allclose(result.probabilities, enumerated(result, JOINT), atol=1e-12)
    assert "related evidence" in result.notes[0]
    assert workspace.query("C2", "level", OFF).source == "none"
    record = workspace.records.get(result.audit_ptr or "").fields
    assert (record["query_type"], "evidence_chain" in record) == ("related", False)


def test_many_questions_take_one_pass_per_related_predicate(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.facts.add([fact("grade", "b", confidence=0.7)])
    one_by_one = [workspace.query(entity, "level") for entity in ("C1", "C2", "C3", "C4")]
    passes: list[tuple[str, int]] = []
    answer = Engine.answer

    def noted(self: Engine, items: Items, predicate: str, *given: Any, **named: Any) -> Any:
        passes.append((predicate, len(items.layout)))
        return answer(self, items, predicate, *given, **named)

    monkeypatch.setattr(Engine, "answer", noted)
    together = workspace.query_many([(f"C{n}", "level") for n in (1, 2, 3, 4)])
    assert passes == [("outcome", 2), ("grade", 1), ("level", 2)]
    for one, many in zip(one_by_one, together, strict=True):
        np.testing.assert_allclose(one.probabilities, many.probabilities, atol=1e-5)
        assert (one.source, one.notes) == (many.source, many.notes)
        chains = [[each.evidence_chain for each in x.related] for x in (one, many)]
        assert chains[0] == chains[1]
        assert workspace.replay(many.audit_ptr or "").exact
    assert [result.source for result in together] == ["inference", "related", "inference", "none"]


def test_the_options_that_choose_items_apply_to_related_ones(workspace: Workspace) -> None:
    # Credibilities 0.95, 0.9, 0.85, 0.8; dated 1, 31, 61 and 91 days ago.
    few = workspace.query("C1", "level", QueryOptions(top_k=2))
    assert [len(one.items) for one in few.related] == [2, 2]
    credible = workspace.query("C1", "level", QueryOptions(min_credibility=0.87))
    assert [len(one.items) for one in credible.related] == [2, 2]
    past = workspace.query("C1", "level", QueryOptions(as_of=days_ago(60)))
    assert [(one.predicate, len(one.items)) for one in past.related] == [("outcome", 2)]
    none = workspace.query("C1", "level", QueryOptions(as_of=days_ago(1000)))
    assert (none.source, none.related) == ("none", ())
    workspaces.add(workspace, items("C5", "outcome", 3, report_id="R7"))
    (copied,) = workspace.query("C5", "level").related
    assert copied.items.groups.tolist() == [0, 0, 0]


def recorded(workspace: Workspace, result: QueryResult) -> dict[str, Any]:
    return workspace.records.expand(workspace.records.get(result.audit_ptr or ""))


def test_the_related_threshold_and_what_it_left_out_are_recorded(workspace: Workspace) -> None:
    config = replace(model(), min_credibility={"level": 0.0, "outcome": 0.87, "grade": 0.1})
    version = save_model(workspace.folder / "models", config, sharp_tensors(config), CARD)
    workspace.use_model(version)
    result = workspace.query("C1", "level")
    outcome, grade = result.to_dict()["related"]
    assert (outcome["min_credibility"], grade["min_credibility"]) == (0.87, 0.1)
    assert (outcome["left_out"]["below_credibility"], grade["left_out"]["damaged"]) == (2, 0)
    context = recorded(workspace, result)["context"]
    assert context["related"]["outcome"]["min_credibility"] == 0.87
    given = workspace.query("C1", "level", QueryOptions(min_credibility=0.2))
    context = recorded(workspace, given)["context"]
    assert context["related"]["outcome"]["min_credibility"] == 0.2
    assert workspace.replay(result.audit_ptr or "").exact


def test_a_note_on_a_damaged_related_item_names_the_predicate(workspace: Workspace) -> None:
    with workspace.database.transaction() as connection:
        connection.execute(
            "UPDATE evidence SET credibility = 0.5 WHERE evidence_id = 'C1_outcome_0'"
        )
    result = workspace.query("C1", "level")
    (note,) = [one for one in result.notes if "C1_outcome_0" in one]
    assert note.startswith("evidence about outcome: ")
    assert result.to_dict()["related"][0]["left_out"]["damaged"] == 1


def test_without_a_relation_or_a_circuit_nothing_more_is_looked_up(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = retrievals(monkeypatch)
    workspace.query("C1", "level", OFF)
    workspace.query("C1", "level", QueryOptions.paper())
    workspace.query("C1", "level", QueryOptions(variant="learned"))
    assert set(asked) == {"level"}
    workspace.query("C1", "level")
    assert set(asked) == set(NAMES)
    asked.clear()
    (workspace.folder / CIRCUIT_FILE).unlink()
    with Workspace(workspace.folder) as without_circuit:
        assert without_circuit.query("C1", "level").related == ()
    settings = workspace.folder / "lpf.toml"
    settings.write_text(settings.read_text().split("[[relations]]")[0])
    (workspace.folder / CIRCUIT_FILE).write_text(chain_circuit())
    with Workspace(workspace.folder) as without_relation:
        assert without_relation.query("C1", "level").related == ()
    assert set(asked) == {"level"}


@pytest.mark.parametrize("other", [{"mode": "paper"}, {"variant": "learned"}])
def test_the_option_is_refused_where_it_cannot_apply(other: dict[str, Any]) -> None:
    assert not QueryOptions(**other).uses_related
    assert not QueryOptions(related_evidence=False, **other).uses_related
    with pytest.raises(ConfigError) as caught:
        QueryOptions(related_evidence=True, **other)
    assert caught.value.field == "options.related_evidence"


def test_a_predicate_that_the_model_does_not_know_is_noted(workspace: Workspace) -> None:
    config = model(("level", "grade"))
    workspace.use_model(
        save_model(workspace.folder / "models", config, sharp_tensors(config), CARD)
    )
    result = workspace.query("C1", "level")
    assert [one.predicate for one in result.related] == ["grade"]
    assert [note for note in result.notes if "outcome" in note]
    np.testing.assert_allclose(result.probabilities, enumerated(result, JOINT), atol=1e-12)
    nothing = workspace.query("C2", "level")
    assert nothing.source == "none"
    assert [note for note in nothing.notes if "outcome" in note]


def test_the_result_as_plain_data(workspace: Workspace) -> None:
    result = workspace.query("C1", "level")
    document = json.loads(json.dumps(result.to_dict()))
    outcome, grade = document["related"]
    assert set(outcome) == {
        *("predicate", "evidence_chain", "distribution", "contribution"),
        *("min_credibility", "left_out"),
    }
    assert (outcome["predicate"], grade["predicate"]) == ("outcome", "grade")
    assert outcome["evidence_chain"] == list(result.related[0].evidence_chain)
    assert sum(outcome["distribution"].values()) == pytest.approx(1.0)
    assert list(outcome["contribution"]) == list(LEVELS)
    assert list(outcome["contribution"].values()) == result.related[0].contribution.tolist()
    assert workspace.query("C1", "level", OFF).to_dict()["related"] == []


def test_a_value_that_related_evidence_rules_out_has_no_number(tmp_path: Path) -> None:
    """The twin's value is certain from an item: the other value of both is impossible."""
    with twin_workspace(tmp_path) as made:
        sure = RobustParameters(epsilon=0.0, fitted=True, temperature=1e-4).to_dict()
        config = replace(
            model(("outcome",)),
            predicates=tuple(PredicateHead(n, OUTCOMES) for n in ("outcome", "twin")),
            calibration={"twin": sure},
        )
        made.use_model(save_model(made.folder / "models", config, sharp_tensors(config), CARD))
        one = items("C1", "outcome", 1)[0]
        workspaces.add(made, [replace(one, predicate="twin")])
        result = made.query("C1", "outcome")
        assert sorted(result.probabilities) == [0.0, 1.0]
        (related,) = result.to_dict()["related"]
        assert None in related["contribution"].values()
        assert made.replay(result.audit_ptr or "").exact
        assert made.replay(result.audit_ptr or "", deep=True).agrees


def test_records_replay_from_the_record_and_from_texts(workspace: Workspace) -> None:
    workspace.facts.add([fact("grade", "b", days=50), fact("level", "low", days=40)])
    results = [workspace.query(entity, "level") for entity in ("C1", "C2")]
    for result in results:
        assert result.related
        assert workspace.replay(result.audit_ptr or "").exact
        deep = workspace.replay(result.audit_ptr or "", deep=True)
        assert (deep.agrees, deep.notes) == (True, ())
        assert deep.recomputed is not deep.recorded
    assert verify(workspace.database).ok


def test_a_record_has_the_related_items_and_no_text(workspace: Workspace) -> None:
    workspaces.add(workspace, items("C6", "outcome", 20, credibility=0.9))
    result = workspace.query("C6", "level", QueryOptions(top_k=20, min_credibility=0.0))
    raw = workspace.records.get(result.audit_ptr or "")
    assert b"Filings" not in raw.body
    record = workspace.records.expand(raw)
    (outcome,) = record["related"]
    (used,) = result.related
    assert [name for name, _ in outcome["evidence_chain"]] == list(used.evidence_chain)
    assert [one for _, one in outcome["evidence_chain"]] == [
        c.hex() for c in used.items.commitments
    ]
    assert used.items.potential is not None
    assert outcome["factors"]["potential"] == used.items.potential.tolist()
    assert len(outcome["factors"]["source"]) == 20  # outcome has a source_epsilon
    assert outcome["contribution"] == used.contribution.tolist()
    assert record["context"]["hyperparameters"]["related_evidence"] is True
    assert record["context"]["related"]["outcome"]["parameters"]["temperature"] == 1.4
    assert workspace.replay(result.audit_ptr or "", deep=True).agrees
    plain = workspace.records.expand(
        workspace.records.get(workspace.query("C1", "level", OFF).audit_ptr or "")
    )
    assert "related" not in plain
    assert "related" not in plain["context"]
    assert "related_evidence" not in plain["context"]["hyperparameters"]


def test_a_deep_replay_after_the_circuit_was_learned_again_says_so(workspace: Workspace) -> None:
    result = workspace.query("C1", "level")
    workspace.facts.add([fact("grade", "b")])
    workspace.learn_circuit()
    deep = workspace.replay(result.audit_ptr or "", deep=True)
    assert deep.agrees
    assert "circuit" in deep.notes[0]


def test_a_related_text_that_is_gone_or_changed_is_reported(workspace: Workspace) -> None:
    result = workspace.query("C2", "level")
    with workspace.database.transaction() as connection:
        connection.execute(
            "UPDATE evidence SET text_content = 'Fraud.' WHERE evidence_id = 'C2_outcome_1'"
        )
    with pytest.raises(ReplayError, match="C2_outcome_1"):
        workspace.replay(result.audit_ptr or "", deep=True)
    workspace.erase("C2_outcome_1")
    with pytest.raises(ReplayError, match="C2_outcome_1"):
        workspace.replay(result.audit_ptr or "", deep=True)
    assert workspace.replay(result.audit_ptr or "").exact
    assert len(workspace.query("C2", "level").related[0].items) == 1


def test_forged_related_numbers_do_not_replay_from_texts(workspace: Workspace) -> None:
    from lpf.orchestrator import replay_deep

    result = workspace.query("C1", "level")
    fields = workspace.records.expand(workspace.records.get(result.audit_ptr or ""))

    def again(forged: dict[str, Any]) -> Any:
        return replay_deep(
            forged,
            workspace.evidence,
            lambda: workspace.reader,
            workspace.models.load_recorded,
            workspace.background.circuit,
        )

    assert again(fields).agrees
    moved = json.loads(json.dumps(fields))
    moved["base"][0] += 0.5
    assert again(moved).agrees  # what the texts add is computed, not taken from there
    swapped = json.loads(json.dumps(fields))
    swapped["related"][0]["distribution"] = {"clean": 0.5, "qualified": 0.5}
    with pytest.raises(ReplayError, match="outcome"):
        again(swapped)


def test_changes_by_the_caller_are_not_recorded(workspace: Workspace) -> None:
    result = workspace.query("C1", "level", audit="async")
    expected = result.related[0].items.potential
    assert expected is not None
    with pytest.raises(ValueError, match="read-only"):
        result.related[0].contribution[0] = 7.0
    result.related[0].items.potential = np.zeros_like(expected)
    workspace.ledger.flush()
    record = workspace.records.expand(workspace.records.get("INF00000001"))
    assert record["related"][0]["factors"]["potential"] == expected.tolist()


def test_the_stages_include_related_evidence(workspace: Workspace) -> None:
    result = workspace.query("C1", "level")
    assert sum(result.stages.values()) <= result.execution_time_ms


def test_the_warning_of_a_related_predicates_fit_is_repeated(workspace: Workspace) -> None:
    config = replace(model(), calibrated_on={"level": 400, "outcome": 8, "grade": 400})
    folder = workspace.folder / "models"
    workspace.use_model(save_model(folder, config, sharp_tensors(config), CARD))
    for entity in ("C1", "C2"):
        notes = workspace.query(entity, "level").notes
        assert [note for note in notes if "8 entities" in note and "about outcome" in note]
        assert not [note for note in notes if "about grade" in note]
    assert not [note for note in workspace.query("C3", "level").notes if "entities" in note]
    (note,) = [one for one in workspace.query("C2", "outcome").notes if "8 entities" in one]
    assert "about" not in note.split(":")[0]
    assert not [one for one in workspace.query("C1", "level", OFF).notes if "8 entities" in one]
