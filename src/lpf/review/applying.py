"""Reviewed answers become known facts or training labels: on request only, and on record.

A fact or label is as sure as the reviews make it: with reviewers who are right with probability
``accuracy`` and err on all other values alike, and before whom every value is equally probable. An
adjudication counts as one more vote. Applying again changes only what the reviews changed since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import numpy as np

from lpf.errors import FactError, UnknownEvidenceError
from lpf.ledger.reader import LedgerReader
from lpf.ledger.records import sequence_of
from lpf.ledger.writer import Ledger
from lpf.review.feedback import AllFeedback, AnswerFeedback
from lpf.review.queue import ACCURACY, check_accuracy
from lpf.review.records import Target, application_draft, iso_of
from lpf.schema import Schema
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import Fact, FactStore, NewFact
from lpf.storage.values import now_micros

SOURCE = "review"


@dataclass(frozen=True, slots=True)
class Applied:
    """A reviewed answer that became a fact or the label of ``items``. ``was`` is the value that it
    had before, if it was applied before."""

    record_id: str
    entity_id: str
    predicate: str
    value: str
    confidence: float
    fact_id: int | None = None
    items: tuple[str, ...] = ()
    was: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "record_id": self.record_id,
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "value": self.value,
            "confidence": self.confidence,
            "fact_id": self.fact_id,
            "items": list(self.items),
            "was": self.was,
        }


@dataclass(frozen=True)
class ApplyOutcome:
    """``left_out`` says why, by the answer's record; ``unchanged`` were applied before."""

    target: Target
    applied: tuple[Applied, ...]
    left_out: Mapping[str, str]
    unchanged: int
    dry_run: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "as": self.target,
            "applied": [one.to_dict() for one in self.applied],
            "left_out": dict(self.left_out),
            "unchanged": self.unchanged,
            "dry_run": self.dry_run,
        }


class Applicable(Protocol):
    """What applying needs of a workspace."""

    @property
    def schema(self) -> Schema: ...
    @property
    def records(self) -> LedgerReader: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def evidence(self) -> EvidenceStore: ...
    @property
    def facts(self) -> FactStore: ...
    @property
    def edit(self) -> Callable[..., object]: ...


class NotApplicable(Exception):  # noqa: N818  (never leaves this file)
    """Why one answer is left out."""


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Which answers are applied, and as what: those about ``predicate`` (None: any) with at least
    ``reviewers`` reviewers who gave a value. With ``dry_run`` nothing is written."""

    target: Target
    predicate: str | None = None
    reviewers: int = 1
    accuracy: float = ACCURACY
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_accuracy(self.accuracy)


def vote_confidence(
    votes: Counter[str], value: str, values: Sequence[str], accuracy: float
) -> float:
    """The probability of ``value``, one of the equally probable ``values``, given these votes. A
    vote for anything else, such as a value that was removed from the schema, does not count."""
    counts = np.array([votes[one] for one in (value, *(v for v in values if v != value))], float)
    odds = counts * np.log(accuracy * (len(values) - 1) / (1.0 - accuracy))
    shares = np.exp(odds - odds.max())
    return float(shares[0] / shares.sum())


def apply_reviews(
    workspace: Applicable, feedback: AllFeedback, options: ApplyOptions, reviewer: str
) -> ApplyOutcome:
    """Make facts or labels of all settled and adjudicated answers. ``reviewer`` is who applies."""
    if options.predicate is not None:
        workspace.schema[options.predicate]
    wanted = [
        one
        for one in sorted(feedback.by_answer.values(), key=lambda one: sequence_of(one.about))
        if options.predicate in (None, one.predicate)
    ]
    reviewed = [one for one in wanted if one.status != "unreviewed"]
    newest = {(one.entity_id, one.predicate): one.about for one in reviewed}
    run = _Run(workspace, options, reviewer)
    applied: list[Applied] = []
    left_out: dict[str, str] = {}
    unchanged = 0
    for one in wanted:
        if one.status == "unreviewed" and not one.applied(options.target):
            continue  # nothing but withdrawn reviews
        try:
            if newest.get((one.entity_id, one.predicate), one.about) != one.about:
                raise NotApplicable("a newer answer to the same question was reviewed")
            done = run.apply(one)
        except NotApplicable as why:
            left_out[one.about] = str(why)
            continue
        if done is None:
            unchanged += 1
        else:
            applied.append(done)
    return ApplyOutcome(options.target, tuple(applied), left_out, unchanged, options.dry_run)


class _Run:
    def __init__(self, workspace: Applicable, options: ApplyOptions, reviewer: str) -> None:
        self._workspace = workspace
        self._options = options
        self._reviewer = reviewer

    def apply(self, answer: AnswerFeedback) -> Applied | None:
        """None if there is nothing to change. NotApplicable says why the answer is left out."""
        value = self._checked_value(answer)
        confidence = self._confidence(answer, value)
        if self._options.target == "facts":
            return self._as_fact(answer, value, confidence)
        return self._as_label(answer, value, confidence)

    def _checked_value(self, answer: AnswerFeedback) -> str:
        value, target = answer.value, self._options.target
        before = answer.applied(target)
        if value is None:
            still = ""
            if before is not None:
                still = (
                    "; the labels set before still count: change them with 'lpf evidence edit'"
                    if before.fact_id is None
                    else f"; fact {before.fact_id} still counts: withdraw it with 'lpf facts "
                    f"withdraw {before.fact_id}'"
                )
            raise NotApplicable(f"its reviews are {answer.status}, not settled{still}")
        schema = self._workspace.schema
        if answer.predicate not in schema or value not in schema[answer.predicate].index:
            raise NotApplicable(f"{value!r} is no value of {answer.predicate!r} in the schema")
        least, given = self._options.reviewers, sum(answer.votes.values())
        if given < least and answer.decision is None:
            raise NotApplicable(f"it has {given} of {least} reviewers")
        return value

    def _confidence(self, answer: AnswerFeedback, value: str) -> float:
        votes = answer.votes
        if answer.decision is not None:
            votes[value] += 1
        values = self._workspace.schema[answer.predicate].values
        if len(values) < 2:
            return 1.0
        return vote_confidence(votes, value, values, self._options.accuracy)

    def _as_fact(self, answer: AnswerFeedback, value: str, confidence: float) -> Applied | None:
        before = answer.applied("facts")
        if before is not None and (before.value, before.confidence) == (value, confidence):
            return None
        fields = self._workspace.records.get(answer.about).fields
        as_of = datetime.fromisoformat(fields["as_of"])
        own = None if before is None else before.fact_id
        self._refuse_if_known(answer, value, as_of, own)
        was = None if before is None else before.value
        if self._options.dry_run:
            return self._applied(answer, value, confidence, fact_id=own, was=was)
        source = f"{SOURCE} of {answer.about}"
        new = NewFact(
            answer.entity_id, answer.predicate, value, as_of, confidence, source, answer.about
        )
        try:
            fact = self._added(new) if own is None else self._corrected(own, value, confidence)
        except FactError as error:
            raise NotApplicable(error.message) from error
        self._record(answer, value, confidence, fact_id=fact.fact_id)
        return self._applied(answer, value, confidence, fact_id=fact.fact_id, was=was)

    def _refuse_if_known(
        self, answer: AnswerFeedback, value: str, as_of: datetime, own: int | None
    ) -> None:
        known = self._workspace.facts.canonical(answer.entity_id, answer.predicate, now_micros())
        if known is None:
            return
        said, _, _, source, fact_id = known
        fact = self._workspace.facts.get(fact_id)
        is_own = fact_id == own or source == f"{SOURCE} of {answer.about}"
        if not is_own and fact.timestamp > as_of:
            raise NotApplicable(
                f"fact {fact_id} of {iso_of(fact.timestamp)[:10]} is newer and says {said!r}"
            )

    def _added(self, new: NewFact) -> Fact:
        """The fact, also if an application that was interrupted had added it."""
        added = self._workspace.facts.add([new])
        if added:
            return added[0]
        return next(
            one
            for one in reversed(self._workspace.facts.history(new.entity_id, new.predicate))
            if (one.value, one.confidence, one.source) == (new.value, new.confidence, new.source)
        )

    def _corrected(self, fact_id: int, value: str, confidence: float) -> Fact:
        """The fact as the reviews have it now; it may be that an interrupted run corrected it."""
        facts = self._workspace.facts
        fact = facts.get(fact_id)
        while fact.superseded_by is not None:
            fact = facts.get(fact.superseded_by)
        if (fact.value, fact.confidence) == (value, confidence) and fact.superseded_at is None:
            return fact
        return facts.correct(fact.fact_id, value=value, confidence=confidence)

    def _as_label(self, answer: AnswerFeedback, value: str, confidence: float) -> Applied | None:
        fields = self._workspace.records.get(answer.about).fields
        before = answer.applied("labels")
        own = {} if before is None else dict.fromkeys(before.items, before.value)
        excluded = {
            one.item
            for review in answer.current.values()
            for one in review.judgements
            if one.kind == "exclude"
        }
        chain = [name for name, _ in fields.get("evidence_chain", ()) if name not in excluded]
        if not chain:
            raise NotApplicable("it has no items that could be labelled")
        labels = self._labels(chain)
        to_label = [
            name for name, label in labels.items() if label is None or label == own.get(name)
        ]
        others = Counter(
            label for name, label in labels.items() if name not in to_label and label != value
        )
        if others and others.most_common(1)[0][1] >= len(to_label):
            raise NotApplicable(
                f"its items are labelled {others.most_common(1)[0][0]!r} already, not {value!r}"
            )
        changed = [name for name in to_label if labels[name] != value]
        if not changed:
            if before is None and not to_label:
                raise NotApplicable("its items have labels already, or are erased")
            return None
        was = None if before is None else before.value
        if not self._options.dry_run:
            for name in changed:
                self._workspace.edit(name, supports_value=value)
            self._record(answer, value, confidence, items=to_label)
        return self._applied(answer, value, confidence, items=tuple(to_label), was=was)

    def _labels(self, names: Sequence[str]) -> dict[str, str | None]:
        """The label of each item that is still in the store."""
        found = {}
        for name in names:
            try:
                found[name] = self._workspace.evidence.get(name).evidence.supports_value
            except UnknownEvidenceError:
                continue
        return found

    def _record(
        self,
        answer: AnswerFeedback,
        value: str,
        confidence: float,
        *,
        fact_id: int | None = None,
        items: Sequence[str] = (),
    ) -> None:
        question = answer.entity_id, answer.predicate
        self._workspace.ledger.append(
            application_draft(
                answer.about,
                question,
                self._reviewer,
                self._options.target,
                value,
                confidence,
                fact_id=fact_id,
                items=items,
            )
        )

    def _applied(
        self, answer: AnswerFeedback, value: str, confidence: float, **more: Any
    ) -> Applied:
        return Applied(answer.about, answer.entity_id, answer.predicate, value, confidence, **more)
