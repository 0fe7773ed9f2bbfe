"""Methods of the paper that were not run here."""

from __future__ import annotations

from study_checks import line, value

from lpf_paper.exhibits import Row, Table, Value
from lpf_paper.printed import printed_table
from lpf_paper.studies.study_tables import COLUMNS, with_printed_rows

MEASURES = ("accuracy", "brier_over_k", "nll", "fit_seconds")
OURS = Row("vae_only", "VAE-Only", tuple(Value(0.5) for _ in MEASURES))


def shown(printed: str, measures: tuple[str, ...] = MEASURES) -> Table:
    columns = tuple(COLUMNS[measure] for measure in measures)
    ours = Row(OURS.name, OURS.title, OURS.cells[: len(measures)])
    return with_printed_rows(Table("any", "Any", "", columns, (ours,)), printed_table(printed))


def test_ours_come_first_and_each_method_once() -> None:
    rows = shown("main_results").rows
    assert rows[0] == OURS
    assert [row.name for row in rows[1:]] == [
        name for name in printed_table("main_results").rows if name != "vae_only"
    ]


def test_numbers_are_the_papers_alone_with_what_is_doubted() -> None:
    table = shown("main_results")
    brier = value(table, "spn_only", "brier_over_k")
    assert (brier.value, brier.sd, brier.paper) == (None, None, 0.075)
    assert "Defined as a sum over values" in (brier.doubt or "")
    assert value(table, "spn_only", "nll") == Value(None, paper=0.471)
    places = [MEASURES.index(name) for name in ("nll", "fit_seconds")]
    assert [line(table, "llm:gpt-oss-120b").cells[place] for place in places] == [None, None]
    assert line(table, "spn_only").cells[-1] is None


def test_notes_say_why_and_of_how_many_the_numbers_are() -> None:
    table = shown("main_results")
    assert line(table, "spn_only").note == "not run here"
    assert line(table, "llm:qwen3-32b").note == (
        "not asked here: needs an endpoint (lpf evaluate --llm); the paper's numbers are of 50 "
        "entities"
    )
    of_unknown_size = line(shown("runtime", ("runtime_ms",)), "llm:qwen3-32b")
    assert of_unknown_size.note == "not asked here: needs an endpoint (lpf evaluate --llm)"


def test_references_stay_references() -> None:
    table = shown("main_results")
    assert line(table, "oracle").standing == "reference"
    assert line(table, "llm:qwen3-32b").standing == "rival"
