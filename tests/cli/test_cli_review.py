"""``lpf review``: the commands, what they print, and what a blind pass must not show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FIRST = "INF00000001"


@pytest.fixture
def reviewed(lpf, monkeypatch: pytest.MonkeyPatch):
    """Commands in a workspace with one answer; the reviewer is ann unless another is named."""
    monkeypatch.setenv("LPF_USER", "ann")
    lpf("query", "C0001", "level")
    return lpf


def test_from_blind_pass_to_fact(reviewed) -> None:
    answer = reviewed.json("ledger", "show", FIRST)
    value = answer["top_value"]
    wrong = next(one for one in ("low", "medium", "high") if one != value)
    (queued,) = reviewed.json("review", "queue")["answers"]
    assert queued["record_id"] == FIRST
    blind = reviewed.json("review", "blind", "C0001", "level", "--value", wrong)
    shown = reviewed.json("review", "reveal", "C0001", "level", "--override", wrong)
    assert (shown["value"], shown["agrees"]) == (value, False)
    assert shown["review"]["follows"] == blind["record_id"]
    reviewed("review", "accept", FIRST, "--reviewer", "ben")
    assert reviewed.json("review", "show", FIRST)["status"] == "disputed"
    reviewed("review", "adjudicate", FIRST, wrong, "--reviewer", "eve", "--comment", "certain")
    planned = reviewed.json("review", "apply", "--as", "facts", "--dry-run")
    assert planned["applied"][0]["value"] == wrong
    assert "1 answer became facts" in reviewed("review", "apply", "--as", "facts").stdout
    assert reviewed.json("review", "apply", "--as", "facts")["unchanged"] == 1
    assert reviewed.json("ledger", "verify")["ok"]
    assert reviewed.json("review", "queue")["answers"] == []


@pytest.mark.parametrize("as_json", [True, False])
def test_a_blind_pass_shows_nothing_of_the_answer(reviewed, as_json: bool) -> None:
    """Neither the case nor what is said after the value was given."""
    answer = reviewed.json("ledger", "show", FIRST)
    more = ["--json"] if as_json else []
    seen = reviewed("review", "blind", "C0001", "level", *more).output
    seen += reviewed("review", "blind", "C0001", "level", "--value", "unsure", *more).output
    assert "Filings were complete" in seen
    assert FIRST not in seen
    assert f"{answer['confidence']:.2f}" not in seen
    assert f"{100 * answer['confidence']:.1f}" not in seen
    for word in ("accept", "override", "confidence", "distribution"):
        assert word not in seen


def test_judgements_are_read_from_options(reviewed) -> None:
    words = ["review", "unsure", FIRST, "--exclude", "C0001_E001", "--reweight", "C0001_E002=0.5"]
    words += ["--duplicate", "C0001_E003=C0001_E004", "--reason", "C0001_E001=a=b"]
    document = reviewed.json(*words)
    assert document["judgements"] == [
        {"kind": "exclude", "item": "C0001_E001", "reason": "a=b"},
        {"kind": "reweight", "item": "C0001_E002", "weight": 0.5, "reason": None},
        {"kind": "duplicate", "item": "C0001_E003", "of": "C0001_E004", "reason": None},
    ]
    assert document["revised"].keys() == {"low", "medium", "high"}
    assert reviewed.json("ledger", "replay", document["record_id"])["agrees"]
    refused = reviewed.refused("ledger", "replay", document["record_id"], "--deep")
    assert (refused["kind"], refused["field"]) == ("ReplayError", "deep")


@pytest.mark.parametrize(
    ("words", "kind", "field"),
    [
        (["accept", "INF00000099"], "UnknownRecordError", None),
        (["override", FIRST, "enormous"], "UnknownValueError", "value"),
        (["accept", FIRST, "--exclude", "X"], "ReviewError", "item"),
        (["accept", FIRST, "--reweight", "C0001_E001"], "ConfigError", "--reweight"),
        (["accept", FIRST, "--duplicate", "C0001_E001"], "ConfigError", "--duplicate"),
        (["accept", FIRST, "--reason", "C0001_E001=x"], "ConfigError", "--reason"),
        (["reveal", "C0001", "level"], "ReviewError", "entity"),
        (["reveal", FIRST], "ReviewError", "record"),
        (["reveal", FIRST, "level"], "ConfigError", "predicate"),
        (["reveal", "C0001", "level", "--accept", "--unsure"], "ConfigError", "verdict"),
        (["withdraw", FIRST], "ReviewError", "record"),
        (["adjudicate", FIRST, "low"], "ReviewError", "record"),
        (["queue", "--sample", "2"], "ConfigError", "sample"),
        (["queue", "--accuracy", "nan"], "ConfigError", "accuracy"),
        (["export", "reviews.ods"], "ConfigError", "FILE"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_calls_are_named(reviewed, words: list[str], kind: str, field: str | None) -> None:
    error = reviewed.refused("review", *words)
    assert (error["kind"], error["field"]) == (kind, field)


def test_reviews_are_shown_with_the_answer(reviewed, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\x1b[2J"
    words = ["review", "accept", FIRST, "--reweight", "C0001_E001=3", "--comment", hostile]
    review = reviewed.json(*words, "--reviewer", "b<b>en")["record_id"]
    for shown in (
        reviewed("explain", FIRST).stdout,
        reviewed("ledger", "show", FIRST).stdout,
        reviewed("review", "show", FIRST).stdout,
    ):
        assert review in shown
        assert "b<b>en" in shown
        assert "\x1b[2J" not in shown
    for document in (reviewed.json("explain", FIRST), reviewed.json("ledger", "show", FIRST)):
        assert document["feedback"]["reviews"][0]["comment"] == hostile
    record = reviewed.json("ledger", "show", review)
    assert record["comment_words"]["comment"] == hostile
    assert hostile not in json.dumps(record["comment"])
    assert "review" in reviewed("ledger", "show", review).stdout
    assert "review" in reviewed("ledger", "show", "--last", 2).stdout
    page = tmp_path / "case.html"
    reviewed("explain", FIRST, "--html", page)
    html = page.read_text()
    assert "<h2>Reviews</h2>" in html
    assert "<script>" not in html
    assert review in html
    assert reviewed.json("ledger", "forget", review, "--yes")["erased"] == 1
    assert "erased" in reviewed("review", "show", FIRST).stdout
    assert "has no comment" not in reviewed("ledger", "forget", review, "--yes").stdout


def test_agreement_and_export(reviewed, tmp_path: Path) -> None:
    assert "no blind passes" in reviewed("review", "agreement").stdout
    for name in ("ann", "ben"):
        reviewed("review", "blind", "C0001", "level", "--value", "low", "--reviewer", name)
        reviewed("review", "blind", "C0002", "level", "--value",
                 "low" if name == "ann" else "high", "--reviewer", name)  # fmt: skip
    (found,) = reviewed.json("review", "agreement", "--seed", 3)["predicates"]
    assert found["alpha"] == pytest.approx(0.0)
    assert "ann and ben" in reviewed("review", "agreement").stdout
    target = tmp_path / "reviews.jsonl"
    assert reviewed.json("review", "export", target)["rows"] == 4
    assert len(target.read_text().splitlines()) == 4
