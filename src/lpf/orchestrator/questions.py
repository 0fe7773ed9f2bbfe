"""A question on its way, and the result that is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lpf.combine.combined import Combined
from lpf.combine.learned import LearnedCombined
from lpf.engine import Answers, Facts
from lpf.index.retrieve import Retrieved
from lpf.results import EvidenceUsed, FactUsed, QueryResult
from lpf.schema import Predicate
from lpf.types import QueryOptions

NOTHING_KNOWN = Facts()
FACTS_UNUSED = "known facts were not used: only the circuit can take them into account"


@dataclass(slots=True)
class Question:
    """One question, and what is gathered for it. ``own`` is the newest fact about the predicate
    itself (value, confidence, timestamp, source, fact_id), if there is one."""

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


def inferred(question: Question, found: Retrieved, answers: Answers, place: int) -> QueryResult:
    combined = answers.combined
    rows = slice(*combined.segments.offsets[place : place + 2].tolist())
    notes, used_facts = question.notes, question.used
    if answers.method != "spn" and used_facts:
        notes, used_facts = (*notes, FACTS_UNUSED), ()
    if answers.method == "average" or (
        answers.method == "learned" and question.options.variant == "spn"
    ):
        way = "averaged" if answers.method == "average" else "learned"
        notes = (*notes, f"the circuit does not cover this predicate: the {way} way answered")
    uncertainty = None if answers.uncertainty is None else answers.uncertainty.item(place)
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
        combined.base[place] if isinstance(combined, Combined) else None,
        _evidence_used(found, answers, rows, place),
        used_facts,
        uncertainty,
        notes,
        question.stages,
    )


def _evidence_used(found: Retrieved, answers: Answers, rows: slice, place: int) -> EvidenceUsed:
    combined, factors = answers.combined, answers.factors
    common = (
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
    )
    if isinstance(combined, LearnedCombined):
        return EvidenceUsed(*common, combined.weight[rows], members=combined.members[:, place])
    assert factors is not None  # only the variant learned goes without
    weight = combined.parts.get("exponent")
    count = rows.stop - rows.start
    return EvidenceUsed(
        *common,
        np.full(count, 1.0 / count) if weight is None else weight[rows],
        factors.potential[rows],
        factors.mean_sigma[rows],
        combined.contributions[rows],
    )
