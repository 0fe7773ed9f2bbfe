"""In a workspace: items that count by how much they say about their claim."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from builders import model_config, sharp_tensors
from hash_reader import CueReader
from labelled_workspaces import WordReader
from lpf import LPFClassifier
from lpf.circuits import DataTable, Variable, dump_circuit, learn_chow_liu
from lpf.cli.answer_view import show_answer
from lpf.model.artefact import save_model
from lpf.model.config import EncoderConfig
from lpf.orchestrator import replay
from lpf.reading import PairReader
from lpf.results import QueryResult
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from lpf.workspace.circuit import CIRCUIT_FILE
from workspaces import CARD, LEVELS, schema

CLAIM = "The books are in order."
READER = PairReader(WordReader(), CueReader())
LOGITS = READER.width - 3
ALONE = QueryOptions(related_evidence=False)
OTHER_WAYS = (QueryOptions.paper(), QueryOptions(variant="learned"))


def rows(entity_id: str, predicate: str, *texts: str, claim: str | None = CLAIM) -> list[Any]:
    return [
        {
            "evidence_id": f"{entity_id}_{predicate}_{number}",
            "entity_id": entity_id,
            "predicate": predicate,
            "text": text,
            "claim": claim,
        }
        for number, text in enumerate(texts)
    ]


NEUTRAL = ("The office moved", "Lunch was late", "It rained again")
SPEAKING = ("They are indeed", "They never were")


# Of the cases none, supports, refutes and both.
RATIOS = ((0.5, 1.5, 1.0), (0.2, 1.0, 1.8), (1.8, 1.0, 0.2), (0.9, 1.2, 0.9))


def related_circuit() -> str:
    """The outcome is clean unless the level is low."""
    variables = [Variable("level", LEVELS), Variable("outcome", ("clean", "qualified"))]
    rows = [
        {"level": level, "outcome": "qualified" if level == "low" else "clean"}
        for level in LEVELS
        for _ in range(30)
    ]
    return dump_circuit(learn_chow_liu(DataTable.from_rows(variables, rows)))


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The head of level weighs items by relevance, that of outcome does not. C1 and C2 have items
    about both; most of C1's are neutral, and C2's have no claim."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
        patch.setattr(
            "lpf.workspace.wiring.claim_reader", lambda text: PairReader(text, CueReader())
        )
        folder = tmp_path_factory.mktemp("relevant") / "w"
        with Workspace.create(folder, schema()) as made:
            (folder / CIRCUIT_FILE).write_text(related_circuit())
            level, outcome = model_config().predicates
            config = model_config(
                2,
                predicates=(
                    replace(level, relevance_start=LOGITS, occurrence_ratios=RATIOS),
                    outcome,
                ),
                encoder=EncoderConfig(READER.width),
                reader_id=READER.reader_id,
            )
            version = save_model(folder / "models", config, sharp_tensors(config), CARD)
            made.use_model(version)
            made.ingest(rows("C1", "level", *NEUTRAL, *SPEAKING))
            made.ingest(rows("C1", "outcome", *NEUTRAL[:1], *SPEAKING))
            made.ingest(rows("C2", "level", *NEUTRAL, claim=None))
            made.ingest(rows("C3", "level", *(f"{text} {n}" for n in range(9) for text in NEUTRAL)))
            yield made


def shown(result: QueryResult) -> str:
    output = Console(file=io.StringIO(), width=200)
    show_answer(output, result, {})
    return output.file.getvalue()  # type: ignore[attr-defined]


def recorded(space: Workspace, result: QueryResult) -> dict[str, Any]:
    assert result.record_id is not None
    return dict(space.records.expand(space.records.get(result.record_id)))


def test_neutral_items_hardly_count_and_the_answer_says_so(space: Workspace) -> None:
    result = space.query("C1", "level", ALONE)
    items = {item["evidence_id"]: item for item in result.to_dict()["evidence"]}
    found = {name: item["relevance"] for name, item in items.items()}
    little = {name for name, number in found.items() if number < 0.05}
    assert little == {f"C1_level_{number}" for number in range(3)}
    assert min(number for name, number in found.items() if name not in little) > 0.9
    assert max(items[name]["weight"] for name in little) < 0.05
    assert result.evidence_frame()["relevance"].tolist() == list(found.values())
    assert "relevance" in shown(result)
    # They are neither unlike the training texts nor called so.
    assert result.familiarity is None
    assert not any("unlike" in note for note in result.notes)


def test_items_without_a_claim_count_fully(space: Workspace) -> None:
    result = space.query("C2", "level")
    assert result.evidence_frame()["relevance"].tolist() == [1.0, 1.0, 1.0]
    assert result.evidence is not None
    assert result.evidence.stances is not None
    assert result.evidence.stances.tolist() == [[0.0, 0.0, 1.0]] * 3  # no claim, no stance
    assert space.replay(result.record_id or "", deep=True).agrees


@pytest.mark.parametrize("entity", ["C1", "C2", "C3"])
def test_the_record_replays_with_and_without_texts(space: Workspace, entity: str) -> None:
    result = space.query(entity, "level", QueryOptions(top_k=30))
    factors = recorded(space, result)["factors"]
    assert result.evidence is not None
    assert result.evidence.relevance is not None
    assert factors["relevance"] == result.evidence.relevance.tolist()
    assert result.evidence.stances is not None
    assert factors["stances"] == result.evidence.stances.tolist()
    assert "familiarity" not in factors
    assert space.replay(result.record_id or "").exact
    assert space.replay(result.record_id or "", deep=True).agrees


def test_a_record_with_another_relevance_does_not_replay(space: Workspace) -> None:
    fields = recorded(space, space.query("C1", "level"))
    changed = {**fields["factors"], "relevance": [1.0] * 5}
    assert not replay({**fields, "factors": changed}).agrees
    for name in ("relevance", "stances"):
        without = {key: row for key, row in fields["factors"].items() if key != name}
        assert not replay({**fields, "factors": without}).agrees


def test_contributions_add_up_with_the_stances_that_occur(space: Workspace) -> None:
    """C1 has an item that supports the claim, one that refutes it, and three neutral ones."""
    result = space.query("C1", "level", ALONE)
    evidence = result.evidence
    assert evidence is not None
    assert evidence.stances is not None
    assert evidence.contributions is not None
    assert evidence.stances.argmax(axis=1).tolist().count(2) == 3
    prior = np.array(recorded(space, result)["context"]["log_prior"])
    scores = prior + evidence.contributions.sum(axis=0)
    answer = np.exp(scores - scores.max())
    np.testing.assert_allclose(answer / answer.sum(), list(result.distribution.values()), atol=1e-9)


@pytest.mark.parametrize("options", OTHER_WAYS)
def test_other_ways_to_answer_do_not_use_it(space: Workspace, options: QueryOptions) -> None:
    result = space.query("C1", "level", options)
    assert result.to_dict()["evidence"][0]["relevance"] is None
    assert not {"relevance", "stances"} & set(recorded(space, result)["factors"])
    assert space.replay(result.record_id or "").exact
    assert space.replay(result.record_id or "", deep=True).agrees


def test_a_head_without_it_records_nothing(space: Workspace) -> None:
    result = space.query("C1", "outcome", ALONE)
    assert result.to_dict()["evidence"][0]["relevance"] is None
    assert "relevance" not in recorded(space, result)["factors"]
    assert "relevance" not in shown(result)


def test_related_evidence_counts_by_the_relevance_of_its_own_head(space: Workspace) -> None:
    result = space.query("C1", "outcome")
    (used,) = result.related
    assert result.evidence is not None
    assert result.evidence.relevance is None
    assert used.items.relevance is not None
    fields = recorded(space, result)
    assert "relevance" not in fields["factors"]
    (related,) = fields["related"]
    assert related["factors"]["relevance"] == used.items.relevance.tolist()
    assert space.replay(result.record_id or "").exact
    assert space.replay(result.record_id or "", deep=True).agrees


def test_a_classifier_explains_with_it() -> None:
    """One of five items tells the label; the others say good or bad at random, and are neutral."""
    drawn = np.random.default_rng(0)
    entities, labels = [], []
    for number in range(90):
        good = number % 2 == 0
        said = f"{'good' if good else 'bad'} {'indeed' if number % 3 else 'never'} case{number}"
        others = [f"{word} day{number}" for word in drawn.choice(["good", "bad"], 4)]
        entities.append({"evidence": [said, *others], "claim": CLAIM})
        labels.append("yes" if good else "no")
    model = LPFClassifier(reader=READER, max_epochs=3, seeds=[1]).fit(entities, labels)
    (explained,) = model.explain(entities[:1])
    first, *others = [item.weight.relevance for item in explained.items]
    assert first > 0.9
    assert max(others) < 0.05
    assert explained.claim == CLAIM
    assert "says little about the claim" in str(explained)


def test_many_questions_get_the_same_relevance(space: Workspace) -> None:
    for result in space.query_many([("C1", "level"), ("C2", "level")]):
        alone = space.query(result.entity_id, "level")
        assert alone.evidence is not None
        assert result.evidence is not None
        np.testing.assert_array_equal(alone.evidence.relevance, result.evidence.relevance)
        assert result.probabilities == pytest.approx(alone.probabilities, abs=1e-6)
