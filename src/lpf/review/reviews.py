"""Reviewing the answers of one workspace: what a person says about an answer becomes a record.

    with lpf.Workspace.open() as workspace:
        workspace.reviews.override("INF00000042", "low", reviewer="ann")

No method changes a record. Who changes their mind reviews again (the last review of a reviewer
counts) or withdraws the review.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lpf.errors import ReplayError, ReviewError, UnknownValueError
from lpf.ledger.contents import ANSWER, NO_ANSWER_METHOD, LedgerContents, require_answer
from lpf.ledger.records import Draft, sequence_of
from lpf.orchestrator.replay import Replay
from lpf.results import QueryResult
from lpf.review.agreement import Agreement, AgreementOptions, agreement
from lpf.review.applying import Applicable, ApplyOptions, ApplyOutcome, apply_reviews
from lpf.review.blind import BlindCase, blind_case
from lpf.review.export import export_format, write_feedback
from lpf.review.feedback import (
    AllFeedback,
    AnswerFeedback,
    all_feedback,
    feedback_about,
    is_same_answer,
    read_review_record,
)
from lpf.review.queue import QueueOptions, ReviewQueue, review_queue
from lpf.review.records import (
    Adjudication,
    AnyReviewRecord,
    Judgement,
    Review,
    Verdict,
    Withdrawal,
    adjudication_draft,
    check_reviewer,
    reveal_draft,
    review_draft,
    withdrawal_draft,
)
from lpf.review.revised import replay_review, revised_answer
from lpf.storage.atomic_files import atomic_file


class Reviewable(Applicable, Protocol):
    """What reviews need of a workspace."""

    @property
    def contents(self) -> LedgerContents: ...
    @property
    def query(self) -> Callable[[str, str], QueryResult]: ...


@dataclass(frozen=True)
class Revealed:
    """The answer after a blind pass: its record, the value it gives, and its probabilities."""

    blind: Review
    record_id: str
    value: str
    distribution: Mapping[str, float]

    @property
    def agrees(self) -> bool | None:
        """Whether the reviewer gave the same value; None if the reviewer was unsure."""
        return None if self.blind.value is None else self.blind.value == self.value

    def to_dict(self) -> dict[str, Any]:
        return {
            "record_id": self.record_id,
            "value": self.value,
            "distribution": dict(self.distribution),
            "blind": self.blind.to_dict(),
            "agrees": self.agrees,
        }


class Reviews:
    """The reviews of a workspace. ``reviewer`` is who reviews if a method is not given another
    name."""

    def __init__(self, workspace: Reviewable, reviewer: str | None = None) -> None:
        self.workspace = workspace
        self._reviewer = reviewer

    def reviewer(self, name: str | None = None) -> str:
        """The name that a review is recorded under. ReviewError if there is none."""
        return check_reviewer(self._reviewer if name is None else name)

    def accept(
        self,
        record_id: str,
        judgements: Sequence[Judgement] = (),
        comment: str | None = None,
        reviewer: str | None = None,
    ) -> Review:
        """Record that the value of an answer is right."""
        return self._final(record_id, "accept", None, judgements, comment, reviewer)

    def override(
        self,
        record_id: str,
        value: str,
        judgements: Sequence[Judgement] = (),
        comment: str | None = None,
        reviewer: str | None = None,
    ) -> Review:
        """Record that another value is right. UnknownValueError for one that the predicate does
        not have."""
        return self._final(record_id, "override", value, judgements, comment, reviewer)

    def unsure(
        self,
        record_id: str,
        judgements: Sequence[Judgement] = (),
        comment: str | None = None,
        reviewer: str | None = None,
    ) -> Review:
        """Record that the reviewer looked at an answer and cannot tell."""
        return self._final(record_id, "unsure", None, judgements, comment, reviewer)

    def blind_case(self, entity_id: str, predicate: str) -> BlindCase:
        """The evidence of the newest answer to a question, without the answer. A question that was
        not asked yet is asked and recorded now. If it was only asked again since a review, with the
        same answer from the same items, it is the answer that was reviewed."""
        return self._case_of(self._newest_answer(entity_id, predicate))

    def blind(
        self,
        entity_id: str,
        predicate: str,
        value: str | None,
        comment: str | None = None,
        reviewer: str | None = None,
    ) -> Review:
        """Record the value that a reviewer gives without having seen the answer, or None for
        unsure. ReviewError if this reviewer has seen it."""
        name = self.reviewer(reviewer)
        answer = self._newest_answer(entity_id, predicate)
        self._case_of(answer)  # there must be something to judge
        _check_value(answer, value)
        about, question = answer["record_id"], (answer["entity_id"], answer["predicate"])
        found = self.of(about)
        if self._has_seen(answer, name):
            raise ReviewError(
                f"{name!r} has seen the answer about {entity_id!r} already, so a blind pass is "
                "not possible any more. Nothing was recorded.",
                field="reviewer",
            )
        earlier = found.current.get(name)
        draft = review_draft(
            about,
            question,
            name,
            "blind",
            value,
            replaces=None if earlier is None else earlier.record_id,
            comment=comment,
        )
        return self._appended_review(draft)

    def reveal(self, blind_id: str, reviewer: str | None = None) -> Revealed:
        """Show the answer to the reviewer of a blind pass, and record that it was shown."""
        name, blind = self.reviewer(reviewer), self._blind_pass(blind_id)
        if blind.reviewer != name:
            raise ReviewError(
                f"{blind_id} is the blind pass of {blind.reviewer!r}, not of {name!r}. Nothing "
                "was shown.",
                field="reviewer",
                hint="Name its reviewer with --reviewer.",
            )
        answer = self._answer(blind.about)
        question = blind.entity_id, blind.predicate
        if not self.of(blind.about).has_seen(blind.reviewer):
            self.workspace.ledger.append(reveal_draft(blind.record_id, question, blind.reviewer))
        return Revealed(blind, blind.about, answer["top_value"], answer["distribution"])

    def blind_pass_of(self, entity_id: str, predicate: str, reviewer: str | None = None) -> Review:
        """The last blind pass of a reviewer about a question. ReviewError if there is none."""
        name = self.reviewer(reviewer)
        found = self._feedback_on(entity_id, predicate)
        passes = [one.blind[name] for one in found.by_answer.values() if name in one.blind]
        if not passes:
            raise ReviewError(
                f"{name!r} has no blind pass about {predicate!r} of {entity_id!r}. Nothing was "
                "shown.",
                field="entity",
                hint="Record one first: lpf review blind ENTITY --value VALUE.",
            )
        return max(passes, key=lambda one: sequence_of(one.record_id))

    def withdraw(self, record_id: str, reviewer: str | None = None) -> Withdrawal:
        """Take a review or an adjudication back. Reviewers withdraw what they said themselves."""
        name = self.reviewer(reviewer)
        taken = read_review_record(self.workspace.records, record_id)
        if not isinstance(taken, Review | Adjudication):
            raise ReviewError(
                f"{record_id} cannot be withdrawn: it is neither a review nor an adjudication. "
                "Nothing was recorded.",
                field="record",
            )
        if taken.reviewer != name:
            raise ReviewError(
                f"{record_id} was given by {taken.reviewer!r}, not by {name!r}. Nothing was "
                "recorded.",
                field="reviewer",
                hint="To disagree with it, review the answer yourself.",
            )
        if record_id in self.of(taken.about).withdrawn:
            raise ReviewError(
                f"{record_id} is withdrawn already. Nothing was recorded.", field="record"
            )
        question = taken.entity_id, taken.predicate
        withdrawn = self._appended(withdrawal_draft(record_id, question, name))
        assert isinstance(withdrawn, Withdrawal)
        return withdrawn

    def adjudicate(
        self,
        record_id: str,
        value: str,
        comment: str | None = None,
        reviewer: str | None = None,
    ) -> Adjudication:
        """Decide about an answer whose reviewers disagree. ReviewError if they do not."""
        name = self.reviewer(reviewer)
        answer = self._answer(record_id)
        _check_value(answer, value)
        found = self.of(record_id)
        if found.status not in ("disputed", "adjudicated"):
            raise ReviewError(
                f"the reviews of {record_id} are not in dispute ({found.status}). Nothing was "
                "recorded.",
                field="record",
                hint="Review it: lpf review accept, override or blind.",
            )
        decided = [one.record_id for one in found.current.values()]
        question = answer["entity_id"], answer["predicate"]
        draft = adjudication_draft(record_id, question, name, value, decided, comment)
        made = self._appended(draft)
        assert isinstance(made, Adjudication)
        return made

    def queue(
        self, predicate: str | None = None, options: QueueOptions | None = None
    ) -> ReviewQueue:
        """The answers that are worth a review, the best first."""
        space, chosen = self.workspace, options or QueueOptions()
        return review_queue(
            space.schema, space.contents, space.records, self.all(), chosen, predicate
        )

    def agreement(
        self, predicate: str | None = None, options: AgreementOptions | None = None
    ) -> list[Agreement]:
        """How far reviewers agree, for each predicate that was reviewed."""
        schema = self.workspace.schema
        names = [one.name for one in schema] if predicate is None else [schema[predicate].name]
        return agreement(self.all(), options or AgreementOptions(), names)

    def apply(self, options: ApplyOptions, reviewer: str | None = None) -> ApplyOutcome:
        """Make facts or labels of reviewed answers. ``reviewer`` is who applies them."""
        return apply_reviews(self.workspace, self.all(), options, self.reviewer(reviewer))

    def export(self, target: Path | str) -> int:
        """Write all feedback to a .jsonl, .csv, .xlsx or .parquet file; returns the number of
        rows. ConfigError for another suffix."""
        suffix = export_format(target)
        with atomic_file(Path(target)) as file:
            return write_feedback(suffix, file, self.all(), self.workspace.records)

    def of(self, record_id: str) -> AnswerFeedback:
        """All that was recorded about one answer. UnknownRecordError or NotAnAnswerError if there
        is no such answer."""
        fields = self.workspace.records.get(record_id).fields
        require_answer(fields)
        found = feedback_about(self.workspace.contents, self.workspace.records, [record_id])
        return found.of(record_id, (fields["entity_id"], fields["predicate"]))

    def all(self) -> AllFeedback:
        """The feedback about every answer."""
        return all_feedback(self.workspace.contents, self.workspace.records)

    def replay(self, record_id: str, *, deep: bool = False) -> Replay:
        """Compute the revised answer of a review again. ReviewError if it has none; ReplayError if
        asked to do so from texts and model."""
        review = read_review_record(self.workspace.records, record_id)
        if not isinstance(review, Review):
            raise ReviewError(
                f"{record_id} is not a review: there is nothing to compute. Nothing was done.",
                field="record",
            )
        if deep:
            raise ReplayError(
                f"{record_id} is a review: its revised answer comes from the record of the answer, "
                "not from texts and model. Nothing was computed.",
                field="deep",
                hint=f"Leave out --deep, or replay the answer: {review.about}.",
            )
        return replay_review(review, self._answer(review.about))

    def _final(
        self,
        record_id: str,
        verdict: Verdict,
        value: str | None,
        judgements: Sequence[Judgement],
        comment: str | None,
        reviewer: str | None,
    ) -> Review:
        name = self.reviewer(reviewer)
        answer = self._answer(record_id)
        if answer["method"] == NO_ANSWER_METHOD and verdict == "accept":
            raise ReviewError(
                f"{record_id} gave no answer, so there is none to accept. Nothing was recorded.",
                field="record",
                hint="Name the value that is right: lpf review override RECORD VALUE.",
            )
        if verdict == "accept":
            value = answer["top_value"]
        _check_value(answer, value)
        if verdict == "override" and value == answer["top_value"]:
            raise ReviewError(
                f"{value!r} is the value of the answer. Nothing was recorded.",
                field="value",
                hint="To agree with it: lpf review accept.",
            )
        revised, notes = revised_answer(answer, judgements)
        found = self.of(record_id)
        blind, earlier = found.blind.get(name), found.current.get(name)
        is_first = earlier is None or earlier.is_blind
        draft = review_draft(
            record_id,
            (answer["entity_id"], answer["predicate"]),
            name,
            verdict,
            value,
            judgements=judgements,
            revised=revised,
            follows=None if blind is None else blind.record_id,
            replaces=None if is_first or earlier is None else earlier.record_id,
            comment=comment,
            notes=notes,
        )
        return self._appended_review(draft)

    def _appended_review(self, draft: Draft) -> Review:
        review = self._appended(draft)
        assert isinstance(review, Review)
        return review

    def _appended(self, draft: Draft) -> AnyReviewRecord:
        receipt = self.workspace.ledger.append(draft)
        return read_review_record(self.workspace.records, receipt.record_id)

    def _answer(self, record_id: str) -> dict[str, Any]:
        records = self.workspace.records
        stored = records.get(record_id)
        require_answer(stored.fields)
        return records.expand(stored)

    def _newest_answer(self, entity_id: str, predicate: str) -> dict[str, Any]:
        found = [
            one.record_id
            for one in self.workspace.contents.newest_of([entity_id])
            if one.predicate == predicate
        ]
        if found:
            return self._as_reviewed(self._answer(found[-1]))
        asked = self.workspace.query(entity_id, predicate).record_id
        assert asked is not None  # questions are recorded before they are answered
        return self._answer(asked)

    def _case_of(self, answer: Mapping[str, Any]) -> BlindCase:
        description = self.workspace.schema[answer["predicate"]].description
        return blind_case(answer, description, self.workspace.evidence)

    def _as_reviewed(self, newest: dict[str, Any]) -> dict[str, Any]:
        """The same answer as it was given when it was last reviewed, if it was: reviewers of one
        answer meet on one record, also if the question was asked again between them."""
        given = self._feedback_on(newest["entity_id"], newest["predicate"])
        reviewed = [name for name, one in given.by_answer.items() if one.current]
        for name in sorted(reviewed, key=sequence_of, reverse=True):
            if is_same_answer(newest, self.workspace.records.get(name).fields):
                return self._answer(name)
        return newest

    def _has_seen(self, answer: Mapping[str, Any], reviewer: str) -> bool:
        """Return True if this reviewer is known to have seen the answer, also if it was given
        before: a question may be asked again."""
        records = self.workspace.records
        given = self._feedback_on(answer["entity_id"], answer["predicate"])
        return any(
            one.has_seen(reviewer) and is_same_answer(answer, records.get(one.about).fields)
            for one in given.by_answer.values()
        )

    def _feedback_on(self, entity_id: str, predicate: str) -> AllFeedback:
        """About all answers to one question."""
        entries = self.workspace.contents.history(entity_id, predicate)
        answers = [one.record_id for one in entries if one.kind == ANSWER]
        return feedback_about(self.workspace.contents, self.workspace.records, answers)

    def _blind_pass(self, record_id: str) -> Review:
        review = read_review_record(self.workspace.records, record_id)
        if not isinstance(review, Review) or not review.is_blind:
            raise ReviewError(
                f"{record_id} is not a blind pass. Nothing was shown.",
                field="record",
                hint="Record one first: lpf review blind ENTITY --value VALUE.",
            )
        if record_id in self.of(review.about).withdrawn:
            raise ReviewError(
                f"{record_id} was withdrawn. Nothing was shown.",
                field="record",
                hint="Record another one: lpf review blind ENTITY --value VALUE.",
            )
        return review


def _check_value(answer: Mapping[str, Any], value: str | None) -> None:
    values = answer["context"]["values"]
    if value is not None and value not in values:
        raise UnknownValueError(
            f"{value!r} is not a value of {answer['predicate']!r}; its values are {values}. "
            "Nothing was recorded.",
            field="value",
        )
