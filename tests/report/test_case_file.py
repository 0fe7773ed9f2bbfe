"""The case file: the numbers of the explanation, every kind of answer, and foreign text that stays
text."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from page_outline import Outline

from lpf.circuits import Variable, dump_circuit, prior_circuit
from lpf.cli.safe_output import CONTROLS
from lpf.explain import AnswerExplanation, Flip, ItemPart, Part, Weight
from lpf.ledger import check_bundle
from lpf.model.artefact import ModelCard
from lpf.model.held_out import HeldOutAnswers
from lpf.report.case_calibration import CaseCalibration, calibration_charts
from lpf.report.case_content import (
    CaseContent,
    CaseFact,
    CaseModel,
    CaseProof,
    CaseRelated,
    CaseText,
    case_of_record,
    case_of_result,
)
from lpf.report.case_file import case_file
from lpf.report.foreign_text import HIDDEN
from lpf.report.waterfall import MOST_ITEMS, bits_text, chance, item_groups, rivals, share, steps
from lpf.storage.facts import NewFact
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from lpf.workspace.circuit import CIRCUIT_FILE
from workspaces import TEXTS, add, days_ago, evidence, make

MODES = {
    "robust": QueryOptions(),
    "paper": QueryOptions.paper(),
    "learned": QueryOptions(variant="learned"),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with make(Path(tmp_path_factory.mktemp("cases") / "space")) as space:
        add(space, evidence("C0003", 3, text_content=f"C0003: {TEXTS[0]}"))  # three copies
        space.facts.add(
            [
                NewFact("C0001", "outcome", "clean", days_ago(3), 0.9, "register"),
                NewFact("C0009", "level", "high", days_ago(1), 1.0, "audit"),
            ]
        )
        yield space


def case_of(workspace: Workspace, entity: str, mode: str = "robust") -> CaseContent:
    return case_of_result(workspace, workspace.query(entity, "level", MODES[mode]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("entity", ["C0001", "C0002", "C0003"])
def test_the_waterfall_has_the_bits_of_the_explanation(
    workspace: Workspace, entity: str, mode: str
) -> None:
    explanation = case_of(workspace, entity, mode).explanation
    pair = rivals(explanation)
    assert pair is not None
    bits = {part.name: number for part, number in explanation.between(*pair)}
    rows = steps(explanation, {})
    for row in rows:
        names = row.items or (row.name.removeprefix("known: "),)
        if row.kind == "prior":
            names = ("prior",)
        assert row.bits == pytest.approx(sum(bits[name] for name in names))
        assert row.after == pytest.approx(row.before + row.bits)
    assert {name for row in rows for name in row.items} == {one.name for one in explanation.items}
    assert rows[-1].after == pytest.approx(explanation.log_odds(*pair), abs=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("entity", ["C0001", "C0003", "C0009", "nobody"])
def test_every_kind_of_answer_has_a_page(workspace: Workspace, entity: str, mode: str) -> None:
    case = case_of(workspace, entity, mode)
    page = case_file(case)
    outline = Outline(page)
    assert len(outline.ids) == len(set(outline.ids))
    assert set(re.findall(r'href="#([^"]+)', page)) <= set(outline.ids)
    assert outline.tags.count("h1") == 1
    if case.has_answer and case.explanation.method != "canonical":
        assert bits_text(case.explanation.log_odds(*case.explanation.ranked[:2])) in outline.cells
    record = case_of_record(workspace, str(case.explanation.record_id))
    assert record.has_answer == case.has_answer
    assert {name: text.text for name, text in record.texts.items()} == {
        name: text.text for name, text in case.texts.items()
    }
    Outline(case_file(record))


def assert_steps_add_up(case: CaseContent) -> None:
    rows = steps(case.explanation, {})
    pair = rivals(case.explanation)
    assert pair is not None
    assert sum(row.bits for row in rows) == pytest.approx(case.explanation.log_odds(*pair))
    assert bits_text(rows[-1].after) in Outline(case_file(case)).cells


def test_an_averaged_answer_has_no_bar_for_the_prior(tmp_path: Path) -> None:
    with make(tmp_path / "space") as space:
        outcome = space.schema["outcome"]
        alone = prior_circuit([Variable(outcome.name, outcome.values)], {"outcome": outcome.prior})
        (space.folder / CIRCUIT_FILE).write_text(dump_circuit(alone), encoding="utf-8")
        result = space.query("C0001", "level", QueryOptions(fallback="average"))
        assert result.method == "average"
        case = case_of_result(space, result)
        assert {row.kind for row in steps(case.explanation, {})} == {"item"}
        assert_steps_add_up(case)
        assert_steps_add_up(case_of_record(space, str(result.record_id)))


def test_facts_and_related_evidence_have_bars_and_tables(tmp_path: Path) -> None:
    pairs = [("high", "clean")] * 30 + [("low", "qualified")] * 30
    known = [
        NewFact(f"K{number:03d}", predicate, value, days_ago(400))
        for number, pair in enumerate(pairs)
        for predicate, value in zip(("level", "outcome"), pair, strict=True)
    ]
    with make(tmp_path / "space") as space:
        space.facts.add(known)
        space.learn_circuit()
        add(space, evidence("C0002", 2, predicate="outcome", evidence_id="C0002_O1")[:1])
        space.facts.add([NewFact("C0001", "outcome", "clean", days_ago(3), 0.8, "the register")])
        fact = case_of_result(space, space.query("C0001", "level"))
        related = case_of_result(space, space.query("C0002", "level"))
        record = case_of_record(space, str(related.explanation.record_id))
        for case, kind in ((fact, "facts"), (related, "related"), (record, "related")):
            assert kind in {row.kind for row in steps(case.explanation, {})}
            assert_steps_add_up(case)
        assert "the register" in case_file(fact)
        for case in (related, record):
            assert case.related[0].items == ("C0002_O1",)
            assert case.texts["C0002_O1"].text is not None
            assert str(case.texts["C0002_O1"].text) in case_file(case)


def test_items_have_their_text_as_a_tooltip_and_on_a_card(workspace: Workspace) -> None:
    case = case_of(workspace, "C0001")
    page = case_file(case)
    titles = re.findall(r"<title>(.*?)</title>", page)
    cards = re.findall(r'<p class="words" dir="auto">(.*?)</p>', page)
    for item in case.explanation.items:
        text = case.texts[item.name].text
        assert text is not None
        assert [one for one in titles if item.name in one and text in one]
        assert text in cards


def test_copies_are_folded_together(workspace: Workspace) -> None:
    case = case_of(workspace, "C0003")
    (group,) = item_groups(case.explanation)
    assert sorted(group.ids) == ["C0003_E001", "C0003_E002", "C0003_E003"]
    assert case_file(case).count('<article class="card') == 1


def test_an_erased_item_keeps_its_place(tmp_path: Path) -> None:
    with make(tmp_path / "space") as space:
        result = space.query("C0002", "level")
        text = case_of_result(space, result).texts["C0002_E001"].text
        space.erase("C0002_E001")
        for case in (case_of_result(space, result), case_of_record(space, str(result.record_id))):
            page = case_file(case)
            assert case.texts["C0002_E001"].text is None
            assert "(erased" in page
            assert str(text) not in page
            assert len(item_groups(case.explanation)) == 3


def test_a_record_shows_the_version_that_was_read(tmp_path: Path) -> None:
    with make(tmp_path / "space") as space:
        result = space.query("C0002", "level")
        before = case_of_result(space, result).texts["C0002_E001"].text
        space.edit("C0002_E001", text_content="Another text altogether.")
        shown = case_of_record(space, str(result.record_id)).texts["C0002_E001"]
        assert (shown.text, shown.is_replaced) == (before, True)


def test_the_proof_on_the_page_is_valid(workspace: Workspace) -> None:
    result = workspace.query("C0001", "level")
    workspace.ledger.checkpoint()
    case = case_of_result(workspace, result)
    page = case_file(case)
    link = re.search(r'href="data:application/json;base64,([^"]+)"', page)
    assert link is not None
    assert case.proof is not None
    bundle = json.loads(base64.b64decode(link[1]))
    assert "holds" in check_bundle.check(bundle, case.proof.key)
    assert json.loads(bundle["body"])["record_id"] == result.record_id


def test_without_a_checkpoint_there_is_no_proof_yet() -> None:
    proof = CaseProof("INF00000001", "ab", "cd", why_not="No signed checkpoint covers it yet.")
    page = case_file(CaseContent(explanation_of(), proof=proof))
    assert "There is no proof yet. No signed checkpoint covers it yet." in page
    assert "check_bundle.py" not in page


def test_an_answer_that_was_not_recorded_says_so(workspace: Workspace) -> None:
    result = workspace.query("C0001", "level", audit="off")
    case = case_of_result(workspace, result)
    assert case.proof is None
    assert "no record in the ledger" in case_file(case)


def test_the_page_may_load_and_run_nothing(workspace: Workspace) -> None:
    page = case_file(case_of(workspace, "C0001"))
    for outside in ("http:", "https:", "src=", "<link", "<script", "@import", "style=", "url("):
        assert outside not in page
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}';" in page


NASTY = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)></title></svg></style>&lt;b&gt; "
    "javascript:alert(1) \x1b[2J\u202eevil\u2066\u200b\x00 '\"` onload=x"
)


def explanation_of(names: str = "{}", items: int = 3) -> AnswerExplanation:
    """Made up; ``names`` makes foreign text of an ordinary one."""
    generator = np.random.default_rng(5)
    values = tuple(names.format(one) for one in ("low", "medium", "high"))
    parts = (
        Part("prior", "prior", np.zeros(3)),
        Part("facts", names.format("outcome = clean"), np.array([0.4, 0.0, 0.0])),
        Part("related", names.format("audit"), np.array([0.1, 0.2, 0.0])),
    )
    weight = Weight(0.4, 0.5, 0.3, 0.9, 0.8, 0.7, 0.1)
    ids = [names.format(f"E{number}") for number in range(items)]
    made = tuple(
        ItemPart(
            "item",
            name,
            generator.normal(size=3),
            generator.dirichlet(np.ones(3)),
            generator.dirichlet(np.ones(3)),
            weight,
            0.5,
            tuple(ids[1:2]) if number == 0 else tuple(ids[:1]) if number == 1 else (),
        )
        for number, name in enumerate(ids)
    )
    total = sum((part.added for part in (*parts, *made)), np.zeros(3))
    odds = np.exp2(total)
    return AnswerExplanation(
        names.format("C1"),
        names.format("level"),
        values,
        odds / odds.sum(),
        "spn",
        "robust",
        parts,
        made,
        Flip(tuple(ids[:2]), values[0], False),
        0.3,
        0.2,
        names.format("INF00000001"),
        (names.format("a note"),),
    )


def whole_case(names: str = "{}", items: int = 3, text: str = "text") -> CaseContent:
    """Every field filled, with ``names`` in every text."""
    explanation = explanation_of(names, items)
    word = names.format("word")
    model = CaseModel(
        word,
        ModelCard(word, word, word, word, {}, (f"caution: {word}",)),
        {"accuracy": 0.8, "nll": 0.5, "ece": 0.03, "ece_null": 0.04, "entities": 90.0},
        word,
        CaseCalibration(held_out(60), 0.8),
    )
    texts = {
        item.name: CaseText(names.format(text), "", f"{word} {number % 2}", word, word, True)
        for number, item in enumerate(explanation.items)
    }
    texts[explanation.items[-1].name] = CaseText(None, word)
    return CaseContent(
        explanation,
        True,
        (word,),
        explanation.values[:2],
        word,
        texts,
        (CaseFact(word, word, 0.9, False, word, word),),
        (CaseRelated(word, {word: 0.7, f"{word} 2": 0.3}, (explanation.items[0].name,)),),
        ((word, word),),
        model,
        CaseProof(word, word, word, word, 3, word, b"{}"),
        (word,),
    )


class Structure(HTMLParser):
    """Elements with the names of their attributes, all values of attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


SPOKEN = {"aria-label", "download"}  # attributes that hold foreign text


@pytest.mark.parametrize("nasty", [NASTY, "</p></div><svg onload=x>", '" onclick="x', "\u202e\r\n"])
def test_no_element_and_no_attribute_comes_from_data(nasty: str) -> None:
    plain = Structure(case_file(whole_case()))
    page = case_file(whole_case("{}" + nasty.replace("{", "{{").replace("}", "}}")))
    found = Structure(page)
    assert found.elements == plain.elements
    for name, value in found.attributes:
        if name == "href":
            assert re.fullmatch(r"#item-\d+|data:application/json;base64,[\w+/=]*", value)
        elif name not in SPOKEN:
            assert "alert" not in value
            assert "onclick" not in value
    assert not HIDDEN.search(page)
    assert not CONTROLS.search(page)
    if nasty is NASTY:
        assert "<script>alert(1)</script>" in found.text
        assert "\\u202eevil" in found.text


def test_hidden_characters_are_those_of_the_terminal() -> None:
    assert HIDDEN.pattern == CONTROLS.pattern


def test_a_page_with_twenty_long_items_is_of_moderate_size() -> None:
    page = case_file(whole_case(items=20, text="word " * 10_000))
    assert len(page.encode()) < 200_000
    Outline(page)


def test_of_many_items_the_weakest_share_a_row() -> None:
    explanation = explanation_of(items=60)
    rows = steps(explanation, {})
    pair = rivals(explanation)
    assert pair is not None
    assert len([row for row in rows if row.kind == "item"]) == MOST_ITEMS
    assert rows[-1].kind == "others"
    assert rows[-1].after == pytest.approx(explanation.log_odds(*pair))
    assert case_file(whole_case(items=60)).count('<article class="card') == 59  # one pair of copies


def held_out(entities: int) -> HeldOutAnswers:
    drawn = np.random.default_rng(0)
    first = drawn.uniform(0.4, 1.0, entities)
    rows = np.stack([first, 1.0 - first], axis=1)
    labels = (drawn.random(entities) > first).astype(np.intp)
    return HeldOutAnswers.from_answers("apart", rows, labels, np.arange(entities))


@pytest.mark.parametrize("entities", [20, 30, 400])
def test_calibration_is_drawn_from_held_out_answers(entities: int) -> None:
    held = held_out(entities)
    charts = calibration_charts(CaseCalibration(held, 0.9))
    outline = Outline(charts)
    assert outline.tags.count("svg") == outline.tags.count("desc") == 2
    counts = [int(one) for one in re.findall(r"<g><title>(\d+) answers", charts)]
    assert sum(counts) == entities
    wrong = re.search(r"of all ([\d.]+) %", charts)
    assert wrong is not None
    assert float(wrong[1]) == pytest.approx(100 * (1 - held.right.mean()), abs=0.06)
    assert charts.count("this answer") == 2
    assert f"{entities} held-out" in charts
    (points,) = re.findall(r'points="([^"]+)"', charts)
    across = [float(pair.split(",")[0]) for pair in points.split()]
    assert across == sorted(across)


def test_too_few_held_out_answers_are_not_drawn() -> None:
    few = calibration_charts(CaseCalibration(held_out(19), 0.9))
    assert "<svg" not in few
    assert "19" in few
    none = calibration_charts(None)
    assert "<svg" not in none
    case = whole_case()
    assert case.model is not None
    assert none in case_file(replace(case, model=replace(case.model, calibration=None)))


def test_a_case_has_the_held_out_answers_of_its_model(workspace: Workspace) -> None:
    engine = workspace.engine
    assert engine is not None
    known = engine.runtime.held_out.get("level")
    for mode in MODES:
        model = case_of(workspace, "C0001", mode).model
        assert model is not None
        if known is None or mode != "robust":
            assert model.calibration is None
        else:
            assert model.calibration is not None
            np.testing.assert_array_equal(model.calibration.held.labels, known.labels)


def test_what_is_ruled_out_reaches_the_edge() -> None:
    explanation = replace(
        explanation_of(items=0),
        probabilities=np.array([1.0, 0.0, 0.0]),
        parts=(
            Part("prior", "prior", np.array([0.0, 0.0, 0.0])),
            Part("facts", "outcome = clean", np.array([0.0, -math.inf, -math.inf])),
        ),
        flip=None,
    )
    rows = steps(explanation, {})
    assert rows[-1].after == math.inf
    page = case_file(CaseContent(explanation))
    assert "+∞" in page
    assert "nan" not in page
    assert "inf%" not in page
    both = replace(
        explanation,
        parts=(Part("facts", "x", np.array([-math.inf, -math.inf, 0.0])),),
        probabilities=np.array([0.4, 0.4, 0.2]),
    )
    assert "rules out both" in case_file(CaseContent(both))


def test_numbers_as_they_are_shown() -> None:
    assert [bits_text(x) for x in (0.05, -1.2, -0.001, math.inf)] == [
        "+0.05",
        "−1.20",
        "0.00",
        "+∞",
    ]
    assert share(1.0) == "100 %"
    assert share(0.99999) == "> 99.99 %"
    assert share(0.9995) == "99.95 %"
    assert share(0.836) == "83.6 %"
    assert [chance(x) for x in (-math.inf, 0.0, math.inf, -1e6)] == [
        0.0,
        0.5,
        1.0,
        pytest.approx(0),
    ]
