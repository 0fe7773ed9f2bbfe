"""Verdicts on claims in a workspace that has seen no labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from lpf.errors import ReaderIntegrityError, ReaderUnavailableError
from lpf.model import zero_label
from lpf.reading import stance_is_installed
from lpf.workspace import Workspace

needs_stance = pytest.mark.skipif(
    not stance_is_installed(), reason="the package lpf-stance is not installed"
)
GROWS, SHRINKS = "Arctic sea ice is growing.", "Arctic sea ice is shrinking."
EVIDENCE = (
    "Arctic sea ice extent has declined in every decade since satellite records began.",
    "Measurements show that the sea ice in the Arctic is getting thinner and covers less area.",
)
UNRELATED = "The committee will meet again on the second Tuesday of next month."


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    space = Workspace.create_for_claims(tmp_path_factory.mktemp("claims") / "space")
    rows = [
        {"entity_id": entity, "claim": claim, "text": text}
        for entity, claim in (("grows", GROWS), ("shrinks", SHRINKS))
        for text in EVIDENCE
    ]
    space.ingest([*rows, {"entity_id": "other", "claim": GROWS, "text": UNRELATED}])
    return space


@needs_stance
def test_opposite_claims_get_opposite_verdicts(workspace: Workspace) -> None:
    grows, shrinks = workspace.query("grows"), workspace.query("shrinks")
    assert (grows.top_value, shrinks.top_value) == ("refuted", "supported")
    assert grows.confidence > 0.6
    assert shrinks.confidence > 0.6


@needs_stance
def test_texts_about_something_else_decide_nothing(workspace: Workspace) -> None:
    other = workspace.query("other")
    assert other.top_value == "not_enough"
    (relevance,) = other.evidence.relevance
    assert relevance < 0.2


@needs_stance
def test_the_answer_says_that_no_labels_were_seen(workspace: Workspace) -> None:
    assert any("no labels of yours" in note for note in workspace.query("grows").notes)


@needs_stance
def test_the_answer_is_recorded_and_replays(workspace: Workspace) -> None:
    result = workspace.query("shrinks")
    assert workspace.replay(result.record_id).exact
    assert workspace.replay(result.record_id, deep=True).agrees


def test_without_the_stance_reader_nothing_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zero_label, "installed_weights", lambda source: None)
    with pytest.raises(ReaderUnavailableError) as raised:
        Workspace.create_for_claims(tmp_path / "space")
    assert "lpf-stance" in (raised.value.hint or "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{}", '{"weight": [[1]], "values": ["a"]}'])
def test_damaged_numbers_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    (tmp_path / zero_label.NUMBERS_FILE).write_text(content)
    monkeypatch.setattr(zero_label, "installed_weights", lambda source: tmp_path)
    with pytest.raises(ReaderIntegrityError):
        Workspace.create_for_claims(tmp_path / "space")
    assert not (tmp_path / "space").exists()
