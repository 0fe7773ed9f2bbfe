"""Orchestrator.HandleQuery (Algorithm 5), for one question and for many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import attrgetter
from time import perf_counter
from typing import Literal

from lpf.engine import Background, Engine
from lpf.errors import ConfigError, EvidenceError, UnknownValueError
from lpf.index.retrieve import EvidenceIndex
from lpf.ledger.records import Draft, Receipt
from lpf.ledger.writer import Ledger
from lpf.orchestrator.inference import Inference, Question
from lpf.orchestrator.judging import judge
from lpf.orchestrator.known_facts import FactPolicy, canonical_probabilities, staleness_micros
from lpf.orchestrator.recording import Contexts, draft_of
from lpf.results import FactUsed, QueryResult
from lpf.schema import Schema
from lpf.storage.facts import FactStore
from lpf.storage.values import iso, now_micros, to_micros
from lpf.types import QueryOptions

AuditMode = Literal["sync", "async", "off"]
DEFAULT_OPTIONS = QueryOptions()
_EVERY_FIELD = attrgetter(*[one.name for one in fields(QueryResult)])
# Clocks of several machines that write to one ledger differ a little. In microseconds.
CLOCK_TOLERANCE = 5_000_000
UNSIGNED = "recorded, but not signed: the ledger's key is not here"


@dataclass(frozen=True)
class Parts:
    """What an orchestrator works with. Without an ``engine`` (no model yet) only known facts can
    answer; without a ``ledger`` nothing can be recorded. ``asked_by`` is stored in every record."""

    schema: Schema
    facts: FactStore
    index: EvidenceIndex
    background: Background
    engine: Engine | None
    reader_id: str
    ledger: Ledger | None = None
    policy: FactPolicy = field(default_factory=FactPolicy)
    asked_by: str | None = None


class Orchestrator:
    """Answers from known facts first, then from evidence, and records every answer.

    ``audit`` is ``sync`` (the record is on disk when the answer is returned), ``async`` (the
    record is written shortly afterwards, and the answer says ``pending``) or ``off``.
    """

    def __init__(self, parts: Parts, clock: Callable[[], int] = now_micros) -> None:
        self._facts = parts.facts
        self._ledger = parts.ledger
        self._policy = parts.policy
        self._asked_by = parts.asked_by
        self._clock = clock
        self._latest = (parts.ledger.newest_time or 0) if parts.ledger else 0
        self._schema = parts.schema
        self._background = parts.background
        self._held_out = {} if parts.engine is None else parts.engine.runtime.held_out
        self._stale = {one.name: staleness_micros(one) for one in parts.schema}
        self._inference = Inference(
            schema=parts.schema,
            facts=parts.facts,
            index=parts.index,
            background=parts.background,
            engine=parts.engine,
            policy=parts.policy,
        )
        self._contexts = Contexts(parts.schema, parts.background, parts.engine, parts.reader_id)

    def query(
        self,
        entity_id: str,
        predicate: str,
        options: QueryOptions = DEFAULT_OPTIONS,
        audit: AuditMode = "sync",
    ) -> QueryResult:
        """One question. An answer is returned only if it could be recorded as ``audit`` says."""
        begun = perf_counter()
        _check_entity(entity_id)
        known = self._schema[predicate]
        timestamp = self._clock()
        as_of = timestamp if options.as_of is None else to_micros(options.as_of)
        row = self._facts.canonical(entity_id, predicate, as_of)
        looked = perf_counter() - begun
        options, threshold = self._inference.with_threshold(options, predicate)
        question = Question(entity_id, known, options, timestamp, as_of, row, threshold=threshold)
        result = self._canonical(question)
        if result is None:
            result = self._inference.answer([question])[0]
        self._judge([result])
        self._note_clock([result])
        result.stages["canonical"] = 1e3 * looked
        self._record(result, begun, audit)
        return result

    def suppose(
        self,
        entity_id: str,
        predicate: str,
        options: QueryOptions = DEFAULT_OPTIONS,
        facts: Mapping[str, str] | None = None,
    ) -> QueryResult:
        """The answer if ``facts``, values of other predicates, were certain. It is not recorded.
        ConfigError for a fact about the predicate itself, which would be the answer, and for one
        that the circuit cannot take into account."""
        assumed = dict(facts or {})
        known = self._schema[predicate]
        for name, value in assumed.items():
            if value not in self._schema[name].index:
                raise UnknownValueError(
                    f"{name!r} has no value {value!r}; it has {list(self._schema[name].values)}. "
                    "Nothing was computed."
                )
            if name == predicate:
                raise ConfigError(
                    f"{name!r} is the predicate that the question is about, so {value!r} would be "
                    "the answer. Nothing was computed; assume a fact about another predicate.",
                    field="facts",
                )
            if name not in self._schema.related(predicate):
                raise ConfigError(
                    f"{name!r} and {predicate!r} are not declared as related, so a fact about one "
                    "says nothing about the other. Nothing was computed.",
                    field="facts",
                    hint="Declare the relation in lpf.toml, and run 'lpf facts learn'.",
                )
        timestamp = self._clock()
        as_of = timestamp if options.as_of is None else to_micros(options.as_of)
        row = self._facts.canonical(entity_id, predicate, as_of)
        options, threshold = self._inference.with_threshold(options, predicate)
        question = Question(
            entity_id, known, options, timestamp, as_of, row, threshold=threshold, assumed=assumed
        )
        return self._canonical(question) or self._inference.answer([question])[0]

    def query_many(
        self,
        questions: Sequence[tuple[str, str]],
        options: QueryOptions = DEFAULT_OPTIONS,
        audit: AuditMode = "sync",
    ) -> list[QueryResult]:
        """Many questions (entity, predicate) in one pass; the same answers as one by one, to 1e-5.
        Stage times are each question's share. The records are committed together."""
        begun = perf_counter()
        for entity_id, _ in questions:
            _check_entity(entity_id)
        timestamp = self._clock()
        as_of = timestamp if options.as_of is None else to_micros(options.as_of)
        effective = {
            name: self._inference.with_threshold(options, self._schema[name].name)
            for name in {predicate for _, predicate in questions}
        }
        all_questions = [
            Question(
                entity_id,
                self._schema[predicate],
                effective[predicate][0],
                timestamp,
                as_of,
                self._facts.canonical(entity_id, predicate, as_of),
                threshold=effective[predicate][1],
            )
            for entity_id, predicate in questions
        ]
        looked = perf_counter() - begun
        results = self._answer_all(all_questions)
        self._judge(results)
        self._note_clock(results)
        self._record_many(results, begun, looked, audit)
        return results

    def _canonical(self, question: Question) -> QueryResult | None:
        """Lines 3 to 7: a fact that is fresh and confident enough is the answer."""
        if question.own is None:
            return None
        value, confidence, stated, _, fact_id = question.own
        predicate = question.predicate
        stale = question.as_of - stated > self._stale[predicate.name]
        if stale or confidence < self._policy.min_confidence:
            return None
        if value not in predicate.index:
            _refuse_unknown_value(question, value, fact_id)
        fact = FactUsed(fact_id, predicate.name, value, confidence, stated, "hard", confidence)
        return QueryResult(
            question.entity_id,
            predicate.name,
            predicate.values,
            canonical_probabilities(predicate.values, value, confidence),
            "canonical",
            "canonical",
            question.options,
            question.timestamp,
            question.as_of,
            facts=(fact,),
            threshold=question.threshold,
        )

    def _answer_all(self, questions: list[Question]) -> list[QueryResult]:
        """From known facts if they suffice; all others from evidence, one predicate at a time."""
        results: dict[int, QueryResult] = {}
        places: dict[str, list[int]] = {}
        for place, question in enumerate(questions):
            known = self._canonical(question)
            if known is None:
                places.setdefault(question.predicate.name, []).append(place)
            else:
                results[place] = known
        for chosen in places.values():
            answers = self._inference.answer([questions[place] for place in chosen])
            results.update(zip(chosen, answers, strict=True))
        return [results[place] for place in range(len(questions))]

    def _judge(self, results: Sequence[QueryResult]) -> None:
        for result in results:
            covered = self._background.covers(result.predicate)
            judge(result, self._held_out.get(result.predicate) if covered else None)

    def _note_clock(self, results: Sequence[QueryResult]) -> None:
        """Records stay in order by their numbers, but their times are wrong if the clock was set
        back."""
        for result in results:
            if result.timestamp < self._latest - CLOCK_TOLERANCE:
                result.notes = (*result.notes, clock_note(self._latest, result.timestamp))
            else:
                self._latest = max(self._latest, result.timestamp)

    def _record(self, result: QueryResult, begun: float, audit: AuditMode) -> None:
        reasoned = perf_counter()
        result.execution_time_ms = 1e3 * (reasoned - begun)
        if audit == "off":
            return
        ledger = self._open_ledger()
        if audit == "async":
            ledger.append_later(partial(self._draft, _own_copy(result)))
            result.audit = "pending"
            return
        receipt = ledger.append(self._draft(result))
        _note_receipt(result, receipt, ledger)
        ended = perf_counter()
        result.stages["recording"] = 1e3 * (ended - reasoned)
        result.execution_time_ms = 1e3 * (ended - begun)

    def _record_many(
        self, results: list[QueryResult], begun: float, looked: float, audit: AuditMode
    ) -> None:
        share = 1e3 / max(1, len(results))
        reasoned = perf_counter()
        for result in results:
            result.stages["canonical"] = looked * share
            result.execution_time_ms = (reasoned - begun) * share
        if audit == "off":
            return
        ledger = self._open_ledger()
        if audit == "async":
            for result in results:
                ledger.append_later(partial(self._draft, _own_copy(result)))
                result.audit = "pending"
            return
        receipts = ledger.append_many([self._draft(result) for result in results])
        ended = perf_counter()
        for result, receipt in zip(results, receipts, strict=True):
            _note_receipt(result, receipt, ledger)
            result.stages["recording"] = (ended - reasoned) * share
            result.execution_time_ms = (ended - begun) * share

    def _draft(self, result: QueryResult) -> Draft:
        return draft_of(result, self._contexts.of(result), self._asked_by)

    def _open_ledger(self) -> Ledger:
        if self._ledger is None:
            raise ConfigError("audit: there is no ledger to record to; ask with audit='off'.")
        return self._ledger


def clock_note(newest: int, now: int) -> str:
    return (
        f"the clock was set back: the newest record is of {iso(newest)}, but it is {iso(now)} now"
    )


def _own_copy(result: QueryResult) -> QueryResult:
    """For the ledger's thread: changes that the caller makes to the answer meanwhile must not be
    recorded. Everything not copied here is read-only."""
    own = QueryResult(*_EVERY_FIELD(result))  # ``replace`` takes three times as long
    own.probabilities = tuple(result.probabilities)
    if result.evidence is not None:
        own.evidence = result.evidence.copy()
    if result.uncertainty is not None:
        own.uncertainty = dict(result.uncertainty)
    own.related = tuple(replace(one, items=one.items.copy()) for one in result.related)
    return own


def _note_receipt(result: QueryResult, receipt: Receipt, ledger: Ledger) -> None:
    result.audit, result.audit_ptr = "recorded", receipt.record_id
    if not ledger.signs:
        result.notes = (*result.notes, UNSIGNED)


def _check_entity(entity_id: object) -> None:
    if type(entity_id) is not str or not entity_id.strip():
        raise EvidenceError(
            f"entity_id: must be a text that is not empty, got {entity_id!r}. Nothing was answered."
        )


def _refuse_unknown_value(question: Question, value: str, fact_id: int) -> None:
    """The schema no longer has the fact's value, so no distribution can contain it."""
    raise UnknownValueError(
        f"fact {fact_id} says that {question.predicate.name!r} of {question.entity_id!r} is "
        f"{value!r}, which the schema no longer has; its values are "
        f"{list(question.predicate.values)}. Nothing was answered; correct the fact "
        f"('lpf facts correct {fact_id} --value ...') or put the value back."
    )
