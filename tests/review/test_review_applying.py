"""Reviewed answers as facts, labels, and rows of a file."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import openpyxl
import pytest

import workspaces
from lpf.errors import ConfigError
from lpf.review import ApplyOptions, Judgement
from lpf.review.applying import vote_confidence
from lpf.review.export import COLUMNS
from lpf.storage.facts import NewFact
from lpf.workspace import Workspace
from lpf.workspace.training_data import known_labels

FIRST, SECOND = "INF00000001", "INF00000002"
LEVELS = ("low", "medium", "high")
FACTS, LABELS = ApplyOptions("facts"), ApplyOptions("labels")


def settle(space: Workspace, value: str, *reviewers: str) -> None:
    for name in reviewers:
        space.reviews.blind("C0001", "level", value, reviewer=name)


def test_confidence_follows_from_the_votes() -> None:
    assert vote_confidence(Counter(low=1), "low", LEVELS, 0.9) == pytest.approx(0.9)
    assert vote_confidence(Counter(low=1, high=1), "low", ("low", "high"), 0.9) == pytest.approx(
        0.5
    )
    both = 0.9**2 / (0.9**2 + 2 * 0.05**2)
    assert vote_confidence(Counter(low=2), "low", LEVELS, 0.9) == pytest.approx(both)
    two_to_one = Counter(low=2, high=1)
    joint = {"low": 0.9**2 * 0.05, "high": 0.9 * 0.05**2, "medium": 0.05**3}
    expected = joint["low"] / sum(joint.values())
    assert vote_confidence(two_to_one, "low", LEVELS, 0.9) == pytest.approx(expected)


def test_votes_for_values_that_the_schema_lost_do_not_count() -> None:
    votes = Counter(low=1, high=1, medium=1, gone=3)
    assert vote_confidence(votes, "low", ("low", "high"), 0.9) == pytest.approx(0.5)


def test_settled_answers_become_facts_once(space: Workspace) -> None:
    settle(space, "high", "ann", "ben")
    preview = space.reviews.apply(ApplyOptions("facts", dry_run=True))
    assert [one.record_id for one in preview.applied] == [FIRST]
    assert space.facts.count() == 0
    size = space.records.size
    (made,) = space.reviews.apply(FACTS).applied
    (fact,) = space.facts.history("C0001")
    assert (fact.value, fact.source, fact.fact_id) == ("high", f"review of {FIRST}", made.fact_id)
    assert fact.confidence == pytest.approx(0.81 / 0.815)
    assert fact.timestamp.isoformat()[:19] == space.records.get(FIRST).fields["as_of"][:19]
    again = space.reviews.apply(FACTS)
    assert (again.applied, again.unchanged) == ((), 1)
    assert space.records.size == size + 1  # the application is on record
    assert space.query("C0001", "level").source == "canonical"


def test_a_changed_review_corrects_the_fact(space: Workspace) -> None:
    settle(space, "high", "ann")
    space.reviews.apply(FACTS)
    settle(space, "medium", "ann")
    (made,) = space.reviews.apply(FACTS).applied
    assert (made.was, made.value) == ("high", "medium")
    assert [fact.value for fact in space.facts.page("C0001")] == ["medium"]
    assert len(space.facts.history("C0001")) == 2
    space.reviews.withdraw(space.reviews.of(FIRST).reviews[-1].record_id, "ann")
    space.reviews.withdraw(space.reviews.of(FIRST).reviews[0].record_id, "ann")
    outcome = space.reviews.apply(FACTS)
    assert "withdraw" in outcome.left_out[FIRST]


def test_an_interrupted_application_is_continued(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(space, "high", "ann")

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(space.ledger), "append", broken)
        with pytest.raises(KeyboardInterrupt):
            space.reviews.apply(FACTS)
    assert space.facts.count() == 1
    (made,) = space.reviews.apply(FACTS).applied
    assert space.facts.count() == 1
    assert space.facts.get(made.fact_id).value == "high"


def test_what_is_left_out_is_named_with_its_reason(space: Workspace) -> None:
    settle(space, "high", "ann")
    assert FIRST in space.reviews.apply(ApplyOptions("facts", reviewers=2)).left_out
    settle(space, "low", "ben")
    assert "disputed" in space.reviews.apply(FACTS).left_out[FIRST]
    space.reviews.adjudicate(FIRST, "low")
    (made,) = space.reviews.apply(ApplyOptions("facts", reviewers=3, dry_run=True)).applied
    assert made.confidence == pytest.approx(
        vote_confidence(Counter(low=2, high=1), "low", LEVELS, 0.9)
    )
    space.facts.add([NewFact("C0001", "level", "medium", workspaces.days_ago(0))])
    space.reviews.unsure(SECOND)
    reasons = space.reviews.apply(FACTS).left_out
    assert "unsure" in reasons[SECOND]


def test_a_decision_stands_without_the_reviews_that_it_decided(space: Workspace) -> None:
    settle(space, "high", "ann")
    settle(space, "low", "ben")
    space.reviews.adjudicate(FIRST, "low")
    for one in space.reviews.of(FIRST).reviews:
        space.reviews.withdraw(one.record_id, one.reviewer)
    (made,) = space.reviews.apply(FACTS).applied
    assert (made.value, made.confidence) == ("low", pytest.approx(0.9))


def test_a_newer_fact_is_not_contradicted(space: Workspace) -> None:
    from datetime import UTC, datetime

    settle(space, "high", "ann")
    space.facts.add([NewFact("C0001", "level", "low", datetime.now(UTC))])
    assert "newer" in space.reviews.apply(FACTS).left_out[FIRST]
    assert len(space.facts.history("C0001")) == 1


def test_labels_leave_excluded_items_and_existing_labels_alone(space: Workspace) -> None:
    space.edit("C0001_E002", supports_value="low")
    space.reviews.override(FIRST, "high", [Judgement("exclude", "C0001_E001")])
    (made,) = space.reviews.apply(LABELS).applied
    assert set(made.items) == {"C0001_E003", "C0001_E004", "C0001_E005"}
    labels = {
        name: space.evidence.get(name).evidence.supports_value
        for name in (f"C0001_E{number:03d}" for number in range(1, 6))
    }
    assert labels == {"C0001_E001": None, "C0001_E002": "low"} | dict.fromkeys(made.items, "high")
    known, _ = known_labels(space.evidence, space.facts, space.schema)
    assert known["C0001", "level"] == "high"
    assert space.reviews.apply(LABELS).unchanged == 1
    space.reviews.override(FIRST, "medium", [Judgement("exclude", "C0001_E001")])
    (changed,) = space.reviews.apply(LABELS).applied
    assert (changed.was, set(changed.items)) == ("high", set(made.items))


def test_items_with_other_labels_are_not_outvoted(space: Workspace) -> None:
    for number in range(1, 4):
        space.edit(f"C0001_E{number:03d}", supports_value="low")
    settle(space, "high", "ann")
    assert "'low'" in space.reviews.apply(LABELS).left_out[FIRST]
    assert space.evidence.get("C0001_E005").evidence.supports_value is None


def test_only_the_newest_reviewed_answer_to_a_question_is_applied(space: Workspace) -> None:
    settle(space, "high", "ann")
    newer = space.query("C0001", "level").record_id or ""
    space.reviews.override(newer, "medium", reviewer="ben")
    outcome = space.reviews.apply(FACTS)
    assert [one.record_id for one in outcome.applied] == [newer]
    assert "newer" in outcome.left_out[FIRST]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl", ".parquet"])
def test_all_feedback_is_exported(space: Workspace, tmp_path: Path, suffix: str) -> None:
    formula = "=HYPERLINK(A1)"
    judged = [Judgement("exclude", "C0001_E001", reason="forged")]
    review = space.reviews.override(FIRST, "high", judged, formula, reviewer="@eve")
    erased = space.reviews.unsure(SECOND, comment="private")
    space.erase_query_texts(erased.record_id)
    space.reviews.withdraw(erased.record_id)
    target = tmp_path / f"reviews{suffix}"
    assert space.reviews.export(target) == 2
    if suffix == ".csv":
        first, second = csv.DictReader(target.read_text(encoding="utf-8").splitlines())
        assert (first["comment"], first["reviewer"]) == (f"'{formula}", "'@eve")
        assert second["comment"] == "(erased)"
        assert second["withdrawn"]
        assert first["judgements"] == "exclude C0001_E001 (forged)"
    elif suffix == ".xlsx":
        rows = list(openpyxl.load_workbook(target).active.iter_rows())
        cells = dict(zip((cell.value for cell in rows[0]), rows[1], strict=True))
        assert list(cells) == list(COLUMNS)
        assert (cells["comment"].value, cells["comment"].data_type) == (formula, "s")
    elif suffix == ".jsonl":
        first, second = map(json.loads, target.read_text().splitlines())
        assert first["judgements"] == [one.to_dict() for one in judged]
        assert first["revised"] == review.revised
        assert first["answered"] == space.records.get(FIRST).fields["top_value"]
        assert second["comment_erased"]
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        first, second = parquet.read_table(target).to_pylist()
        assert (first["verdict"], first["status"]) == ("override", "settled")
        assert second["status"] == "unreviewed"


def test_a_file_of_another_kind_is_refused(space: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        space.reviews.export(tmp_path / "reviews.ods")
    assert not list(tmp_path.glob("reviews*"))
