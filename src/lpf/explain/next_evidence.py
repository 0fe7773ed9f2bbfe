"""What to collect next: which item or fact is expected to tell most about the value of a predicate.

Nothing that is on offer has been read. What it may say is what the stored items of its kind say
about other entities, and for a fact what the circuit says. A plan goes on from there: the second
step is the best one on average over what the first may bring, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from lpf.engine import Background, Engine
from lpf.errors import ConfigError
from lpf.explain.future import Future, Path
from lpf.explain.information import Outlook, entropy_bits
from lpf.explain.kinds import FEWEST, listed
from lpf.explain.recombination import Places
from lpf.explain.stored_pool import StoredPool, stored_pool
from lpf.index.features import FeatureSource
from lpf.results import QueryResult
from lpf.types import FloatArray

FACT: Final = "fact:"
MOST_STEPS: Final = 10
PATHS: Final = 24  # what steps before may have brought
LATER_ITEMS: Final = 64  # of a kind, from the second step on
LARGEST_COST: Final = 1e9
ROUGH: Final = 0.1  # of the probability, which the stored items do not account for


@dataclass(frozen=True)
class CollectionPlan:
    """How to look for the next evidence: ``costs`` by kind (1 if not given), ``steps`` to plan, the
    probability of the top value that is ``enough`` to stop, and the ``least`` expected bits that
    are worth collecting. Up to ``pool`` stored items of a kind are drawn with ``seed``."""

    steps: int = 1
    costs: Mapping[str, float] = field(default_factory=dict)
    enough: float | None = None
    least: float = 0.01
    pool: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        _check("steps", 1 <= self.steps <= MOST_STEPS, f"from 1 to {MOST_STEPS}", self.steps)
        _check("pool", 8 <= self.pool <= 10_000, "from 8 to 10,000", self.pool)
        _check("seed", self.seed >= 0, "0 or above", self.seed)
        finite = math.isfinite(self.least) and self.least >= 0.0
        _check("least", finite, "0 or above, in bits", self.least)
        if self.enough is not None:
            _check("enough", 0.0 < self.enough < 1.0, "between 0 and 1", self.enough)
        for kind, cost in self.costs.items():
            holds = 0.0 < cost <= LARGEST_COST
            _check("costs", holds, f"above 0 and at most {LARGEST_COST:g}", f"{kind}={cost:g}")


@dataclass(frozen=True)
class Offer:
    """One more observation of a kind: ``any`` (item), ``source:NAME``, ``type:NAME`` or
    ``fact:PREDICATE``. ``bits`` are expected to be learned, give or take ``error`` because stored
    items are a sample; ``changes`` is the chance that another value becomes the answer,
    ``confidence`` the expected probability of the top value afterwards. Based on ``drawn`` of
    ``stored`` items; both are None for a fact, which is computed exactly. ``unseen`` is the
    probability that such items do not account for: above a tenth, the bits are rough."""

    kind: str
    bits: float
    changes: float
    confidence: float
    cost: float = 1.0
    error: float = 0.0
    unseen: float = 0.0
    stored: int | None = None
    drawn: int | None = None

    @property
    def bits_per_cost(self) -> float:
        return self.bits / self.cost

    def to_dict(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {"bits_per_cost": self.bits_per_cost}


@dataclass(frozen=True)
class PlannedStep:
    """One step of a plan: the best offer if the steps before were taken, with the ``bits`` and
    ``cost`` of all steps together."""

    offer: Offer
    bits: float
    cost: float

    def to_dict(self) -> dict[str, Any]:
        return self.offer.to_dict() | {"bits_so_far": self.bits, "cost_so_far": self.cost}


@dataclass(frozen=True, eq=False)
class NextEvidence:
    """What would be worth collecting about one entity, the most bits per cost first. ``doubt`` is
    the entropy of the answer in bits. ``steps`` is what to collect one after the other: empty if
    the answer is sure enough or nothing on offer is worth its trouble."""

    entity_id: str
    predicate: str
    values: tuple[str, ...]
    probabilities: FloatArray
    offers: tuple[Offer, ...]
    steps: tuple[PlannedStep, ...]
    plan: CollectionPlan
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def doubt(self) -> float:
        return float(entropy_bits(self.probabilities))

    @property
    def value(self) -> str:
        return self.values[int(self.probabilities.argmax())]

    @property
    def confidence(self) -> float:
        return float(self.probabilities.max())

    @property
    def is_enough(self) -> bool:
        """Whether the answer is as sure as was asked for already."""
        return self.plan.enough is not None and self.confidence >= self.plan.enough

    def to_dict(self) -> dict[str, Any]:
        return {
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "value": self.value,
            "confidence": self.confidence,
            "distribution": dict(zip(self.values, self.probabilities.tolist(), strict=True)),
            "doubt_bits": self.doubt,
            "is_enough": self.is_enough,
            "offers": [one.to_dict() for one in self.offers],
            "steps": [one.to_dict() for one in self.steps],
            "enough": self.plan.enough,
            "least_bits": self.plan.least,
            "seed": self.plan.seed,
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class OnOffer:
    """The kinds of items in ``pool`` and the predicates in ``facts``."""

    pool: StoredPool | None
    facts: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        items = () if self.pool is None else tuple(self.pool.kinds)
        return (*items, *(FACT + name for name in self.facts))

    def check_costs(self, plan: CollectionPlan) -> None:
        """ConfigError for the cost of a kind that is not on offer."""
        unknown = [kind for kind in plan.costs if kind not in self.kinds]
        if unknown:
            raise ConfigError(
                f"{unknown[0]!r} is not on offer; there are {list(self.kinds)}. Nothing was "
                "computed.",
                field="costs",
            )


def next_evidence_of(
    result: QueryResult,
    engine: Engine | None,
    background: Background,
    source: FeatureSource,
    plan: CollectionPlan,
) -> NextEvidence:
    """What to collect next for the answer ``result``. ConfigError if a known fact is the answer, if
    nothing is on offer, or for the cost of an unknown kind."""
    if result.source == "canonical":
        raise ConfigError(
            f"a known fact answers the question about {result.entity_id!r}, whatever else is "
            "collected. Nothing was computed.",
            field="entity_id",
        )
    pool, without_items = _pool_for(result, engine, source, plan)
    facts, without_facts = _facts_for(result, background)
    on_offer = OnOffer(pool, facts)
    reasons = (*without_items, *without_facts)
    if not on_offer.kinds:
        raise ConfigError(
            f"there is nothing to compare for {result.entity_id!r}: {'; '.join(reasons)}. Nothing "
            "was computed.",
            field="entity_id",
            hint="Ingest evidence about other entities: what one more item may say is taken from "
            "theirs.",
        )
    on_offer.check_costs(plan)
    own: tuple[str | None, ...] = ()
    if pool is not None and result.evidence is not None:
        stored = source.store.get_many(result.evidence.ids)
        own = tuple(stored[name].evidence.source for name in result.evidence.ids)
    future = Future(result, engine, background, pool, own)
    offers, steps = offers_and_steps(future, on_offer, plan)
    return NextEvidence(
        result.entity_id,
        result.predicate,
        result.values,
        future.now(Path()),
        offers,
        steps,
        plan,
        reasons,
        (*result.notes, *_notes(result, offers)),
    )


def _pool_for(
    result: QueryResult, engine: Engine | None, source: FeatureSource, plan: CollectionPlan
) -> tuple[StoredPool | None, tuple[str, ...]]:
    """Items of other entities, or why there are none."""
    if engine is None or not engine.reads(result.predicate):
        lacking = "there is no model" if engine is None else "the model does not know the predicate"
        return None, (f"items: {lacking}",)
    pool = stored_pool(source, result.entity_id, result.predicate, plan.pool, plan.seed)
    if not pool.kinds:
        none = f"items: no evidence about {result.predicate} of other entities is stored"
        return None, (none, *pool.left_out)
    return pool, pool.left_out


def _facts_for(
    result: QueryResult, background: Background
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Related predicates whose values would say something, and why others are left out."""
    related = background.schema.related(result.predicate)
    if not related:
        return (), ()
    if not background.covers(result.predicate) or result.method in ("learned", "average"):
        return (), (f"facts: the answer about {result.predicate} does not use the circuit",)
    if not background.joins_predicates:
        return (), ("facts: how predicates are related has not been learned ('lpf facts learn')",)
    known = {fact.predicate for fact in result.facts if fact.role == "hard"}
    unknown = [name for name in related if name not in known and background.covers(name)]
    return tuple(unknown), tuple(
        f"{FACT}{name}: {'it is known' if name in known else 'the circuit does not cover it'}"
        for name in related
        if name not in unknown
    )


def _notes(result: QueryResult, offers: Sequence[Offer]) -> list[str]:
    notes = []
    used = 0 if result.evidence is None else len(result.evidence)
    if used >= result.options.most_items:
        notes.append(
            f"top_k {used} is reached: a new item would take the place of another one, which is "
            "not taken into account here"
        )
    few = [one for one in offers if one.stored is not None and one.stored < FEWEST]
    if few:
        notes.append(f"{few[0].kind}: {few[0].stored} stored items are hardly a sample")
    rough = [one.kind for one in offers if one.unseen > ROUGH]
    if rough:
        notes.append(
            f"{listed(rough)}: what stored items say does not fit this answer well, so these bits "
            "are rough"
        )
    return notes


@dataclass(frozen=True, eq=False)
class _Considered:
    """An offer, with what it may lead to on each path; ``places`` are those of its items."""

    offer: Offer
    outlooks: Sequence[Outlook]
    places: Sequence[Places] = ()


def offers_and_steps(
    future: Future, on_offer: OnOffer, plan: CollectionPlan
) -> tuple[tuple[Offer, ...], tuple[PlannedStep, ...]]:
    """All offers, the most bits per cost first, and the steps that are worth taking."""
    on_offer.check_costs(plan)
    generator = np.random.default_rng(plan.seed)
    paths = [Path()]
    considered = _considered(future, on_offer, plan, paths)
    offers = tuple(one.offer for one in considered)
    confidence = float(future.now(Path()).max())
    taken: list[PlannedStep] = []
    bits = cost = 0.0
    while plan.enough is None or confidence < plan.enough:
        worth = [one for one in considered if one.offer.bits >= plan.least]
        if not worth:
            break
        best = worth[0]
        bits, cost = bits + best.offer.bits, cost + best.offer.cost
        confidence = best.offer.confidence
        taken.append(PlannedStep(best.offer, bits, cost))
        if len(taken) == plan.steps:
            break
        paths = _gone_on(paths, best, future, generator)
        considered = _considered(future, on_offer, plan, paths)
    return offers, tuple(taken)


def _considered(
    future: Future, on_offer: OnOffer, plan: CollectionPlan, paths: Sequence[Path]
) -> list[_Considered]:
    """All that is on offer after the same steps on each of ``paths``, the best first."""
    found = []
    pool = on_offer.pool
    for kind, places in ({} if pool is None else pool.kinds).items():
        left = [_left(places, path, later=len(paths) > 1) for path in paths]
        if min(map(len, left)) == 0:
            continue
        outlooks = [future.items(path, own) for path, own in zip(paths, left, strict=True)]
        assert pool is not None  # it has the kind
        offer = _offer(kind, outlooks, plan, pool.stored[kind], len(left[0]))
        found.append(_Considered(offer, outlooks, left))
    for name in on_offer.facts:
        if name not in paths[0].facts:
            outlooks = [future.fact(path, name) for path in paths]
            found.append(_Considered(_offer(FACT + name, outlooks, plan), outlooks))
    return sorted(found, key=lambda one: (-one.offer.bits_per_cost, one.offer.kind))


def _left(places: Places, path: Path, *, later: bool) -> Places:
    left = np.setdiff1d(places, path.items)
    if not later or len(left) <= LATER_ITEMS:
        return left
    return np.asarray(left[np.linspace(0, len(left) - 1, LATER_ITEMS).astype(np.intp)])


def _offer(
    kind: str,
    outlooks: Sequence[Outlook],
    plan: CollectionPlan,
    stored: int | None = None,
    drawn: int | None = None,
) -> Offer:
    def mean(name: str) -> float:
        return float(np.mean([getattr(one, name) for one in outlooks]))

    return Offer(
        kind,
        mean("gain"),
        mean("changes"),
        mean("confidence"),
        plan.costs.get(kind, 1.0),
        0.0 if stored is None else mean("error"),
        mean("unseen"),
        stored,
        drawn,
    )


def _gone_on(
    paths: Sequence[Path],
    best: _Considered,
    future: Future,
    generator: np.random.Generator,
) -> list[Path]:
    """PATHS paths on which the step was taken: each outcome as often as it is expected."""
    if len(paths) == 1:
        chances = np.cumsum(best.outlooks[0].chances)
        even = (np.arange(PATHS) + generator.random()) / PATHS * chances[-1]
        drawn = [(0, int(place)) for place in np.searchsorted(chances, even, side="right")]
    else:
        drawn = [
            (number, int(generator.choice(len(one.chances), p=one.chances / one.chances.sum())))
            for number, one in enumerate(best.outlooks)
        ]
    kind = best.offer.kind
    if kind.startswith(FACT):
        name = kind.removeprefix(FACT)
        values = future.values_of(name)
        return [
            Path(paths[number].items, {**paths[number].facts, name: values[place]})
            for number, place in drawn
        ]
    return [
        Path((*paths[number].items, int(best.places[number][place])), paths[number].facts)
        for number, place in drawn
    ]


def _check(name: str, holds: bool, rule: str, given: object) -> None:
    if not holds:
        raise ConfigError(f"must be {rule}, got {given}. Nothing was computed.", field=name)
