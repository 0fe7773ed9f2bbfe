"""A question on its way, and the result that is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lpf.combine.combined import Combined
from lpf.combine.learned import LearnedCombined
from lpf.engine import Answers, Facts
from lpf.index.retrieve import Retrieved
from lpf.ledger.records import Stencil
from lpf.results import EvidenceUsed, FactUsed, Method, QueryResult
from lpf.schema import Predicate
from lpf.types import FloatArray, QueryOptions

NOTHING_KNOWN = Facts()
FACTS_UNUSED = "known facts were not used: only the circuit can take them into account"


@dataclass(slots=True)
class Question:
    """One question, and what is gathered for it. ``own`` is the newest fact about the predicate
    itself (value, confidence, timestamp, source, fact_id), if there is one; ``outcome`` is what
    its answer was, or will be again, where that is kept."""

    entity_id: str
    predicate: Predicate
    options: QueryOptions
    timestamp: int
    as_of: int
    own: tuple[Any, ...] | None = None
    facts: Facts = NOTHING_KNOWN
    used: tuple[FactUsed, ...] = ()
    notes: tuple[str, ...] = ()
    stages: dict[str, float] = field(default_factory=dict)
    outcome: Outcome | None = None

    @property
    def is_of_evidence_alone(self) -> bool:
        """Whether the same items would give the same record but for its times."""
        return self.own is None and not self.facts and self.options.query_text is None


@dataclass(slots=True)
class Outcome:
    """What was worked out from a question's items: a result but for the question, the items and
    the moment. ``of_items`` are the last fields of ``EvidenceUsed``. Where it ``is_kept`` for the
    next time, ``stencil`` is its record, once one was made."""

    values: tuple[str, ...]
    probabilities: tuple[float, ...]
    method: Method
    base: FloatArray | None
    of_items: tuple[FloatArray | None, ...]
    facts: tuple[FactUsed, ...]
    uncertainty: dict[str, float] | None
    notes: tuple[str, ...]
    is_kept: bool = False
    stencil: Stencil | None = None

    def result(self, question: Question, found: Retrieved) -> QueryResult:
        return QueryResult(
            question.entity_id,
            question.predicate.name,
            self.values,
            list(self.probabilities),
            "inference",
            self.method,
            question.options,
            question.timestamp,
            question.as_of,
            self.base,
            EvidenceUsed(
                found.ids,
                found.commitments,
                found.credibility,
                found.groups,
                found.sources,
                found.scores,
                found.considered,
                found.below_credibility,
                found.dated_later,
                found.cut,
                *self.of_items,  # type: ignore[arg-type]
            ),
            self.facts,
            None if self.uncertainty is None else dict(self.uncertainty),
            self.notes,
            question.stages,
        )


def outcome_of(question: Question, answers: Answers, place: int) -> Outcome:
    combined = answers.combined
    notes, used_facts = question.notes, question.used
    if answers.method != "spn" and used_facts:
        notes, used_facts = (*notes, FACTS_UNUSED), ()
    if answers.method == "average" or (
        answers.method == "learned" and question.options.variant == "spn"
    ):
        way = "averaged" if answers.method == "average" else "learned"
        notes = (*notes, f"the circuit does not cover this predicate: the {way} way answered")
    return Outcome(
        answers.values,
        tuple(answers.distribution[place].tolist()),
        answers.method,
        read_only(combined.base[place]) if isinstance(combined, Combined) else None,
        _of_items(answers, place),
        used_facts,
        None if answers.uncertainty is None else answers.uncertainty.item(place),
        notes,
    )


def _of_items(answers: Answers, place: int) -> tuple[FloatArray | None, ...]:
    """Weight, potential, mean sigma, contributions and members. They may be kept and shared, so
    nobody may write into them."""
    combined, factors = answers.combined, answers.factors
    first, last = combined.segments.offsets[place : place + 2].tolist()
    rows = slice(first, last)
    made: tuple[FloatArray | None, ...]
    if isinstance(combined, LearnedCombined):
        made = (combined.weight[rows], None, None, None, combined.members[:, place])
    else:
        assert factors is not None  # only the variant learned goes without
        weight = combined.parts.get("exponent")
        made = (
            np.full(last - first, 1.0 / (last - first)) if weight is None else weight[rows],
            factors.potential[rows],
            factors.mean_sigma[rows],
            combined.contributions[rows],
        )
    return tuple(None if array is None else read_only(array) for array in made)


def read_only(array: FloatArray) -> FloatArray:
    """Answers share it, and records are made of it after the caller has it."""
    array.flags.writeable = False
    return array
