"""Explanations of answers: of a result with its engine, or of a record from years ago."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters
from lpf.engine import Background, Engine
from lpf.explain.explanation import (
    NAT,
    AnswerExplanation,
    Flip,
    ItemPart,
    NotUsed,
    Part,
    Weight,
    averaged_parts,
    conflicts,
)
from lpf.explain.flip import smallest_flip
from lpf.explain.recombination import (
    AveragedItems,
    PaperItems,
    Places,
    Recombination,
    RobustItems,
    in_blocks,
)
from lpf.items import Items, Segments
from lpf.ledger.contents import require_answer
from lpf.orchestrator.replay import as_row
from lpf.results import Method, QueryResult
from lpf.sureness import Decision
from lpf.types import FloatArray, Posteriors, QueryOptions

NO_MODEL = (
    "LPF-Learned's weights do not add up to the answer; what each item adds can only be computed "
    "with its model, not from the record alone"
)
TOGETHER = "the prior, and what items only say together"


@dataclass(frozen=True, eq=False)
class LearnedItems:
    """The items of an answer of LPF-Learned, which the engine combines again."""

    engine: Engine
    predicate: str
    options: QueryOptions
    items: Items
    posteriors: Posteriors
    alone: FloatArray

    def answers(self, selections: Sequence[Places]) -> FloatArray:
        return in_blocks(selections, self.alone, self._some)

    def _some(self, rows: Places, segments: Segments) -> FloatArray:
        given = self.posteriors
        some = Posteriors(
            [given.evidence_ids[row] for row in rows], given.mu[:, rows], given.sigma[:, rows]
        )
        items = Items(self.items.features[rows], segments=segments)
        found = self.engine.answer(items, self.predicate, self.options, posteriors=some)
        return found.distribution

    def without_each(self) -> FloatArray:
        everyone = np.arange(len(self.posteriors))
        return self.answers([np.delete(everyone, place) for place in everyone])


@dataclass(frozen=True, eq=False)
class Answered:
    """What is needed of a result or a record. ``log_prior`` [V] is that of the circuit alone,
    ``base`` [V] what the items multiply, ``related`` what evidence about each predicate adds [V].
    ``fixed`` are the numbers that belong to the model: shares, silent, ratios."""

    entity_id: str
    predicate: str
    values: tuple[str, ...]
    probabilities: FloatArray
    method: Method
    mode: str
    log_prior: FloatArray
    base: FloatArray
    facts: tuple[str, ...]
    related: Mapping[str, FloatArray]
    claim_alone: FloatArray | None
    ids: tuple[str, ...] = ()
    items: Items | None = None
    parameters: RobustParameters | PaperParameters | None = None
    fixed: Mapping[str, FloatArray | None] = field(default_factory=dict)
    learned: Recombination | None = None
    record_id: str | None = None
    notes: tuple[str, ...] = ()
    knows_sources: bool = True
    given: FloatArray | None = None
    familiarity: FloatArray | None = None
    deferred: str | None = None
    not_used: tuple[NotUsed, ...] | None = None

    @property
    def alone(self) -> FloatArray:
        """The logarithm of the answer without any item."""
        base = self.base if self.claim_alone is None else self.base - self.claim_alone
        if self.method in ("average", "learned"):
            base = self.log_prior
        return np.asarray(base - np.logaddexp.reduce(base))


def explain_result(
    result: QueryResult, engine: Engine | None, background: Background
) -> AnswerExplanation:
    """Explain a live answer."""
    return explained(with_engine(answered_of(result, background), result, engine))


def answered_of(result: QueryResult, background: Background) -> Answered:
    """A result without its items."""
    log_prior = background.log_prior(result.predicate)
    base = result.log_prior
    return Answered(
        result.entity_id,
        result.predicate,
        result.values,
        np.array(result.probabilities),
        result.method,
        result.options.mode,
        log_prior,
        log_prior if base is None else base,
        tuple(f"{fact.predicate} = {fact.value}" for fact in result.facts),
        {one.predicate: one.contribution for one in result.related},
        result.claim_alone,
        record_id=result.record_id,
        notes=result.notes,
        deferred=result.decision.why if result.decision and result.is_deferred else None,
        not_used=_not_used(result),
    )


def _not_used(result: QueryResult) -> tuple[NotUsed, ...]:
    left_out = result.left_out
    if left_out is None:
        return ()
    return tuple(
        NotUsed(
            words,
            count,
            tuple(left_out.named.get(name, ())),
            left_out.repeats if name == "beyond_top_k" else {},
        )
        for name, count, words in left_out.by_reason(result.options, result.threshold)
    )


def with_engine(answered: Answered, result: QueryResult, engine: Engine | None) -> Answered:
    """With the items of the result, and the numbers of the model that they were combined with."""
    items, options = result.evidence, result.options
    if items is None or not len(items) or engine is None:
        return answered
    found = replace(answered, ids=tuple(items.ids), items=items)
    if answered.method == "learned":
        posteriors = engine.posteriors(items, options)
        options = replace(options, variant="learned", uncertainty_samples=0)
        learned = LearnedItems(
            engine, answered.predicate, options, items, posteriors, answered.alone
        )
        return replace(found, learned=learned)
    _, parameters = engine.conversion(answered.predicate, options)
    ratios = engine.runtime.config.head(answered.predicate).occurrence_ratios
    fixed = {
        "shares": engine.shares(answered.predicate),
        "silent": engine.silent(answered.predicate),
        "ratios": np.array(ratios) if ratios else None,
    }
    return replace(found, parameters=parameters, fixed=fixed)


def explain_record(fields: Mapping[str, Any]) -> AnswerExplanation:
    """Explain a record, given its fields with all blobs filled in. Nothing else is needed: neither
    the model nor the texts."""
    return explained(recorded_answer(fields))


def recorded_answer(fields: Mapping[str, Any]) -> Answered:
    """A record as it can be explained or combined again. NotAnAnswerError for one of another
    kind."""
    require_answer(fields)
    context, factors = fields["context"], fields.get("factors")
    log_prior = as_row(context["log_prior"])
    claim_alone = fields.get("claim_alone")
    answered = Answered(
        fields["entity_id"],
        fields["predicate"],
        tuple(context["values"]),
        np.array([fields["distribution"][value] for value in context["values"]]),
        fields["method"],
        context["hyperparameters"]["mode"],
        log_prior,
        as_row(fields["base"]) if "base" in fields else log_prior,
        tuple(f"{fact['predicate']} = {fact['value']}" for fact in fields.get("facts", ())),
        {one["predicate"]: as_row(one["contribution"]) for one in fields.get("related", ())},
        None if claim_alone is None else as_row(claim_alone),
        record_id=fields["record_id"],
        notes=tuple(fields.get("notes", ())),
        deferred=_deferred(fields.get("decision")),
    )
    if factors is None:
        return answered
    return _with_factors(answered, context, factors, fields["evidence_chain"])


def _with_factors(
    answered: Answered,
    context: Mapping[str, Any],
    factors: Mapping[str, Any],
    chain: Sequence[Sequence[str]],
) -> Answered:
    def given(name: str, dtype: type = np.float64) -> Any:
        return np.array(factors[name], dtype) if name in factors else None

    ids = tuple(name for name, _ in chain)
    if answered.method == "learned":
        notes = (*answered.notes, NO_MODEL)
        items = Items(np.empty((len(ids), 0), np.float32), ids, familiarity=given("familiarity"))
        items.weight = given("weight")
        return replace(answered, ids=ids, items=items, notes=notes)
    credibility = [np.nan if one is None else one for one in factors["credibility"]]
    missing = np.full(len(ids), -1, np.int64)
    groups, sources = given("group", np.int64), given("source", np.int64)
    items = Items(
        np.empty((len(ids), 0), np.float32),
        ids,
        credibility=np.array(credibility),
        groups=missing if groups is None else groups,
        sources=missing if sources is None else sources,
        familiarity=given("familiarity"),
        relevance=given("relevance"),
        stances=given("stances"),
        potential=given("potential"),
        mean_sigma=given("mean_sigma"),
    )
    numbers = context["parameters"]
    parameters: RobustParameters | PaperParameters
    if answered.mode == "paper":
        parameters = PaperParameters(numbers["alpha"], numbers["weight_form"])
    else:
        parameters = RobustParameters.from_dict(numbers)
    fixed = {
        "shares": np.array(context["training_shares"]),
        "silent": np.array(context["silent"]) if "silent" in context else None,
        "ratios": np.array(context["occurrence_ratios"])
        if "occurrence_ratios" in context
        else None,
    }
    return replace(
        answered,
        ids=ids,
        items=items,
        parameters=parameters,
        fixed=fixed,
        knows_sources=sources is not None,
    )


def explained(answered: Answered) -> AnswerExplanation:
    items = answered.items
    parts = tuple(_parts(answered))
    if items is None:
        return _explanation(answered, parts, ())
    if answered.method == "learned":
        return _learned(answered, items)
    assert items.potential is not None  # only the variant learned has no factors
    recombination = recombination_of(answered, items)
    added, weights = _added(answered, items)
    without = recombination.without_each()
    flip = smallest_flip(
        recombination, answered.probabilities, added, answered.ids, answered.values
    )
    item_parts = _item_parts(answered.ids, items, added, without, weights)
    return _explanation(
        answered,
        parts,
        item_parts,
        flip,
        conflicts(items.potential, items.sources if answered.knows_sources else None),
    )


def _learned(answered: Answered, items: Items) -> AnswerExplanation:
    weights = [Weight(float(weight)) for weight in items.weight]
    with np.errstate(divide="ignore"):
        answer = np.log(answered.probabilities)
    if answered.learned is None:
        together = Part("together", TOGETHER, NAT * answer)
        nothing = np.zeros((len(items.ids), len(answer)))
        parts = _item_parts(answered.ids, items, nothing, None, weights)
        return _explanation(answered, (together,), parts)
    without = answered.learned.without_each()
    with np.errstate(divide="ignore"):
        added = answer - np.log(without)
    together = Part("together", TOGETHER, NAT * (answer - added.sum(axis=0)))
    flip = smallest_flip(
        answered.learned, answered.probabilities, added, answered.ids, answered.values
    )
    parts = _item_parts(answered.ids, items, added, without, weights)
    return _explanation(answered, (together,), parts, flip)


def recombination_of(answered: Answered, items: Items) -> Recombination:
    """The items of an answer with factors, to be combined again."""
    potential = items.potential
    assert potential is not None  # only the variant learned has none
    if answered.method == "average":
        return AveragedItems(potential, answered.alone)
    if isinstance(answered.parameters, PaperParameters):
        weight = _paper_weight(items, answered.parameters)
        return PaperItems(potential, weight, answered.base, answered.alone)
    assert isinstance(answered.parameters, RobustParameters)
    shares = answered.fixed["shares"]
    assert shares is not None
    return RobustItems(
        potential,
        items.credibility,
        shares,
        answered.base,
        answered.alone,
        answered.parameters,
        items.groups,
        items.sources,
        items.familiarity,
        items.relevance,
        answered.fixed["silent"],
        items.stances,
        answered.fixed["ratios"],
    )


def _paper_weight(items: Items, parameters: PaperParameters) -> FloatArray:
    assert items.mean_sigma is not None  # factors have it
    return credibility_weight(items.mean_sigma, parameters)


def _added(answered: Answered, items: Items) -> tuple[FloatArray, list[Weight]]:
    """What each item adds to the logarithm of each value [K, V], and its weight."""
    potential, segments = items.potential, Segments.one(len(items))
    assert potential is not None
    if answered.method == "average":
        return averaged_parts(potential), [Weight(1.0 / len(items))] * len(items)
    if isinstance(answered.parameters, PaperParameters):
        weight = _paper_weight(items, answered.parameters)
        combined = combine_paper(potential, weight, answered.base, segments)
        return combined.contributions, [Weight(one) for one in weight.tolist()]
    recombination = recombination_of(answered, items)
    assert isinstance(recombination, RobustItems)
    combined = recombination.combined()
    given = answered.given
    familiarity = recombination.familiarity if given is None else answered.familiarity
    weights = _robust_weights(recombination, combined.parts, given, familiarity)
    return combined.contributions, weights


def _robust_weights(
    items: RobustItems,
    parts: Mapping[str, FloatArray],
    given: FloatArray | None,
    familiarity: FloatArray | None,
) -> list[Weight]:
    """``given`` [K] are the weights that were supposed, and ``familiarity`` [K] is without them."""
    trust, total = items.parameters.trust, parts["exponent"]
    discount = parts["discount"]
    effective = max(float(discount.sum()) - 1.0, 0.0)
    shared = np.full(len(total), 1.0 / (1.0 + effective * items.parameters.rho))
    copies = 1.0 / items.copy_counts
    count = len(total)
    columns: list[list[float] | list[None]] = [
        [None] * count if one is None else one.tolist()
        for one in (familiarity, items.relevance, given)
    ]
    rows = zip(
        total.tolist(), copies.tolist(), *columns, shared.tolist(), parts["epsilon"].tolist(),
        strict=True,
    )  # fmt: skip
    return [
        Weight(weight, copy, familiar, relevant, share, trust, supposed, doubt)
        for weight, copy, familiar, relevant, supposed, share, doubt in rows
    ]


def _item_parts(
    ids: Sequence[str],
    items: Items,
    added: FloatArray,
    without: FloatArray | None,
    weights: Sequence[Weight],
) -> tuple[ItemPart, ...]:
    groups = items.groups.tolist()
    members: dict[int, list[str]] = {}
    for name, group in zip(ids, groups, strict=True):
        members.setdefault(group, []).append(name)
    bits = NAT * added
    blank = items.wordless
    return tuple(
        ItemPart(
            "item",
            name,
            bits[place],
            None if items.potential is None else items.potential[place],
            None if without is None else without[place],
            weights[place],
            None if credibility != credibility else credibility,  # NaN: unknown
            tuple(one for one in members[group] if one != name) if group >= 0 else (),
            blank is not None and bool(blank[place]),
        )
        for place, (name, group, credibility) in enumerate(
            zip(ids, groups, items.credibility.tolist(), strict=True)
        )
    )


def _parts(answered: Answered) -> list[Part]:
    """All but the items."""
    if answered.method == "average":
        return []  # the prior plays no part in an average
    with np.errstate(divide="ignore"):
        logs = np.log(answered.probabilities)
    if answered.method == "canonical":
        return [Part("facts", ", ".join(answered.facts), NAT * logs)]
    prior = answered.log_prior - np.logaddexp.reduce(answered.log_prior)
    parts = [Part("prior", "prior", NAT * prior)]
    total = prior.copy()
    later = [Part("related", name, NAT * row) for name, row in answered.related.items()]
    if answered.claim_alone is not None:
        later.append(Part("claim", "the claim alone, taken out", NAT * answered.claim_alone))
    if answered.facts:
        others = sum((part.added / NAT for part in later), np.zeros_like(prior))
        with np.errstate(invalid="ignore"):
            facts = answered.base - others - total
        # What the prior rules out stays ruled out, whatever facts say.
        parts.append(
            Part(
                "facts",
                ", ".join(answered.facts),
                NAT * np.nan_to_num(facts, nan=0.0, neginf=-np.inf),
            )
        )
    return [*parts, *later]


def _explanation(
    answered: Answered,
    parts: tuple[Part, ...],
    items: tuple[ItemPart, ...],
    flip: Flip | None = None,
    found: tuple[float | None, float | None] = (None, None),
) -> AnswerExplanation:
    return AnswerExplanation(
        answered.entity_id,
        answered.predicate,
        answered.values,
        answered.probabilities,
        answered.method,
        answered.mode,
        parts,
        items,
        flip,
        *found,
        answered.record_id,
        answered.notes,
        deferred=answered.deferred,
        not_used=answered.not_used,
    )


def _deferred(decision: Mapping[str, Any] | None) -> str | None:
    """Why a recorded answer was deferred; None if it was not."""
    if decision is None or decision["answered"]:
        return None
    return Decision.from_dict(decision).why
