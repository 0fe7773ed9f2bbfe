"""Texts without a word do not count in robust mode, whatever the model was trained on."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from lpf import LPFClassifier
from lpf.cli.answer_view import show_answer
from lpf.results import NO_WORDS, QueryResult
from lpf.types import Evidence, QueryOptions
from lpf.workspace import Workspace
from workspaces import TEXTS, add, give_model, make, schema

JUNK = ("...", "0 0 0", "\U0001f600", "SGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0")
GOOD = ("well", "as planned", "without a fault", "faster than promised", "smoothly")
BAD = ("badly", "wrong twice", "on for weeks", "completely astray", "far over budget")
OTHERS = ("我们收到了货。", "Товар пришёл вовремя.", "आज माल आया")


def items(entity_id: str, *texts: str) -> list[Evidence]:
    return [
        Evidence(f"{entity_id}_E{number}", entity_id, "level", text)
        for number, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The model was trained on too few texts to know which ones are unlike them."""
    with Workspace.create(tmp_path_factory.mktemp("wordless") / "w", schema()) as made:
        give_model(made)
        add(made, items("C1", *TEXTS[:2]))
        add(made, items("C2", *TEXTS[:2], *JUNK[:3]))
        add(made, items("C3", *JUNK))
        add(made, items("C4", *OTHERS))
        yield made


def shown(result: QueryResult) -> list[str]:
    output = Console(file=io.StringIO(), width=200)
    show_answer(output, result, {})
    return output.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_texts_without_a_word_are_named_and_do_not_count(workspace: Workspace) -> None:
    alone, mixed = workspace.query("C1", "level"), workspace.query("C2", "level")
    assert mixed.probabilities == pytest.approx(alone.probabilities, abs=1e-9)
    found = {item["evidence_id"]: item for item in mixed.to_dict()["evidence"]}
    blank = {"C2_E2", "C2_E3", "C2_E4"}
    assert {name for name, item in found.items() if item["wordless"]} == blank
    assert {name for name, item in found.items() if item["weight"] == 0.0} == blank
    assert {name for name, item in found.items() if item["familiarity"] == 0.0} == blank
    assert any(NO_WORDS in note and all(name in note for name in blank) for note in mixed.notes)
    assert sum(f"{NO_WORDS}: counts 0.00" in line for line in shown(mixed)) == 3
    assert alone.familiarity is None


def test_an_answer_from_texts_without_a_word_says_so_first(workspace: Workspace) -> None:
    result = workspace.query("C3", "level")
    assert result.probabilities == pytest.approx([1 / 3] * 3, abs=1e-9)
    assert NO_WORDS in shown(result)[1]


def test_texts_in_any_language_keep_their_weight(workspace: Workspace) -> None:
    result = workspace.query("C4", "level")
    assert result.familiarity is None
    assert not any(NO_WORDS in note for note in result.notes)
    assert all(item["weight"] > 0.5 for item in result.to_dict()["evidence"])


def test_many_questions_leave_out_the_same_texts(workspace: Workspace) -> None:
    for result in workspace.query_many([(name, "level") for name in ("C1", "C2", "C3")]):
        alone = workspace.query(result.entity_id, "level")
        assert result.familiarity == alone.familiarity
        assert result.probabilities == pytest.approx(alone.probabilities, abs=1e-6)


def test_paper_mode_and_learned_weights_answer_as_before(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = (QueryOptions.paper(), QueryOptions(variant="learned"))
    now = [workspace.query("C2", "level", way).probabilities for way in ways]
    monkeypatch.setattr("lpf.index.features.has_words", lambda text: True)
    with Workspace(workspace.folder) as again:
        before = [again.query("C2", "level", way).probabilities for way in ways]
    assert now == before


@pytest.mark.parametrize(
    "options", [QueryOptions(), QueryOptions.paper(), QueryOptions(variant="learned")]
)
def test_records_replay_with_and_without_texts(workspace: Workspace, options) -> None:
    for entity in ("C1", "C2", "C3"):
        record = workspace.query(entity, "level", options).record_id
        assert record is not None
        assert workspace.replay(record).exact
        assert workspace.replay(record, deep=True).agrees


def test_a_record_from_before_replays_with_the_weight_of_that_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, Workspace(workspace.folder) as before:
        patched.setattr("lpf.index.features.has_words", lambda text: True)
        counted = before.query("C3", "level")
    assert counted.record_id is not None
    assert max(counted.probabilities) > 0.4
    assert workspace.replay(counted.record_id).exact
    assert workspace.replay(counted.record_id, deep=True).agrees


def test_a_text_that_was_removed_by_force_still_counts(tmp_path: Path) -> None:
    """Otherwise whoever can write to the store could silence an item without a trace."""
    with make(tmp_path / "w") as workspace:
        expected = workspace.query("C0001", "level").probabilities
    with closing(sqlite3.connect(tmp_path / "w" / "store.db")) as store, store:
        store.execute("UPDATE evidence SET text_content = '.' WHERE evidence_id = 'C0001_E001'")
    with Workspace(tmp_path / "w") as workspace:
        assert workspace.query("C0001", "level").probabilities == pytest.approx(expected)


def test_a_classifier_of_few_and_varied_texts_ignores_texts_without_a_word() -> None:
    good = [f"{one} went {two}." for one in ("Delivery", "Billing", "Repair") for two in GOOD]
    bad = [f"{one} went {two}." for one in ("Delivery", "Billing", "Repair") for two in BAD]
    X = [[text] for text in (*good, *bad)]
    y = ["good"] * (len(good)) + ["bad"] * len(bad)
    model = LPFClassifier(seeds=(1,), max_epochs=5, unfamiliar="full").fit(X, y)
    asked = [[good[0]], [good[0], *JUNK], list(JUNK), list(OTHERS)]
    alone, mixed, junk, _ = model.predict_proba(asked)
    assert mixed == pytest.approx(alone, abs=1e-6)
    assert junk == pytest.approx(model.predict_proba([[]])[0], abs=1e-6)
    explained = model.explain(asked)
    assert [item.weight.total for item in explained[1].items[1:]] == [0.0] * len(JUNK)
    assert all(item.wordless for item in explained[1].items[1:])
    assert min(item.weight.total for item in explained[3].items) > 0.0
