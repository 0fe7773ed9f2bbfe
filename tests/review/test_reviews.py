"""Reviews as records: verdicts, judgements of items, blind passes, comments, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workspaces
from lpf.errors import (
    NotAnAnswerError,
    ReviewError,
    UnknownRecordError,
    UnknownValueError,
)
from lpf.explain import Changes
from lpf.explain.recombination import AveragedItems, PaperItems
from lpf.ledger import Draft, verify
from lpf.review import Judgement, Review
from lpf.review.records import parsed, review_draft
from lpf.review.revised import _revised
from lpf.storage.facts import NewFact
from lpf.types import QueryOptions
from lpf.workspace import Workspace

FIRST, SECOND = "INF00000001", "INF00000002"
ITEMS = [f"C0001_E{number:03d}" for number in range(1, 6)]
SECRET = "Ruth Quillfeather of the third floor told me"


def top(space: Workspace, record_id: str = FIRST) -> str:
    return str(space.records.get(record_id).fields["top_value"])


def other(space: Workspace, record_id: str = FIRST) -> str:
    return next(value for value in workspaces.LEVELS if value != top(space, record_id))


def test_a_review_is_a_record_about_an_answer(space: Workspace) -> None:
    before = space.records.get(FIRST).body
    review = space.reviews.override(FIRST, other(space), comment="no", reviewer="ben")
    assert (review.about, review.reviewer, review.verdict) == (FIRST, "ben", "override")
    assert (review.entity_id, review.predicate, review.value) == ("C0001", "level", other(space))
    assert space.reviews.of(FIRST).reviews == [review]
    assert space.records.get(FIRST).body == before
    (entry,) = space.contents.about([1])
    assert (entry.record_id, entry.kind, entry.value) == (review.record_id, "review", review.value)
    assert verify(space.database).ok


def test_who_reviews_is_by_default_who_asks(space: Workspace) -> None:
    assert space.reviews.accept(FIRST).reviewer == "ann"
    with pytest.raises(ReviewError) as refused:
        space.reviews.accept(FIRST, reviewer=" ben")
    assert refused.value.field == "reviewer"


def test_the_last_review_of_a_reviewer_counts(space: Workspace) -> None:
    first = space.reviews.accept(FIRST)
    second = space.reviews.override(FIRST, other(space))
    assert second.replaces == first.record_id
    found = space.reviews.of(FIRST)
    assert (found.status, found.value) == ("settled", other(space))
    space.reviews.withdraw(second.record_id)
    assert space.reviews.of(FIRST).value == top(space)
    space.reviews.withdraw(first.record_id)
    assert space.reviews.of(FIRST).status == "unreviewed"
    space.reviews.unsure(FIRST)
    assert space.reviews.of(FIRST).status == "unsure"


def test_disputes_are_decided_by_an_adjudication(space: Workspace) -> None:
    space.reviews.accept(FIRST, reviewer="ann")
    with pytest.raises(ReviewError):
        space.reviews.adjudicate(FIRST, top(space))
    space.reviews.override(FIRST, other(space), reviewer="ben")
    assert space.reviews.of(FIRST).status == "disputed"
    made = space.reviews.adjudicate(FIRST, other(space), "seen the file", "eve")
    found = space.reviews.of(FIRST)
    assert (found.status, found.value) == ("adjudicated", other(space))
    assert made.reviews == tuple(one.record_id for one in found.reviews)
    space.reviews.withdraw(made.record_id, "eve")
    assert space.reviews.of(FIRST).status == "disputed"


def test_excluded_and_reweighted_items_give_the_answer_of_what_if(space: Workspace) -> None:
    judged = [Judgement("exclude", ITEMS[0]), Judgement("reweight", ITEMS[1], 0.5)]
    review = space.reviews.accept(FIRST, judged)
    changes = Changes(drop=(ITEMS[0],), weights={ITEMS[1]: 0.5})
    expected = space.what_if("C0001", "level", changes)
    assert review.revised is not None
    again = np.array([review.revised[value] for value in expected.values])
    np.testing.assert_allclose(again, expected.probabilities, rtol=1e-6)
    replayed = space.replay(review.record_id)
    assert replayed.agrees
    assert replayed.exact


def test_duplicates_count_as_copies(space: Workspace) -> None:
    pair = [Judgement("duplicate", ITEMS[0], of=ITEMS[1])]
    same = space.reviews.accept(FIRST, pair).revised
    swapped = space.reviews.accept(FIRST, [Judgement("duplicate", ITEMS[1], of=ITEMS[0])]).revised
    plain = space.records.get(FIRST).fields["distribution"]
    assert same is not None
    assert same == swapped
    assert same != plain
    chain = [Judgement("duplicate", name, of=ITEMS[0]) for name in ITEMS[1:]]
    one_left = space.reviews.accept(FIRST, chain).revised
    assert one_left is not None
    assert max(one_left.values()) < max(plain.values())  # five items say less as one


@pytest.mark.parametrize(
    "options",
    [QueryOptions(mode="paper"), QueryOptions(mode="robust")],
    ids=["paper", "robust"],
)
def test_an_item_without_weight_counts_like_an_excluded_one(
    space: Workspace, options: QueryOptions
) -> None:
    record_id = space.query("C0001", "level", options).record_id or ""
    excluded = space.reviews.accept(record_id, [Judgement("exclude", ITEMS[0])]).revised
    weightless = space.reviews.accept(record_id, [Judgement("reweight", ITEMS[0], 0.0)]).revised
    assert excluded is not None
    assert weightless == pytest.approx(excluded, rel=1e-9)
    everything = [Judgement("exclude", name) for name in ITEMS]
    assert space.reviews.accept(record_id, everything).revised is not None


def test_duplicates_share_the_weight_of_one_item_where_there_are_no_groups() -> None:
    says = np.array([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]])
    average = AveragedItems(says, np.log([0.5, 0.5]))
    found = _revised(average, ("a", "b", "c"), [Judgement("duplicate", "a", of="b")])
    np.testing.assert_allclose(found, (says[:2].mean(axis=0) + says[2]) / 2)
    paper = PaperItems(says, np.ones(3), np.log([0.5, 0.5]), np.log([0.5, 0.5]))
    found = _revised(paper, ("a", "b", "c"), [Judgement("duplicate", "a", of="b")])
    expected = np.sqrt(says[0] * says[1]) * says[2]
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-6)


def test_an_answer_of_the_learned_variant_is_reviewed_without_a_revised_one(
    space: Workspace,
) -> None:
    record_id = space.query("C0001", "level", QueryOptions(variant="learned")).record_id or ""
    review = space.reviews.accept(record_id, [Judgement("exclude", ITEMS[0])])
    assert review.revised is None
    assert review.notes
    with pytest.raises(ReviewError):
        space.replay(review.record_id)


def test_a_blind_pass_comes_before_the_answer(space: Workspace) -> None:
    case = space.reviews.blind_case("C0001", "level")
    assert [item.evidence_id for item in case.items] == ITEMS
    assert all(item.text for item in case.items)
    blind = space.reviews.blind("C0001", "level", other(space))
    assert (blind.about, blind.is_blind) == (FIRST, True)
    again = space.reviews.blind("C0001", "level", top(space))  # still blind: nothing was shown
    assert again.replaces == blind.record_id
    shown = space.reviews.reveal(again.record_id)
    assert (shown.record_id, shown.value, shown.agrees) == (FIRST, top(space), True)
    with pytest.raises(ReviewError) as refused:
        space.reviews.blind("C0001", "level", top(space))
    assert refused.value.field == "reviewer"
    final = space.reviews.accept(FIRST)
    assert (final.follows, final.replaces) == (again.record_id, None)
    space.reviews.blind("C0001", "level", top(space), reviewer="ben")  # has not seen it


def test_asking_again_does_not_make_a_reviewer_blind(space: Workspace) -> None:
    space.reviews.accept(FIRST)
    space.query("C0001", "level")
    with pytest.raises(ReviewError):
        space.reviews.blind("C0001", "level", top(space))


def test_a_blind_case_does_not_say_what_the_answer_is(space: Workspace) -> None:
    """Neither numbers of the model nor the record of the answer are in it."""
    case = space.reviews.blind_case("C0001", "level")
    document = json.dumps(case.to_dict())
    fields = space.records.expand(space.records.get(FIRST))
    assert FIRST not in document
    for number in [*fields["distribution"].values(), fields["confidence"]]:
        assert repr(number) not in document
    space.query("C0001", "level", QueryOptions(mode="paper"))  # another answer, the same items
    assert space.reviews.blind_case("C0001", "level") == case
    names = set(json.loads(document)) | set(json.loads(document)["items"][0])
    assert not names & {"distribution", "confidence", "top_value", "weight", "supports_value"}


def test_a_question_that_was_not_asked_is_asked_for_a_blind_pass(space: Workspace) -> None:
    workspaces.add(space, workspaces.evidence("C0003", 2))
    size = space.records.size
    assert len(space.reviews.blind_case("C0003", "level").items) == 2
    assert space.records.size == size + 1


def test_there_is_no_blind_pass_without_texts(space: Workspace) -> None:
    for name in ITEMS:
        space.evidence.erase(name)
    for call in (
        lambda: space.reviews.blind_case("C0001", "level"),
        lambda: space.reviews.blind("C0001", "level", "low"),
    ):
        with pytest.raises(ReviewError) as refused:
            call()
        assert refused.value.field == "entity"
    assert not space.reviews.all().by_answer


def test_an_answer_from_a_fact_has_nothing_to_judge_blind(space: Workspace) -> None:
    space.facts.add([NewFact("C0001", "level", "low", workspaces.days_ago(1))])
    space.query("C0001", "level")
    with pytest.raises(ReviewError):
        space.reviews.blind_case("C0001", "level")
    with pytest.raises(ReviewError):
        space.reviews.blind("C0001", "level", "low")


def test_the_words_of_a_review_can_be_erased(space: Workspace, tmp_path: Path) -> None:
    judged = [Judgement("exclude", ITEMS[0], reason=f"{SECRET} twice")]
    review = space.reviews.accept(FIRST, judged, SECRET)
    assert (review.comment, review.judgements[0].reason) == (SECRET, f"{SECRET} twice")
    assert SECRET.encode() not in space.records.get(review.record_id).body
    assert space.erase_query_texts(review.record_id) == (1, ())
    (kept,) = space.reviews.of(FIRST).reviews
    assert (kept.comment, kept.is_erased, kept.judgements[0].reason) == (None, True, None)
    assert kept.revised == review.revised
    assert space.replay(review.record_id).agrees
    assert verify(space.database).ok
    space.close()
    for file in (tmp_path / "workspace").glob("store.db*"):
        assert SECRET.encode() not in file.read_bytes()


def test_a_comment_that_was_changed_is_found(space: Workspace) -> None:
    space.reviews.accept(FIRST, comment="right")
    space.database.connection.execute("UPDATE query_texts SET text = 'forged'")
    (finding,) = verify(space.database).findings
    assert "commitment" in finding.what


REFUSED = {
    "an unknown record": (UnknownRecordError, lambda r: r.accept("INF00000099")),
    "an unknown value": (UnknownValueError, lambda r: r.override(FIRST, "enormous")),
    "an unknown item": (ReviewError, lambda r: r.accept(FIRST, [Judgement("exclude", "X")])),
    "another unknown item": (
        ReviewError,
        lambda r: r.accept(FIRST, [Judgement("duplicate", ITEMS[0], of="X")]),
    ),
    "an item judged twice": (
        ReviewError,
        lambda r: r.accept(FIRST, [Judgement("exclude", ITEMS[0])] * 2),
    ),
    "an item excluded and reweighted": (
        ReviewError,
        lambda r: r.accept(
            FIRST, [Judgement("exclude", ITEMS[0]), Judgement("reweight", ITEMS[0], 2.0)]
        ),
    ),
    "an item that copies itself": (
        ReviewError,
        lambda r: r.accept(FIRST, [Judgement("duplicate", ITEMS[0], of=ITEMS[0])]),
    ),
    "a weight below zero": (
        ReviewError,
        lambda r: r.accept(FIRST, [Judgement("reweight", ITEMS[0], -1.0)]),
    ),
    "an empty comment": (ReviewError, lambda r: r.accept(FIRST, comment=" ")),
    "a lone surrogate": (ReviewError, lambda r: r.accept(FIRST, comment="\ud800")),
    "a reveal without a blind pass": (ReviewError, lambda r: r.reveal(FIRST)),
    "no blind pass": (ReviewError, lambda r: r.blind_pass_of("C0001", "level")),
    "a withdrawal of an answer": (ReviewError, lambda r: r.withdraw(FIRST)),
    "a replay of an answer as a review": (ReviewError, lambda r: r.replay(FIRST)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_recorded_of_what_is_refused(space: Workspace, name: str) -> None:
    kind, call = REFUSED[name]
    size = space.records.size
    with pytest.raises(kind):
        call(space.reviews)
    assert space.records.size == size


def test_a_review_is_not_an_answer(space: Workspace) -> None:
    review = space.reviews.accept(FIRST)
    for call in (space.reviews.accept, space.explain_record, space.reviews.of):
        with pytest.raises(NotAnAnswerError):
            call(review.record_id)
    taken = space.reviews.withdraw(review.record_id)
    with pytest.raises(NotAnAnswerError):
        space.replay(taken.record_id)
    with pytest.raises(ReviewError):  # twice
        space.reviews.withdraw(review.record_id)


def test_reviewers_withdraw_what_they_said_themselves(space: Workspace) -> None:
    review = space.reviews.accept(FIRST, reviewer="ben")
    with pytest.raises(ReviewError) as refused:
        space.reviews.withdraw(review.record_id, "ann")
    assert refused.value.field == "reviewer"


def test_reviews_that_cannot_be_read_are_named_and_not_counted(space: Workspace) -> None:
    common = {"entity_id": "C0001", "predicate": "level", "about": FIRST, "reviewer": "eve"}
    common["timestamp"] = "2026-03-02T12:00:00.000000Z"
    space.ledger.append(Draft({"kind": "review", **common, "verdict": 7, "top_value": "low"}))
    space.ledger.append(Draft({"kind": "something_else", **common}))
    space.ledger.append(Draft({"kind": "review", **common, "verdict": "accept", "top_value": None}))
    sound = {"kind": "review", **common, "verdict": "accept", "top_value": "low"}
    applied = {"target": "facts", "confidence": 0.9, "fact_id": "one"}
    space.ledger.append(Draft({**sound, "revised": ["low"]}))
    space.ledger.append(Draft({**sound, "kind": "review_application", **applied}))
    found = space.reviews.all()
    assert not found.by_answer
    assert len(found.unreadable) == 4
    assert "INF00000003" in found.unreadable[0]
    assert space.reviews.of(FIRST).status == "unreviewed"


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
judgements = st.one_of(
    st.builds(Judgement, st.just("exclude"), names),
    st.builds(Judgement, st.just("reweight"), names, st.floats(0.0, 100.0)),
    st.builds(
        lambda item, of: Judgement("duplicate", item, of=f"{of}'" if of == item else of),
        names,
        names,
    ),
)


@given(st.lists(judgements, max_size=4), st.none() | names.filter(lambda text: text.strip()))
def test_a_review_is_read_as_it_was_written(judged: list[Judgement], comment: str | None) -> None:
    draft = review_draft(
        FIRST,
        ("entity", "level"),
        "ann",
        "override",
        "low",
        judgements=judged,
        revised={"low": 0.25, "high": 0.75},
        follows=SECOND,
        comment=comment,
    )
    _, body = draft.seal(9)
    read = parsed(json.loads(body), draft.texts[0] if draft.texts else None)
    assert isinstance(read, Review)
    assert read.judgements == tuple(judged)
    assert (read.comment, read.follows, read.record_id) == (comment, SECOND, "INF00000009")
    assert read.revised == {"low": 0.25, "high": 0.75}
