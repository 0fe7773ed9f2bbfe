"""Lines 9 to 36 of Algorithm 5: evidence and known facts to a distribution.

Works on questions about one predicate at a time, asked with the same options; one question is the
case of a list of one.

Factors and posteriors, computed once an item and kept.

A key holds all that the number depends on: text and claim (the item), reader, model, predicate,
integrator, samples, temperature and seed (the part).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from lpf.combine.calibration import FEW_ENTITIES, rough_error
from lpf.combine.combined import Segments, normalised
from lpf.engine import Background, Engine, Items
from lpf.errors import WorkspaceError
from lpf.factors.convert import StepTimes
from lpf.factors.keys import stored_keys
from lpf.index.retrieve import EvidenceIndex, Retrieved
from lpf.orchestrator.known_facts import FactPolicy, known_facts
from lpf.orchestrator.questions import Question, outcome_of, read_only
from lpf.results import LeftOut, QueryResult, none_counts
from lpf.schema import Schema
from lpf.storage.cache import Cache, NoCache
from lpf.storage.facts import FactStore
from lpf.types import Factors, Float32Array, FloatArray, Posteriors, QueryOptions, cacheable


class FactorCache:
    """What an engine makes of items, through a cache."""

    def __init__(self, engine: Engine, cache: Cache, reader_id: str) -> None:
        self._engine = engine
        self._cache = cache
        self._reader_id = reader_id
        # Who wants every number computed anew wants no outcome kept either.
        self.keeps = not isinstance(cache, NoCache)
        self._factor_part = lru_cache(maxsize=256)(self._make_factor_part)
        self._posterior_part = lru_cache(maxsize=8)(self._make_posterior_part)

    def factors(
        self,
        items: Items,
        content_keys: Sequence[bytes],
        predicate: str,
        options: QueryOptions,
        times: StepTimes,
    ) -> Factors:
        """Soft factors of the items, from the cache where they are there."""
        if not self.keeps:
            return self._engine.factors(items, predicate, options, times)
        converter, _ = self._engine.conversion(predicate, options)
        width = len(converter.values) + 1

        def make(missing: Items) -> FloatArray:
            made = self._engine.factors(missing, predicate, options, times)
            return np.column_stack([made.potential, made.mean_sigma])

        part = self._factor_part(predicate, options)
        table = self._rows(items, content_keys, part, width, np.dtype("<f8"), make)
        config = converter.config
        return Factors(
            items.ids,
            predicate,
            converter.values,
            np.ascontiguousarray(table[:, :-1]),
            table[:, -1].copy(),
            config.sampler,
            config.samples,
            config.temperature,
        )

    def posteriors(
        self, items: Items, content_keys: Sequence[bytes], options: QueryOptions
    ) -> Posteriors:
        """q(z|e) of the items, from the cache where they are there."""
        model = self._engine.model_for(options)
        members, width = model.members, model.config.encoder.latent_width

        def make(missing: Items) -> np.ndarray[Any, Any]:
            made = self._engine.posteriors(missing, options)
            both = np.stack([made.mu, made.sigma])  # [2, S, n, d]
            return both.transpose(2, 0, 1, 3).reshape(len(missing.features), -1)

        part, row = self._posterior_part(options.mode), 2 * members * width
        table = self._rows(items, content_keys, part, row, np.dtype("<f4"), make)
        both = table.reshape(-1, 2, members, width).transpose(1, 2, 0, 3)
        return Posteriors(items.ids, np.ascontiguousarray(both[0]), np.ascontiguousarray(both[1]))

    def _rows(
        self,
        items: Items,
        content_keys: Sequence[bytes],
        part: bytes,
        width: int,
        kind: np.dtype[Any],
        make: Callable[[Items], np.ndarray[Any, Any]],
    ) -> np.ndarray[Any, Any]:
        """[N, width] numbers; those not kept are made in one pass and kept."""
        size = width * kind.itemsize
        found = self._cache.get_many(content_keys, part)
        missing = [place for place, kept in enumerate(found) if kept is None or len(kept) != size]
        if missing:
            whole = len(missing) == len(found)
            made = make(items if whole else _subset(items, missing)).astype(kind, copy=False)
            fresh = [row.tobytes() for row in made]
            self._cache.put_many([content_keys[place] for place in missing], part, fresh)
            if whole:
                return made
            for place, row in zip(missing, fresh, strict=True):
                found[place] = row
        return np.frombuffer(b"".join(found), dtype=kind).reshape(-1, width)  # type: ignore[arg-type]

    def _make_factor_part(self, predicate: str, options: QueryOptions) -> bytes:
        converter, _ = self._engine.conversion(predicate, options)
        config = converter.config
        return _part(
            "factor/1", self._reader_id, converter.runtime.version, predicate,
            list(converter.values), config.sampler, config.samples, config.temperature,
            config.seed if config.samples else None,
        )  # fmt: skip

    def _make_posterior_part(self, mode: str) -> bytes:
        model = self._engine.model_for(QueryOptions(mode=mode))  # type: ignore[arg-type]
        return _part("posterior/1", self._reader_id, model.version)


def _part(*recipe: object) -> bytes:
    return hashlib.blake2b(json.dumps(recipe).encode(), digest_size=16).digest()


def _subset(items: Items, places: list[int]) -> Items:
    return Items(
        items.features[places],
        ids=[items.ids[place] for place in places],
        keys=None if items.keys is None else items.keys[places],
    )


NO_EVIDENCE = "no evidence: the circuit answered from known facts alone"
NOTHING = "no evidence and no known facts: this is the prior"
# Ways of asking about the same items whose outcomes are kept.
MOST_WAYS = 8
_RECALLED = {"encoding": 0.0, "conversion": 0.0, "reasoning": 0.0}


class Inference:
    """Retrieval, encoding, conversion and reasoning."""

    def __init__(
        self,
        schema: Schema,
        facts: FactStore,
        index: EvidenceIndex,
        background: Background,
        engine: Engine | None,
        kept: FactorCache | None,
        policy: FactPolicy,
        reader_id: str,
    ) -> None:
        self._schema = schema
        self._facts = facts
        self._index = index
        self._background = background
        self._engine = engine
        self._kept = kept
        self._policy = policy
        self._reader_id = reader_id
        # Items outlive this: another model or circuit must not find what this one made of them.
        self._mark = object()
        self._rough = lru_cache(maxsize=64)(self._make_rough)
        self._related = {
            one.name: frozenset(filter(background.covers, schema.related(one.name)))
            for one in schema
        }

    def answer(self, questions: Sequence[Question]) -> list[QueryResult]:
        """Answers to questions about one predicate, in their order."""
        begun = perf_counter()
        text, asked = questions[0].options.query_text, cacheable(questions[0].options)
        options = self._real_options(questions[0].predicate.name, asked)
        vector = None if text is None else self._index.query_vector(text)
        found = [self._retrieve(question, options, vector) for question in questions]
        self._know_facts(questions)
        retrieval = 1e3 * (perf_counter() - begun) / len(questions)
        for question in questions:
            question.stages["retrieval"] = retrieval
        self._recall(questions, found, asked)
        places = [
            place
            for place, items in enumerate(found)
            if len(items.ids) and questions[place].outcome is None
        ]
        if places:
            self._infer([questions[p] for p in places], [found[p] for p in places], options)
            for place in places:
                self._keep(questions[place], found[place], asked)
        return [
            self._without_evidence(question, items)
            if question.outcome is None
            else question.outcome.result(question, items)
            for question, items in zip(questions, found, strict=True)
        ]

    def _recall(
        self, questions: Sequence[Question], found: Sequence[Retrieved], asked: QueryOptions
    ) -> None:
        """Of the very same items, asked about in the same way, the outcome is the same."""
        for question, items in zip(questions, found, strict=True):
            if question.is_of_evidence_alone:
                question.outcome = items.made.get((self._mark, asked))
                if question.outcome is not None:
                    question.stages |= _RECALLED

    def _keep(self, question: Question, items: Retrieved, asked: QueryOptions) -> None:
        assert question.outcome is not None  # just worked out
        if self._kept is not None and self._kept.keeps and question.is_of_evidence_alone:
            if len(items.made) >= MOST_WAYS:
                items.made.clear()
            items.made[self._mark, asked] = question.outcome
            question.outcome.is_kept = True

    def _real_options(self, predicate: str, options: QueryOptions) -> QueryOptions:
        """The hybrid: where the circuit does not cover the predicate, another way answers."""
        covered = self._background.covers(predicate)
        if options.variant == "spn" and not covered and options.fallback == "learned":
            return _as_learned(options)
        return options

    def _retrieve(
        self, question: Question, options: QueryOptions, vector: Float32Array | None
    ) -> Retrieved:
        return self._index.retrieve(
            question.entity_id,
            question.predicate.name,
            top_k=options.top_k,
            min_credibility=options.min_credibility,
            as_of=question.as_of,
            query_vector=vector,
        )

    def _know_facts(self, questions: Sequence[Question]) -> None:
        """Facts about related predicates; and, in robust mode, one about this predicate that is
        too old or too doubtful to be the answer by itself."""
        predicate = questions[0].predicate.name
        if not self._background.covers(predicate):
            return
        related = self._related[predicate]
        for question in questions:
            rows = self._facts.of_entity(question.entity_id, question.as_of) if related else []
            rows = [row for row in rows if row[0] in related]
            if question.own is not None and question.options.mode == "robust":
                rows.append((predicate, *question.own))
            if rows:
                question.facts, question.used = known_facts(
                    rows, self._schema, question.as_of, self._policy
                )

    def _infer(
        self, questions: Sequence[Question], found: Sequence[Retrieved], options: QueryOptions
    ) -> None:
        """Works out the outcomes."""
        predicate = questions[0].predicate.name
        engine, kept = self._with_model(questions[0])
        if (rough := self._rough(predicate)) is not None:
            for question in questions:
                question.notes = (*question.notes, rough)
        items = self._items(found)
        content_keys = [key for one in found for key in one.content_keys]
        begun = perf_counter()
        times: StepTimes = []
        if options.variant == "learned":
            posteriors = kept.posteriors(items, content_keys, options)
            ready = perf_counter()
            times = [(ready - begun, 0.0)]
            answers = engine.answer(items, predicate, options, posteriors=posteriors)
        else:
            factors = kept.factors(items, content_keys, predicate, options, times)
            ready = perf_counter()
            facts = [question.facts for question in questions]
            usable = facts if self._background.covers(predicate) else ()
            answers = engine.answer(items, predicate, options, usable, factors=factors)
        _share_times(questions, times, ready - begun, perf_counter() - ready)
        for place, question in enumerate(questions):
            question.outcome = outcome_of(question, answers, place)

    def _items(self, found: Sequence[Retrieved]) -> Items:
        """The items of all questions, one after the other."""
        if len(found) == 1:
            return self._items_of(found[0])
        return Items(
            np.concatenate([one.features for one in found]),
            [name for one in found for name in one.ids],
            stored_keys([key for one in found for key in one.content_keys], self._reader_id),
            np.concatenate([one.credibility for one in found]),
            np.concatenate([one.groups for one in found]),
            np.concatenate([one.sources for one in found]),
            Segments.of_counts([len(one.ids) for one in found]),
        )

    def _items_of(self, found: Retrieved) -> Items:
        items: Items | None = found.made.get(self._mark)
        if items is None:
            items = found.made[self._mark] = Items(
                found.features,
                found.ids,
                stored_keys(found.content_keys, self._reader_id),
                found.credibility,
                found.groups,
                found.sources,
            )
        return items

    def _make_rough(self, predicate: str) -> str | None:
        """What must be said of probabilities that were fitted on next to nothing."""
        assert self._engine is not None  # asked after _with_model
        entities = self._engine.runtime.config.calibrated_on.get(predicate)
        if entities is None or entities >= FEW_ENTITIES:
            return None
        return (
            f"probabilities were fitted on {entities} entities only: take them as rough, they can "
            f"be off by {100 * rough_error(entities):.0f} points and more"
        )

    def _with_model(self, question: Question) -> tuple[Engine, FactorCache]:
        if self._engine is None or self._kept is None:
            raise WorkspaceError(
                f"there is evidence about {question.entity_id!r} but no model to read it with. "
                "Nothing was answered; train one with 'lpf train', or add one with 'lpf models "
                "add FOLDER'."
            )
        return self._engine, self._kept

    def _without_evidence(self, question: Question, found: Retrieved) -> QueryResult:
        """Lines 11 to 13, but for known facts: the circuit alone answers."""
        begun = perf_counter()
        predicate = question.predicate
        known = [question.facts] if question.facts else []
        base = self._background.log_prior(predicate.name, known)
        nothing = np.empty((0, len(predicate.values)))
        combined = normalised(base, nothing, Segments.one(0), {})
        question.stages["reasoning"] = 1e3 * (perf_counter() - begun)
        left_out = LeftOut(found.dated_later, found.below_credibility)
        notes = [NO_EVIDENCE if known else NOTHING]
        if left_out.count:
            notes.append(none_counts(left_out, question.options))
        return QueryResult(
            question.entity_id,
            predicate.name,
            predicate.values,
            combined.distribution[0].tolist(),
            "facts" if known else "none",
            "spn" if known else "prior",
            question.options,
            question.timestamp,
            question.as_of,
            base=read_only(combined.base[0]),
            facts=question.used,
            notes=tuple(notes),
            stages=question.stages,
            none_of=left_out,
        )


@lru_cache(maxsize=64)
def _as_learned(options: QueryOptions) -> QueryOptions:
    return replace(
        options, variant="learned", sampler=None, n_samples=None, alpha=None, weight_form=None
    )


def _share_times(
    questions: Sequence[Question], times: StepTimes, making: float, reasoning: float
) -> None:
    """Each question's share, in ms. Blocks run side by side, so what they took is scaled to what
    making the factors took in all; with every factor kept, that was the cache's."""
    share = 1e3 / len(questions)
    encoding, conversion = (
        (sum(step) for step in zip(*times, strict=True)) if times else (0, making)
    )
    scale = making / (encoding + conversion) if encoding + conversion else 0.0
    for question in questions:
        question.stages["encoding"] = encoding * scale * share
        question.stages["conversion"] = conversion * scale * share
        question.stages["reasoning"] = reasoning * share
