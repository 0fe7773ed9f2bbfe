"""In a workspace: texts unlike the training texts, and texts longer than a reader reads at once."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from builders import model_config, sharp_tensors
from lpf.cli.answer_view import show_answer
from lpf.errors import EvidenceError
from lpf.model.artefact import save_model
from lpf.model.familiarity import fit_familiarity
from lpf.reading.reader import IN_PASSAGES
from lpf.results import QueryResult
from lpf.types import LONGEST_TEXT, Evidence, QueryOptions
from lpf.workspace import Workspace
from workspaces import CARD, TEXTS, add, give_model, make, reader, schema

JUNK = ("これは日本語の文章です。", "asdf qwer zxcv", "<div><p></p></div>", "NULL NULL NULL")
LONG = "The auditor found two late payments. " * 60  # more than 256 tokens
PLAIN = reader().reader_id.removesuffix(IN_PASSAGES)


def items(entity_id: str, *texts: str) -> list[Evidence]:
    return [
        Evidence(f"{entity_id}_E{number}", entity_id, "level", text)
        for number, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A model that knows texts like TEXTS; C1 has such items, C2 also junk, C3 nothing else."""
    with Workspace.create(tmp_path_factory.mktemp("known") / "w", schema()) as workspace:
        read = reader().read_many([f"{name}: {text}" for name in "ABCDEF" for text in TEXTS])
        found = fit_familiarity(read, np.arange(len(read)) // 3, slice(0, 384))
        assert found is not None
        config = model_config(2, reader_id=reader().reader_id, familiarity=found.config)
        tensors = {**sharp_tensors(config), **found.tensors()}
        workspace.use_model(save_model(workspace.folder / "models", config, tensors, CARD))
        add(workspace, items("C1", *TEXTS[:3]))
        add(workspace, items("C2", *TEXTS[:3], *JUNK[:2]))
        add(workspace, items("C3", *JUNK))
        yield workspace


def shown(result: QueryResult) -> list[str]:
    output = Console(file=io.StringIO(), width=200)
    show_answer(output, result, {})
    return output.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_items_unlike_the_training_texts_are_named_and_do_not_count(known: Workspace) -> None:
    alone, mixed = known.query("C1", "level"), known.query("C2", "level")
    assert mixed.probabilities == pytest.approx(alone.probabilities, abs=1e-9)
    document = mixed.to_dict()
    weights = {item["evidence_id"]: item["weight"] for item in document["evidence"]}
    familiar = {item["evidence_id"]: item["familiarity"] for item in document["evidence"]}
    assert {name for name in familiar if familiar[name] < 0.05} == {"C2_E3", "C2_E4"}
    assert weights["C2_E3"] == weights["C2_E4"] == 0.0
    assert document["familiarity"] == pytest.approx(0.6)
    assert any("C2_E3" in note and "C2_E4" in note for note in mixed.notes)
    assert sum("counts 0.00" in line for line in shown(mixed)) == 2
    assert alone.familiarity == 1.0
    assert not any("unlike" in line for line in shown(alone))
    assert mixed.evidence_frame()["familiarity"].min() == 0.0


def test_an_answer_from_junk_alone_says_so_first(known: Workspace) -> None:
    result = known.query("C3", "level")
    assert result.probabilities == pytest.approx([1 / 3] * 3, abs=1e-6)
    assert "unlike" in shown(result)[1]
    assert result.familiarity is not None
    assert result.familiarity < 0.05


def test_a_note_about_related_items_is_not_the_basis_of_the_answer(known: Workspace) -> None:
    result = known.query("C3", "level")
    about = "evidence about outcome: the only item is unlike the training texts"
    result.notes = (*result.notes, about)
    lines = shown(result)
    basis = next(place for place, line in enumerate(lines) if "based on" in line)
    said = [place for place, line in enumerate(lines) if about in line]
    assert len(said) == 1
    assert said[0] > basis
    assert sum("items are unlike" in line for line in lines) == 1


@pytest.mark.parametrize(
    "options", [QueryOptions(), QueryOptions.paper(), QueryOptions(variant="learned")]
)
def test_the_record_replays_with_and_without_texts(known: Workspace, options) -> None:
    for entity in ("C1", "C2", "C3"):
        record = known.query(entity, "level", options).record_id
        assert record is not None
        factors = known.records.expand(known.records.get(record))["factors"]
        assert ("familiarity" in factors) == (entity != "C1")
        assert known.replay(record).exact
        assert known.replay(record, deep=True).agrees
    assert any("unlike" in note for note in known.query("C2", "level", options).notes)


def test_a_record_with_another_familiarity_does_not_replay(known: Workspace) -> None:
    from lpf.orchestrator import replay

    record = known.query("C2", "level").record_id
    assert record is not None
    fields = known.records.expand(known.records.get(record))
    changed = {**fields["factors"], "familiarity": [1.0] * 5}
    assert not replay({**fields, "factors": changed}).agrees
    without = {name: rows for name, rows in fields["factors"].items() if name != "familiarity"}
    assert not replay({**fields, "factors": without}).agrees


def test_many_questions_get_the_same_familiarity(known: Workspace) -> None:
    together = known.query_many([("C1", "level"), ("C2", "level"), ("C3", "level")])
    for result in together:
        alone = known.query(result.entity_id, "level")
        assert result.familiarity == pytest.approx(alone.familiarity, abs=1e-9)
        assert result.probabilities == pytest.approx(alone.probabilities, abs=1e-6)


def test_a_model_from_before_answers_as_before(tmp_path: Path) -> None:
    with make(tmp_path / "w") as workspace:
        add(workspace, items("C9", *JUNK))
        result = workspace.query("C9", "level")
        assert result.familiarity is None
        assert result.to_dict()["evidence"][0]["familiarity"] is None
        assert not any("unlike" in note for note in result.notes)


def write(path: Path, *texts: str) -> Path:
    rows = [f'C1,level,"{text}"' for text in texts]
    path.write_text("\n".join(["entity_id,predicate,text", *rows]), encoding="utf-8")
    return path


def test_a_new_workspace_reads_all_of_a_long_text(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", schema()) as workspace:
        outcome = workspace.ingest(write(tmp_path / "e.csv", LONG, "Short."))
        assert workspace.reader.reader_id.endswith(IN_PASSAGES)
        assert (outcome.added, outcome.cut) == (2, 0)
        give_model(workspace)
        assert not any("characters" in note for note in workspace.query("C1", "level").notes)


def test_a_model_from_before_keeps_its_reader_and_reports_cut_texts(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", schema()) as workspace:
        config = model_config(2, reader_id=PLAIN)
        version = save_model(workspace.folder / "models", config, sharp_tensors(config), CARD)
        workspace.use_model(version)
        assert workspace.reader.reader_id == PLAIN
        outcome = workspace.ingest(write(tmp_path / "e.csv", LONG, "Short.", TEXTS[0]))
        assert (outcome.added, outcome.cut) == (3, 1)
        result = workspace.query("C1", "level")
        assert any("1 of 3" in note or "1 text" in note for note in result.notes)
        assert result.record_id is not None
        assert workspace.replay(result.record_id, deep=True).agrees
        # New models are trained with the newest reader; then this one answers.
        assert workspace.reader_for_training(False).reader_id == PLAIN + IN_PASSAGES
        onto = workspace.models.load(version)
        assert workspace.reader_for_training(False, onto).reader_id == PLAIN
        give_model(workspace)
        assert workspace.reader.reader_id == PLAIN + IN_PASSAGES
        assert not any("characters" in note for note in workspace.query("C1", "level").notes)
        # The old record still replays from its texts, with the reader that it names.
        assert workspace.replay(result.record_id, deep=True).agrees


def test_a_text_beyond_the_limit_is_a_rejected_row(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", schema()) as workspace:
        file = write(tmp_path / "e.csv", "a" * (LONGEST_TEXT + 1), "Short.")
        outcome = workspace.ingest(file)
        assert (outcome.added, outcome.rejected) == (1, 1)
        (problem,) = outcome.problems
        assert problem.field == "text"
        assert problem.line == 2
        assert "report_id" in problem.error
        assert len(problem.error) < 300


def test_a_claim_beyond_the_limit_is_a_rejected_row(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", schema()) as workspace:
        row = {"entity_id": "C1", "predicate": "level", "text": "Short."}
        outcome = workspace.ingest([row, {**row, "claim": "a" * (LONGEST_TEXT + 1)}])
        assert (outcome.added, [problem.field for problem in outcome.problems]) == (1, ["claim"])


def test_evidence_beyond_the_limit_is_refused_unless_it_is_stored() -> None:
    text = "a" * (LONGEST_TEXT + 1)
    with pytest.raises(EvidenceError) as caught:
        Evidence("E1", "C1", "level", text)
    assert caught.value.field == "text_content"
    assert caught.value.hint is not None
    assert "report_id" in caught.value.hint
    assert len(str(caught.value)) < 300
    with pytest.raises(EvidenceError):
        Evidence("E1", "C1", "level", "Short.", claim=text)
    assert Evidence("E1", "C1", "level", text[1:]).text_content == text[1:]
    # A store from before the limit keeps its texts.
    assert Evidence("E1", "C1", "level", text, embedding_id=7).text_content == text


def test_a_classifier_refuses_a_text_beyond_the_limit() -> None:
    from lpf import LPFClassifier

    with pytest.raises(EvidenceError, match=r"X\[0\]") as caught:
        LPFClassifier().fit([["a" * (LONGEST_TEXT + 1)], ["b"]], ["x", "y"])
    assert caught.value.hint is not None
    assert len(str(caught.value)) < 400
