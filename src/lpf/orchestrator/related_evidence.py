"""Evidence about related predicates: what it says, and what that adds to the answer.

Items about a related predicate R depend on the question's predicate P only through R. So what they
say about R, the product of their likelihood ratios λ under R's own fitted parameters, enters the
circuit as a likelihood of R, together with the known facts F:

    P_circuit(y, F, E_R) = Σ_r P_circuit(y, r, F) · Π λᵢ(r)^aᵢ

P's own items then multiply this instead of P_circuit(y, F). Several related predicates enter
together. A predicate with a certain fact is not read: given its value, its items say nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lpf.combine.calibration import FEW_ENTITIES, rough_error
from lpf.combine.combined import Combined
from lpf.engine import Background, Engine, Facts, Items
from lpf.engine.background import read_only
from lpf.index.retrieve import EvidenceIndex
from lpf.results import RelatedEvidence, unfamiliar_notes, with_contributions
from lpf.schema import Predicate
from lpf.storage.seals import damage_notes
from lpf.types import Float32Array, FloatArray, QueryOptions

if TYPE_CHECKING:
    from lpf.orchestrator.inference import Question


@dataclass(frozen=True, slots=True)
class _Read:
    """The items of one entity about one related predicate, with what they say together:
    ``distribution`` [V] with the predicate's prior, ``message`` [V] in log space without it.
    ``min_credibility`` applied to the items."""

    predicate: Predicate
    items: Items
    distribution: FloatArray
    message: FloatArray
    min_credibility: float


class RelatedReader:
    """Reads the evidence about related predicates, for many questions about one predicate."""

    def __init__(self, index: EvidenceIndex, background: Background, engine: Engine | None) -> None:
        self._index = index
        self._background = background
        self._engine = engine

    def read(
        self,
        questions: Sequence[Question],
        related: Sequence[Predicate],
        options: QueryOptions,
        query_vector: Float32Array | None,
    ) -> None:
        """Fill in ``related``, ``base``, ``log_prior`` and ``notes`` of all questions. One pass of
        the engine per related predicate, then one of the circuit."""
        found: list[list[_Read]] = [[] for _ in questions]
        for predicate in related:
            self._read_one(questions, predicate, options, query_vector, found)
        if any(found):
            self._add_up(questions, found)

    def _read_one(
        self,
        questions: Sequence[Question],
        predicate: Predicate,
        options: QueryOptions,
        query_vector: Float32Array | None,
        found: list[list[_Read]],
    ) -> None:
        """Append what the items about ``predicate`` say to ``found``, one list per question."""
        minimum = self._min_credibility(questions[0], predicate.name, options)
        retrieved = {
            place: self._index.retrieve(
                question.entity_id,
                predicate.name,
                top_k=options.most_items,
                min_credibility=minimum,
                as_of=question.as_of,
                query_vector=query_vector,
            )
            for place, question in enumerate(questions)
            if predicate.name not in question.facts.hard
        }
        for place, items in retrieved.items():
            about = [f"evidence about {predicate.name}: {n}" for n in damage_notes(items.damaged)]
            questions[place].notes = (*questions[place].notes, *about)
        usable = {place: items for place, items in retrieved.items() if len(items)}
        if not usable:
            return
        engine = self._engine
        if engine is None or not engine.reads(predicate.name):
            lacking = "there is no model" if engine is None else "the model does not know it"
            note = f"evidence about {predicate.name} was not used: {lacking}"
            for place in usable:
                questions[place].notes = (*questions[place].notes, note)
            return
        items = Items.join(list(usable.values()))
        answers = engine.answer(items, predicate.name, _without_draws(options))
        answers.freeze()
        combined = answers.combined
        assert isinstance(combined, Combined)  # the circuit covers the predicate
        messages = combined.segments.sum(combined.contributions)
        rough = rough_note(engine, predicate.name)
        for row, (place, own) in enumerate(usable.items()):
            answers.fill(own, row)
            notes = unfamiliar_notes(own, weighted=options.mode == "robust")
            notes += [] if rough is None else [rough]
            about = [f"evidence about {predicate.name}: {note}" for note in notes]
            questions[place].notes = (*questions[place].notes, *about)
            found[place].append(
                _Read(predicate, own, answers.distribution[row], messages[row], minimum)
            )

    def _min_credibility(self, question: Question, related: str, options: QueryOptions) -> float:
        """The one given with the question, else the related predicate's own."""
        given = options.min_credibility
        assert given is not None  # ``Inference.with_threshold`` has set it
        if question.threshold == "given" or self._engine is None:
            return given
        if not self._engine.reads(related):
            return given
        return self._engine.min_credibility(related, replace(options, min_credibility=None))

    def _add_up(self, questions: Sequence[Question], found: Sequence[Sequence[_Read]]) -> None:
        """The circuit with the facts alone, then with one more related predicate at a time. All
        questions in one pass; the differences are the contributions."""
        steps: list[Facts] = []
        for question, read in zip(questions, found, strict=True):
            messages = {one.predicate.name: one.message for one in read}
            names = list(messages)
            steps += [
                replace(question.facts, log_soft={name: messages[name] for name in names[:count]})
                for count in range(len(names) + 1)
            ]
        joints = self._background.log_joints(questions[0].predicate.name, steps)
        start = 0
        for question, read in zip(questions, found, strict=True):
            rows = joints[start : start + len(read) + 1]
            start += len(rows)
            question.base = read_only(rows[0].copy())
            question.related = tuple(
                _related(one, before, after)
                for one, before, after in zip(read, rows[:-1], rows[1:], strict=True)
            )
            question.log_prior = read_only(with_contributions(question.base, question.related))


def _related(read: _Read, before: FloatArray, after: FloatArray) -> RelatedEvidence:
    # A value that was impossible before stays so; the difference of two infinities says nothing.
    added = np.subtract(after, before, out=np.zeros_like(after), where=before > -np.inf)
    return RelatedEvidence(
        read.predicate.name,
        read.predicate.values,
        tuple(read.distribution.tolist()),
        read.items,
        read_only(added),
        read.min_credibility,
    )


NO_LABELS = (
    "the model has seen no labels of yours: it judges what each text says about the claim as it "
    "learned on other claims. Label some entities and run 'lpf train' to see how well it does here"
)


def rough_note(engine: Engine, predicate: str) -> str | None:
    """The warning about probabilities that were fitted on very few entities, or on none."""
    entities = engine.runtime.config.calibrated_on.get(predicate)
    if entities == 0:
        return NO_LABELS
    if entities is None or entities >= FEW_ENTITIES:
        return None
    return (
        f"probabilities were fitted on {entities} entities only: take them as rough, they can be "
        f"off by {100 * rough_error(entities):.0f} points and more"
    )


@lru_cache(maxsize=64)
def _without_draws(options: QueryOptions) -> QueryOptions:
    """How far the answer varies is measured over the question's own items, and what their claim
    alone gives away is taken out of the answer itself."""
    return replace(options, uncertainty_samples=0, without_claim_prior=False)
