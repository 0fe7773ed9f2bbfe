"""Claims: read where the data has them, by one reader for ingestion, training, answers and replay,
and shown with the answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from labelled_workspaces import LEVELS, WordReader, line, lines, write_lines
from lpf.cli.main import app
from lpf.errors import WorkspaceError
from lpf.index import readers_used
from lpf.reading import PairReader, StanceReader, is_pair
from lpf.schema import Predicate, Schema
from lpf.training import TrainingConfig
from lpf.workspace import Workspace, doctor, wiring
from lpf.workspace.doctor import Check, check_workspace
from lpf.workspace.training_runs import TrainingPlan
from tiny_stance import tiny_stance

CLAIM = "The company is fine."
CONFIG = TrainingConfig(
    max_epochs=3, hidden=(8,), latent_width=4, model="networks", aggregator=None
)
QUICK = TrainingPlan(config=CONFIG, seeds=(1, 2))

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
    with Workspace.create(tmp_path / "workspace", Schema((Predicate("level", LEVELS),))) as made:
        yield made


def rows(count: int = 30, claim: str | None = CLAIM, first: int = 0) -> list[dict[str, Any]]:
    """One item per row, two per entity, as an evidence file has them."""
    return [
        {
            "evidence_id": item["evidence_id"],
            "entity_id": f"C{number:04d}",
            "text": item["text"],
            "credibility": 0.9,
            "supports_value": LEVELS[number % len(LEVELS)],
            "claim": claim,
        }
        for number in range(first, first + count)
        for item in line(number)["evidence"]
    ]


def reads_claims(space: Workspace) -> bool:
    assert space.model is not None
    return is_pair(space.model.config.reader_id)


def checked_reader(space: Workspace) -> Check:
    (found,) = [one for one in check_workspace(space.folder) if one.name == "reader"]
    return found


def reader_check(space: Workspace) -> str:
    return checked_reader(space).state


def test_claims_are_read_from_ingestion_to_replay(space: Workspace) -> None:
    assert space.ingest(rows()).notes == ()
    assert space.reader.uses_claim
    space.train(plan=QUICK)
    assert reads_claims(space)
    result = space.query("C0003")
    assert (result.claim, result.claims) == (CLAIM, (CLAIM,))
    assert space.replay(result.audit_ptr or "", deep=True).agrees
    assert reader_check(space) == "ok"
    assert [is_pair(name) for name in readers_used(space.evidence)] == [True]


def test_without_claims_texts_are_read_alone(space: Workspace) -> None:
    space.ingest(rows(claim=None))
    space.train(plan=QUICK)
    result = space.query("C0003")
    assert not reads_claims(space)
    assert (result.claim, result.claims, result.to_dict()["claim"]) == (None, (), None)


def test_a_data_set_file_decides_for_its_model(space: Workspace, tmp_path: Path) -> None:
    claimed = write_lines(tmp_path / "claims.jsonl", lines(60, claim=CLAIM))
    space.train(claimed, QUICK)
    assert reads_claims(space)
    assert space.reader.uses_claim
    space.train(write_lines(tmp_path / "plain.jsonl", lines(60)), QUICK)
    assert not reads_claims(space)
    assert not space.reader.uses_claim
    assert reader_check(space) == "ok"


def test_evidence_read_without_claims_is_read_again_with_them_by_training(
    space: Workspace,
) -> None:
    space.ingest(rows(10, claim=None))
    (note,) = space.ingest(rows(20, first=10)).notes
    assert note.startswith("40 items have claims")
    space.train(plan=QUICK)
    assert reads_claims(space)
    without, with_claim = space.query("C0003"), space.query("C0013")
    assert without.claim is None
    assert with_claim.claim == CLAIM
    assert {item["claim"] for item in with_claim.to_dict()["evidence"]} == {CLAIM}
    for result in (without, with_claim):
        assert space.replay(result.audit_ptr or "", deep=True).agrees


def test_a_model_of_texts_alone_keeps_its_reader(space: Workspace) -> None:
    """As in a workspace of before claims were read by default."""
    space.ingest(rows(claim=None))
    space.train(plan=QUICK)
    before = space.query("C0003")
    (note,) = space.ingest(rows(1, first=50)).notes
    assert "will not be read" in note
    shown = space.query("C0050")
    assert shown.claim == CLAIM  # the answer is about it, whether or not it is read
    assert not space.reader.uses_claim
    assert space.query("C0003").probabilities == pytest.approx(before.probabilities)
    space.train(plan=QUICK)
    assert reads_claims(space)
    assert space.replay(before.audit_ptr or "", deep=True).agrees  # with the reader it had


def test_the_claim_changes_the_answer(space: Workspace) -> None:
    space.ingest(rows())
    space.train(plan=QUICK)
    same_text = {key: value for key, value in rows(1)[0].items() if key != "evidence_id"}
    claims = {"A": CLAIM, "B": "Nothing is known.", "C": None}
    space.ingest([{**same_text, "entity_id": name, "claim": claims[name]} for name in claims])
    answers = [space.query(name).probabilities for name in claims]
    assert len({tuple(answer) for answer in answers}) == 3


@pytest.mark.parametrize("setting", [True, False])
def test_the_setting_decides_if_there_is_one(space: Workspace, setting: bool) -> None:
    settings = space.folder / "lpf.toml"
    line_ = f"[reader]\nwith_claim = {str(setting).lower()}\n"
    settings.write_text(settings.read_text().replace("[reader]\n", line_))
    with Workspace(space.folder) as decided:
        decided.ingest(rows(claim=None if setting else CLAIM))
        decided.train(plan=QUICK)
        assert reads_claims(decided) is setting


@pytest.mark.parametrize("setting", [True, False])
def test_the_setting_waits_for_the_next_training(space: Workspace, setting: bool) -> None:
    """Until then the active model decides, so that its index has the features of new evidence."""
    space.ingest(rows(claim=None if setting else CLAIM))
    space.train(plan=QUICK)
    assert reads_claims(space) is not setting
    settings = space.folder / "lpf.toml"
    line_ = f"[reader]\nwith_claim = {str(setting).lower()}\n"
    settings.write_text(settings.read_text().replace("[reader]\n", line_))
    with Workspace(space.folder) as decided:
        decided.ingest(rows(1, first=50))
        assert decided.reader.uses_claim is not setting
        assert decided.query("C0050").evidence_chain
        assert reader_check(decided) == "ok"
        decided.train(plan=QUICK)
        assert reads_claims(decided) is setting
        decided.ingest(rows(1, first=60))
        assert decided.query("C0060").evidence_chain
        assert decided.reader.uses_claim is setting


def test_an_unknown_setting_is_refused(space: Workspace) -> None:
    settings = space.folder / "lpf.toml"
    text = settings.read_text().replace("[reader]\n", '[reader]\nwith_claim = "yes"\n')
    settings.write_text(text)
    with pytest.raises(WorkspaceError, match=r"reader\.with_claim"):
        Workspace(space.folder)


def test_the_claim_is_on_top_of_the_answer(space: Workspace) -> None:
    space.ingest(rows())
    several = rows(1, first=60)
    several[1]["claim"] = "Another claim."
    space.ingest(several)
    space.train(plan=QUICK)
    shown = CliRunner().invoke(app, ["query", "C0003", "--workspace", str(space.folder)]).stdout
    assert shown.splitlines()[1].strip() == f"claim: {CLAIM}"
    assert CLAIM in space.query("C0003")._repr_html_()
    words = ["query", "C0060", "--workspace", str(space.folder)]
    assert "2 different" in CliRunner().invoke(app, words).stdout.splitlines()[1]
    full = CliRunner().invoke(app, [*words, "--full"]).stdout
    assert f"claim: {CLAIM}" in full
    assert "claim: Another claim." in full
    document = space.query("C0060").to_dict()
    assert document["claim"] is None
    assert sorted(document["claims"]) == ["Another claim.", CLAIM]


def test_the_doctor_says_whether_the_stance_reader_is_installed(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "claim_reader", PairReader)
    monkeypatch.setattr(doctor, "stance_is_installed", lambda: False)
    space.ingest(rows())
    space.train(plan=QUICK)
    assert "pip install ./packages/lpf-stance" in checked_reader(space).message
    monkeypatch.setattr(doctor, "stance_is_installed", lambda: True)
    assert "before the stance reader was installed" in checked_reader(space).message


def test_a_model_with_stances_says_what_to_install_where_their_reader_is_not(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stance"
    stance = StanceReader(source=tiny_stance(folder), weights_dir=folder, cache_dir=folder)
    monkeypatch.setattr(wiring, "claim_reader", lambda reader: PairReader(reader, stance))
    space.ingest(rows())
    space.train(plan=QUICK)
    assert "with the stance reader" in checked_reader(space).message
    monkeypatch.setattr(wiring, "claim_reader", PairReader)
    monkeypatch.setattr(doctor, "stance_is_installed", lambda: False)
    found = checked_reader(space)
    assert found.state == "fault"
    assert "pip install ./packages/lpf-stance" in found.remedy


QUESTION = "Is the company fine?"


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose only predicate has a question as its description."""
    monkeypatch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
    predicate = Predicate("level", LEVELS, description=QUESTION)
    with Workspace.create(tmp_path / "workspace", Schema((predicate,))) as made:
        yield made


def claims_of(space: Workspace) -> set[str | None]:
    return {item.evidence.claim for item in space.evidence.page()}


def test_the_description_is_the_claim_of_evidence_without_one(described: Workspace) -> None:
    outcome = described.ingest([*rows(20, claim=None), *rows(10, first=20)])
    assert claims_of(described) == {QUESTION, CLAIM}
    assert any(QUESTION in note and "40 items" in note for note in outcome.notes)
    described.train(plan=QUICK)
    assert reads_claims(described)
    result, own = described.query("C0003"), described.query("C0023")
    assert (result.claim, own.claim) == (QUESTION, CLAIM)
    assert described.replay(result.audit_ptr or "", deep=True).agrees
    again = described.ingest(rows(20, claim=None))
    assert again.unchanged == 40


def test_training_on_a_file_reads_it_as_the_workspace_reads_evidence(
    described: Workspace, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "labelled.jsonl", lines(40))
    described.train(file, plan=QUICK)
    assert reads_claims(described)
    described.ingest(rows(3, claim=None))
    assert claims_of(described) == {QUESTION}


def test_evidence_that_was_read_without_claims_stays_without(
    described: Workspace, tmp_path: Path
) -> None:
    """As in a workspace from before: its settings do not ask for the description."""
    settings = described.folder / "lpf.toml"
    before = settings.read_text()
    assert "description_as_claim = true" in before
    settings.write_text(before.replace("description_as_claim = true", ""))
    with Workspace(described.folder) as older:
        assert older.default_claim() is None
        older.ingest(rows(30, claim=None))
        assert claims_of(older) == {None}
    settings.write_text(before)
    with Workspace(described.folder) as asked:
        asked.ingest(rows(3, claim=None, first=40))
        asked.train(write_lines(tmp_path / "labelled.jsonl", lines(40)), plan=QUICK)
        assert claims_of(asked) == {None}
        assert not reads_claims(asked)


@pytest.mark.parametrize("line_", ["with_claim = false", "description_as_claim = false"])
def test_settings_turn_the_description_off(described: Workspace, line_: str) -> None:
    settings = described.folder / "lpf.toml"
    settings.write_text(settings.read_text().replace("description_as_claim = true", line_))
    with Workspace(described.folder) as space:
        space.ingest(rows(3, claim=None))
        assert claims_of(space) == {None}
        assert not any(map(is_pair, readers_used(space.evidence)))


def test_several_predicates_have_no_default_claim(tmp_path: Path) -> None:
    both = Schema(tuple(Predicate(name, LEVELS, description=QUESTION) for name in ("a", "b")))
    with Workspace.create(tmp_path / "workspace", both) as space:
        assert space.default_claim() is None
        assert "description_as_claim" not in (space.folder / "lpf.toml").read_text()
