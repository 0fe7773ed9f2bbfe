"""Which answers are worth a reviewer's time.

A reviewer who is right with probability ``accuracy``, and whose errors fall on all other values
alike, is asked about an answer with probabilities p. What that is worth is expected over what the
reviewer may say: by how much the risk that the best guess is wrong falls (``gain``, a wrong answer
costs 1), and how many bits the reviewer tells. It is computed from recorded probabilities alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from lpf.errors import ConfigError
from lpf.explain.explanation import conflicts
from lpf.ledger.contents import Entry, LedgerContents
from lpf.ledger.reader import LedgerReader, StoredRecord
from lpf.review.feedback import AllFeedback, Status, is_same_answer
from lpf.schema import Schema
from lpf.types import FloatArray

ACCURACY = 0.9
By = Literal["value", "conflict", "confidence"]
BLOCK = 4096  # answers computed together


@dataclass(frozen=True, slots=True)
class QueuedAnswer:
    """One answer to review. ``gain`` and ``bits`` are what one review is expected to bring;
    ``conflict`` is 0 to 1, None without at least two items or if it was not asked for. ``picked``
    is "random" for an answer of the random share. The answer itself is not here: a blind pass
    comes first."""

    record_id: str
    entity_id: str
    predicate: str
    gain: float
    bits: float
    confidence: float
    conflict: float | None
    reviews: int
    status: Status
    picked: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "record_id": self.record_id,
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "gain": self.gain,
            "bits": self.bits,
            "confidence": self.confidence,
            "conflict": self.conflict,
            "reviews": self.reviews,
            "status": self.status,
            "picked": self.picked,
        }


@dataclass(frozen=True)
class ReviewQueue:
    """``answers`` in the order in which to review them, of ``waiting`` in all; ``reviewed`` were
    left out because they have a review, ``known`` because a known fact or nothing answers.
    ``unreadable`` says which reviews could not be read."""

    answers: tuple[QueuedAnswer, ...]
    waiting: int
    reviewed: int
    known: int
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """How to fill a queue of at most ``limit`` answers: ordered ``by`` what a review is worth, by
    how much the items contradict each other, or with the least confident first. With ``reviewer``
    only answers are left out that this reviewer has reviewed; without, all that have a review. A
    share ``sample`` of the queue is drawn at random from the rest: scores of reviewed answers are
    else those of hard ones only."""

    by: By = "value"
    limit: int = 20
    reviewer: str | None = None
    accuracy: float = ACCURACY
    sample: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_accuracy(self.accuracy)
        if not 0.0 <= self.sample <= 1.0:
            raise ConfigError(f"must be 0 to 1, got {self.sample!r}.", field="sample")
        if self.limit < 1:
            raise ConfigError(f"must be 1 or above, got {self.limit!r}.", field="limit")
        if self.seed < 0:
            raise ConfigError(f"must be 0 or above, got {self.seed!r}.", field="seed")
        if self.by not in ("value", "conflict", "confidence"):
            raise ConfigError(
                f"must be value, conflict or confidence, got {self.by!r}.", field="by"
            )


def check_accuracy(accuracy: float) -> None:
    """ConfigError unless it is that of a reviewer who knows something and can be wrong."""
    if not 0.5 <= accuracy < 1.0:
        raise ConfigError(
            f"must be at least 0.5 and below 1, got {accuracy!r}. Nothing was computed.",
            field="accuracy",
        )


def review_value(
    probabilities: FloatArray, accuracy: float = ACCURACY
) -> tuple[FloatArray, FloatArray]:
    """What asking one reviewer is worth, for each row of ``probabilities`` [N, V]: the expected
    fall of the risk of a wrong answer [N], and the expected bits [N]."""
    check_accuracy(accuracy)
    p = np.asarray(probabilities, dtype=np.float64)
    count = p.shape[1]
    if count < 2:
        return np.zeros(len(p)), np.zeros(len(p))
    wrong = (1.0 - accuracy) / (count - 1)
    first, second = -np.partition(-p, 1, axis=1)[:, :2].T
    # The most probable of the values that the reviewer did not name.
    rival = np.where(np.arange(count) == p.argmax(axis=1)[:, None], second[:, None], first[:, None])
    right_after = np.maximum(accuracy * p, wrong * rival).sum(axis=1)
    gain = np.maximum(right_after - first, 0.0)
    said = wrong + (accuracy - wrong) * p
    noise = _bits(np.array([accuracy, *[wrong] * (count - 1)]))
    return gain, np.maximum(_bits(said) - noise, 0.0)


def _bits(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-np.where(p > 0.0, p * np.log2(p), 0.0).sum(axis=-1))


def review_queue(
    schema: Schema,
    contents: LedgerContents,
    records: LedgerReader,
    feedback: AllFeedback,
    options: QueueOptions,
    predicate: str | None = None,
) -> ReviewQueue:
    """The newest answer to each question about ``predicate`` (None: any), in time proportional to
    the number of answers."""
    names = [one.name for one in schema] if predicate is None else [schema[predicate].name]
    done = _Done(records, feedback, options.reviewer)
    found: list[QueuedAnswer] = []
    reviewed = known = 0
    for name in names:
        numbers = []
        for entry in contents.newest_about(name):
            if done.has(entry):
                reviewed += 1
            elif entry.value is None:
                known += 1
            else:
                numbers.append(entry.seq)
        answers = _answers(records, numbers, feedback, options)
        known += len(numbers) - len(answers)
        found += answers
    chosen = _chosen(found, options)
    return ReviewQueue(tuple(chosen), len(found), reviewed, known, feedback.unreadable)


class _Done:
    """Which answers have a review, by ``reviewer`` or (None) by anybody. A review of an earlier
    answer counts if the question was only asked again: the same value from the same items."""

    def __init__(self, records: LedgerReader, feedback: AllFeedback, reviewer: str | None) -> None:
        self._records = records
        self._by_question: dict[tuple[str, str], list[str]] = defaultdict(list)
        for about, answer in feedback.by_answer.items():
            if reviewer in answer.current if reviewer is not None else answer.current:
                self._by_question[answer.entity_id, answer.predicate].append(about)

    def has(self, entry: Entry) -> bool:
        reviewed = self._by_question.get((entry.entity_id, entry.predicate), ())
        if not reviewed or entry.record_id in reviewed:
            return bool(reviewed)
        fields = self._records.get(entry.record_id).fields
        return any(is_same_answer(fields, self._records.get(one).fields) for one in reviewed)


def _answers(
    records: LedgerReader, numbers: Sequence[int], feedback: AllFeedback, options: QueueOptions
) -> list[QueuedAnswer]:
    made: list[QueuedAnswer] = []
    for start in range(0, len(numbers), BLOCK):
        # Values may have changed since some of the answers, so those with equally many go together.
        by_width: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for stored in records.get_many(numbers[start : start + BLOCK]):
            fields = _fields(records, stored, options.by == "conflict")
            if fields["query_type"] != "canonical":
                by_width[len(fields["distribution"])].append(fields)
        for rows in by_width.values():
            p = np.array([list(one["distribution"].values()) for one in rows])
            gain, bits = review_value(p, options.accuracy)
            made += map(_queued, rows, gain.tolist(), bits.tolist(), [feedback] * len(rows))
    return made


def _fields(records: LedgerReader, stored: StoredRecord, with_factors: bool) -> Mapping[str, Any]:
    fields = stored.fields
    if with_factors and "blob" in fields.get("factors", {}):
        return records.expand(stored)
    return fields


def _queued(
    fields: Mapping[str, Any], gain: float, bits: float, feedback: AllFeedback
) -> QueuedAnswer:
    name, factors = fields["record_id"], fields.get("factors", {})
    of_answer = feedback.of(name, (fields["entity_id"], fields["predicate"]))
    potential = factors.get("potential")
    conflict = None if potential is None else conflicts(np.array(potential), None)[0]
    return QueuedAnswer(
        name,
        fields["entity_id"],
        fields["predicate"],
        gain,
        bits,
        float(fields["confidence"]),
        conflict,
        len(of_answer.current),
        of_answer.status,
        "",
    )


def _chosen(found: Sequence[QueuedAnswer], options: QueueOptions) -> list[QueuedAnswer]:
    """The first in order, and then those drawn at random from the rest."""
    ordered = sorted(found, key=lambda one: (*_rank(one, options.by), one.record_id))
    size = min(options.limit, len(ordered))
    drawn = round(options.sample * size)
    first, rest = ordered[: size - drawn], ordered[size - drawn :]
    generator = np.random.default_rng(options.seed)
    places = generator.choice(len(rest), drawn, replace=False).tolist() if drawn else []
    picked = [(one, options.by) for one in first] + [(rest[place], "random") for place in places]
    return [_picked(one, how) for one, how in picked]


def _picked(one: QueuedAnswer, how: str) -> QueuedAnswer:
    return replace(one, picked=how)


def _rank(one: QueuedAnswer, by: By) -> tuple[float, ...]:
    """The best first. Where no review can change the best guess, the bits decide."""
    if by == "conflict":
        return (-(one.conflict if one.conflict is not None else -1.0), one.confidence)
    if by == "confidence":
        return (one.confidence,)
    return (-round(one.gain, 12), -one.bits)
