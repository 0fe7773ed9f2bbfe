"""query: the answer as JSON, and on terminals of any width."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from lpf.cli.answer_view import show_answer
from lpf.cli.exits import EXIT_NO_ANSWER
from lpf.cli.terminal import table
from lpf.items import Items
from lpf.options import MOST_ITEMS
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
        (["--mode", "paper", "--alpha", "1", "--n-samples", "4", "--seed", "7"], "mode", "paper"),
        (["--sampler", "sobol", "--n-samples", "8", "--temperature", "0.8"], "method", "spn"),
        (["--top-k", "2"], "evidence_chain", ["C0001_E001", "C0001_E002"]),
        (["--min-credibility", "0.93"], "evidence_chain", ["C0001_E001"]),
        (["--as-of", "2099-12-31"], "as_of", "2099-12-31T00:00:00.000000Z"),
        (["--async-audit"], "audit", "pending"),
        (["--fallback", "learned"], "method", "spn"),
    ],
)
def test_options_reach_the_question(lpf, words: list[str], name: str, value: object) -> None:
    assert lpf.json("query", "C0001", "level", *words)[name] == value


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--sampler", "sobol", "--samples", "8"], ["--sampler", "sobol", "--n-samples", "8"]),
        (["--text", "offshore inquiry"], ["--query-text", "offshore inquiry"]),
        (["--uncertainty", "4"], ["--uncertainty-samples", "4"]),
    ],
)
def test_earlier_names_of_options_still_work(lpf, old: list[str], new: list[str]) -> None:
    first, second = (lpf.json("query", "C0001", "level", *words) for words in (old, new))
    for name in ("distribution", "uncertainty", "evidence_chain"):
        assert first[name] == second[name]
    shown = lpf("query", "--help").stdout
    assert old[-2] not in shown.split()
    assert new[-2] in shown
    error = lpf.refused("query", "C0001", "level", *old, *new[-2:])
    assert error["field"] == old[-2]


def test_uncertainty_and_text(lpf) -> None:
    words = ("--uncertainty-samples", 8, "--query-text", "offshore inquiry")
    document = lpf.json("query", "C0001", "level", *words)
    assert document["uncertainty"]["epistemic"] >= 0
    assert document["evidence_chain"][0] == "C0001_E004"
    shown = lpf("query", "C0001", "level", "--uncertainty-samples", 8).stdout
    for part in ("uncertainty", "entropy", "bits", "8 draws", "aleatoric", "epistemic"):
        assert part in shown, part


def test_a_wrong_setting_in_the_file_is_named_by_the_file(lpf) -> None:
    settings = lpf.folder / "lpf.toml"
    settings.write_text(settings.read_text() + '\n[query]\nsampler = "plain"\nn_samples = 4\n')
    printed = lpf.error("query", "C0001", "level", "--variant", "learned")
    assert "lpf.toml: query.sampler: does not apply to the variant" in printed
    error = lpf.refused("query", "C0001", "level", "--variant", "learned")
    assert error["field"] == "lpf.toml: query.sampler"


@pytest.fixture
def joined(lpf, tmp_path: Path):
    """Clean outcomes go with high levels; C0001 and C0009 have evidence about their outcome."""
    facts = ["entity_id,predicate,value,timestamp"]
    for number in range(60):
        level, outcome = (("high", "clean"), ("low", "qualified"))[number % 2]
        facts += [f"K{number},level,{level},2026-01-01", f"K{number},outcome,{outcome},2026-01-01"]
    (tmp_path / "facts.csv").write_text("\n".join(facts))
    lpf("facts", "add", tmp_path / "facts.csv")
    lpf("facts", "learn")
    rows = ["entity_id,predicate,text,evidence_id,source"]
    for entity in ("C0001", "C0009"):
        for number in range(2):
            text = f"The auditor signed note {number} of {entity}."
            rows.append(f"{entity},outcome,{text},{entity}_R{number},audit office")
    (tmp_path / "evidence.csv").write_text("\n".join(rows))
    lpf("ingest", tmp_path / "evidence.csv")
    return lpf


def test_related_evidence_is_shown_with_what_it_adds(joined) -> None:
    document = joined.json("query", "C0001", "level")
    (related,) = document["related"]
    assert (related["predicate"], related["evidence_chain"]) == (
        "outcome",
        ["C0001_R0", "C0001_R1"],
    )
    shown = joined("query", "C0001", "level").stdout
    versus = sorted(document["distribution"], key=document["distribution"].get)[:-3:-1]
    odds = related["contribution"][versus[0]] - related["contribution"][versus[1]]
    (row,) = re.findall(r"\n  outcome +\S+ \d+ % +(\S+) +2 of 2 *\n", shown)
    assert row == f"{odds / np.log(2.0):+.2f}"
    assert "2 items about outcome" in shown.split("\n")[1]
    assert "C0001_R0" not in shown
    assert "C0001_R0, C0001_R1" in joined("query", "C0001", "level", "--verbose").stdout
    full = joined("query", "C0001", "level", "--full").stdout
    for part in ("C0001_R1: The auditor signed note 1 of C0001.", "source: audit office"):
        assert part in full


def test_an_answer_from_related_evidence_alone(joined) -> None:
    assert joined.json("query", "C0009", "level")["source"] == "related"
    shown = joined("query", "C0009", "level").stdout
    assert "based on 2 items about outcome" in shown
    assert "no answer" not in shown
    assert "Related evidence" in joined("ledger", "show", "INF00000002").stdout
    assert "C0009_R1" in joined("ledger", "show", "INF00000002").stdout
    assert joined.json("ledger", "replay", "INF00000001", "--deep")["agrees"]
    off = joined.json("query", "C0009", "level", "--no-related-evidence", code=4)
    assert (off["source"], off["related"]) == ("none", [])
    on = joined.json("query", "C0009", "level", "--related-evidence")
    assert on["source"] == "related"
    error = joined.refused("query", "C0009", "level", "--related-evidence", "--mode", "paper")
    assert error["field"] == "--related-evidence"


def test_related_evidence_is_turned_off_in_the_settings(joined) -> None:
    settings = joined.folder / "lpf.toml"
    settings.write_text(settings.read_text() + "\n[query]\nrelated_evidence = false\n")
    assert joined.json("query", "C0001", "level")["related"] == []
    assert joined.json("query", "C0001", "level", "--variant", "learned")["related"] == []
    assert joined.json("query", "C0001", "level", "--related-evidence")["related"]


def test_an_answer_that_is_recorded_later_is_recorded(lpf) -> None:
    assert "pending" in lpf("query", "C0001", "level", "--async-audit").stdout
    assert len(lpf.json("ledger", "show", "--last", 5)["records"]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["C0001"], "outcome"),
        (["C0001", "colour"], "not in the schema"),
        (["", "level"], "entity_id"),
    ],
)
def test_a_wrong_question_is_refused(lpf, words: list[str], message: str) -> None:
    assert message in lpf.error("query", *words)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--alpha", "2", "paper mode only"),
        ("--as-of", "yesterday", "must be a time"),
        ("--top-k", "0", "from 1 to"),
        ("--n-samples", "0", "from 1 to"),
        ("--n-samples", "4", "does not apply"),
        ("--temperature", "0", "above 0"),
        ("--seed", str(2**53), "from 0 to 9,007,199,254,740,991"),
        ("--uncertainty-samples", "1", "at least 2"),
        ("--uncertainty-samples", "-1", "from 0 to 10,000"),
        ("--query-text", " ", "not blank"),
    ],
)
def test_a_wrong_option_is_named_as_it_was_given(
    lpf, option: str, value: str, message: str
) -> None:
    assert f"lpf: {option}: " in lpf.error("query", "C0001", "level", option, value)
    error = lpf.refused("query", "C0001", "level", option, value)
    assert (error["kind"], error["field"]) == ("ConfigError", option)
    assert message in error["message"]


@pytest.mark.parametrize("option", ["--mode", "--variant", "--sampler", "--fallback"])
def test_choices_are_checked_before_anything_is_opened(lpf, option: str) -> None:
    error = lpf.refused("query", "C0001", "level", option, "nonsense")
    assert (error["kind"], error["field"]) == ("UsageError", option)
    assert "'nonsense' is not one of" in error["message"]


def test_a_folder_that_is_not_a_workspace(lpf, tmp_path: Path) -> None:
    assert "workspace" in type(lpf)(tmp_path).error("query", "C0001", "level")


def test_known_facts_answer_or_take_part(lpf) -> None:
    lpf("facts", "set", "C0001", "outcome", "clean", "--confidence", "0.9")
    shown = lpf("query", "C0001", "level").stdout
    assert "1 known fact" in shown
    assert "clean, 90.00 % sure" in shown
    lpf("facts", "set", "C0002", "outcome", "clean")
    assert "a known fact answers" in lpf("query", "C0002", "outcome").stdout


def test_a_prior_is_not_presented_as_an_answer(lpf) -> None:
    printed = lpf("query", "C0099", "outcome", code=EXIT_NO_ANSWER).stdout
    assert printed.startswith("C0099 · outcome: no answer\n")
    assert "prior" in printed
    assert "50.00 %" in printed
    assert "outcome: no answer" in lpf("ledger", "show", "INF00000001").stdout
    document = lpf.json("query", "C0099", "outcome", code=EXIT_NO_ANSWER)
    assert (document["top_value"], document["confidence"]) == (None, None)
    assert document["distribution"] == {"clean": 0.5, "qualified": 0.5}


@pytest.mark.parametrize("command", ["query", "batch"])
def test_help_names_the_defaults_that_leave_items_out(
    lpf, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = " ".join(lpf(command, "--help").stdout.replace("│", " ").split())
    assert "credibility; 0 uses all. [default: the model's; paper: 0.5]" in printed
    assert f"at most this many items. [default: {MOST_ITEMS}; paper: 5]" in printed


def test_what_was_left_out_is_in_the_document_and_on_the_terminal(lpf) -> None:
    asked = ("query", "C0001", "level", "--min-credibility", "0.78", "--top-k", "3")
    assert lpf.json(*asked)["left_out"] == {
        "later_than_as_of": 0,
        "below_credibility": 1,
        "beyond_top_k": 1,
        "damaged": 0,
    }
    printed = " ".join(lpf(*asked).stdout.split())
    remedy = "--min-credibility 0 --top-k 5"
    reasons = "1 below credibility 0.78, 1 beyond the best 3"
    assert f"left out: {reasons} ({remedy} includes them)" in printed
    assert len(lpf.json("query", "C0001", "level", *remedy.split())["evidence_chain"]) == 5


def test_an_unknown_entity_is_reported_with_similar_names(lpf) -> None:
    assert lpf.json("query", "C00O2", "level", code=EXIT_NO_ANSWER)["similar"] == ["C0002", "C0001"]
    printed = lpf("query", "C00O2", "level", code=EXIT_NO_ANSWER).stdout
    assert "no item and no fact is about 'C00O2'" in printed
    assert "did you mean C0002 or C0001?" in printed
    printed = lpf("query", "Quux", "level", code=EXIT_NO_ANSWER).stdout
    assert "no item and no fact is about 'Quux'" in printed
    assert "did you mean" not in printed


def test_an_entity_without_items_about_the_question_is_not_called_unknown(lpf) -> None:
    printed = lpf("query", "C0001", "outcome", code=EXIT_NO_ANSWER).stdout
    assert "no item about outcome and no fact counts" in printed
    assert "is about" not in printed
    lpf("facts", "set", "F1", "outcome", "clean", "--at", "2026-01-01")
    earlier = ("query", "F1", "outcome", "--as-of", "2025-01-01")
    assert "is about" not in lpf(*earlier, code=EXIT_NO_ANSWER).stdout
    assert lpf.json(*earlier, code=EXIT_NO_ANSWER)["similar"] is None


def test_items_that_were_all_left_out_are_reported(lpf) -> None:
    asked = ("query", "C0001", "level", "--min-credibility", "0.99")
    printed = " ".join(lpf(*asked, code=EXIT_NO_ANSWER).stdout.split())
    assert "5 below credibility 0.99 (--min-credibility 0 includes them)" in printed
    assert "no fact counts either" in printed
    assert printed.count("5 below credibility") == 1
    printed = lpf("query", "C0001", "level", "--as-of", "2000-01-01", code=EXIT_NO_ANSWER).stdout
    assert "5 dated later" in printed
    assert "C0001 · level: no answer" in printed


def test_facts_alone_answer_and_items_left_out_are_reported(lpf) -> None:
    lpf("facts", "set", "C0001", "level", "low", "--confidence", "0.5")
    printed = lpf("query", "C0001", "level", "--min-credibility", "0.99").stdout
    assert "based on 1 known fact alone" in printed
    assert "left out: 5 below credibility 0.99 (--min-credibility 0 includes them)\n" in printed


def test_full_shows_texts_with_source_and_date(lpf) -> None:
    words = ("query", "C0001", "level")
    sentence = "C0001: The auditor found two late payments and one missing form."
    assert sentence not in lpf(*words).stdout
    lines = lpf(*words, "--full").stdout.splitlines()
    place = [line.strip() for line in lines].index(sentence)
    assert lines[place - 1].split()[0] == "C0001_E002"
    assert re.fullmatch(r" +source: source 1, \d{4}-\d\d-\d\d \d\d:\d\d *", lines[place + 1])
    assert lpf.refused(*words, "--full")["field"] == "--full"


def test_experts_also_see_the_times_and_the_options(lpf) -> None:
    assert "retrieval" not in lpf("query", "C0001", "level").stdout
    shown = lpf("query", "C0001", "level", "--verbose").stdout
    assert "retrieval" in shown
    assert "mode robust" in shown


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
        QueryOptions(uncertainty_samples=64, min_credibility=0.5),
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
) -> str:
    output = io.StringIO()
    texts = {"E001": LONG, "E002": "Filed\non time."}
    show_answer(Console(width=width, file=output, highlight=False), answer, texts, origins)
    return output.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_everything_is_shown_within_the_width(width: int) -> None:
    text = shown(width, result())
    assert max(len(line) for line in text.splitlines()) <= width
    for part in ("92.00 %", "INF00000042", "a note", "high 70 %", "#1", "Filed [", "(erased)"):
        assert part in text, part
    for part in ("3 below credibility 0.5", "1 beyond the best 100", "qualified", "81.00 %"):
        assert part in text, part


@pytest.mark.parametrize("width", [60, 80, 120])
def test_full_texts_wrap_to_the_width(width: int) -> None:
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
    assert heading.split() == ["item", "says", "bits", "weight", "credibility", "copies"]
    assert lines[first].index("0.95") + 4 == heading.index("credibility") + len("credibility")


def test_names_and_numbers_are_not_cut() -> None:
    text = shown(80, result())
    assert "a-name-of-thirty-six" in text
    assert "-characters-or-so" in text
    assert "-2.58" in text  # log2 of 0.1 / 0.6
    assert "?" in text  # a credibility that nobody knows


@pytest.mark.parametrize("width", [56, 60, 64, 68, 72])
def test_below_80_columns_names_lose_their_middle_before_numbers_wrap(width: int) -> None:
    lines = shown(width, result()).splitlines()
    assert max(map(len, lines)) <= width
    (heading,) = [line for line in lines if line.lstrip().startswith("item")]
    assert heading.split()[:5] == ["item", "says", "bits", "credibility", "copies"]
    (row,) = [line for line in lines if line.lstrip().startswith("a-")]
    for part in ("low 60 %", "-2.58", "?"):
        assert part in row, (part, row)
    assert re.match(r" *a-\S*(…\S*so|thirty-six) ", row)


def test_dates_and_numbers_are_not_cut_in_a_narrow_list() -> None:
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
