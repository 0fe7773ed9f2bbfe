"""Monitoring a workspace: which answers count, what is found, and where the verdict shows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import workspaces
from lpf import QueryOptions
from lpf.errors import ConfigError, InputFileError, LPFError
from lpf.metrics.scores import nll
from lpf.monitor.drift import text_drift
from lpf.monitor.monitoring import PredicateReport
from lpf.monitor.outcomes import Outcome
from lpf.monitor.sealed import (
    KNEW,
    NOT_ASKED,
    OTHER_KIND,
    OTHER_MODEL,
    OTHER_TIME,
    TOO_LATE,
    SealedAnswer,
    SealedAnswers,
)
from lpf.monitor.trust_file import FILE, TrustFile
from lpf.storage.facts import NewFact
from lpf.workspace import Workspace
from lpf.workspace.doctor import check_workspace
from monitored_workspaces import ASKED, LEVELS, add_outcomes

NOW = datetime.now(UTC)


def level(space: Workspace) -> PredicateReport:
    """What is found about the predicate that was asked about."""
    return next(one for one in space.monitor().predicates if one.predicate == "level")


def fact(name: str, value: str = "low", **changes: object) -> NewFact:
    return replace(NewFact(name, "level", value, NOW), **changes)  # type: ignore[arg-type]


def test_honest_answers_are_trusted(space: Workspace) -> None:
    add_outcomes(space)
    found = level(space)
    assert found.trust.state == "trusted"
    assert (found.outcomes, found.entities, found.held_out_entities) == (80, 80, 100)
    assert found.stated_bet is not None
    assert found.stated_bet.alarm is None
    assert space.query("N0000", "level").notes == ()


def test_flipped_outcomes_refute_the_model(space: Workspace) -> None:
    add_outcomes(space, flipped=0.6)
    found = space.monitor()
    assert found.is_worse_than_promised
    report = next(one for one in found.predicates if one.predicate == "level")
    assert report.trust.state == "not trusted"
    assert report.stated_bet is not None
    assert report.stated_bet.highest >= report.stated_bet.needed == 40.0  # two predicates


def test_scores_are_those_of_the_recorded_answers(space: Workspace) -> None:
    recorded = {name: space.query(name, "level", audit="off").probabilities for name in ASKED}
    add_outcomes(space)
    outcomes = {one.entity_id: one.value for one in space.facts.page(limit=100)}
    rows = np.array([recorded[name] for name in ASKED])
    labels = np.array([LEVELS.index(outcomes[name]) for name in ASKED])
    accuracy, loss, brier, ece = level(space).scores
    assert loss.now.mean == pytest.approx(nll(rows, labels))
    assert accuracy.now.mean == pytest.approx((rows.argmax(axis=1) == labels).mean())
    assert loss.now.low < loss.now.mean < loss.now.high
    assert loss.held_out is not None
    assert brier.held_out is None
    assert accuracy.stated == pytest.approx(rows.max(axis=1).mean())
    assert 0.0 <= ece.now.low <= ece.now.high <= 1.0


def test_only_the_last_answer_before_the_outcome_counts(space: Workspace) -> None:
    space.query("N0000", "level")  # the second one about this entity
    space.facts.add([fact("N0000"), fact("nobody")])
    early = QueryOptions(as_of=NOW - timedelta(hours=1))
    assert space.query("N0001", "level", early).source == "inference"
    space.facts.add([fact("N0001")])
    space.query("N0002", "level", QueryOptions(mode="paper"))
    found = level(space)
    assert found.outcomes == 2
    assert found.skipped[NOT_ASKED] == 1
    assert (found.skipped[OTHER_TIME], found.skipped[OTHER_KIND]) == (1, 1)


def test_answers_after_the_outcome_do_not_count(space: Workspace) -> None:
    (added,) = space.facts.add([fact("N0003", confidence=1.0)])
    space.facts.withdraw(added.fact_id)
    assert level(space).outcomes == 0  # withdrawn: nothing is known
    stale = fact("N0004", timestamp=NOW - timedelta(days=3000))
    space.facts.add([stale])
    used = space.query("N0004", "level")
    assert used.source == "inference"  # too old to answer, but known
    found = level(space)
    assert found.skipped[TOO_LATE] == 1
    assert found.outcomes == 1  # by the answer from before


def test_an_answer_that_used_the_fact_did_not_predict_it(space: Workspace) -> None:
    (added,) = space.facts.add([fact("N0005", confidence=0.6)])
    used = space.query("N0005", "level")
    assert [one.fact_id for one in used.facts] == [added.fact_id]
    model = space.model
    assert model is not None
    sealed = SealedAnswers(space.records, space.contents, model.version, "level", LEVELS)
    later = used.timestamp + 1_000_000
    outcome = Outcome("N0005", "level", "low", later, frozenset({added.fact_id}))
    (found,) = sealed.predictions({("N0005", "level"): outcome})
    assert found.answer.record_id != used.record_id
    assert sealed.skipped[KNEW] == 1


def test_a_corrected_fact_is_known_since_it_was_first_recorded(space: Workspace) -> None:
    (added,) = space.facts.add([fact("N0006", timestamp=NOW - timedelta(days=3000))])
    space.query("N0006", "level")
    space.facts.correct(added.fact_id, value="high")
    found = level(space)
    assert (found.outcomes, found.skipped[TOO_LATE]) == (1, 1)


def test_answers_of_another_model_do_not_count_and_have_no_verdict(space: Workspace) -> None:
    add_outcomes(space, flipped=0.6)
    assert level(space).trust.state == "not trusted"
    unknown = workspaces.evidence("new one", 2)
    workspaces.add(space, unknown)
    warned = space.query("new one", "level")
    assert warned.trust is not None
    assert warned.trust.state == "not trusted"
    assert warned.notes
    assert warned.notes[-1] == warned.trust.warning
    assert warned.track_record is not None
    assert warned.track_record.verdict == "unreliable"
    assert warned.to_dict()["monitoring"]["verdict"] == "not trusted"
    workspaces.give_model(space, members=2)
    cleared = space.query("new one", "level")
    assert (cleared.trust, cleared.notes) == (None, ())
    found = level(space)
    assert found.outcomes == 0
    assert found.skipped[OTHER_MODEL] >= 80
    assert found.trust.state == "unknown"


def test_an_open_workspace_sees_the_verdict_of_another_process(space: Workspace) -> None:
    workspaces.add(space, workspaces.evidence("new one", 2))
    assert space.query("new one", "level").trust is None
    with Workspace(space.folder) as other:
        add_outcomes(other, flipped=0.6)
        other.monitor()
    trust = space.query("new one", "level").trust
    assert trust is not None
    assert trust.state == "not trusted"


def test_the_doctor_shows_the_verdict_and_a_damaged_file(space: Workspace) -> None:
    def states() -> list[str]:
        checks = check_workspace(space.folder)
        return [each.state for each in checks if each.name == "monitoring"]

    assert states() == ["ok"]
    add_outcomes(space, flipped=0.6)
    space.monitor()
    assert states() == ["warning"]  # about level; nobody asked about outcome
    document = json.loads((space.folder / FILE).read_text(encoding="utf-8"))
    (space.folder / FILE).write_text("{", encoding="utf-8")
    assert states() == ["warning"]
    for moment in (math.inf, 1e30, 10**30, "now"):
        document["predicates"]["level"]["at"] = moment
        (space.folder / FILE).write_text(json.dumps(document), encoding="utf-8")
        stored = TrustFile(space.folder).read()
        assert stored is not None
        assert stored.model == ""
    workspaces.add(space, workspaces.evidence("new one", 2))
    trust = space.query("new one", "level").trust
    assert trust is not None
    assert trust.state == "watch"


def test_a_part_is_not_stored(space: Workspace) -> None:
    add_outcomes(space)
    for changes in ({"predicate": "level"}, {"since": NOW - timedelta(1)}, {"save": False}):
        assert not space.monitor(**changes).is_stored  # type: ignore[arg-type]
    assert not (space.folder / FILE).exists()
    assert space.monitor().is_stored
    assert (space.folder / FILE).exists()


def test_outcomes_of_a_file(space: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "outcomes.csv"
    tomorrow = (NOW + timedelta(days=1)).date().isoformat()
    file.write_text(
        "entity_id,predicate,value,date\n"
        f"N0000,level,low,{tomorrow}\nN0001,level,LOW,2020-01-01\nN0002,level,high,\n",
        encoding="utf-8",
    )
    before = space.facts.count()
    (report,) = space.monitor(file, predicate="level").predicates
    assert space.facts.count() == before
    assert report.outcomes == 2  # N0001 was known before anybody asked
    assert report.skipped[TOO_LATE] == 1
    row = f"N0003,level,low,{tomorrow}"
    file.write_text(f"entity_id,predicate,value,date,confidence\n{row},0.2\n", encoding="utf-8")
    unsure = space.monitor(file, predicate="level")
    assert unsure.predicates[0].outcomes == 0  # the row is less sure than a fact that answers
    assert "without 1 less sure than 0.95" in unsure.read_as
    file.write_text("entity_id,predicate,value\nN0000,level,tall\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="tall"):
        space.monitor(file)


def test_texts_unlike_the_training_texts_are_found() -> None:
    def answer(place: int, familiarity: float) -> SealedAnswer:
        items = (f"{place}a", f"{place}b")
        return SealedAnswer(
            f"INF{place:08d}", f"E{place}", place, np.array([0.5, 0.5]), items,
            np.array([1.0, familiarity]),
        )  # fmt: skip

    as_ever = text_drift([answer(place, 1.0 - (place == 3)) for place in range(60)], None)
    changed = text_drift([answer(place, 0.2 * (place % 2)) for place in range(60)], None)
    assert as_ever is not None
    assert not as_ever.is_found
    assert (as_ever.items, as_ever.unlike) == (120, 1)
    assert changed is not None
    assert changed.is_found
    assert changed.unlike == 60
    assert sum(one.items for one in changed.windows) == 120


def test_sources_are_counted_and_tested(space: Workspace) -> None:
    report = level(space)
    assert {one.source for one in report.sources} == {"source 0", "source 1"}
    assert sum(one.items for one in report.sources) == 160
    assert all(one.agreeing_p_value is not None for one in report.sources)


@pytest.mark.parametrize("window", ["", "0", "ten", "10 d", "-3", "1.5d"])
def test_a_window_is_a_number_of_outcomes_or_of_days(space: Workspace, window: str) -> None:
    with pytest.raises(ConfigError) as caught:
        space.monitor(window=window)
    assert caught.value.field == "window"


def test_without_a_model_there_is_nothing_to_monitor(tmp_path: Path) -> None:
    empty = Workspace.create(tmp_path / "empty", workspaces.schema())
    with empty, pytest.raises(LPFError, match="no model"):
        empty.monitor()
