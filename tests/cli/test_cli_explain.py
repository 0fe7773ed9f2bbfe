"""explain: the answer taken apart, as JSON and on the terminal, and what if."""

from __future__ import annotations

import pytest


def test_json_adds_up(lpf) -> None:
    document = lpf.json("explain", "C0001", "level")
    parts = [*document["parts"], *document["items"]]
    assert sum(one["bits"] for one in parts) == pytest.approx(document["log_odds_bits"], abs=1e-9)
    assert document["record_id"] == "INF00000001"
    assert len(document["items"]) == 5
    assert document["sentences"]
    assert sum(document["distribution"].values()) == pytest.approx(1.0)


def test_a_record_is_explained_as_it_was(lpf) -> None:
    live = lpf.json("explain", "C0001", "level")
    recorded = lpf.json("explain", "INF00000001")
    assert recorded["items"] == live["items"]
    assert recorded["distribution"] == live["distribution"]
    assert lpf.json("query", "C0002", "level")["audit_ptr"] == "INF00000002"  # none was added


def test_what_if_has_both_answers_and_records_none(lpf) -> None:
    document = lpf.json("explain", "C0001", "level", "--drop", "C0001_E001,C0001_E002")
    assert len(document["now"]["items"]) == 5
    assert [one["name"] for one in document["then"]["items"]] == [
        f"C0001_E00{number}" for number in (3, 4, 5)
    ]
    assert document["then"]["record_id"] is document["now"]["record_id"] is None
    weighted = lpf.json(
        *("explain", "C0001", "level", "--weight", "C0001_E001=0.5"),
        *("--credibility", "C0001_E002=0.7", "--add", "One more text."),
    )
    by_name = {one["name"]: one for one in weighted["then"]["items"]}
    assert by_name["C0001_E001"]["weight"]["given"] == 0.5
    assert by_name["C0001_E002"]["credibility"] == 0.7
    assert "new-1" in by_name
    assert lpf.json("query", "C0001", "level")["audit_ptr"] == "INF00000001"


def test_two_values_may_be_named(lpf) -> None:
    output = lpf("explain", "C0001", "level", "--between", "medium,high").stdout
    assert "medium against high" in output


@pytest.mark.parametrize(
    "words",
    [
        ["--between", "medium"],
        ["--between", "medium,medium"],
        ["--between", "medium,unknown"],
        ["--weight", "C0001_E001"],
        ["--weight", "C0001_E001=much"],
        ["--weight", "C0001_E001=-1"],
        ["--credibility", "C0001_E001=2"],
        ["--drop", "nobody"],
        ["--fact", "level=low"],
        ["--add", " "],
        ["--drop", ""],
        ["--weight", "nothing=2"],
    ],
)
def test_what_makes_no_sense_is_refused(lpf, words: list[str]) -> None:
    error = lpf.error("explain", "C0001", "level", *words)
    assert "Nothing was" in error
    assert words[0] in error
    assert lpf.json("query", "C0001", "level")["audit_ptr"] == "INF00000001"


def test_every_item_that_is_named_is_dropped(lpf) -> None:
    names = [f"C0001_E00{number}" for number in (1, 2, 3)]
    lists = ["--drop", ",".join(names[:2]), "--drop", names[2]]
    then = lpf.json("explain", "C0001", "level", *lists)["then"]
    assert not {one["name"] for one in then["items"]} & set(names)


def test_a_record_cannot_be_supposed_otherwise(lpf) -> None:
    lpf("explain", "C0001", "level")
    assert lpf.error("explain", "INF00000001", "--drop", "C0001_E001")
    assert lpf.error("explain", "INF00000001", "level")
    assert lpf.error("explain", "INF00000001", "--mode", "paper")


def test_a_record_shows_the_text_that_was_read(lpf) -> None:
    lpf("explain", "C0001", "level")
    lpf("evidence", "edit", "C0001_E001", "--text", "Another text altogether.")
    assert "Another text" not in lpf("explain", "INF00000001").stdout
    assert "Another text" in lpf("explain", "C0001", "level").stdout


def test_a_narrow_terminal_shows_every_number(lpf) -> None:
    output = lpf("explain", "C0001", "level").stdout
    assert all(len(line) <= 80 for line in output.splitlines())
    assert all(f"C0001_E00{number}" in output for number in range(1, 6))


def test_a_page_that_cannot_be_written_is_refused_before_asking(lpf, tmp_path) -> None:
    assert lpf.error("explain", "C0001", "level", "--html", tmp_path)
    assert lpf.error("explain", "C0001", "level", "--html", tmp_path / "none" / "case.html")
    assert not (tmp_path / "none").exists()
    assert lpf.json("query", "C0001", "level")["audit_ptr"] == "INF00000001"
