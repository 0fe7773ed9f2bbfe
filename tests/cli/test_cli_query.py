"""query: the answer for machines, and for people at any width."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from lpf.cli.answer_view import show_answer
from lpf.cli.terminal import table
from lpf.items import Items
from lpf.results import FactUsed, QueryResult
from lpf.types import QueryOptions


def test_json_is_the_result(lpf) -> None:
    document = lpf.json("query", "C0001", "level")
    assert sum(document["distribution"].values()) == pytest.approx(1.0)
    assert document["source"] == "inference"
    assert document["audit_ptr"] == "INF00000001"
    assert document["evidence_chain"] == [f"C0001_E00{n}" for n in range(1, 6)]


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--variant", "learned"], "method", "learned"),
        (["--mode", "paper", "--alpha", "1", "--samples", "4", "--seed", "7"], "mode", "paper"),
        (["--sampler", "sobol", "--samples", "8", "--temperature", "0.8"], "method", "spn"),
        (["--top-k", "2"], "evidence_chain", ["C0001_E001", "C0001_E002"]),
        (["--min-credibility", "0.93"], "evidence_chain", ["C0001_E001"]),
        (["--as-of", "2000-01-01"], "source", "none"),
        (["--async-audit"], "audit", "pending"),
        (["--fallback", "learned"], "method", "spn"),
    ],
)
def test_options_reach_the_question(lpf, words: list[str], name: str, value: object) -> None:
    assert lpf.json("query", "C0001", "level", *words)[name] == value


def test_uncertainty_and_text(lpf) -> None:
    document = lpf.json("query", "C0001", "level", "--uncertainty", 8, "--text", "offshore inquiry")
    assert document["uncertainty"]["epistemic"] >= 0
    assert document["evidence_chain"][0] == "C0001_E004"
    shown = lpf("query", "C0001", "level", "--uncertainty", 8).stdout
    assert "doubt     in the answer itself" in shown
    assert "if drawn  over 8 draws, with each item's latent drawn once" in shown
    assert "epistemic" in shown


def test_a_setting_of_the_file_is_named_by_the_file(lpf) -> None:
    settings = lpf.folder / "lpf.toml"
    settings.write_text(settings.read_text() + '\n[query]\nsampler = "plain"\nn_samples = 4\n')
    told = lpf.error("query", "C0001", "level", "--variant", "learned")
    assert "lpf.toml: query.sampler: does not apply to the variant" in told


def test_an_answer_that_is_recorded_later_is_recorded(lpf) -> None:
    assert "pending" in lpf("query", "C0001", "level", "--async-audit").stdout
    assert len(lpf.json("ledger", "show", "--last", 5)["records"]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["C0001"], "say which one"),
        (["C0001", "colour"], "not in the schema"),
        (["C0001", "level", "--mode", "fast"], "--mode: must be one of"),
        (["C0001", "level", "--alpha", "2"], "--alpha: applies in paper mode only"),
        (["C0001", "level", "--as-of", "yesterday"], "--as-of: must be a time"),
        (["C0001", "level", "--top-k", "0"], "--top-k: must be at least 1"),
        (["C0001", "level", "--variant", "foo"], "--variant: must be one of"),
        (["C0001", "level", "--sampler", "foo"], "--sampler: must be one of"),
        (["C0001", "level", "--samples", "0"], "--samples: must be at least 1"),
        (["C0001", "level", "--samples", "4"], "--samples: does not apply"),
        (["C0001", "level", "--temperature", "0"], "--temperature: must be above 0"),
        (["C0001", "level", "--seed", str(2**53)], "--seed: must lie in"),
        (["C0001", "level", "--uncertainty", "1"], "--uncertainty: must be at least 2"),
        (["C0001", "level", "--uncertainty", "-1"], "--uncertainty: must be 0"),
        (["C0001", "level", "--text", " "], "--text: must be words"),
        (["", "level"], "entity_id: must be a text"),
    ],
)
def test_a_wrong_call_is_told(lpf, words: list[str], message: str) -> None:
    assert message in lpf.error("query", *words)


def test_a_folder_that_is_no_workspace(lpf, tmp_path: Path) -> None:
    assert "is no workspace" in type(lpf)(tmp_path).error("query", "C0001", "level")


def test_known_facts_answer_or_take_part(lpf) -> None:
    lpf("facts", "set", "C0001", "outcome", "clean", "--confidence", "0.9")
    shown = lpf("query", "C0001", "level").stdout
    assert "1 known fact" in shown
    assert "clean, believed with 90.00 %" in shown
    lpf("facts", "set", "C0002", "outcome", "clean")
    assert "a known fact answers" in lpf("query", "C0002", "outcome").stdout


def test_a_prior_is_shown_and_not_called_an_answer(lpf) -> None:
    told = lpf("query", "C0099", "outcome").stdout
    assert told.startswith("C0099 · outcome: nothing is known\n")
    assert "this is the prior" in told
    assert "50.00 %" in told
    assert "outcome: nothing is known" in lpf("ledger", "show", "INF00000001").stdout


@pytest.mark.parametrize("command", ["query", "batch"])
def test_help_names_the_defaults_that_leave_items_out(
    lpf, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = " ".join(lpf(command, "--help").stdout.replace("│", " ").split())
    defaults = QueryOptions()
    credibility, top_k = f"{defaults.min_credibility:g}", defaults.top_k
    assert f"Leave items below it out; 0 counts all. {credibility} unless lpf.toml" in told
    assert f"At most so many items. {top_k} unless lpf.toml" in told


def test_what_was_left_out_is_in_the_document_and_on_the_terminal(lpf) -> None:
    asked = ("query", "C0001", "level", "--min-credibility", "0.78", "--top-k", "3")
    assert lpf.json(*asked)["left_out"] == {
        "later_than_as_of": 0,
        "below_credibility": 1,
        "beyond_top_k": 1,
    }
    told = " ".join(lpf(*asked).stdout.split())
    remedy = "--min-credibility 0 --top-k 5"
    reasons = "1 below credibility 0.78, 1 beyond the best 3"
    assert f"left out: {reasons} ({remedy} counts them)" in told
    assert len(lpf.json("query", "C0001", "level", *remedy.split())["evidence_chain"]) == 5


def test_a_name_that_nothing_has_is_told_with_names_near_it(lpf) -> None:
    told = lpf("query", "C00O2", "level").stdout
    assert "no item and no fact names 'C00O2': this is the prior\n" in told
    assert "did you mean C0002 or C0001?" in told
    told = lpf("query", "Quux", "level").stdout
    assert "no item and no fact names 'Quux'" in told
    assert "did you mean" not in told


def test_an_entity_without_items_about_the_question_is_not_called_unknown(lpf) -> None:
    told = lpf("query", "C0001", "outcome").stdout
    assert "no item about outcome and no fact counts: this is the prior" in told
    assert "names" not in told
    lpf("facts", "set", "F1", "outcome", "clean", "--at", "2026-01-01")
    assert "names" not in lpf("query", "F1", "outcome", "--as-of", "2025-01-01").stdout


def test_items_that_were_all_left_out_are_told_as_such(lpf) -> None:
    told = " ".join(lpf("query", "C0001", "level", "--min-credibility", "0.99").stdout.split())
    counted = "5 items, none of which counts: 5 below credibility 0.99"
    assert f"{counted} (--min-credibility 0 counts them)" in told
    assert "no fact counts either: this is the prior" in told
    assert told.count("none of which counts") == 1
    told = lpf("query", "C0001", "level", "--as-of", "2000-01-01").stdout
    assert "5 items, none of which counts: 5 dated later than the question\n" in told
    assert "C0001 · level: nothing is known" in told


def test_facts_alone_answer_and_what_was_left_out_is_still_told(lpf) -> None:
    lpf("facts", "set", "C0001", "level", "low", "--confidence", "0.5")
    told = lpf("query", "C0001", "level", "--min-credibility", "0.99").stdout
    assert "the circuit, from 1 known fact alone" in told
    assert "left out: 5 below credibility 0.99 (--min-credibility 0 counts them)\n" in told


def test_whole_texts_with_source_and_date_on_request(lpf) -> None:
    words = ("query", "C0001", "level")
    sentence = "C0001: The auditor found two late payments and one missing form."
    assert sentence not in lpf(*words).stdout
    lines = lpf(*words, "--full").stdout.splitlines()
    place = [line.strip() for line in lines].index(sentence)
    assert lines[place - 1].split()[0] == "C0001_E002"
    assert re.fullmatch(r" +source: source 1, \d{4}-\d\d-\d\d \d\d:\d\d *", lines[place + 1])
    assert "--full: is about what people are shown" in lpf.error(*words, "--full", "--json")


def result() -> QueryResult:
    """An answer with everything an answer can have."""
    potential = np.array([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    used = Items(
        np.zeros((3, 1), np.float32),
        ids=("E001", "E002", "a-name-of-thirty-six-characters-or-so"),
        commitments=(b"1", b"2", b"3"),
        credibility=np.array([0.95, 0.9, np.nan]),
        groups=np.array([0, 0, -1]),
        sources=np.array([0, 1, 2]),
        scores=np.array([0.9, 0.8, 0.7]),
        considered=7,
        below_credibility=3,
        dated_later=0,
        cut=1,
        weight=np.array([0.6, 0.6, 0.9]),
        potential=potential,
        mean_sigma=np.ones(3),
        contributions=np.log(potential) - [[0, 0, 0], [0, 0, 0], [0, np.inf, 0]],
    )
    return QueryResult(
        "C0001",
        "compliance_level",
        ("low", "medium", "high"),
        (0.08, 0.0, 0.92),
        "inference",
        "spn",
        QueryOptions(uncertainty_samples=64),
        0,
        0,
        evidence=used,
        facts=(FactUsed(4, "audit_outcome", "qualified", 0.9, 10**15, "soft", 0.81),),
        uncertainty={"aleatoric": 0.2, "epistemic": 0.1, "gap": 0.0},
        notes=("a note",),
        stages={"retrieval": 1.0, "reasoning": 0.5},
        audit="recorded",
        audit_ptr="INF00000042",
    )


LONG = "Filed [on] time. " * 20


def shown(
    width: int,
    answer: QueryResult,
    origins: dict[str, str] | None = None,
    near: list[str] | None = None,
) -> str:
    output = io.StringIO()
    texts = {"E001": LONG, "E002": "Filed\non time."}
    show_answer(Console(width=width, file=output, highlight=False), answer, texts, origins, near)
    return output.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_everything_is_shown_within_the_width(width: int) -> None:
    text = shown(width, result())
    assert max(len(line) for line in text.splitlines()) <= width
    for part in ("92.00 %", "INF00000042", "a note", "high 70 %", "#1", "Filed [on]", "(erased)"):
        assert part in text, part
    for part in ("3 below credibility 0.5", "1 beyond the best 5", "qualified", "81.00 %"):
        assert part in text, part


@pytest.mark.parametrize("width", [60, 80, 120])
def test_whole_texts_wrap_to_the_width(width: int) -> None:
    text = shown(width, result(), {"E001": "source: registry, 2026-01-01"})
    lines = [line.rstrip() for line in text.splitlines()]
    assert max(map(len, lines)) <= width
    assert LONG.strip() in " ".join(text.split())
    first, second = (next(n for n, row in enumerate(lines) if id in row) for id in ("E001", "E002"))
    assert lines[second - 1] == "    source: registry, 2026-01-01"
    assert second - first > 3
    assert lines[second + 1 : second + 3] == ["    Filed", "    on time."]
    assert "(erased)" in text
    heading = lines[first - 1]
    assert heading.split() == ["item", "says", "adds", "weight", "credible", "copies"]
    assert lines[first].index("0.95") + 4 == heading.index("credible") + len("credible")


def test_names_are_whole_and_numbers_are_not_cut() -> None:
    text = shown(80, result())
    assert "a-name-of-thirty-six" in text
    assert "-characters-or-so" in text
    assert "-1.79" in text
    assert "?" in text  # a credibility that nobody knows


@pytest.mark.parametrize("width", [56, 60, 64, 68, 72])
def test_below_80_columns_names_lose_their_middle_before_numbers_wrap(width: int) -> None:
    lines = shown(width, result()).splitlines()
    assert max(map(len, lines)) <= width
    (heading,) = [line for line in lines if line.lstrip().startswith("item")]
    assert heading.split()[:6] == ["item", "says", "adds", "weight", "credible", "copies"]
    (row,) = [line for line in lines if line.lstrip().startswith("a-")]
    for part in ("low 60 %", "-1.79", "0.90", "?"):
        assert part in row, (part, row)
    assert re.match(r" *a-\S*…\S*so ", row)


def test_dates_and_numbers_stay_whole_in_a_narrow_list() -> None:
    output = io.StringIO()
    names = ("near", "item", "entity", "credible", "date", "text")
    row = ["0.68", "a-name-of-thirty-six-characters-or-so", "C0001", "0.87", "2026-02-01", "A text"]
    made = table(names, [row], right=("near", "credible"), flexible="text")
    Console(width=56, file=output).print(made)
    heading, line = output.getvalue().splitlines()
    assert heading.split() == list(names)
    assert line.split()[:5] == ["0.68", "a-name…or-so", "C0001", "0.87", "2026-02-01"]


def test_one_value_and_very_many_values_are_shown_too() -> None:
    def prior(values: tuple[str, ...]) -> QueryResult:
        chances = [1 / len(values)] * len(values)
        return QueryResult("C", "p", values, chances, "none", "prior", QueryOptions(), 0, 0)

    assert "100.00 %" in shown(80, prior(("only",)))
    assert "38 others" in shown(80, prior(tuple(map(str, range(50)))))
