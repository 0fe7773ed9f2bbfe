"""next: what to collect, as JSON and on the terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import workspaces
from conftest import Commands
from lpf.workspace import Workspace


@pytest.fixture(scope="module")
def stored(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """Enough items about other entities, some of them from a source with a hostile name."""
    folder = tmp_path_factory.mktemp("next") / "workspace"
    shutil.copytree(pristine, folder)
    with Workspace(folder) as space:
        for number in range(3):
            workspaces.add(space, workspaces.evidence(f"D{number:04d}", 4, start=number))
        odd = workspaces.evidence("E0001", 8, source="\x1b[31m[bold]red")
        workspaces.add(space, odd)
        workspaces.add(space, workspaces.evidence("U0001", 1, credibility=0.6))
    return Commands(folder)


def test_json_has_all_numbers_and_nothing_is_recorded(stored) -> None:
    document = stored.json("next", "U0001", "level", "--steps", "2", "--cost", "any=2")
    assert document["value"] in workspaces.LEVELS
    by_kind = {one["kind"]: one for one in document["offers"]}
    assert by_kind["any"]["cost"] == 2.0
    assert by_kind["any"]["bits_per_cost"] == pytest.approx(by_kind["any"]["bits"] / 2.0)
    assert by_kind["any"]["stored"] == 28
    for one in document["offers"]:
        assert 0.0 <= one["bits"] <= document["doubt_bits"]
    assert document["sentences"]
    assert len(document["steps"]) <= 2
    assert stored.json("query", "U0001", "level")["audit_ptr"] == "INF00000001"


def test_the_terminal_shows_a_verdict_and_a_table(stored) -> None:
    output = stored("next", "U0001", "level", "--steps", "2").stdout
    assert "bits of doubt" in output
    assert "not recorded" in output
    assert "28 items" in output
    assert "\x1b[31m" not in output


def test_options_of_a_question_apply(stored) -> None:
    plain = stored.json("next", "C0001", "level")
    few = stored.json("next", "C0001", "level", "--top-k", "1", "--seed", "5")
    assert plain["distribution"] != few["distribution"]
    assert few["seed"] == 5
    assert any("top_k" in note for note in few["notes"])


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["nobody", "level"], "entity_id"),
        (["U0001", "colour"], None),
        (["U0001", "level", "--cost", "moon=2"], "--cost"),
        (["U0001", "level", "--cost", "any"], "--cost"),
        (["U0001", "level", "--cost", "any=much"], "--cost"),
        (["U0001", "level", "--cost", "any=-1"], "--cost"),
        (["U0001", "level", "--steps", "0"], "--steps"),
        (["U0001", "level", "--enough", "95"], "--enough"),
        (["U0001", "level", "--least", "-1"], "--least"),
        (["U0001", "level", "--pool", "1"], "--pool"),
        (["U0001", "level", "--seed", "-1"], "--seed"),
    ],
)
def test_what_makes_no_sense_is_refused(stored, words: list[str], field: str | None) -> None:
    assert stored.refused("next", *words)["field"] == field
