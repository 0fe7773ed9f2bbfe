"""Items that were found and not used: every reason, with IDs, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lpf.explain import AnswerExplanation, Changes
from lpf.explain.sentences import not_used
from lpf.items import MOST_UNUSED
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from workspaces import TEXTS, add, days_ago, evidence, make

MANY = MOST_UNUSED + 5


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with make(Path(tmp_path_factory.mktemp("unused") / "space")) as space:
        add(space, evidence("C0003", 3, text_content=f"C0003: {TEXTS[0]}"))  # three copies
        add(space, evidence("C0005", MANY, credibility=0.1))
        yield space


def by_reason(found: AnswerExplanation) -> dict[str, tuple[int, tuple[str, ...]]]:
    assert found.not_used is not None
    return {one.why: (one.count, one.evidence_ids) for one in found.not_used}


def test_items_beyond_top_k_are_named_best_first(workspace: Workspace) -> None:
    everything = workspace.explain("C0001", "level", audit="off")
    assert everything.not_used == ()
    found = workspace.explain("C0001", "level", QueryOptions(top_k=2), audit="off")
    ((why, (count, ids)),) = by_reason(found).items()
    used = [item.name for item in found.items]
    assert count == len(everything.items) - 2 == len(ids)
    assert [*used, *ids] == [item.name for item in everything.items]
    assert "2" in why


def test_a_copy_beyond_top_k_names_the_item_it_repeats(workspace: Workspace) -> None:
    found = workspace.explain("C0003", "level", QueryOptions(top_k=1), audit="off")
    assert found.not_used is not None
    (beyond,) = found.not_used
    assert set(beyond.repeats) == set(beyond.evidence_ids)
    assert set(beyond.repeats.values()) == {found.items[0].name}
    assert f"repeats {found.items[0].name}" in str(found)


def test_below_the_minimum_credibility_the_first_are_named_and_all_counted(
    workspace: Workspace,
) -> None:
    found = workspace.explain("C0005", "level", audit="off")
    ((count, ids),) = by_reason(found).values()
    assert (count, len(ids)) == (MANY, MOST_UNUSED)
    assert ids == tuple(sorted(ids))
    ((_, named),) = not_used(found)
    assert "5 more" in named
    document = found.to_dict()["not_used"]
    assert document[0]["count"] == MANY


def test_items_dated_later_are_named(workspace: Workspace) -> None:
    options = QueryOptions(as_of=days_ago(4000))
    found = workspace.explain("C0001", "level", options, audit="off")
    reasons = by_reason(found)
    assert sum(count for count, _ in reasons.values()) == 5
    assert any("later" in why for why in reasons)


def test_what_if_keeps_them_and_a_record_does_not_say(workspace: Workspace) -> None:
    options = QueryOptions(top_k=2)
    live = workspace.explain("C0001", "level", options)
    changes = Changes(drop=(live.items[0].name,))
    supposed = workspace.what_if("C0001", "level", changes, options)
    assert supposed.not_used == live.not_used
    assert live.record_id is not None
    recorded = workspace.explain_record(live.record_id)
    assert recorded.not_used is None
    assert recorded.to_dict()["not_used"] is None
