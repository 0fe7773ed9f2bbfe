"""The case file: one answer on one page that needs no other file and no network.

``case_file`` writes what a ``CaseContent`` holds. The page runs no script; foreign texts are
escaped wherever they stand, and links lead only to other places on the page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Final

from lpf.explain import AnswerExplanation
from lpf.explain.sentences import METHODS_IN_WORDS, change_of_answer, conflict_in_words
from lpf.report.case_calibration import calibration_charts
from lpf.report.case_content import CaseContent, CaseModel, CaseProof, texts_by_id
from lpf.report.evidence_cards import cards
from lpf.report.foreign_text import beginning, isolated, shown
from lpf.report.page import (
    PageColumn,
    PageRow,
    bullets,
    decimals,
    definitions,
    glance,
    make_page,
    paragraph,
    percent,
    section,
    table,
)
from lpf.report.small_charts import value_bars
from lpf.report.waterfall import (
    item_groups,
    rivals,
    share,
    steps,
    waterfall,
    waterfall_table,
)
from lpf.results import NO_ANSWER
from lpf.review.feedback import AnswerFeedback, in_order
from lpf.review.records import Adjudication, Review

SHEET: Final = "case_file.css"
TITLE_CHARACTERS: Final = 300
NAME_CHARACTERS: Final = 80
HOW_TO_READ = (
    "Each bar adds to the odds where the one above it ended; the last one is the answer. One bit "
    "doubles the odds, two bits make them four times as high."
)
PRIVACY = (
    "This page holds texts of the evidence. It is a copy: erasing an item in the workspace does "
    "not change it."
)


def case_file(case: CaseContent) -> str:
    """The whole page as HTML."""
    return make_page(case_title(case), _parts(case), sheet=SHEET)


def case_title(case: CaseContent) -> str:
    """The claim if the answer is about one, else what was asked of which entity."""
    claims = case.claims
    if len(claims) == 1:
        return beginning(claims[0], TITLE_CHARACTERS)
    explanation = case.explanation
    return beginning(f"{explanation.entity_id} · {explanation.predicate}", TITLE_CHARACTERS)


def answer_sentence(case: CaseContent) -> str:
    """The answer in one sentence, as HTML."""
    explanation = case.explanation
    entity, predicate = (_name(one) for one in (explanation.entity_id, explanation.predicate))
    if not case.has_answer:
        return (
            f"There is <strong>{NO_ANSWER}</strong> about {predicate} of {entity}: no item and no "
            "fact counts. The probabilities below are those before any evidence."
        )
    value = explanation.ranked[0]
    probability = share(float(explanation.probabilities.max()))
    if explanation.deferred is not None:
        return (
            f"The answer about {predicate} of {entity} is <strong>deferred</strong>: "
            f"{shown(explanation.deferred)}. It would be {_name(value)}, with a probability of "
            f"{probability}."
        )
    return (
        f"The {predicate} of {entity} is <strong>{_name(value)}</strong> with a probability of "
        f"<strong>{probability}</strong>."
    )


def _parts(case: CaseContent) -> Iterator[str]:
    yield f'<p class="answer">{answer_sentence(case)}</p>'
    if case.similar:
        names = ", ".join(_name(one) for one in case.similar)
        yield f"<p>Known IDs like this one: {names}.</p>"
    yield from map(paragraph, case.sentences)
    yield from _probabilities(case)
    yield from _notes(case.explanation)
    figure = waterfall_figure(case)
    if figure:
        yield section("Why", figure, *_conflict(case.explanation))
    yield from _flip(case.explanation)
    yield from cards(case)
    yield from _facts(case)
    yield from _related(case)
    yield from _reviews(case.feedback)
    yield from _model(case.model)
    yield from _question(case)
    yield from _proof(case.proof, case.explanation.record_id)
    yield f"<footer>{shown(PRIVACY)}</footer>"


def _probabilities(case: CaseContent) -> Iterator[str]:
    explanation = case.explanation
    parts = [
        value_bars(explanation.values, explanation.probabilities.tolist(), case.prediction_set)
    ]
    if case.prediction_set is not None:
        parts.append(paragraph("A value with ✓ is in the prediction set: it is not ruled out."))
    parts += [paragraph(_sentence(line)) for line in case.how_sure]
    yield section("Probabilities", *parts)


def _notes(explanation: AnswerExplanation) -> Iterator[str]:
    if explanation.notes:
        lines = bullets(explanation.notes)
        heading = '<aside class="warnings" aria-label="Notes">\n<h2>Read this first</h2>'
        yield f"{heading}\n{lines}</aside>"


def waterfall_figure(case: CaseContent, about: str = "") -> str:
    """The waterfall next to its table. Empty if there is nothing to take apart: no answer, or only
    one value. ``about`` begins the table's caption where a page has several of them; how to read
    them is then said elsewhere."""
    explanation = case.explanation
    pair = rivals(explanation)
    ids = [item.name for item in explanation.items]
    rows = steps(explanation, texts_by_id(case.texts, ids))
    if pair is None or not rows or not case.has_answer:
        return ""
    value, against = pair
    intro = f"What speaks for {_name(value)} and against {_name(against)}."
    caption = f"{about}{': ' if about else ''}{_short(value)} against {_short(against)}"
    if len(explanation.values) > 2:
        rest = 1.0 - sum(sorted(explanation.probabilities.tolist())[-2:])
        caption += "; the probability counts only these two"
        if rest > 0.0:
            intro += f" Other values have {share(rest)} and are left out of these numbers."
    how = "" if about else f" {HOW_TO_READ}"
    chart, numbers = waterfall(rows, value, against), waterfall_table(rows, caption)
    figure = f'<div class="why"><div>{chart}</div><div>{numbers}</div></div>'
    return f"<p>{intro}{how}</p>\n{figure}"


def _conflict(explanation: AnswerExplanation) -> Iterator[str]:
    if explanation.conflict is not None:
        words = conflict_in_words(explanation.conflict, explanation.source_conflict)
        yield paragraph(_sentence(f"conflict: {words}"))


def _flip(explanation: AnswerExplanation) -> Iterator[str]:
    """What would change the answer, with links to the cards of the items."""
    places = {
        name: number
        for number, group in enumerate(item_groups(explanation), 1)
        for name in group.ids
    }

    def linked(name: str) -> str:
        if name in places:
            return f'<a href="#item-{places[name]}">{_name(name)}</a>'
        return f"<strong>{_name(name)}</strong>"

    words = change_of_answer(explanation, linked)
    if words:
        yield section("What would change the answer", f"<p>{words}</p>")


def _facts(case: CaseContent) -> Iterator[str]:
    if not case.facts:
        return
    columns = (
        PageColumn("fact", "name"),
        PageColumn("value", "name"),
        PageColumn("how sure", "word"),
        PageColumn("dated", "word"),
        PageColumn("source", "long"),
    )
    rows = [
        PageRow(
            [
                _short(fact.predicate),
                _short(fact.value),
                "taken as certain" if fact.is_certain else share(fact.belief),
                fact.date,
                "not known" if fact.source is None else _short(fact.source),
            ]
        )
        for fact in case.facts
    ]
    yield section("Known facts", table("Facts that the answer uses", columns, rows))


def _related(case: CaseContent) -> Iterator[str]:
    if not case.related:
        return
    columns = (
        PageColumn("predicate", "name"),
        PageColumn("says", "name"),
        PageColumn("items", "long"),
    )
    rows = []
    for one in case.related:
        best = max(one.distribution, key=one.distribution.__getitem__)
        lines = [
            f"{_short(name)}: {beginning(words, TITLE_CHARACTERS)}"
            for name, words in texts_by_id(case.texts, one.items).items()
        ]
        said = f"{_short(best)}, {share(one.distribution[best])}"
        rows.append(PageRow([_short(one.predicate), said, " · ".join(lines)]))
    caption = "Evidence about other predicates, which the schema relates to this one"
    yield section("Related evidence", table(caption, columns, rows))


def _reviews(feedback: AnswerFeedback | None) -> Iterator[str]:
    if feedback is None or not (feedback.reviews or feedback.adjudications):
        return
    columns = (
        PageColumn("reviewer", "name"),
        PageColumn("when", "word"),
        PageColumn("verdict", "name"),
        PageColumn("revised answer", "word"),
        PageColumn("items and comment", "long"),
        PageColumn("record", "word"),
    )
    rows = [PageRow(_review(one, feedback)) for one in in_order([feedback])]
    said = f"The reviews are {feedback.status}"
    if feedback.value is not None:
        said = f"{said}: <strong>{_name(feedback.value)}</strong>"
    caption = "What reviewers said about this answer; the last review of each counts"
    yield section("Reviews", f"<p>{said}.</p>", table(caption, columns, rows))


def _review(one: Review | Adjudication, feedback: AnswerFeedback) -> list[str]:
    words, revised = list[str](), ""
    if isinstance(one, Review):
        words += one.judged
        if one.revised_top is not None:
            value, probability = one.revised_top
            revised = f"{_short(value)}, {share(probability)}"
    if one.is_erased:
        words.append("comment erased")
    elif one.comment is not None:
        words.append(one.comment)
    withdrawn = ", withdrawn" if one.record_id in feedback.withdrawn else ""
    when = f"{one.timestamp:%Y-%m-%d %H:%M}"
    said = f"{_short(one.words)}{withdrawn}"
    comment = beginning("; ".join(words), TITLE_CHARACTERS)
    return [_short(one.reviewer), when, said, revised, comment, one.record_id]


def _model(model: CaseModel | None) -> Iterator[str]:
    if model is None:
        return
    if model.card is None:
        unread = f"Nothing more is known about it: {model.problem or 'it cannot be read'}"
        yield section("Model", definitions([("version", model.version)]), paragraph(unread))
        return
    facts = [
        ("version", model.version),
        ("name", model.card.name),
        ("data", model.card.data),
        ("made for", model.card.intended_use),
        ("not for", model.card.unsuitable_use),
    ]
    parts = [glance(list(_scores(model)))] if model.scores else []
    parts.append(calibration_charts(model.calibration))
    if model.warnings:
        parts.append(bullets(model.warnings))
    yield section("Model", *parts, definitions(facts))


def _scores(model: CaseModel) -> Iterator[tuple[str, str]]:
    scores = model.scores
    count = f"{scores['entities']:,.0f} " if "entities" in scores else ""
    if "accuracy" in scores:
        yield f"right, of {count}{model.scored_on}", percent(scores["accuracy"])
    if "nll" in scores:
        yield "NLL (lower is better)", decimals(scores["nll"])
    if "ece" in scores:
        null = scores.get("ece_null")
        by_chance = "" if null is None else f"; up to {decimals(null)} by chance alone"
        yield f"calibration error (ECE){by_chance}", decimals(scores["ece"])


def _question(case: CaseContent) -> Iterator[str]:
    explanation = case.explanation
    pairs = [("entity", explanation.entity_id), ("predicate", explanation.predicate)]
    if case.description:
        pairs.append(("description", case.description))
    pairs += [("claim", claim) for claim in case.claims]
    pairs += case.question
    pairs.append(("how", f"{METHODS_IN_WORDS[explanation.method]}, {explanation.mode} mode"))
    yield section("Question", definitions([(name, beginning(one, 1000)) for name, one in pairs]))


def _proof(proof: CaseProof | None, record_id: str | None) -> Iterator[str]:
    if proof is None:
        missing = "This answer has no record in the ledger."
        if record_id is not None:
            missing = f"The proof of {record_id} was not looked up, or the record is being written."
        yield section("Record", paragraph(missing))
        return
    pairs = [("record", proof.record_id), ("hash of the record", proof.leaf)]
    if proof.root is None:
        parts = [paragraph(f"There is no proof yet. {proof.why_not}")]
    else:
        pairs += [
            ("checkpoint", f"the first {proof.size:,} records, signed {proof.signed_at}"),
            ("root of the checkpoint", proof.root),
        ]
        parts = list(_verification(proof))
    pairs.append(("public key", proof.key))
    yield section("Record", definitions(pairs), *parts)


def _verification(proof: CaseProof) -> Iterator[str]:
    file = f"{proof.record_id}.json"
    yield paragraph(
        "Anyone can check with Python alone that this record is in the ledger and was not changed. "
        "Take the public key from somebody you trust, not from this page, and check_bundle.py from "
        "the source code of lpf."
    )
    if proof.bundle is not None:
        content = b64encode(proof.bundle).decode()
        link = f'<a download="{shown(file)}" href="data:application/json;base64,{content}">'
        size = f"{len(proof.bundle) / 1000:.1f} kB"
        yield f"<p>{link}Save the proof as {shown(file)}</a> ({size}).</p>"
    commands = [
        f"lpf ledger prove {proof.record_id} --out {file}",
        f"python check_bundle.py {file} --key ledger.pub",
        "lpf ledger verify --key ledger.pub",
        f"lpf ledger replay {proof.record_id}",
    ]
    yield f'<pre tabindex="0"><code>{shown(chr(10).join(commands))}</code></pre>'


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."


def _name(plain: str) -> str:
    return isolated(_short(plain))


def _short(plain: str) -> str:
    return beginning(plain, NAME_CHARACTERS)
