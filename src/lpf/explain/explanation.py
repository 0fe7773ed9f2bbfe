"""Why an answer is what it is: the exact contribution of prior, facts and every item.

In log space, prior, facts, related evidence and items add up to the answer. Where they do not by
themselves, contributions are defined so that they do:

- if factors are averaged, item i contributes (Φᵢ(v) - 1/V) / K / L(v), where L is the logarithmic
  mean of 1/V and the answer. This is what it adds while all items are faded in together
  (Aumann-Shapley).
- LPF-Learned: item i contributes log P(v) - log P(v | all others), and what only shows when items
  are together is a part of its own.

The log odds of two values are then exactly the sum of what all parts say, in every mode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from lpf.items import GroupArray, jensen_shannon
from lpf.results import Method
from lpf.types import FloatArray

NAT = 1.0 / math.log(2.0)  # in bits
PartKind = Literal["prior", "facts", "related", "claim", "item", "together"]


@dataclass(frozen=True, eq=False)
class Part:
    """What one part adds to the logarithm of each value's probability, ``added`` [V] in bits, up to
    a constant. ``name`` is an evidence ID, a predicate, or says what the part is."""

    kind: PartKind
    name: str
    added: FloatArray


@dataclass(frozen=True, eq=False)
class Weight:
    """Why an item counts as much as it does: ``total`` is the product of the others, each 1 if it
    changes nothing. ``copies`` is 1/(number of copies), ``familiarity`` how like the training
    texts it is, ``relevance`` how much it says about its claim, ``shared`` what is left because
    items share their errors, ``trust`` how far evidence is trusted as a whole, and ``given`` the
    weight that was supposed. ``doubt`` is the chance that the item says nothing, which flattens
    what it says; it is not part of the product. None: the answer does not weigh items by it.
    """

    total: float
    copies: float | None = None
    familiarity: float | None = None
    relevance: float | None = None
    shared: float | None = None
    trust: float | None = None
    given: float | None = None
    doubt: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, eq=False)
class ItemPart(Part):
    """An item. ``says`` [V] is its factor (None with LPF-Learned), ``without`` [V] the answer if
    it were left out (None if that cannot be computed from a record), ``copies_of`` the IDs of the
    other items that repeat it."""

    says: FloatArray | None
    without: FloatArray | None
    weight: Weight
    credibility: float | None
    copies_of: tuple[str, ...] = ()
    wordless: bool = False


@dataclass(frozen=True)
class Flip:
    """Items whose removal makes ``value`` the answer. ``is_smallest`` is True if no smaller set
    does, and False if there may be one."""

    evidence_ids: tuple[str, ...]
    value: str
    is_smallest: bool


@dataclass(frozen=True)
class NotUsed:
    """Items that were found and not used: ``why``, how many, and the first of their IDs.
    ``repeats`` names the used item that one of them is a copy of."""

    why: str
    count: int
    evidence_ids: tuple[str, ...]
    repeats: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class AnswerExplanation:
    """The answer about one entity, taken apart.

    ``parts`` are prior, facts, related evidence and the claim alone, ``items`` the evidence, best
    first. For any two values, what they add to the log odds sums to those of ``probabilities``
    [V]. ``flip`` is the smallest set of items whose removal changes the answer; None if no removal
    does. ``conflict`` is how much the items contradict each other (0 to 1), ``source_conflict`` how
    much the sources do. ``claim`` is what the answer is about, if all items have the same.
    ``deferred`` says why the answer was deferred; None if it was given. ``texts`` are those of the
    items by ID, where they are at hand; they are shown, and not part of ``to_dict``. ``not_used``
    are the items that were found and not used, by reason; None for a record, which does not say.
    """

    entity_id: str
    predicate: str
    values: tuple[str, ...]
    probabilities: FloatArray
    method: Method
    mode: str
    parts: tuple[Part, ...]
    items: tuple[ItemPart, ...]
    flip: Flip | None = None
    conflict: float | None = None
    source_conflict: float | None = None
    record_id: str | None = None
    notes: tuple[str, ...] = ()
    claim: str | None = None
    deferred: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    not_used: tuple[NotUsed, ...] | None = None

    def __str__(self) -> str:
        """The explanation for people: sentences, and what each part adds."""
        from lpf.explain.plain_text import plain_text  # which needs this class

        return plain_text(self)

    def __repr__(self) -> str:
        best, share = self.ranked[0], float(self.probabilities.max())
        about = f"{self.entity_id!r} {self.predicate}: {best} {share:.3f}"
        return f"<AnswerExplanation {about} ({len(self.items)} items)>"

    @property
    def ranked(self) -> tuple[str, ...]:
        """The values, most probable first."""
        order = np.argsort(-self.probabilities, kind="stable")
        return tuple(self.values[place] for place in order)

    def log_odds(self, value: str, against: str) -> float:
        """In bits."""
        first, second = self.values.index(value), self.values.index(against)
        with np.errstate(divide="ignore"):
            logs = NAT * np.log(self.probabilities)
        return float(logs[first] - logs[second])

    def between(self, value: str, against: str) -> list[tuple[Part, float]]:
        """Every part with the bits that it adds to the odds of ``value`` against ``against``, in
        the order of ``parts`` and ``items``. They sum to ``log_odds``."""
        first, second = self.values.index(value), self.values.index(against)
        return [
            (part, _difference(part.added, first, second)) for part in (*self.parts, *self.items)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that are infinite are None."""
        value, *others = self.ranked
        against = others[0] if others else None
        shares = dict(zip(self.values, self.probabilities.tolist(), strict=True))
        return {
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "record_id": self.record_id,
            "claim": self.claim,
            "deferred": self.deferred,
            "distribution": shares,
            "method": self.method,
            "mode": self.mode,
            "value": value,
            "against": against,
            "log_odds_bits": None if against is None else finite(self.log_odds(value, against)),
            "parts": [self._part(part, value, against) for part in self.parts],
            "items": [self._part(item, value, against) | self._item(item) for item in self.items],
            "conflict": self.conflict,
            "source_conflict": self.source_conflict,
            "flip": None
            if self.flip is None
            else {
                "evidence_ids": list(self.flip.evidence_ids),
                "value": self.flip.value,
                "is_smallest": self.flip.is_smallest,
            },
            "not_used": None
            if self.not_used is None
            else [
                {
                    "why": one.why,
                    "count": one.count,
                    "evidence_ids": list(one.evidence_ids),
                    "repeats": dict(one.repeats),
                }
                for one in self.not_used
            ],
            "notes": list(self.notes),
        }

    def _part(self, part: Part, value: str, against: str | None) -> dict[str, Any]:
        bits = None
        if against is not None:
            first, second = self.values.index(value), self.values.index(against)
            bits = finite(_difference(part.added, first, second))
        return {
            "kind": part.kind,
            "name": part.name,
            "bits": bits,
            "added": self._by_value(part.added),
        }

    def _item(self, item: ItemPart) -> dict[str, Any]:
        return {
            "says": None if item.says is None else self._by_value(item.says),
            "without": None if item.without is None else self._by_value(item.without),
            "weight": item.weight.to_dict(),
            "credibility": item.credibility,
            "copies_of": list(item.copies_of),
            "wordless": item.wordless,
        }

    def _by_value(self, row: FloatArray) -> dict[str, float | None]:
        return {v: finite(number) for v, number in zip(self.values, row.tolist(), strict=True)}


def finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _difference(added: FloatArray, first: int, second: int) -> float:
    with np.errstate(invalid="ignore"):  # a part may rule out both values
        return float(added[first] - added[second])


def averaged_parts(potential: FloatArray) -> FloatArray:
    """What each of K averaged items adds to the logarithm of each value [K, V], from even odds."""
    even = 1.0 / potential.shape[1]
    excess = potential.mean(axis=0) / even - 1.0
    near = np.abs(excess) < 1e-9  # where the quotient below is 0/0
    with np.errstate(divide="ignore"):
        means = np.where(near, 1.0 + excess / 2.0, excess / np.log1p(np.where(near, 1.0, excess)))
        return np.asarray((potential / even - 1.0) / len(potential) / means)


def conflicts(
    potential: FloatArray | None, sources: GroupArray | None
) -> tuple[float | None, float | None]:
    """How much items contradict each other, and how much sources do: the Jensen-Shannon divergence
    of what they say, an item without a source being one of its own (None: not known)."""
    if potential is None or len(potential) < 2:
        return None, None
    if sources is None:
        return jensen_shannon(potential), None
    names = np.where(sources >= 0, sources, sources.max(initial=0) + 1 + np.arange(len(sources)))
    _, groups, sizes = np.unique(names, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return jensen_shannon(potential), None
    means = np.zeros((len(sizes), potential.shape[1]))
    np.add.at(means, groups.reshape(-1), potential)
    return jensen_shannon(potential), jensen_shannon(means / sizes[:, None])
