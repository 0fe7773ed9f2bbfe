"""The report on many answers: counts, examples, links inside the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from page_outline import Outline
from test_case_file import NASTY, Structure, whole_case

from lpf.report.answers_report import (
    AnswersContent,
    ConfidenceBin,
    ValueCount,
    answers_content,
    answers_report,
)
from lpf.report.foreign_text import HIDDEN
from lpf.results import QueryResult
from lpf.sureness import Decision
from lpf.workspace import Workspace
from workspaces import add, evidence, make


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with make(Path(tmp_path_factory.mktemp("answers") / "space")) as space:
        for number in range(3, 12):
            add(space, evidence(f"C{number:04d}", 1 + number % 4, start=number))
        yield space


def answered(workspace: Workspace) -> list[QueryResult]:
    names = [one.entity_id for one in workspace.entities()]
    return [*workspace.query_many([(name, "level") for name in names]),
            workspace.query("nobody", "level")]  # fmt: skip


def test_every_answer_is_in_the_bin_of_its_confidence(workspace: Workspace) -> None:
    results = answered(workspace)
    content = answers_content(workspace, iter(results), per_bin=2)
    found = [result.confidence for result in results if result.confidence is not None]
    assert content.count == len(found) == 11
    assert content.without_answer == 1
    assert content.bins[0].count > 0
    assert content.bins[-1].high == 1.0
    for one in content.bins:
        inside = [x for x in found if one.low <= x < one.high or x == one.high == 1.0]
        assert one.count == len(inside)
        assert len(one.examples) == min(2, one.count)
        for case in one.examples:
            assert one.low <= case.explanation.probabilities.max() <= one.high
    assert sum(one.count for one in content.values) == 11


def test_bins_lead_to_examples_with_their_waterfalls(workspace: Workspace) -> None:
    content = answers_content(workspace, answered(workspace))
    page = answers_report(content, "Levels <b>")
    outline = Outline(page)
    links = set(re.findall(r'href="([^"]*)"', page))
    assert links
    assert links <= {f"#{name}" for name in outline.ids}
    assert len(outline.ids) == len(set(outline.ids))
    examples = sum(len(one.examples) for one in content.bins)
    assert (
        page.count('<svg class="waterfall"') == page.count('<article class="example"') == examples
    )
    assert "<b>" not in page
    assert "Levels &lt;b&gt;" in page
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|<script|style=|src=", page)


def test_a_report_without_any_answer(workspace: Workspace) -> None:
    content = answers_content(workspace, [workspace.query("nobody", "level")])
    assert (content.bins, content.without_answer) == ((), 1)
    assert "No question has an answer" in answers_report(content)
    Outline(answers_report(answers_content(workspace, [])))


def test_deferred_answers_are_counted_and_said_to_be_deferred(workspace: Workspace) -> None:
    given = workspace.query("C0001", "level")
    decision = Decision(0.01, 0.95, answered=False, reasons=("contradicting_evidence",))
    content = answers_content(workspace, [replace(given, decision=decision), given])
    assert (content.count, content.deferred) == (2, 1)
    page = answers_report(content)
    assert page.count("<strong>deferred</strong>") == 1


def test_no_element_of_the_report_comes_from_data() -> None:
    def page(names: str) -> str:
        case = whole_case(names)
        one = ConfidenceBin(0.5, 0.6, 1, (case,))
        value = ValueCount(names.format("level"), names.format("low"), 1, 0.55)
        return answers_report(AnswersContent((one,), (value,), 2), names.format("title"))

    assert Structure(page("{}" + NASTY)).elements == Structure(page("{}")).elements
    assert not HIDDEN.search(page("{}" + NASTY))
