"""What reviewers said about each answer, read from the ledger, and what follows from it.

Records are never changed, so the state of an answer is computed from all records about it: of each
reviewer the last review counts that was not withdrawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lpf.errors import ReviewError
from lpf.ledger.contents import Entry, LedgerContents
from lpf.ledger.formats import COMMENT_FIELD
from lpf.ledger.reader import LedgerReader, StoredRecord, is_digest
from lpf.ledger.records import sequence_of
from lpf.review.records import (
    ADJUDICATION,
    APPLICATION,
    REVEAL,
    REVIEW,
    WITHDRAWAL,
    Adjudication,
    AnyReviewRecord,
    Application,
    Reveal,
    Review,
    Target,
    Withdrawal,
    parsed,
)

KINDS = (REVIEW, REVEAL, WITHDRAWAL, ADJUDICATION, APPLICATION)
Status = Literal["unreviewed", "unsure", "settled", "disputed", "adjudicated"]


@dataclass
class AnswerFeedback:
    """All that was recorded about one answer, in the order of the ledger."""

    about: str
    entity_id: str
    predicate: str
    reviews: list[Review] = field(default_factory=list)
    adjudications: list[Adjudication] = field(default_factory=list)
    applications: list[Application] = field(default_factory=list)
    reveals: list[Reveal] = field(default_factory=list)
    withdrawn: dict[str, Withdrawal] = field(default_factory=dict)

    @property
    def current(self) -> dict[str, Review]:
        """The review of each reviewer that counts."""
        return {one.reviewer: one for one in self.reviews if one.record_id not in self.withdrawn}

    @property
    def blind(self) -> dict[str, Review]:
        """The blind pass of each reviewer that counts."""
        return {
            one.reviewer: one
            for one in self.reviews
            if one.is_blind and one.record_id not in self.withdrawn
        }

    @property
    def decision(self) -> Adjudication | None:
        """The last adjudication that was not withdrawn."""
        standing = [one for one in self.adjudications if one.record_id not in self.withdrawn]
        return standing[-1] if standing else None

    @property
    def votes(self) -> Counter[str]:
        """How many reviewers gave each value; those who are unsure are not counted."""
        return Counter(one.value for one in self.current.values() if one.value is not None)

    @property
    def status(self) -> Status:
        if self.decision is not None:
            return "adjudicated"
        votes = self.votes
        if not votes:
            return "unsure" if self.current else "unreviewed"
        return "settled" if len(votes) == 1 else "disputed"

    @property
    def value(self) -> str | None:
        """The value that was settled on or decided; None as long as there is none."""
        if self.decision is not None:
            return self.decision.value
        return next(iter(self.votes)) if self.status == "settled" else None

    def has_seen(self, reviewer: str) -> bool:
        """Return True if this reviewer is known to have seen the answer, even if the review was
        withdrawn since."""
        final = any(one.reviewer == reviewer and not one.is_blind for one in self.reviews)
        return final or any(one.reviewer == reviewer for one in self.reveals)

    def applied(self, target: Target) -> Application | None:
        """The last time that the value became a fact or a label."""
        found = [one for one in self.applications if one.target == target]
        return found[-1] if found else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "record_id": self.about,
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "status": self.status,
            "value": self.value,
            "reviews": [
                one.to_dict() | {"withdrawn": one.record_id in self.withdrawn}
                for one in self.reviews
            ],
            "adjudications": [
                one.to_dict() | {"withdrawn": one.record_id in self.withdrawn}
                for one in self.adjudications
            ],
        }


@dataclass(frozen=True)
class AllFeedback:
    """The feedback by answer, in the order of their first reviews. ``unreadable`` says which
    records could not be read, and why."""

    by_answer: Mapping[str, AnswerFeedback]
    unreadable: tuple[str, ...] = ()

    def of(self, about: str, question: tuple[str, str]) -> AnswerFeedback:
        return self.by_answer.get(about) or AnswerFeedback(about, *question)


def is_same_answer(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if two recorded answers to one question give the same value from the same items
    and facts: whoever reviewed one has reviewed the other."""
    names = ("entity_id", "predicate", "method", "top_value", "evidence_chain", "facts")
    return all(one.get(name) == other.get(name) for name in names)


def all_feedback(contents: LedgerContents, records: LedgerReader) -> AllFeedback:
    """Of every answer, in time proportional to the number of records about others."""
    return _collected(records, contents.linked())


def feedback_about(
    contents: LedgerContents, records: LedgerReader, answers: Iterable[str]
) -> AllFeedback:
    """Of these answers only."""
    reviews = list(contents.about(map(sequence_of, answers)))
    return _collected(records, [*reviews, *contents.about(one.seq for one in reviews)])


def read_review_record(records: LedgerReader, record_id: str) -> AnyReviewRecord:
    """One record of these kinds. UnknownRecordError if there is no such record, ReviewError if it
    is of another kind."""
    stored = records.get(record_id)
    kind = stored.fields.get("kind")
    if kind not in KINDS:
        raise ReviewError(
            f"{record_id} is {'an answer' if kind is None else f'a record of the kind {kind!r}'}, "
            "not a review. Nothing was done.",
            field="record",
            hint=f"'lpf review show {record_id}' lists the reviews of an answer.",
        )
    return _read(records, stored)


def _collected(records: LedgerReader, entries: Iterable[Entry]) -> AllFeedback:
    numbers = {one.seq for one in entries if one.kind in KINDS}
    found: dict[str, AnswerFeedback] = {}
    place_of: dict[str, AnswerFeedback] = {}  # of reviews and adjudications
    unreadable = []
    for stored in records.get_many(sorted(numbers)):
        try:
            one = _read(records, stored)
        except ReviewError as error:
            unreadable.append(str(error))
            continue
        if isinstance(one, Reveal | Withdrawal):
            of_answer = place_of.get(one.about)
        else:
            of_answer = found.setdefault(
                one.about, AnswerFeedback(one.about, one.entity_id, one.predicate)
            )
            place_of[one.record_id] = of_answer
        if of_answer is None:
            unreadable.append(f"{one.record_id}: is about {one.about}, which is no review")
        else:
            _add(of_answer, one)
    return AllFeedback(found, tuple(unreadable))


def _add(to: AnswerFeedback, one: AnyReviewRecord) -> None:
    if isinstance(one, Review):
        to.reviews.append(one)
    elif isinstance(one, Adjudication):
        to.adjudications.append(one)
    elif isinstance(one, Application):
        to.applications.append(one)
    elif isinstance(one, Reveal):
        to.reveals.append(one)
    else:
        to.withdrawn[one.about] = one


def _read(records: LedgerReader, stored: StoredRecord) -> AnyReviewRecord:
    fields = stored.fields
    commitment = fields.get(COMMENT_FIELD, "")
    text = records.query_text(bytes.fromhex(commitment)) if is_digest(commitment) else None
    return parsed(fields, text)


def in_order(feedback: Sequence[AnswerFeedback]) -> Iterator[Review | Adjudication]:
    """All reviews and adjudications of these answers, in the order of the ledger."""
    every: list[Review | Adjudication] = []
    for one in feedback:
        every += [*one.reviews, *one.adjudications]
    yield from sorted(every, key=lambda each: sequence_of(each.record_id))
