"""Which items answer a question: looked up, filtered, freed of crowding copies, best first.

What a question is answered from.

All items that may answer a question, made ready to choose the best from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lpf.index.copies import (
    DEFAULT_SIMILARITY,
    GroupArray,
    checked_similarity,
    copy_labels,
    cut,
    numbered,
)
from lpf.index.features import (
    COMMITMENT,
    CONTENT_KEY,
    CREDIBILITY,
    EVIDENCE_ID,
    REPORT_ID,
    ROW_ID,
    SOURCE,
    STORED,
    TIMESTAMP,
    VECTOR,
    FeatureSource,
)
from lpf.index.ranking import Ranker, RankingConfig, best_first, relevance_to
from lpf.reading.reader import Reader
from lpf.storage.database import Row
from lpf.storage.evidence import EvidenceStore
from lpf.storage.versioned_cache import VersionedCache
from lpf.types import Float32Array, FloatArray


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The items of one question, best first: K of ``considered`` that were found.

    ``features`` are [K, width]; ``credibility`` [K] is NaN where unknown; ``timestamps`` are in
    microseconds. ``groups`` [K] number copies among these items, -1 for an item without any;
    ``sources`` [K] number sources, -1 for unknown. ``below_credibility`` were left out by the
    minimum, ``dated_later`` by their dates, ``cut`` by top_k.

    ``made`` is where others keep what they make of exactly these items, whenever these are asked
    for; it is dropped with what is remembered of the items themselves. ``scores`` [K] hang on the
    moment asked about, so nothing in ``made`` may be made of them.
    """

    row_ids: tuple[int, ...]
    ids: tuple[str, ...]
    content_keys: tuple[bytes, ...]
    commitments: tuple[bytes, ...]
    features: Float32Array
    credibility: FloatArray
    timestamps: tuple[int | None, ...]
    groups: NDArray[np.int64]
    sources: NDArray[np.int64]
    considered: int
    below_credibility: int
    dated_later: int
    cut: int
    made: dict[Hashable, Any]
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.ids)


Kind = TypeVar("Kind", bound=np.generic)
# Numbers of items wanted for which what was chosen last is kept, each with vectors of its own.
MOST_CHOSEN = 4
Scored: TypeAlias = Callable[[FloatArray], Retrieved]  # what was chosen, but for the scores


class Span(NamedTuple):
    """For which moments a choice is the same: ``since`` <= as_of < ``until``, in microseconds."""

    since: float
    until: float


class Counts(NamedTuple):
    considered: int
    below_credibility: int
    dated_later: int


class Choice:
    """What hangs neither on the moment asked about nor on the number wanted is done once, and what
    was chosen last is kept: mostly the same is chosen again."""

    def __init__(
        self,
        rows: list[Row],
        counts: Counts,
        span: Span,
        source: FeatureSource,
        similarity: float | None,
    ) -> None:
        """``rows``, one at least, are those that may be used, with their vectors."""
        columns = list(zip(*rows, strict=True))
        vectors = np.frombuffer(b"".join(columns[VECTOR]), STORED)
        self.features = vectors.reshape(len(rows), source.width)
        self._texts = source.texts(self.features)
        self._rows = [row[:VECTOR] for row in rows]
        self._counts = counts
        self._span = span
        self._credibility, self._timestamps = columns[CREDIBILITY], columns[TIMESTAMP]
        self._labels = copy_labels(
            columns[CONTENT_KEY], columns[REPORT_ID], self._texts, similarity
        )
        self._chosen: dict[int, tuple[list[int], Scored]] = {}

    def holds_at(self, as_of: int) -> bool:
        return self._span.since <= as_of < self._span.until

    def best(self, ranker: Ranker, top_k: int, as_of: int, query: Float32Array | None) -> Retrieved:
        """The best ``top_k`` by ``as_of``, compared with ``query`` [text width] where it is given.
        As long as these are the same items in the same order, all but the scores is the same."""
        relevance = None if query is None else relevance_to(self._texts, query)
        scores = ranker.scores(self._credibility, self._timestamps, as_of, relevance)
        positions = cut(best_first(scores, self._timestamps), self._labels, top_k)
        kept = self._chosen.get(len(positions))
        if kept is None or kept[0] != positions:
            kept = (positions, self._gathered(positions))
            if len(positions) not in self._chosen and len(self._chosen) >= MOST_CHOSEN:
                self._chosen.clear()
            self._chosen[len(positions)] = kept
        return kept[1](np.array([scores[position] for position in positions]))

    def _gathered(self, positions: list[int]) -> Scored:
        """All but the scores. Others share it, so none of it can be written to."""
        columns = list(zip(*[self._rows[position] for position in positions], strict=True))
        return partial(
            Retrieved,
            columns[ROW_ID],
            columns[EVIDENCE_ID],
            columns[CONTENT_KEY],
            columns[COMMITMENT],
            _frozen(self.features.take(positions, axis=0)),
            _frozen(np.array(columns[CREDIBILITY], np.float64)),  # None becomes NaN
            columns[TIMESTAMP],
            _frozen(_numbered_groups(self._labels, positions)),
            _frozen(np.array(numbered(columns[SOURCE]))),
            *self._counts,
            len(self._rows) - len(positions),
            {},
        )


def _numbered_groups(labels: GroupArray | None, positions: Sequence[int]) -> GroupArray:
    if labels is None:
        return np.array([-1] * len(positions))
    chosen = labels[positions].tolist()
    counts = Counter(chosen)
    return np.array(numbered([label if counts[label] > 1 else None for label in chosen]))


def _frozen(array: NDArray[Kind]) -> NDArray[Kind]:
    array.flags.writeable = False
    return array


__all__ = ["EvidenceIndex", "Retrieved"]

# Questions remembered, and how large the vectors of one may be: 128 MB in all at most, 30 at five
# items of 1.5 KB. What was chosen of them is copied: once more as much where all are asked for, and
# MOST_CHOSEN times more at worst, where nearly all are asked for in that many numbers.
MOST_REMEMBERED = 4096
LARGEST_REMEMBERED = 32 * 1024

_Asked: TypeAlias = tuple[str, str, float]  # entity, predicate, minimum credibility
_by_evidence_id = itemgetter(EVIDENCE_ID)


class EvidenceIndex:
    """Evidence by entity and predicate, with features of one reader.

    ``copy_similarity`` is the cosine from which two texts count as copies, None or 0 for never.
    ``text_part`` see FeatureSource.
    """

    def __init__(
        self,
        store: EvidenceStore,
        reader_id: str,
        width: int,
        open_reader: Callable[[], Reader],
        ranking: RankingConfig = RankingConfig(),  # noqa: B008  frozen, so it may be shared
        *,
        copy_similarity: float | None = DEFAULT_SIMILARITY,
        text_part: slice | None = None,
    ) -> None:
        self.source = FeatureSource(store, reader_id, width, open_reader, text_part)
        self._ranker = Ranker(ranking)
        self._copy_similarity = checked_similarity(copy_similarity)
        self._remembered: VersionedCache[_Asked, Choice] = VersionedCache(MOST_REMEMBERED)
        store.register_cache(self._remembered)

    def query_vector(self, text: str) -> Float32Array:
        """What ``retrieve`` compares texts with. Opens the reader."""
        return self.source.query_vector(text)

    def retrieve(
        self,
        entity_id: str,
        predicate: str,
        *,
        top_k: int,
        min_credibility: float,
        as_of: int,
        query_vector: Float32Array | None = None,
    ) -> Retrieved:
        """The best ``top_k`` items known by ``as_of`` (microseconds). Items of unknown credibility
        pass the minimum. What is returned depends on the items, not on when they were added."""
        query = None if query_vector is None else self.source.checked_query(query_vector)
        version = self.source.store.version()
        asked = (entity_id, predicate, min_credibility)
        choice = self._remembered.get(version, asked)
        if choice is None or not choice.holds_at(as_of):
            rows, counts, span = self._usable(asked, as_of)
            if not rows:
                return self._nothing(counts)
            choice = Choice(rows, counts, span, self.source, self._copy_similarity)
            if choice.features.nbytes <= LARGEST_REMEMBERED:
                self._remembered.put(version, asked, choice)
        return choice.best(self._ranker, top_k, as_of, query)

    def _usable(self, asked: _Asked, as_of: int) -> tuple[list[Row], Counts, Span]:
        """Rows that may be used, and for which moments they are those."""
        entity_id, predicate, min_credibility = asked
        found = self.source.store.candidates(entity_id, predicate, self.source.number)
        dated = [(-math.inf if (at := row[TIMESTAMP]) is None else at) for row in found]
        known = [row for row, at in zip(found, dated, strict=True) if at <= as_of]
        rows = [
            row
            for row in known
            if (credible := row[CREDIBILITY]) is None or credible >= min_credibility
        ]
        counts = Counts(len(found), len(known) - len(rows), len(found) - len(known))
        span = Span(
            max([at for at in dated if at <= as_of], default=-math.inf),
            min([at for at in dated if at > as_of], default=math.inf),
        )
        if None in [row[VECTOR] for row in rows]:
            rows = self.source.completed(rows)
        # One order for all that follows, so that sums of floats do not hang on that of ingestion.
        rows.sort(key=_by_evidence_id)
        return rows, counts, span

    def _nothing(self, counts: Counts) -> Retrieved:
        features = np.empty((0, self.source.width), np.float32)
        none, numbers = np.empty(0), np.empty(0, np.int64)
        return Retrieved(
            (), (), (), (), features, none, (), numbers, numbers, *counts, 0, {}, none
        )  # fmt: skip
