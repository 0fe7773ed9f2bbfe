"""The evidence items of a question, from retrieval to record, and their layout by entity.

Items of E entities are stored one after the other in arrays of N rows; ``Segments`` says where each
entity's rows begin. One entity is the case E = 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from lpf.errors import EvidenceError
from lpf.types import Float32Array, FloatArray, KeyArray, QueryOptions

GroupArray = NDArray[np.int64]
# Where the minimum credibility comes from: the question (or lpf.toml), the model, or neither.
Threshold = Literal["given", "model", "default"]

_NOT_GIVEN: Final = np.empty(0)
_NO_GROUPS: Final = np.empty(0, np.int64)
_START = np.zeros(1, dtype=np.intp)
MOST_UNUSED: Final = 20  # items of each reason that are named, of those that were left out


@dataclass(frozen=True)
class Segments:
    """Entity e has the rows offsets[e] .. offsets[e+1]; an entity may have none."""

    offsets: NDArray[np.intp]

    @classmethod
    def of_counts(cls, counts: Sequence[int] | NDArray[np.intp]) -> Segments:
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.intp))

    @staticmethod
    @lru_cache(maxsize=256)
    def one(count: int) -> Segments:
        """All rows belong to one entity."""
        return Segments(np.array([0, count], dtype=np.intp))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> NDArray[np.intp]:
        """The entity of each row, [N]."""
        return np.repeat(np.arange(len(self)), self.counts)

    def rows(self, entity: int) -> slice:
        """The rows of an entity, as a slice."""
        return slice(int(self.offsets[entity]), int(self.offsets[entity + 1]))

    def sum(self, rows: FloatArray) -> FloatArray:
        """Sums [N, ...] by entity -> [E, ...]; zero for an entity without rows.

        Always by ``reduceat``, whose order of adding does not depend on E: an answer computed in a
        batch is recomputed alone to the last bit."""
        if len(self) == 1 and len(rows):
            return np.asarray(np.add.reduceat(rows, _START, axis=0))
        filled = np.flatnonzero(self.counts)
        total = np.zeros((len(self), *rows.shape[1:]))
        if len(filled):
            # reduceat would repeat a row for an empty segment, so empty segments are skipped.
            total[filled] = np.add.reduceat(rows, self.offsets[filled], axis=0)
        return total

    def check(self, count: int) -> None:
        """EvidenceError unless the segments cover ``count`` items one after the other."""
        if self.offsets[0] != 0 or (len(self) > 1 and bool((np.diff(self.offsets) < 0).any())):
            raise EvidenceError("segments: offsets must start at 0 and must not decrease.")
        if int(self.offsets[-1]) != count:
            raise EvidenceError(f"segments cover {int(self.offsets[-1])} items of {count}.")


@dataclass(eq=False)
class Items:
    """Evidence items as arrays: what is known about each item, and how an answer used it.

    Retrieval creates them, the engine answers from them, a result holds them and its record is
    written from them. The first seven fields are all that the engine needs:

    - ``features`` [N, width], ``ids``, and ``keys`` that seed each item's random draws (see
      ``factors.keys``; by default they follow from the features);
    - ``credibility`` [N], NaN if unknown; ``groups`` [N] number copies and ``sources`` [N]
      number sources within an entity, -1 for none;
    - ``segments``, the layout by entity (default: all items belong to one entity).

    Retrieval adds ``content_keys`` (their keys in caches), ``commitments`` (salted hashes of the
    texts), ``has_claims`` (if any item has a claim), ``scores`` [N] (best first) and counts: of
    ``considered`` items, ``below_credibility``, ``dated_later`` and ``cut`` (beyond top_k) were
    left out. ``damaged`` items, with the reasons, do not match their hashes in the store.
    ``unused`` has the first IDs of those left out, by the name of their count, and ``repeats`` says
    which used item one beyond top_k is a copy of.
    ``wordless`` [N] is True for texts without a word, which do not count in robust mode (None:
    there are none).

    The answer adds ``familiarity`` [N], how like the training texts each item is, from 0 to 1
    (None if the model cannot tell); ``relevance`` [N], how much each item says about its claim,
    from 0 to 1 (None if items were not weighed by it); ``stances`` [N, 3], its chances of each
    stance (None if it plays no part which of them occur); ``weight`` [N], how much each item
    counts: its exponent, or its share of the latent code; the factors ``potential`` [N, V] with
    ``mean_sigma`` [N], and ``contributions`` [N, V] (all three None for the variant ``learned``,
    which has ``members`` [S, V] instead).
    """

    features: Float32Array
    ids: Sequence[str] = ()
    keys: KeyArray | None = None
    credibility: FloatArray = field(default_factory=lambda: _NOT_GIVEN)
    groups: GroupArray = field(default_factory=lambda: _NO_GROUPS)
    sources: GroupArray = field(default_factory=lambda: _NO_GROUPS)
    segments: Segments | None = None

    content_keys: Sequence[bytes] = ()
    commitments: Sequence[bytes] = ()
    has_claims: bool = False
    scores: FloatArray = field(default_factory=lambda: _NOT_GIVEN)
    considered: int = 0
    below_credibility: int = 0
    dated_later: int = 0
    cut: int = 0
    damaged: Sequence[object] = ()
    unused: Mapping[str, Sequence[str]] = field(default_factory=dict)
    repeats: Mapping[str, str] = field(default_factory=dict)
    wordless: NDArray[np.bool_] | None = None

    familiarity: FloatArray | None = None
    relevance: FloatArray | None = None
    stances: FloatArray | None = None
    weight: FloatArray = field(default_factory=lambda: _NOT_GIVEN)
    potential: FloatArray | None = None
    mean_sigma: FloatArray | None = None
    contributions: FloatArray | None = None
    members: FloatArray | None = None

    def __post_init__(self) -> None:
        count = len(self.features)
        if self.credibility is _NOT_GIVEN:
            self.credibility = np.full(count, np.nan)
        if self.groups is _NO_GROUPS:
            self.groups = np.full(count, -1, np.int64)
        if self.sources is _NO_GROUPS:
            self.sources = np.full(count, -1, np.int64)
        for name in ("keys", "credibility", "groups", "sources"):
            array = getattr(self, name)
            if array is not None and len(array) != count:
                raise EvidenceError(f"{name}: {len(array)} for {count} items.")
        # fmin and fmax ignore NaN, which means unknown.
        if count and not (
            np.fmin.reduce(self.credibility, initial=1.0) >= 0.0
            and np.fmax.reduce(self.credibility, initial=0.0) <= 1.0
        ):
            raise EvidenceError("credibility: must lie in [0, 1] (NaN if unknown).")

    def __len__(self) -> int:
        return len(self.features)

    def copy(self) -> Items:
        """A shallow copy: the arrays are shared."""
        other = object.__new__(Items)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def layout(self) -> Segments:
        """``segments``, or one entity with all items."""
        return Segments.one(len(self.features)) if self.segments is None else self.segments

    def take(self, rows: list[int]) -> Items:
        """Features, ids and keys of some items: all that factors depend on."""
        return Items(
            self.features[rows],
            [self.ids[row] for row in rows],
            None if self.keys is None else self.keys[rows],
        )

    def credible(self, least: float) -> NDArray[np.intp]:
        """Positions of the items whose credibility is at least ``least`` or unknown."""
        return np.flatnonzero(~(self.credibility < least))

    def select(self, rows: NDArray[np.intp]) -> Items:
        """Some of the items, in ascending order, with all that the engine needs. An entity may be
        left without any."""
        counts = np.bincount(self.layout.owner[rows], minlength=len(self.layout))
        return Items(
            self.features[rows],
            [self.ids[row] for row in rows] if len(self.ids) else (),
            None if self.keys is None else self.keys[rows],
            self.credibility[rows],
            self.groups[rows],
            self.sources[rows],
            Segments.of_counts(counts),
            wordless=None if self.wordless is None else self.wordless[rows],
        )

    @staticmethod
    def join(entities: Sequence[Items]) -> Items:
        """The items of several entities in one set of arrays. Each must have ``keys``."""
        if len(entities) == 1:
            return entities[0]
        return Items(
            np.concatenate([items.features for items in entities]),
            [name for items in entities for name in items.ids],
            np.concatenate([items.keys for items in entities if items.keys is not None]),
            np.concatenate([items.credibility for items in entities]),
            np.concatenate([items.groups for items in entities]),
            np.concatenate([items.sources for items in entities]),
            Segments.of_counts([len(items) for items in entities]),
            [key for items in entities for key in items.content_keys],
            wordless=_joined([(items.wordless, len(items)) for items in entities]),
        )


def _joined(parts: Sequence[tuple[NDArray[np.bool_] | None, int]]) -> NDArray[np.bool_] | None:
    """Marks of several entities with their numbers of items, one after the other."""
    if all(marks is None for marks, _ in parts):
        return None
    return np.concatenate(
        [np.zeros(count, np.bool_) if marks is None else marks for marks, count in parts]
    )


# The counts of ``LeftOut``, and what retrieval calls them in ``Items``.
LEFT_OUT_COUNTS = {
    "later_than_as_of": "dated_later",
    "below_credibility": "below_credibility",
    "beyond_top_k": "cut",
    "damaged": "damaged",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many items were found for a question but not used, each counted under the first reason
    that applies: it does not match its hashes in the store, its date, the minimum credibility, or
    top_k. ``named`` has the first IDs of each reason, and ``repeats`` says which used item one
    beyond top_k is a copy of."""

    later_than_as_of: int = 0
    below_credibility: int = 0
    beyond_top_k: int = 0
    damaged: int = 0
    named: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False, repr=False)
    repeats: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, items: Items) -> LeftOut:
        """What was left out when ``items`` were retrieved."""
        named = {
            name: items.unused[count]
            for name, count in LEFT_OUT_COUNTS.items()
            if count in items.unused
        }
        return cls(
            items.dated_later,
            items.below_credibility,
            items.cut,
            len(items.damaged),
            named,
            items.repeats,
        )

    @property
    def count(self) -> int:
        return self.later_than_as_of + self.below_credibility + self.beyond_top_k + self.damaged

    def reasons(self, options: QueryOptions, threshold: Threshold = "given") -> str:
        """In words: "1 below credibility 0.5, 2 beyond the best 5"."""
        return ", ".join(
            f"{number:,} {words}" for _, number, words in self.by_reason(options, threshold)
        )

    def by_reason(
        self, options: QueryOptions, threshold: Threshold = "given"
    ) -> list[tuple[str, int, str]]:
        """Name, count and words of each reason that left something out."""
        whose = ", the model's threshold" if threshold == "model" else ""
        words = {
            "later_than_as_of": "dated later than the question",
            "below_credibility": f"below credibility {options.min_credibility or 0:g}{whose}",
            "beyond_top_k": f"beyond the best {options.most_items}",
            "damaged": "damaged in the store",
        }
        found = ((name, getattr(self, name), phrase) for name, phrase in words.items())
        return [one for one in found if one[1]]


def jensen_shannon(rows: FloatArray) -> float:
    """Divergence of K distributions [K, V] from their mean, as a share of the largest possible."""
    largest = np.log(min(rows.shape))
    if largest == 0.0:
        return 0.0
    return max(0.0, float((_entropy(rows.mean(axis=0)) - _entropy(rows).mean()) / largest))


def _entropy(rows: FloatArray) -> FloatArray:
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    return np.asarray(-(rows * logs).sum(axis=-1))
