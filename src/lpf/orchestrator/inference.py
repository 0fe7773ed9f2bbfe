"""Lines 9 to 36 of Algorithm 5: from evidence and known facts to a distribution.

Works on questions about one predicate at a time, asked with the same options; one question is a
list of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from lpf.combine.combined import Combined, normalised
from lpf.engine import Answers, Background, Engine, Facts, Items
from lpf.engine.background import read_only
from lpf.errors import WorkspaceError
from lpf.factors.convert import StepTimes
from lpf.index.retrieve import EvidenceIndex
from lpf.items import LeftOut, Segments, Threshold
from lpf.options import DEFAULT_MIN_CREDIBILITY
from lpf.orchestrator.known_facts import FactPolicy, known_facts, unused_note
from lpf.orchestrator.recording import shared_options
from lpf.orchestrator.related_evidence import RelatedReader, rough_note
from lpf.results import (
    FactUsed,
    QueryResult,
    RelatedEvidence,
    Source,
    all_left_out_note,
    beyond_top_k_notes,
    unfamiliar_notes,
)
from lpf.schema import Predicate, Schema
from lpf.storage.facts import FactStore
from lpf.storage.seals import damage_notes
from lpf.types import Float32Array, FloatArray, QueryOptions

NO_FACTS = Facts()
NO_EVIDENCE = "no evidence: the circuit answered from known facts alone"
RELATED_ONLY = "no evidence about this predicate itself: the circuit answered from related evidence"
NOTHING = "no evidence and no known facts: this is the prior"
PAPER_UNUSED = "paper mode does not use it"
UNCOVERED_UNUSED = "it is not used, since the circuit does not cover its predicate"
_WITHOUT_EVIDENCE = {"related": RELATED_ONLY, "facts": NO_EVIDENCE, "none": NOTHING}
_FALLBACKS = {
    "average": "the circuit does not cover this predicate: the items' factors were averaged",
    "learned": "the circuit does not cover this predicate: learned weights were used",
}
ASSUMED = "assumed"  # the source of a fact that is only supposed
NO_CLAIM = "no item has a claim: there was nothing to take out of the answer"
FACTS_UNUSED = "known facts were not used: only the circuit can take them into account"


@dataclass(slots=True)
class Question:
    """One question, and what was found for it. ``own`` is the newest fact about the predicate
    itself (value, confidence, timestamp, source, fact_id), if there is one; ``facts`` and
    ``used`` are the known facts for the answer, ``fact_notes`` what a reader must know of others;
    ``stages`` are milliseconds by name. ``options`` have a ``min_credibility``, and ``threshold``
    says where it comes from.

    If evidence about related predicates counts, ``base`` [V] is what the circuit says with the
    known facts, ``related`` what that evidence adds, and ``log_prior`` [V] the sum. ``notes`` say
    what could not be read. ``assumed`` are values of other predicates that count as certain facts
    for this question only.
    """

    entity_id: str
    predicate: Predicate
    options: QueryOptions
    timestamp: int
    as_of: int
    own: tuple[Any, ...] | None = None
    facts: Facts = NO_FACTS
    used: tuple[FactUsed, ...] = ()
    fact_notes: tuple[str, ...] = ()
    stages: dict[str, float] = field(default_factory=dict)
    base: FloatArray | None = None
    related: tuple[RelatedEvidence, ...] = ()
    log_prior: FloatArray | None = None
    notes: tuple[str, ...] = ()
    threshold: Threshold = "given"
    assumed: Mapping[str, str] = field(default_factory=dict)


class Inference:
    """Retrieval, encoding, conversion and reasoning."""

    def __init__(
        self,
        *,
        schema: Schema,
        facts: FactStore,
        index: EvidenceIndex,
        background: Background,
        engine: Engine | None,
        policy: FactPolicy,
    ) -> None:
        self._schema = schema
        self._facts = facts
        self._index = index
        self._background = background
        self._engine = engine
        self._policy = policy
        self._rough_note = lru_cache(maxsize=64)(self._make_rough_note)
        self._defaults = lru_cache(maxsize=64)(self._fill_in)
        self._related = {
            one.name: frozenset(filter(background.covers, schema.related(one.name)))
            for one in schema
        }
        # Predicates whose evidence counts too, in the schema's order: none if the circuit keeps
        # all predicates apart, as it does before anything is learned.
        self._joined = {
            name: tuple(
                one
                for one in schema
                if one.name in related and background.joins_predicates and background.covers(name)
            )
            for name, related in self._related.items()
        }
        self._related_reader = RelatedReader(index, background, engine)

    def answer(self, questions: Sequence[Question]) -> list[QueryResult]:
        """Answers to questions about one predicate, in their order."""
        begun = perf_counter()
        options = self._effective_options(questions[0])
        text = questions[0].options.query_text
        vector = None if text is None else self._index.query_vector(text)
        evidence = self._retrieve(questions, options, vector)
        self._look_up_facts(questions)
        retrieval = 1e3 * (perf_counter() - begun) / len(questions)
        for question in questions:
            question.stages["retrieval"] = retrieval
        if self._joined[questions[0].predicate.name] and options.uses_related:
            self._read_related(questions, options, vector)
        results: dict[int, QueryResult] = {}
        places = [place for place, items in enumerate(evidence) if len(items)]
        if places:
            with_items, items = [questions[p] for p in places], [evidence[p] for p in places]
            results.update(zip(places, self._infer(with_items, items, options), strict=True))
        return [
            results[place] if place in results else self._without_evidence(question, items)
            for place, (question, items) in enumerate(zip(questions, evidence, strict=True))
        ]

    def with_threshold(
        self, options: QueryOptions, predicate: str
    ) -> tuple[QueryOptions, Threshold]:
        """``options`` with the minimum credibility that applies, and where it comes from.
        ConfigError if the model cannot do what they ask for."""
        if options.without_claim_prior and self._engine is not None:
            self._engine.claim_alone(predicate)  # refuses what it cannot do
        for name in ("coverage", "max_risk"):
            if getattr(options, name) is not None and self._engine is not None:
                self._engine.held_out(predicate, f"options.{name}")
        if options.min_credibility is not None:
            return options, "given"
        if options.query_text is None and options.as_of is None:
            return self._defaults(options, predicate)
        return self._fill_in(options, predicate)

    def _fill_in(self, options: QueryOptions, predicate: str) -> tuple[QueryOptions, Threshold]:
        engine, threshold = self._engine, DEFAULT_MIN_CREDIBILITY
        by_model = False
        if engine is not None:
            effective = self._answered_with(shared_options(options), predicate)
            threshold = engine.min_credibility(predicate, effective)
            chosen = engine.runtime.config.min_credibility
            by_model = predicate in chosen and options.mode == "robust"
        filled = replace(options, min_credibility=threshold)
        return filled, "model" if by_model else "default"

    def _effective_options(self, question: Question) -> QueryOptions:
        """What the question is answered with, without query text and ``as_of``."""
        return self._answered_with(shared_options(question.options), question.predicate.name)

    def _answered_with(self, options: QueryOptions, predicate: str) -> QueryOptions:
        """If the circuit does not cover the predicate, the fallback ``learned`` replaces the
        variant ``spn``."""
        covered = self._background.covers(predicate)
        if options.variant == "spn" and not covered and options.fallback == "learned":
            return _as_learned(options)
        return options

    def _retrieve(
        self, questions: Sequence[Question], options: QueryOptions, vector: Float32Array | None
    ) -> list[Items]:
        assert options.min_credibility is not None  # ``with_threshold`` has set it
        return [
            self._index.retrieve(
                question.entity_id,
                question.predicate.name,
                top_k=options.most_items,
                min_credibility=options.min_credibility,
                as_of=question.as_of,
                query_vector=vector,
            )
            for question in questions
        ]

    def _look_up_facts(self, questions: Sequence[Question]) -> None:
        """Looks up facts about related predicates and, in robust mode, a fact about this predicate
        that is too old or too uncertain to be the answer by itself. If that fact cannot take part,
        a note says so."""
        predicate = questions[0].predicate.name
        covered = self._background.covers(predicate)
        unused = PAPER_UNUSED if covered else UNCOVERED_UNUSED
        for question in questions:
            if question.own is not None and not (covered and question.options.mode == "robust"):
                note = unused_note(question.predicate, question.own, question.as_of, unused)
                question.fact_notes = (note,)
        if not covered:
            return
        related = self._related[predicate]
        for question in questions:
            rows = self._facts.of_entity(question.entity_id, question.as_of) if related else []
            rows = [row for row in rows if row[0] in related and row[0] not in question.assumed]
            rows += [
                (name, value, 1.0, question.as_of, ASSUMED, 0)
                for name, value in question.assumed.items()
            ]
            if question.own is not None and question.options.mode == "robust":
                rows.append((predicate, *question.own))
            if rows:
                question.facts, question.used, fading = known_facts(
                    rows, self._schema, question.as_of, self._policy
                )
                question.fact_notes += fading

    def _read_related(
        self, questions: Sequence[Question], options: QueryOptions, vector: Float32Array | None
    ) -> None:
        """Evidence about related predicates; its time counts as reasoning."""
        begun = perf_counter()
        joined = self._joined[questions[0].predicate.name]
        self._related_reader.read(questions, joined, options, vector)
        share = 1e3 * (perf_counter() - begun) / len(questions)
        for question in questions:
            question.stages["reasoning"] = share

    def _infer(
        self, questions: Sequence[Question], evidence: Sequence[Items], options: QueryOptions
    ) -> list[QueryResult]:
        """Answers from evidence: one pass of the engine over the items of all questions."""
        predicate = questions[0].predicate.name
        engine = self._require_engine(questions[0])
        items = Items.join(evidence)
        begun = perf_counter()
        times: StepTimes = []
        if options.variant == "learned":
            posteriors = engine.posteriors(items, options)
            ready = perf_counter()
            times = [(ready - begun, 0.0)]
            answers = engine.answer(items, predicate, options, posteriors=posteriors)
        else:
            factors = engine.factors(items, predicate, options, times)
            ready = perf_counter()
            facts = [question.facts for question in questions]
            usable = facts if self._background.covers(predicate) else ()
            log_prior = _stacked([question.log_prior for question in questions])
            if options.without_claim_prior and log_prior is None:
                # What the claim alone gives away is a part of its own, so the base is without it.
                log_prior = np.broadcast_to(
                    self._background.log_prior(predicate, usable),
                    (len(questions), len(questions[0].predicate.values)),
                )
                for question, base in zip(questions, log_prior, strict=True):
                    question.base = read_only(base.copy())
            answers = engine.answer(
                items, predicate, options, usable, factors=factors, log_prior=log_prior
            )
        answers.freeze()
        _share_times(questions, times, ready - begun, perf_counter() - ready)
        return [
            self._result(question, own, answers, place)
            for place, (question, own) in enumerate(zip(questions, evidence, strict=True))
        ]

    def _result(
        self, question: Question, items: Items, answers: Answers, place: int
    ) -> QueryResult:
        answers.fill(items, place)
        weighted = answers.method == "spn" and question.options.mode == "robust"
        others = (self._cut_note(items), self._rough_note(answers.predicate))
        notes = unfamiliar_notes(items, weighted=weighted)
        notes += beyond_top_k_notes(items, question.options)
        notes += [note for note in others if note is not None]
        notes += [*question.notes, *damage_notes(items.damaged)]
        taken_out = None if answers.claim_alone is None else answers.claim_alone[place]
        if taken_out is not None:
            notes.append(self._claim_note(answers, taken_out))
        facts = question.used
        if answers.method == "spn" or not facts:
            notes += question.fact_notes
        if answers.method != "spn":
            if facts:
                notes.append(FACTS_UNUSED)
                facts = ()
            if question.options.variant == "spn":
                notes.append(_FALLBACKS[answers.method])
        combined, uncertainty = answers.combined, answers.uncertainty
        base = combined.base[place] if isinstance(combined, Combined) else None
        return QueryResult(
            question.entity_id,
            question.predicate.name,
            answers.values,
            answers.distribution[place].tolist(),
            "inference",
            answers.method,
            question.options,
            question.timestamp,
            question.as_of,
            base if question.base is None else question.base,
            items,
            facts,
            None if uncertainty is None else uncertainty.item(place),
            tuple(notes),
            question.stages,
            related=question.related,
            threshold=question.threshold,
            claim_alone=taken_out,
        )

    def _claim_note(self, answers: Answers, taken_out: FloatArray) -> str:
        """What was taken out of the answer because the claim alone gives it away."""
        if not taken_out.any():
            return NO_CLAIM
        assert self._engine is not None  # there is no inference without an engine
        shares = np.exp(self._engine.claim_alone(answers.predicate).log_shares)
        alone = shares * np.exp(-taken_out)
        alone = alone / alone.sum()
        best = int((alone / shares).argmax())
        return (
            "what the claim alone gives away was taken out: without evidence it would say "
            f"{answers.values[best]} {alone[best]:.0%}, class shares {shares[best]:.0%}"
        )

    def _without_evidence(self, question: Question, items: Items) -> QueryResult:
        """Lines 11 to 13, extended by known facts and related evidence: the circuit alone
        answers."""
        begun = perf_counter()
        predicate = question.predicate
        known = [question.facts] if question.facts else []
        base = question.log_prior
        if base is None:
            base = self._background.log_prior(predicate.name, known)
        combined = normalised(base, np.empty((0, len(predicate.values))), Segments.one(0), {})
        _add_stage(question, "reasoning", 1e3 * (perf_counter() - begun))
        left_out = LeftOut.of(items)
        source: Source = "related" if question.related else "facts" if known else "none"
        notes = [_WITHOUT_EVIDENCE[source], *question.notes, *question.fact_notes]
        if left_out.count:
            notes.append(all_left_out_note(left_out, question.options, question.threshold))
        notes += damage_notes(items.damaged)
        return QueryResult(
            question.entity_id,
            predicate.name,
            predicate.values,
            combined.distribution[0].tolist(),
            source,
            "prior" if source == "none" else "spn",
            question.options,
            question.timestamp,
            question.as_of,
            base=read_only(combined.base[0]) if question.base is None else question.base,
            facts=question.used,
            notes=tuple(notes),
            stages=question.stages,
            none_of=left_out,
            related=question.related,
            threshold=question.threshold,
        )

    def _require_engine(self, question: Question) -> Engine:
        if self._engine is None:
            raise WorkspaceError(
                f"there is evidence about {question.entity_id!r} but no model to read it with. "
                "Nothing was answered; train one with 'lpf train', or add one with 'lpf models "
                "add FOLDER'."
            )
        return self._engine

    def _cut_note(self, items: Items) -> str | None:
        """The note about texts of which the model's reader may have read only the beginning."""
        source = self._index.source
        long = source.longer_than_read(items.ids) if source.cuts_after is not None else 0
        if not long:
            return None
        texts = "1 text has" if long == 1 else f"{long:,} of {len(items):,} texts have"
        return (
            f"{texts} more than {source.cuts_after:,} characters: the reader of this model reads "
            "about that much of a text, and the rest does not count"
        )

    def _make_rough_note(self, predicate: str) -> str | None:
        assert self._engine is not None  # there is no inference without an engine
        return rough_note(self._engine, predicate)


@lru_cache(maxsize=64)
def _as_learned(options: QueryOptions) -> QueryOptions:
    return replace(
        options,
        variant="learned",
        sampler=None,
        n_samples=None,
        alpha=None,
        weight_form=None,
        related_evidence=None,
        without_claim_prior=False,
    )


def _share_times(
    questions: Sequence[Question], times: StepTimes, factors: float, reasoning: float
) -> None:
    """Each question's share, in ms. Blocks run in parallel, so their times are scaled to the
    seconds that all ``factors`` took; if all came from the cache, that counts as conversion."""
    share = 1e3 / len(questions)
    encoding, conversion = (
        (sum(step) for step in zip(*times, strict=True)) if times else (0, factors)
    )
    scale = factors / (encoding + conversion) if encoding + conversion else 0.0
    for question in questions:
        question.stages["encoding"] = encoding * scale * share
        question.stages["conversion"] = conversion * scale * share
        _add_stage(question, "reasoning", reasoning * share)


def _add_stage(question: Question, stage: str, milliseconds: float) -> None:
    question.stages[stage] = question.stages.get(stage, 0.0) + milliseconds


def _stacked(rows: Sequence[FloatArray | None]) -> FloatArray | None:
    """[E, V]; None if there are no rows. Either all questions have one, or none."""
    given = [row for row in rows if row is not None]
    return np.stack(given) if given else None
