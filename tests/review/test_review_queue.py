"""What to review next, and how far reviewers agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import workspaces
from lpf.errors import ConfigError, UnknownPredicateError
from lpf.review import AgreementOptions, QueueOptions
from lpf.review.queue import review_value
from lpf.storage.facts import NewFact
from lpf.workspace import Workspace

FIRST, SECOND = "INF00000001", "INF00000002"
weights = arrays(np.float64, (3, 4), elements=st.floats(0.001, 1.0))


@given(weights, st.floats(0.5, 0.99))
def test_the_value_of_a_review_is_what_enumeration_gives(
    given_weights: np.ndarray, accuracy: float
) -> None:
    p = given_weights / given_weights.sum(axis=1, keepdims=True)
    gain, bits = review_value(p, accuracy)
    said = np.full((4, 4), (1.0 - accuracy) / 3.0)
    np.fill_diagonal(said, accuracy)
    for row, found, told in zip(p, gain, bits, strict=True):
        joint = row[:, None] * said  # truth, report
        report = joint.sum(axis=0)
        after = sum(report[place] * (1.0 - (joint[:, place] / report[place]).max())
                    for place in range(4))  # fmt: skip
        information = (joint * np.log2(joint / np.outer(row, report))).sum()
        assert found == pytest.approx(1.0 - row.max() - after, abs=1e-12)
        assert told == pytest.approx(information, abs=1e-12)


def test_the_value_of_a_review_in_the_limits() -> None:
    gain, bits = review_value(np.array([[0.5, 0.5], [1.0, 0.0], [0.95, 0.05]]), 0.9)
    assert gain == pytest.approx([0.4, 0.0, 0.0])  # the reviewer is less sure than the last answer
    assert bits[0] == pytest.approx(1.0 + 0.9 * np.log2(0.9) + 0.1 * np.log2(0.1))
    assert bits[1] == pytest.approx(0.0)
    assert bits[2] > 0.0
    assert [one.tolist() for one in review_value(np.ones((2, 1)))] == [[0.0, 0.0]] * 2
    for accuracy in (0.4, 1.0, float("nan")):
        with pytest.raises(ConfigError):
            review_value(np.array([[0.5, 0.5]]), accuracy)


def names(space: Workspace, **options: object) -> list[str]:
    return [one.record_id for one in space.reviews.queue(None, QueueOptions(**options)).answers]


def test_the_queue_has_the_best_first_and_nothing_of_the_answers(space: Workspace) -> None:
    found = space.reviews.queue()
    assert [one.gain for one in found.answers] == sorted(
        (one.gain for one in found.answers), reverse=True
    )
    shares = [list(space.records.get(one.record_id).fields["distribution"].values())
              for one in found.answers]  # fmt: skip
    gain, bits = review_value(np.array(shares))
    assert [one.gain for one in found.answers] == pytest.approx(gain.tolist())
    assert [one.bits for one in found.answers] == pytest.approx(bits.tolist())
    assert not set(found.answers[0].to_dict()) & {"value", "distribution", "top_value"}
    by_confidence = space.reviews.queue("level", QueueOptions(by="confidence")).answers
    assert by_confidence[0].confidence <= by_confidence[1].confidence
    by_conflict = space.reviews.queue("level", QueueOptions(by="conflict")).answers
    assert by_conflict[0].conflict >= by_conflict[1].conflict
    with pytest.raises(UnknownPredicateError):
        space.reviews.queue("colour")


def test_reviewed_answers_leave_the_queue(space: Workspace) -> None:
    space.reviews.accept(FIRST, reviewer="ann")
    assert names(space) == [SECOND]
    assert names(space, reviewer="ann") == [SECOND]
    assert set(names(space, reviewer="ben")) == {FIRST, SECOND}
    taken = space.reviews.of(FIRST).reviews[0].record_id
    space.reviews.withdraw(taken, "ann")
    assert set(names(space)) == {FIRST, SECOND}


def test_a_question_that_is_only_asked_again_stays_reviewed(space: Workspace) -> None:
    space.reviews.accept(FIRST)
    space.query("C0001", "level")
    assert names(space) == [SECOND]
    workspaces.add(space, workspaces.evidence("C0001", 6)[5:])
    again = space.query("C0001", "level").record_id
    assert set(names(space)) == {again, SECOND}


def test_known_answers_and_questions_without_one_are_left_out(space: Workspace) -> None:
    space.facts.add([NewFact("C0001", "level", "low", workspaces.days_ago(1))])
    space.query("C0001", "level")
    space.query("C0009", "level")
    found = space.reviews.queue()
    assert [one.record_id for one in found.answers] == [SECOND]
    assert found.known == 2


def test_a_share_is_drawn_at_random(space: Workspace) -> None:
    for number in range(3, 9):
        workspaces.add(space, workspaces.evidence(f"C{number:04d}", 1, start=number))
    space.query_many([(f"C{number:04d}", "level") for number in range(3, 9)])
    options = QueueOptions(limit=4, sample=0.5, seed=1)
    found = space.reviews.queue(None, options).answers
    assert [one.picked for one in found] == ["value", "value", "random", "random"]
    assert len({one.record_id for one in found}) == 4
    assert space.reviews.queue(None, options).answers == found
    drawn = {
        tuple(one.record_id for one in space.reviews.queue(
            None, QueueOptions(limit=4, sample=0.5, seed=seed)).answers[2:])
        for seed in range(8)
    }  # fmt: skip
    assert len(drawn) > 1
    assert names(space, limit=3) == names(space)[:3]


@pytest.mark.parametrize(
    "options", [{"by": "size"}, {"sample": 1.5}, {"limit": 0}, {"accuracy": 0.1}, {"seed": -1}]
)
def test_options_of_a_queue_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as refused:
        QueueOptions(**options)
    assert refused.value.field in options


def test_reviewers_meet_on_one_record_if_the_question_is_asked_again(space: Workspace) -> None:
    first = space.reviews.blind("C0001", "level", "low", reviewer="ann")
    space.query("C0001", "level")
    second = space.reviews.blind("C0001", "level", "high", reviewer="ben")
    assert (first.about, second.about) == (FIRST, FIRST)
    assert space.reviews.of(FIRST).status == "disputed"
    (found,) = space.reviews.agreement()
    assert found.overall.ratings == 2
    workspaces.add(space, workspaces.evidence("C0001", 6)[5:])
    other = space.query("C0001", "level").record_id
    assert space.reviews.blind("C0001", "level", "high", reviewer="eve").about == other


def test_agreement_counts_blind_passes_only(space: Workspace) -> None:
    reviews = space.reviews
    values = {"ann": ("low", "low"), "ben": ("low", "high"), "eve": ("low", None)}
    for name, (first, second) in values.items():
        reviews.blind("C0001", "level", first, reviewer=name)
        reviews.blind("C0002", "level", second, reviewer=name)
    reviews.accept(SECOND, reviewer="open only")
    (found,) = reviews.agreement()
    # Two units: low low low, and low high; D_o = 2/5, D_e = 1 - 4*3 / (5*4).
    assert found.overall.alpha == pytest.approx(1.0 - (2 / 5) / (1 - 12 / 20))
    assert (found.overall.units, found.overall.ratings) == (2, 5)
    assert found.reviewers == {"ann": 2, "ben": 2, "eve": 1}
    assert set(found.pairs) == {("ann", "ben"), ("ann", "eve"), ("ben", "eve")}
    assert found.pairs["ann", "eve"].alpha is None
    (with_unsure,) = reviews.agreement("level", AgreementOptions(unsure_as_value=True))
    assert with_unsure.overall.ratings == 6
    (with_open,) = reviews.agreement("level", AgreementOptions(with_open=True))
    assert "open only" in with_open.reviewers
    assert reviews.agreement("outcome") == []
