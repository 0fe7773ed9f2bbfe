"""The answer to a question, with the evidence and facts it is based on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lpf.errors import MissingPackageError
from lpf.items import LEFT_OUT_COUNTS, Items, LeftOut, Threshold, jensen_shannon
from lpf.sureness import Decision, PredictionSet, TrackRecord, Trust, joined, plain
from lpf.types import ColumnKind, FloatArray, QueryOptions

if TYPE_CHECKING:
    from pandas import DataFrame

Source = Literal["canonical", "inference", "related", "facts", "none"]
Method = Literal["canonical", "spn", "learned", "average", "prior"]
Audit = Literal["recorded", "pending", "off"]
FactRole = Literal["hard", "soft"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROWS_SHOWN = 60  # in a notebook
NO_ANSWER = "no answer"

# The stages of a question, in the order of the paper's latency table.
STAGES = ("canonical", "retrieval", "encoding", "conversion", "reasoning", "recording")


@dataclass(frozen=True, slots=True)
class FactUsed:
    """A known fact that was used: as certain (``hard``), or as a likelihood (``soft``).
    ``strength`` is the probability with which it was believed, reduced by age."""

    fact_id: int
    predicate: str
    value: str
    confidence: float
    timestamp: int
    role: FactRole
    strength: float


@dataclass(frozen=True, slots=True, eq=False)
class RelatedEvidence:
    """Evidence about a related predicate that was used. ``distribution`` is what its ``items`` say
    together about that predicate's ``values``, with its prior. ``contribution`` [V] is what they
    add to the answer through the circuit, in log space, one number per value of the answer; of
    several related predicates, each adds to those before it. ``min_credibility`` is the one that
    applied to the items: the related predicate has its own."""

    predicate: str
    values: tuple[str, ...]
    distribution: tuple[float, ...]
    items: Items
    contribution: FloatArray
    min_credibility: float

    @property
    def evidence_chain(self) -> tuple[str, ...]:
        """The ids of the items, best first."""
        return tuple(self.items.ids)

    @property
    def left_out(self) -> LeftOut:
        """The items about the related predicate that were found but not used."""
        return LeftOut.of(self.items)


def with_contributions(base: FloatArray, related: Iterable[RelatedEvidence]) -> FloatArray:
    """``base`` and the contributions of related evidence, added in their order."""
    total = base.copy()
    for one in related:
        total += one.contribution
    return total


def all_left_out_note(
    left_out: LeftOut, options: QueryOptions, threshold: Threshold = "given"
) -> str:
    """The note for an answer if items were found but all of them were left out."""
    number = left_out.count
    items = (
        "1 item, which does not count" if number == 1 else f"{number:,} items, none of which counts"
    )
    return f"{items}: {left_out.reasons(options, threshold)}"


def beyond_top_k_notes(items: Items, options: QueryOptions) -> list[str]:
    """The note for an answer that uses only the best of its items, though nobody asked for that."""
    if not items.cut or options.top_k is not None:
        return []
    usable = len(items) + items.cut
    return [f"only the best {len(items):,} of {usable:,} items were used; top_k {usable} uses all"]


# An item that loses at least half of its weight is called unlike the training texts.
UNFAMILIAR_BELOW = 0.5
UNLIKE = "unlike the training texts"
NO_WORDS = "no words"
_IDS_IN_NOTE = 5


def unfamiliar_places(items: Items) -> list[int]:
    """The positions of the items that are unlike the training texts or have no words."""
    if items.familiarity is None:
        return []
    return np.flatnonzero(items.familiarity < UNFAMILIAR_BELOW).tolist()


def unfamiliar_notes(items: Items, *, weighted: bool) -> list[str]:
    """Notes for an answer if items have no words or are unlike the training texts. ``weighted`` is
    True if they count less for it."""
    places = unfamiliar_places(items)
    marks = items.wordless
    blank = [] if marks is None else [place for place in places if marks[place]]
    unlike = [place for place in places if place not in blank]
    notes = []
    if blank:
        does = "does not count" if len(blank) == 1 else "do not count"
        meaning = f"without a word a text says nothing, so {'it' if len(blank) == 1 else 'they'} "
        meaning += does if weighted else "would not count in robust mode"
        notes.append(f"{_subject(items, blank, 'has', 'have')} {NO_WORDS}: {meaning}")
    if unlike:
        it_says = "it says" if len(unlike) == 1 else "they say"
        meaning = f"little or nothing of what {it_says} counts"
        if not weighted:
            meaning = "the model was not trained for such texts, and only robust mode gives them "
            meaning += "less weight"
        elif len(unlike) == len(items):
            meaning = "this is close to the answer without evidence"
        notes.append(f"{_subject(items, unlike, 'is', 'are')} {UNLIKE}: {meaning}")
    return notes


def _subject(items: Items, places: Sequence[int], one: str, several: str) -> str:
    """In words: which of the items, with the verb."""
    verb = one if len(places) == 1 else several
    if len(places) == len(items):
        return f"the only item {verb}" if len(items) == 1 else f"all {len(items):,} items {verb}"
    named = ", ".join(items.ids[place] for place in places[:_IDS_IN_NOTE])
    more = f" and {len(places) - _IDS_IN_NOTE:,} more" if len(places) > _IDS_IN_NOTE else ""
    return f"{len(places):,} of {len(items):,} items ({named}{more}) {verb}"


@dataclass(slots=True, eq=False)
class QueryResult:
    """The answer to one question.

    ``source`` says what the answer is based on, ``method`` how it was computed, ``notes`` what else
    a reader must know. ``evidence`` holds the K items used, best first, or None. ``base`` [V], the
    ``contribution`` [V] of each of ``related`` and the evidence's ``contributions`` [K, V] add up,
    in log space, to the answer before normalising.
    ``stages`` are milliseconds by name (see STAGES); for one of many questions answered together
    they are its share. ``as_of`` and ``timestamp`` are microseconds since 1970. ``none_of`` counts
    the items of an answer without ``evidence``: found, but all left out. ``options`` hold the
    minimum credibility that applied; ``threshold`` says where it comes from.

    If no item and no fact counts, ``source`` is ``none`` and there is no answer: ``top_value`` and
    ``confidence`` are None, and the probabilities are the prior. ``similar`` then has up to three
    known entity IDs that are like an unknown one; it is None if the entity is known.

    ``item_claims`` has the claims of the items used, by evidence ID.

    ``claim_alone`` [V] is one more part of that sum if the question asked for an answer
    ``without_claim_prior``: log share - log P(value | claim), which takes out what the claim alone
    gives away; else None.

    ``prediction_set`` answers a ``coverage``, ``decision`` a ``max_risk``. ``track_record`` tells
    how often answers as sure were right, if the model knows. ``trust``: see monitoring.
    """

    entity_id: str
    predicate: str
    values: tuple[str, ...]
    probabilities: Sequence[float]
    source: Source
    method: Method
    options: QueryOptions
    timestamp: int
    as_of: int
    base: FloatArray | None = None
    evidence: Items | None = None
    facts: tuple[FactUsed, ...] = ()
    uncertainty: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()
    stages: dict[str, float] = field(default_factory=dict)
    execution_time_ms: float = 0.0
    audit: Audit = "off"
    audit_ptr: str | None = None
    none_of: LeftOut | None = None
    similar: tuple[str, ...] | None = None
    item_claims: Mapping[str, str] = field(default_factory=dict)
    related: tuple[RelatedEvidence, ...] = ()
    threshold: Threshold = "given"
    claim_alone: FloatArray | None = None
    prediction_set: PredictionSet | None = None
    decision: Decision | None = None
    track_record: TrackRecord | None = None
    trust: Trust | None = None

    @property
    def has_answer(self) -> bool:
        """False if no item and no fact counts."""
        return self.source != "none"

    @property
    def is_deferred(self) -> bool:
        """True if the answer is not sure enough for the ``max_risk`` of the question."""
        return self.decision is not None and not self.decision.answered

    @property
    def log_prior(self) -> FloatArray | None:
        """``base`` with what related evidence adds, and without what the claim alone gives away if
        that was taken out, [V]: what the items multiply."""
        if self.base is None:
            return None
        total = with_contributions(self.base, self.related)
        return total if self.claim_alone is None else total + self.claim_alone

    @property
    def distribution(self) -> dict[str, float]:
        """The probability of each value."""
        return dict(zip(self.values, self.probabilities, strict=True))

    @property
    def top_value(self) -> str | None:
        """The most probable value, or None if there is no answer."""
        return self.values[self._best] if self.has_answer else None

    @property
    def confidence(self) -> float | None:
        """The probability of the top value, or None if there is no answer."""
        return self.probabilities[self._best] if self.has_answer else None

    @property
    def evidence_chain(self) -> tuple[str, ...]:
        """The ids of the items used, best first."""
        return () if self.evidence is None else tuple(self.evidence.ids)

    @property
    def claims(self) -> tuple[str, ...]:
        """The different claims of the items used, that of the best item first."""
        given = (self.item_claims.get(name) for name in self.evidence_chain)
        return tuple(dict.fromkeys(claim for claim in given if claim is not None))

    @property
    def claim(self) -> str | None:
        """The claim that the answer is about; None if the items have none, or different ones."""
        claims = self.claims
        return claims[0] if len(claims) == 1 else None

    @property
    def left_out(self) -> LeftOut | None:
        """The items that were found but not used. None if a known fact answered directly, so no
        items were retrieved."""
        return self.none_of if self.evidence is None else LeftOut.of(self.evidence)

    @property
    def familiarity(self) -> float | None:
        """How like the training texts the items are, from 0 to 1: the mean over the items. None
        without items, or if the model cannot tell."""
        used = self.evidence
        if used is None or used.familiarity is None or not len(used):
            return None
        return float(used.familiarity.mean())

    @property
    def conflict(self) -> float | None:
        """How much the items contradict each other: the Jensen-Shannon divergence of their factors
        in [0, 1], 0 if all say the same. None if there are no factors to compare."""
        used = self.evidence
        if used is None or used.potential is None or not len(used):
            return None
        return jensen_shannon(used.potential)

    @property
    def _best(self) -> int:
        return max(range(len(self.values)), key=self.probabilities.__getitem__)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "claim": self.claim,
            "claims": list(self.claims),
            "as_of": _iso(self.as_of),
            "distribution": self.distribution,
            "top_value": self.top_value,
            "confidence": self.confidence,
            "source": self.source,
            "method": self.method,
            "prediction_set": plain(self.prediction_set),
            "decision": plain(self.decision),
            "track_record": plain(self.track_record),
            "monitoring": plain(self.trust),
            "variant": self.options.variant,
            "mode": self.options.mode,
            "min_credibility": self.options.min_credibility,
            "min_credibility_from": self.threshold,
            "top_k": self.options.most_items,
            "conflict": self.conflict,
            "familiarity": self.familiarity,
            "uncertainty": None if self.uncertainty is None else dict(self.uncertainty),
            "evidence_chain": list(self.evidence_chain),
            "evidence": self._items(),
            "left_out": _counts(self.left_out),
            "facts": [_fact(used) for used in self.facts],
            "related": [self._related(one) for one in self.related],
            "claim_alone": None if self.claim_alone is None else self._by_value(self.claim_alone),
            "notes": list(self.notes),
            "similar": None if self.similar is None else list(self.similar),
            "audit_ptr": self.audit_ptr,
            "record_id": self.record_id,
            "audit": self.audit,
            "stages_ms": dict(self.stages),
            "execution_time_ms": self.execution_time_ms,
        }

    def _items(self) -> list[dict[str, Any]]:
        used = self.evidence
        return [] if used is None else [self._item(used, place) for place in range(len(used))]

    def _item(self, used: Items, place: int) -> dict[str, Any]:
        credibility = float(used.credibility[place])
        item: dict[str, Any] = {
            "evidence_id": used.ids[place],
            "claim": self.item_claims.get(used.ids[place]),
            "weight": float(used.weight[place]),
            "credibility": None if np.isnan(credibility) else credibility,
            "familiarity": None if used.familiarity is None else float(used.familiarity[place]),
            "relevance": None if used.relevance is None else float(used.relevance[place]),
            "wordless": used.wordless is not None and bool(used.wordless[place]),
            "score": float(used.scores[place]),
            "copies": int(used.groups[place]) if used.groups[place] >= 0 else None,
        }
        for name, rows in (("factor", used.potential), ("contribution", used.contributions)):
            if rows is not None:
                item[name] = self._by_value(rows[place])
        return item

    def _related(self, one: RelatedEvidence) -> dict[str, Any]:
        return {
            "predicate": one.predicate,
            "evidence_chain": list(one.evidence_chain),
            "distribution": dict(zip(one.values, one.distribution, strict=True)),
            "contribution": self._by_value(one.contribution),
            "min_credibility": one.min_credibility,
            "left_out": _counts(one.left_out),
        }

    def _by_value(self, row: FloatArray) -> dict[str, float | None]:
        return {
            value: number if np.isfinite(number) else None
            for value, number in zip(self.values, row.tolist(), strict=True)
        }

    @property
    def record_id(self) -> str | None:
        """The ID of the answer's record in the ledger (the paper's ``audit_ptr``), or None if it
        was not recorded."""
        return self.audit_ptr

    @property
    def asked_at(self) -> datetime:
        """When the question was asked, in UTC. ``timestamp`` is the same in microseconds."""
        return _EPOCH + timedelta(microseconds=self.timestamp)

    @property
    def as_of_time(self) -> datetime:
        """The moment the question is about, in UTC. ``as_of`` is the same in microseconds."""
        return _EPOCH + timedelta(microseconds=self.as_of)

    def to_frame(self) -> DataFrame:
        """The answer as a pandas DataFrame with one row: see ``QueryResults.to_frame``."""
        return QueryResults([self]).to_frame()

    def evidence_frame(self) -> DataFrame:
        """The evidence as a pandas DataFrame with one row per item, best first.

        Columns: ``evidence_id``, ``claim``, ``weight``, ``credibility``, ``familiarity`` (1: like
        the training texts), ``relevance`` (how much the item says about its claim; None if items
        were not weighed by it), ``score``, ``copies`` (the number of the item's group of copies),
        and for each value ``factor_<value>`` (what the item says) and ``contribution_<value>``
        (what it adds to the answer, in nats), if the answer has them.
        """
        columns = ["evidence_id", "claim", "weight", "credibility", "familiarity"]
        columns += ["relevance", "score", "copies"]
        rows = []
        for item in self._items():
            row = {name: item[name] for name in columns}
            for kind in ("factor", "contribution"):
                row |= {f"{kind}_{value}": x for value, x in item.get(kind, {}).items()}
            rows.append(row)
        return _pandas().DataFrame(rows, columns=None if rows else columns)

    def __repr__(self) -> str:
        shares = ", ".join(f"{value}={p:.3f}" for value, p in self.distribution.items())
        verdict = shares if self.has_answer else f"{NO_ANSWER}, prior {shares}"
        return (
            f"<QueryResult {self.entity_id!r} {self.predicate}: {verdict} ({self.source}, "
            f"{len(self.evidence_chain)} items, record {self.record_id})>"
        )

    def _repr_html_(self) -> str:
        """For notebooks. IDs, values and notes come from the data, so all of them are escaped."""
        return _html(self)


class QueryResults(list[QueryResult]):
    """The answers to many questions, in the order they were asked: a list with ``to_frame``."""

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one row per question.

        Columns: ``entity_id``, ``predicate``, ``claim`` (None if the items have none, or different
        ones), ``top_value``, ``confidence``, one ``p_<value>`` per value (NaN for predicates that
        do not have it), ``source``, ``method``, ``items`` (evidence items used), ``conflict``,
        ``as_of``, ``asked_at``, ``record_id``, ``set`` (the values of the prediction set, if one
        was asked for), ``deferred`` (why, if it is) and ``notes``. Without an answer ``top_value``
        is None and ``confidence`` NaN. MissingPackageError if pandas is not installed.
        """
        values = list(dict.fromkeys(value for result in self for value in result.values))
        rows = [answer_cells(result, values) for result in self]
        frame = _pandas().DataFrame(rows, columns=list(answer_columns(values)))
        return frame.astype({"confidence": float})

    def _repr_html_(self) -> str:
        """For notebooks: one table row per question."""
        head = _cells("th", ("entity", "predicate", "answer", "probability", "source", "record"))
        rows = [
            _cells(
                "td",
                (
                    *(r.entity_id, r.predicate, *_verdict(r)),
                    *(r.source, r.record_id or "not recorded"),
                ),
            )
            for r in self[:_ROWS_SHOWN]
        ]
        more = len(self) - _ROWS_SHOWN
        rest = f"<p>and {more:,} more; use .to_frame()</p>" if more > 0 else ""
        return f"<table>{head}{''.join(rows)}</table>{rest}"


def answer_columns(values: Iterable[str]) -> dict[str, ColumnKind]:
    """The columns of a table of answers, with what is in them."""
    shares: dict[str, ColumnKind] = {f"p_{value}": "share" for value in values}
    return {
        "entity_id": "text",
        "predicate": "text",
        "claim": "text",
        "top_value": "text",
        "confidence": "share",
        **shares,
        "source": "text",
        "method": "text",
        "items": "count",
        "conflict": "number",
        "as_of": "time",
        "asked_at": "time",
        "record_id": "text",
        "set": "text",
        "deferred": "text",
        "notes": "text",
    }


def answer_cells(result: QueryResult, values: Iterable[str]) -> list[object]:
    """One row of a table of answers."""
    distribution = result.distribution
    return [
        *(result.entity_id, result.predicate, result.claim, result.top_value, result.confidence),
        *(distribution.get(value) for value in values),
        *(result.source, result.method, len(result.evidence_chain), result.conflict),
        *(result.as_of_time, result.asked_at, result.record_id),
        None if result.prediction_set is None else joined(result.prediction_set.values),
        result.decision.why if result.decision is not None and result.is_deferred else None,
        "\n".join(result.notes),
    ]


def _fact(used: FactUsed) -> dict[str, Any]:
    fields = {name: getattr(used, name) for name in FactUsed.__slots__}
    return {**fields, "timestamp": _iso(used.timestamp)}


def _counts(left_out: LeftOut | None) -> dict[str, int] | None:
    if left_out is None:
        return None
    return {name: getattr(left_out, name) for name in LEFT_OUT_COUNTS}


def _iso(micros: int) -> str:
    moment = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    return moment.isoformat(timespec="microseconds") + "Z"


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "data frames need the package pandas, which is not installed.",
            hint='Install it: pip install "lpf[frames]"',
        ) from error


def _verdict(result: QueryResult) -> tuple[str, str]:
    """The top value and its probability, in words."""
    if result.top_value is None:
        return NO_ANSWER, ""
    return result.top_value, f"{result.confidence:.1%}"


def _html(result: QueryResult) -> str:
    """The distribution as bars, the evidence as a table, the notes below."""
    bars = [
        f"<tr><td>{escape(value)}</td><td>{p:.1%}</td><td><div style='background:#4c78a8;"
        f"height:.8em;width:{12 * p:.2f}em'></div></td></tr>"
        for value, p in result.distribution.items()
    ]
    facts = [
        f"{len(result.evidence_chain)} items",
        f"{len(result.facts)} facts" if result.facts else "",
        *[f"{len(one.evidence_chain)} items about {one.predicate}" for one in result.related],
        "" if result.conflict is None else f"conflict {result.conflict:.2f}",
        f"record {result.record_id}" if result.record_id else "not recorded",
    ]
    value, chance = _verdict(result)
    parts = [
        f"<p><b>{escape(result.entity_id)}</b> · {escape(result.predicate)}: "
        f"<b>{escape(value)}</b>{', ' if chance else ''}{chance} "
        f"(source: {escape(result.source)}, method: {escape(result.method)})</p>",
        *(f"<p>claim: {escape(claim)}</p>" for claim in result.claims),
        f"<table>{''.join(bars)}</table>",
        f"<p>{escape(', '.join(filter(None, facts)))}</p>",
    ]
    if result.evidence is not None:
        parts.append(f"<table>{''.join(_item_rows(result, result.evidence))}</table>")
    if result.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
        parts.append(f"<ul>{notes}</ul>")
    return "".join(parts)


def _item_rows(result: QueryResult, used: Items) -> Iterable[str]:
    yield _cells("th", ("item", "says", "weight", "credibility"))
    for place, name in enumerate(used.ids):
        says, credibility = "", float(used.credibility[place])
        if used.potential is not None:
            factor = used.potential[place]
            best = int(factor.argmax())
            says = f"{result.values[best]} {factor[best]:.0%}"
        known = "" if np.isnan(credibility) else f"{credibility:.2f}"
        yield _cells("td", (name, says, f"{float(used.weight[place]):.2f}", known))


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"
