"""The records of reviews: what each says, how it is written to the ledger, and how it is read.

All of them are about another record and change nothing of it. Of a review and an adjudication the
words (the comment, and why items were judged as they were) are stored outside the record, which
holds their salted hash: they can be erased, and the ledger still verifies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, get_args

from lpf.errors import LPFError, ReviewError
from lpf.explain.what_if import LARGEST_WEIGHT
from lpf.ledger.canonical import canonical
from lpf.ledger.formats import COMMENT_FIELD
from lpf.ledger.reader import is_digest
from lpf.ledger.records import Draft, QueryText, salted, sequence_of
from lpf.storage.values import iso, length_problem, name_problem, now_micros

REVIEW: Final = "review"
REVEAL: Final = "review_reveal"
WITHDRAWAL: Final = "review_withdrawal"
ADJUDICATION: Final = "review_adjudication"
APPLICATION: Final = "review_application"

Verdict = Literal["accept", "override", "unsure", "blind"]
JudgementKind = Literal["exclude", "reweight", "duplicate"]
Target = Literal["facts", "labels"]
LONGEST_WORDS = 20_000  # characters of a comment or a reason


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a reviewer says about one item of the answer: it should not count (``exclude``), count
    ``weight`` times as much (``reweight``), or is a copy of the item ``of`` (``duplicate``).
    ``reason`` is not in the record; it is None if there is none, or it was erased."""

    kind: JudgementKind
    item: str
    weight: float | None = None
    of: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(JudgementKind):
            raise ReviewError(
                f"must be one of {list(get_args(JudgementKind))}, got {self.kind!r}. Nothing was "
                "recorded.",
                field="kind",
            )
        if (self.weight is None) == (self.kind == "reweight"):
            raise ReviewError(
                f"a weight belongs to reweight, and only there ({self.item!r}). Nothing was "
                "recorded.",
                field="weight",
            )
        if self.weight is not None and not 0.0 <= self.weight <= LARGEST_WEIGHT:
            raise ReviewError(
                f"the weight of {self.item!r} must be 0 to {LARGEST_WEIGHT:g} times what it is, "
                f"got {self.weight!r}. Nothing was recorded.",
                field="weight",
            )
        if (self.of is None) == (self.kind == "duplicate") or self.of == self.item:
            raise ReviewError(
                f"{self.item!r} must be named as a duplicate of another item. Nothing was "
                "recorded.",
                field="duplicate",
            )

    def fields(self) -> dict[str, Any]:
        found = {"kind": self.kind, "item": self.item, "weight": self.weight, "of": self.of}
        return {name: value for name, value in found.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        return self.fields() | {"reason": self.reason}

    def __str__(self) -> str:
        more = {"exclude": "", "reweight": f" x {self.weight:g}" if self.weight is not None else ""}
        return f"{self.kind} {self.item}{more.get(self.kind, f' of {self.of}')}"


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    """What all records of this room have. ``about`` is the ID of the record that it is about."""

    record_id: str
    about: str
    entity_id: str
    predicate: str
    reviewer: str
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class Review(ReviewRecord):
    """One reviewer's verdict about an answer. ``value`` is the value that the reviewer thinks
    right, None if unsure. A review with the verdict "blind" was given before its reviewer saw the
    answer; ``follows`` names it in the review that was given afterwards. ``replaces`` is an earlier
    review of the same reviewer, which no longer counts. ``revised`` are the probabilities under the
    judgements, None if there are none or it cannot be computed from the record. ``comment`` is None
    if there is none, or if it was erased: see ``is_erased``."""

    verdict: Verdict
    value: str | None
    judgements: tuple[Judgement, ...] = ()
    revised: Mapping[str, float] | None = None
    follows: str | None = None
    replaces: str | None = None
    comment: str | None = None
    is_erased: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_blind(self) -> bool:
        return self.verdict == "blind"

    @property
    def words(self) -> str:
        """The verdict in words, such as "overrides with low"."""
        said = {
            "accept": f"accepts {self.value}",
            "override": f"overrides with {self.value}",
            "unsure": "is unsure",
            "blind": "is unsure, blind" if self.value is None else f"says {self.value}, blind",
        }
        return said[self.verdict]

    @property
    def judged(self) -> list[str]:
        """What it says of items, with the reasons that are known."""
        return [f"{one} ({one.reason})" if one.reason else str(one) for one in self.judgements]

    @property
    def revised_top(self) -> tuple[str, float] | None:
        """The most probable value of the revised answer, and its probability."""
        if self.revised is None:
            return None
        best = max(self.revised, key=self.revised.__getitem__)
        return best, self.revised[best]

    def to_dict(self) -> dict[str, Any]:
        return {
            "record_id": self.record_id,
            "about": self.about,
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "reviewer": self.reviewer,
            "timestamp": iso_of(self.timestamp),
            "verdict": self.verdict,
            "value": self.value,
            "judgements": [one.to_dict() for one in self.judgements],
            "revised": None if self.revised is None else dict(self.revised),
            "follows": self.follows,
            "replaces": self.replaces,
            "comment": self.comment,
            "comment_erased": self.is_erased,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Reveal(ReviewRecord):
    """A reviewer saw the answer after the blind pass that this record is about."""


@dataclass(frozen=True, slots=True)
class Withdrawal(ReviewRecord):
    """Takes a review or an adjudication back."""


@dataclass(frozen=True, slots=True)
class Adjudication(ReviewRecord):
    """The final decision about an answer whose reviewers disagree: ``value``, over ``reviews``."""

    value: str
    reviews: tuple[str, ...] = ()
    comment: str | None = None
    is_erased: bool = False

    @property
    def words(self) -> str:
        return f"decides {self.value}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "record_id": self.record_id,
            "about": self.about,
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "reviewer": self.reviewer,
            "timestamp": iso_of(self.timestamp),
            "value": self.value,
            "reviews": list(self.reviews),
            "comment": self.comment,
            "comment_erased": self.is_erased,
        }


@dataclass(frozen=True, slots=True)
class Application(ReviewRecord):
    """A reviewed answer became a known fact (``fact_id``) or the label of ``items``."""

    target: Target
    value: str
    confidence: float
    fact_id: int | None = None
    items: tuple[str, ...] = ()


AnyReviewRecord = Review | Reveal | Withdrawal | Adjudication | Application


def iso_of(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def check_reviewer(name: str | None) -> str:
    """The ID of a reviewer. ReviewError if there is none, or a record cannot hold it."""
    if name is None:
        raise ReviewError(
            "is missing. Nothing was recorded.",
            field="reviewer",
            hint="Name one with --reviewer; a pseudonym will do.",
        )
    problem = name_problem(name) or length_problem(name, "reviewer")
    if problem:
        raise ReviewError(f"{problem}. Nothing was recorded.", field="reviewer")
    return name


def review_draft(
    about: str,
    question: tuple[str, str],
    reviewer: str,
    verdict: Verdict,
    value: str | None,
    *,
    judgements: Sequence[Judgement] = (),
    revised: Mapping[str, float] | None = None,
    follows: str | None = None,
    replaces: str | None = None,
    comment: str | None = None,
    notes: Sequence[str] = (),
) -> Draft:
    fields = _common(REVIEW, about, question, reviewer) | {"verdict": verdict, "top_value": value}
    if judgements:
        fields["judgements"] = [one.fields() for one in judgements]
    if revised is not None:
        fields["revised"] = dict(revised)
    fields |= {
        name: other
        for name, other in (("follows", follows), ("replaces", replaces))
        if other is not None
    }
    if notes:
        fields["notes"] = list(notes)
    return _with_words(fields, comment, [one.reason for one in judgements])


def reveal_draft(about: str, question: tuple[str, str], reviewer: str) -> Draft:
    return Draft(_common(REVEAL, about, question, reviewer))


def withdrawal_draft(about: str, question: tuple[str, str], reviewer: str) -> Draft:
    return Draft(_common(WITHDRAWAL, about, question, reviewer))


def adjudication_draft(
    about: str,
    question: tuple[str, str],
    reviewer: str,
    value: str,
    reviews: Sequence[str],
    comment: str | None = None,
) -> Draft:
    fields = _common(ADJUDICATION, about, question, reviewer)
    return _with_words({**fields, "top_value": value, "reviews": list(reviews)}, comment, [])


def application_draft(
    about: str,
    question: tuple[str, str],
    reviewer: str,
    target: Target,
    value: str,
    confidence: float,
    *,
    fact_id: int | None = None,
    items: Sequence[str] = (),
) -> Draft:
    fields = _common(APPLICATION, about, question, reviewer)
    fields |= {"target": target, "top_value": value, "confidence": confidence}
    if fact_id is not None:
        fields["fact_id"] = fact_id
    if items:
        fields["items"] = list(items)
    return Draft(fields)


def _common(kind: str, about: str, question: tuple[str, str], reviewer: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "about": about,
        "entity_id": question[0],
        "predicate": question[1],
        "reviewer": check_reviewer(reviewer),
        "timestamp": iso(now_micros()),
    }


def _with_words(
    fields: dict[str, Any], comment: str | None, reasons: Sequence[str | None]
) -> Draft:
    """The words of a review are one text, so that erasing it leaves nothing of them."""
    for name, words in (("comment", comment), *(("reason", one) for one in reasons)):
        _check_words(name, words)
    if comment is None and not any(one is not None for one in reasons):
        return Draft(fields)
    document: dict[str, Any] = {"comment": comment, "reasons": list(reasons)}
    text = salted(canonical(document).decode())
    return Draft({**fields, COMMENT_FIELD: text.commitment.hex()}, texts=(text,))


def _check_words(name: str, words: str | None) -> None:
    if words is None:
        return
    problem = None
    if not words.strip():
        problem = "is empty"
    elif len(words) > LONGEST_WORDS:
        problem = f"has {len(words):,} characters; at most {LONGEST_WORDS:,} are allowed"
    else:
        try:
            words.encode()
        except UnicodeEncodeError:
            problem = "is not valid Unicode"
    if problem:
        raise ReviewError(f"{problem}. Nothing was recorded.", field=name)


def parsed(fields: Mapping[str, Any], text: QueryText | None) -> AnyReviewRecord:
    """A record of one of these kinds. ``text`` are its words, None if there are none or they were
    erased. ReviewError if a field is missing or of another type."""
    try:
        return _parsed(fields, text)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, LPFError) as error:
        raise ReviewError(
            f"{fields.get('record_id')}: cannot be read as a {fields.get('kind')}: {error!s:.200}"
        ) from error


def _parsed(fields: Mapping[str, Any], text: QueryText | None) -> AnyReviewRecord:
    sequence_of(fields["about"])
    names = ("record_id", "about", "entity_id", "predicate", "reviewer")
    common: dict[str, Any] = {name: _name(fields[name]) for name in names}
    common["timestamp"] = datetime.fromisoformat(fields["timestamp"])
    kind = fields["kind"]
    if kind == REVEAL:
        return Reveal(**common)
    if kind == WITHDRAWAL:
        return Withdrawal(**common)
    if kind == APPLICATION:
        return Application(
            **common,
            target=_one_of(fields["target"], get_args(Target)),
            value=_name(fields["top_value"]),
            confidence=float(fields["confidence"]),
            fact_id=_optional_number(fields.get("fact_id")),
            items=tuple(map(_name, fields.get("items", ()))),
        )
    comment, reasons, is_erased = _words(fields, text)
    common |= {"comment": comment, "is_erased": is_erased}
    if kind == ADJUDICATION:
        reviews = tuple(map(_name, fields["reviews"]))
        return Adjudication(**common, value=_name(fields["top_value"]), reviews=reviews)
    if kind != REVIEW:
        raise ValueError(f"the kind {kind!r} is not known here")
    value, revised = fields["top_value"], fields.get("revised")
    verdict = _one_of(fields["verdict"], get_args(Verdict))
    if verdict != "blind" and (value is None) != (verdict == "unsure"):
        raise ValueError(f"the verdict {verdict!r} does not fit the value {value!r}")
    return Review(
        **common,
        verdict=verdict,
        value=_optional_name(value),
        judgements=tuple(
            _judgement(one, reasons[place] if reasons else None)
            for place, one in enumerate(fields.get("judgements", ()))
        ),
        revised=None if revised is None else {_name(name): float(p) for name, p in revised.items()},
        follows=_optional_name(fields.get("follows")),
        replaces=_optional_name(fields.get("replaces")),
        notes=tuple(map(_name, fields.get("notes", ()))),
    )


def _judgement(fields: Mapping[str, Any], reason: str | None) -> Judgement:
    item = _name(fields["item"])
    of = _optional_name(fields.get("of"))
    return Judgement(fields["kind"], item, fields.get("weight"), of, reason)


def _words(
    fields: Mapping[str, Any], text: QueryText | None
) -> tuple[str | None, list[str | None], bool]:
    """The comment, the reasons of judgements, and whether they were erased."""
    if not is_digest(fields.get(COMMENT_FIELD)):
        return None, [], False
    if text is None:
        return None, [], True
    document = json.loads(text.text)
    return document["comment"], document["reasons"], False


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name is a {type(value).__name__}")
    return value


def _optional_name(value: Any) -> str | None:
    return None if value is None else _name(value)


def _optional_number(value: Any) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError(f"a number is a {type(value).__name__}")
    return value


def _one_of(value: Any, names: Sequence[Any]) -> Any:
    if value not in names:
        raise ValueError(f"{value!r} is none of {list(names)}")
    return value
