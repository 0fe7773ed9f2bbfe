"""Explanations of real answers in every mode: parts add up, leave-one-out is asking again, a record
explains itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lpf.errors import ConfigError, UnknownValueError
from lpf.explain import Changes, sentences
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from workspaces import LEVELS, TEXTS, add, evidence, make

MODES = {
    "robust": QueryOptions(),
    "paper": QueryOptions.paper(),
    "learned": QueryOptions(variant="learned"),
    "few": QueryOptions(top_k=2),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with make(Path(tmp_path_factory.mktemp("explain") / "space")) as space:
        same = f"C0003: {TEXTS[0]}"
        add(space, evidence("C0003", 3, text_content=same))  # three copies
        add(space, evidence("C0004", 1))
        yield space


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("entity", ["C0001", "C0002", "C0003", "C0004", "nobody"])
def test_parts_sum_to_the_log_odds(workspace: Workspace, entity: str, mode: str) -> None:
    found = workspace.explain(entity, "level", MODES[mode], audit="off")
    for value in LEVELS:
        for against in LEVELS:
            total = sum(bits for _, bits in found.between(value, against))
            assert total == pytest.approx(found.log_odds(value, against), abs=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("entity", ["C0001", "C0002", "C0003", "C0004"])
def test_without_an_item_is_asking_again(workspace: Workspace, entity: str, mode: str) -> None:
    found = workspace.explain(entity, "level", MODES[mode], audit="off")
    for item in found.items:
        again = workspace.what_if(entity, "level", Changes(drop=(item.name,)), MODES[mode])
        assert item.without is not None
        # LPF-Learned runs its networks in float32.
        tolerance = 1e-5 if mode == "learned" else 1e-9
        np.testing.assert_allclose(again.probabilities, item.without, rtol=0, atol=tolerance)
        assert item.name not in [other.name for other in again.items]


@pytest.mark.parametrize("mode", ["robust", "paper", "few"])
def test_a_record_explains_itself(workspace: Workspace, mode: str) -> None:
    live = workspace.explain("C0001", "level", MODES[mode])
    assert live.record_id is not None
    recorded = workspace.explain_record(live.record_id)
    # A record has no sources, unless they were weighed by, and no items that were not used.
    unknown = {"source_conflict": None, "not_used": None}
    assert recorded.to_dict() == live.to_dict() | unknown


def test_a_record_of_the_learned_variant_says_what_is_missing(workspace: Workspace) -> None:
    live = workspace.explain("C0001", "level", MODES["learned"])
    assert live.record_id is not None
    recorded = workspace.explain_record(live.record_id)
    assert all(item.without is None for item in recorded.items)
    assert any("LPF-Learned" in note for note in recorded.notes)


def test_the_flip_changes_the_answer(workspace: Workspace) -> None:
    found = workspace.explain("C0001", "level", audit="off")
    if found.flip is None:
        for item in found.items:
            assert item.without is not None
            assert found.values[int(item.without.argmax())] == found.ranked[0]
        return
    again = workspace.what_if("C0001", "level", Changes(drop=found.flip.evidence_ids))
    assert again.ranked[0] == found.flip.value != found.ranked[0]


def test_weights_multiply(workspace: Workspace) -> None:
    found = workspace.explain("C0003", "level", audit="off")
    for item in found.items:
        weight = item.weight
        factors = (
            *(weight.copies, weight.familiarity, weight.relevance),
            *(weight.shared, weight.trust),
        )
        product = np.prod([one for one in factors if one is not None])
        assert weight.total == pytest.approx(product)
        assert weight.copies == pytest.approx(1 / 3)
        assert len(item.copies_of) == 2


def test_a_text_that_repeats_an_item_becomes_its_copy(workspace: Workspace) -> None:
    text = f"C0004: {TEXTS[0]}"
    found = workspace.what_if("C0004", "level", Changes(add=(text,)))
    first, new = found.items
    assert new.name == "new-1"
    assert new.copies_of == (first.name,)
    plain = workspace.explain("C0004", "level", audit="off")
    np.testing.assert_allclose(found.probabilities, plain.probabilities, atol=0.02)


def test_an_added_text_counts(workspace: Workspace) -> None:
    found = workspace.what_if("C0004", "level", Changes(add=(TEXTS[3], TEXTS[5])))
    assert [item.name for item in found.items] == ["C0004_E001", "new-1", "new-2"]
    alone = workspace.what_if("nobody", "level", Changes(add=(TEXTS[3],)))
    assert len(alone.items) == 1


def test_weight_zero_is_no_item_and_weight_one_changes_nothing(workspace: Workspace) -> None:
    plain = workspace.explain("C0002", "level", audit="off")
    same = workspace.what_if("C0002", "level", Changes(weights={"C0002_E001": 1.0}))
    np.testing.assert_allclose(same.probabilities, plain.probabilities, atol=1e-12)
    nothing = workspace.what_if("C0002", "level", Changes(weights={"C0002_E001": 0.0}))
    without = workspace.what_if("C0002", "level", Changes(drop=("C0002_E001",)))
    np.testing.assert_allclose(nothing.probabilities, without.probabilities, atol=1e-12)


def test_another_credibility_counts_as_if_it_were_stored(workspace: Workspace) -> None:
    changes = Changes(credibility={"C0002_E001": 0.6, "C0002_E002": None})
    found = workspace.what_if("C0002", "level", changes)
    by_name = {item.name: item for item in found.items}
    assert by_name["C0002_E001"].credibility == 0.6
    assert by_name["C0002_E002"].credibility is None
    assert by_name["C0002_E001"].weight.doubt == pytest.approx(0.4)  # nothing was fitted
    # Below the minimum credibility a question leaves an item out.
    below = workspace.what_if("C0002", "level", Changes(credibility={"C0002_E001": 0.1}))
    assert "C0002_E001" not in [item.name for item in below.items]


def test_nothing_is_recorded_or_stored(workspace: Workspace) -> None:
    before = workspace.records.size
    items = workspace.evidence.count()
    workspace.what_if("C0001", "level", Changes(drop=("C0001_E001",), add=("A new text.",)))
    assert (workspace.records.size, workspace.evidence.count()) == (before, items)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (Changes(drop=("C0002_E001",)), ConfigError),  # of another entity
        (Changes(weights={"C0001_E009": 0.5}), ConfigError),
        (Changes(facts={"level": "low"}), ConfigError),  # the predicate itself
        (Changes(facts={"outcome": "nothing"}), UnknownValueError),
    ],
)
def test_changes_that_make_no_sense_are_refused(
    workspace: Workspace, changes: Changes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        workspace.what_if("C0001", "level", changes)


@pytest.mark.parametrize(
    "changes",
    [Changes(weights={"C0001_E001": 0.5}), Changes(credibility={"C0001_E001": 0.9})],
)
@pytest.mark.parametrize("mode", ["paper", "learned"])
def test_weights_and_credibility_need_robust_mode(
    workspace: Workspace, changes: Changes, mode: str
) -> None:
    with pytest.raises(ConfigError):
        workspace.what_if("C0001", "level", changes, MODES[mode])


def test_a_weight_of_zero_is_not_called_unfamiliar(workspace: Workspace) -> None:
    found = workspace.what_if("C0001", "level", Changes(weights={"C0001_E001": 0.0}))
    item = next(one for one in found.items if one.name == "C0001_E001")
    assert item.weight.given == item.weight.total == 0.0
    assert item.weight.familiarity in (None, 1.0)


def test_texts_added_where_nothing_was_known_have_no_note_of_that(workspace: Workspace) -> None:
    found = workspace.what_if("nobody", "level", Changes(add=(TEXTS[3],)))
    assert not any("no evidence" in note for note in found.notes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": {"E": -1.0}},
        {"weights": {"E": float("nan")}},
        {"credibility": {"E": 1.5}},
        {"add": (" ",)},
    ],
)
def test_impossible_changes_are_refused_at_once(wrong: dict) -> None:
    with pytest.raises(ConfigError):
        Changes(**wrong)


def test_sentences_name_the_strongest_items(workspace: Workspace) -> None:
    found = workspace.explain("C0001", "level", audit="off")
    lines = sentences(found)
    value, against = found.ranked[:2]
    strongest = max(found.between(value, against), key=lambda one: one[1])[0]
    assert value in lines[0]
    assert against in lines[0]
    if strongest.kind == "item":
        assert strongest.name in lines[0]
    copies = sentences(workspace.explain("C0003", "level", audit="off"))
    assert any("repeats" in line for line in copies)
    nothing = sentences(workspace.explain("nobody", "level", audit="off"))
    assert len(nothing) == 1
