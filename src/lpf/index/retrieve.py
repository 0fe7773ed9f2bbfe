"""Retrieves the items of a question: filtered, best first, independent items before copies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lpf.factors.keys import stored_keys
from lpf.index.copies import (
    BLOCK_ROWS,
    DEFAULT_SIMILARITY,
    GroupsOnDemand,
    checked_similarity,
    copy_labels,
    numbered,
)
from lpf.index.features import (
    COMMITMENT,
    CONTENT_KEY,
    CREDIBILITY,
    EVIDENCE_ID,
    HAS_CLAIM,
    REPORT_ID,
    ROW_ID,
    SOURCE,
    STORED,
    TIMESTAMP,
    VECTOR,
    FeatureSource,
)
from lpf.index.ranking import Ranker, RankingConfig, best_first, relevance_to, take_best
from lpf.items import MOST_UNUSED, GroupArray, Items
from lpf.reading.reader import Reader
from lpf.storage.database import Row
from lpf.storage.evidence import DamagedItem, EvidenceStore
from lpf.storage.versioned_cache import VersionedCache
from lpf.types import Float32Array

# Questions whose candidates are cached, and how large the vectors of one may be: 128 MB in all at
# most, 30 MB at five items of 1.5 KB each.
MOST_CACHED = 4096
LARGEST_CACHED = 32 * 1024

Kind = TypeVar("Kind", bound=np.generic)
_Key: TypeAlias = tuple[str, str, float]  # entity, predicate, minimum credibility
_by_evidence_id = itemgetter(EVIDENCE_ID)


class Counts(NamedTuple):
    considered: int
    below_credibility: int
    dated_later: int
    damaged: tuple[DamagedItem, ...] = ()
    unused: Mapping[str, tuple[str, ...]] = {}


class Candidates:
    """All items that may answer a question, prepared for choosing the best.

    Everything that depends neither on ``as_of`` nor on ``top_k`` is done
    once. The candidates are the same for ``since`` <= as_of < ``until``, in microseconds.
    """

    def __init__(
        self,
        rows: list[Row],
        counts: Counts,
        span: tuple[float, float],
        source: FeatureSource,
        similarity: float | None,
    ) -> None:
        """``rows``, at least one, are those that may be used, with their vectors."""
        columns = list(zip(*rows, strict=True))
        vectors = np.frombuffer(b"".join(columns[VECTOR]), STORED)
        self.features = vectors.reshape(len(rows), source.width)
        self._texts = source.texts(self.features)
        self._rows = [row[:VECTOR] for row in rows]
        self._counts = counts
        self._since, self._until = span
        self._source = source
        self._credibility, self._timestamps = columns[CREDIBILITY], columns[TIMESTAMP]
        compared = columns[CONTENT_KEY], columns[REPORT_ID], self._texts
        self._groups: GroupsOnDemand | None = None
        self._labels: GroupArray | None = None
        if len(rows) > BLOCK_ROWS and similarity is not None:
            self._groups = GroupsOnDemand(*compared, similarity)
        else:
            self._labels = copy_labels(*compared, similarity)
        self._last: tuple[list[int], Items] | None = None

    def hold_at(self, as_of: int) -> bool:
        return self._since <= as_of < self._until

    def best(self, ranker: Ranker, top_k: int, as_of: int, query: Float32Array | None) -> Items:
        """The best ``top_k`` at ``as_of``, compared with ``query`` [text width] if one is given."""
        relevance = None if query is None else relevance_to(self._texts, query)
        scores = ranker.scores(self._credibility, self._timestamps, as_of, relevance)
        order, labels = best_first(scores, self._timestamps), self._labels
        if self._groups is not None:
            labels = self._groups.labels(order, top_k)
            self._last = None  # labels of other items may have changed
        chosen = take_best(order, labels, top_k)
        last = self._last
        # Usually the same items are chosen again, in the same order: only their scores change.
        if last is None or last[0] != chosen:
            last = self._last = chosen, self._gather(chosen, labels, order)
        items = last[1].copy()
        items.scores = np.array([scores[place] for place in chosen])
        return items

    def _gather(self, chosen: list[int], labels: GroupArray | None, order: Iterable[int]) -> Items:
        """The chosen items without scores, and which others of ``order`` were not chosen. Several
        questions share the arrays, so they are read-only."""
        columns = list(zip(*[self._rows[place] for place in chosen], strict=True))
        unused, repeats = self._not_chosen(chosen, labels, order)
        return Items(
            _read_only(self.features.take(chosen, axis=0)),
            columns[EVIDENCE_ID],
            _read_only(stored_keys(columns[CONTENT_KEY], self._source.reader_id)),
            _read_only(np.array(columns[CREDIBILITY], np.float64)),  # None becomes NaN
            _read_only(_group_numbers(labels, chosen)),
            _read_only(np.array(numbered(columns[SOURCE]))),
            content_keys=columns[CONTENT_KEY],
            commitments=columns[COMMITMENT],
            has_claims=any(columns[HAS_CLAIM]),
            considered=self._counts.considered,
            below_credibility=self._counts.below_credibility,
            dated_later=self._counts.dated_later,
            damaged=self._counts.damaged,
            cut=len(self._rows) - len(chosen),
            unused=unused,
            repeats=repeats,
            wordless=self._source.wordless(columns[ROW_ID]),
        )

    def _not_chosen(
        self, chosen: list[int], labels: GroupArray | None, order: Iterable[int]
    ) -> tuple[Mapping[str, tuple[str, ...]], dict[str, str]]:
        """The best items beyond top_k, and which of the chosen ones they repeat."""
        if len(chosen) == len(self._rows):
            return self._counts.unused, {}
        taken = set(chosen)
        others = list(islice((place for place in order if place not in taken), MOST_UNUSED))
        names = {place: self._rows[place][EVIDENCE_ID] for place in (*others, *chosen)}
        repeats = {}
        if labels is not None:  # -1: copies were not looked for
            first = {labels[one]: one for one in reversed(chosen) if labels[one] >= 0}
            repeats = {
                names[one]: names[first[labels[one]]] for one in others if labels[one] in first
            }
        beyond = tuple(names[place] for place in others)
        return {**self._counts.unused, "cut": beyond}, repeats


class EvidenceIndex:
    """Evidence by entity and predicate, with features of one reader.

    ``copy_similarity`` is the cosine from which two texts count as copies, None or 0 for never.
    For ``text_part`` see FeatureSource.
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
        self._cached: VersionedCache[_Key, Candidates] = VersionedCache(MOST_CACHED)
        store.register_cache(self._cached)

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
    ) -> Items:
        """The best ``top_k`` items dated up to ``as_of`` (microseconds). Items of unknown
        credibility pass the minimum. The result depends on the items, not on when they were
        added."""
        query = None if query_vector is None else self.source.checked_query(query_vector)
        version = self.source.store.version()
        key = (entity_id, predicate, min_credibility)
        candidates = self._cached.get(version, key)
        if candidates is None or not candidates.hold_at(as_of):
            rows, counts, span = self._usable(key, as_of)
            if not rows:
                return Items(np.empty((0, self.source.width), np.float32), **counts._asdict())
            candidates = Candidates(rows, counts, span, self.source, self._copy_similarity)
            if candidates.features.nbytes <= LARGEST_CACHED:
                self._cached.put(version, key, candidates)
        return candidates.best(self._ranker, top_k, as_of, query)

    def _usable(self, key: _Key, as_of: int) -> tuple[list[Row], Counts, tuple[float, float]]:
        """Rows that may be used, counts, and the time span in which these rows are the same."""
        entity_id, predicate, min_credibility = key
        source = self.source
        candidates, broken = source.store.candidates(entity_id, predicate, source.number)
        damaged, found = list(broken), len(candidates) + len(broken)
        dated = [(-math.inf if (at := row[TIMESTAMP]) is None else at) for row in candidates]
        known = [row for row, at in zip(candidates, dated, strict=True) if at <= as_of]
        rows = [
            row
            for row in known
            if (credible := row[CREDIBILITY]) is None or credible >= min_credibility
        ]
        since = max([at for at in dated if at <= as_of], default=-math.inf)
        until = min([at for at in dated if at > as_of], default=math.inf)
        below = len(known) - len(rows)
        if None in [row[VECTOR] for row in rows]:
            rows = source.completed(rows, damaged)
        later = len(candidates) - len(known)
        unused: dict[str, tuple[str, ...]] = {}
        if below or later or damaged:
            unused = {
                "below_credibility": _first_ids(
                    row
                    for row in known
                    if (credible := row[CREDIBILITY]) is not None and credible < min_credibility
                ),
                "dated_later": _first_ids(
                    row for row, at in zip(candidates, dated, strict=True) if at > as_of
                ),
                "damaged": tuple(one.evidence_id for one in damaged[:MOST_UNUSED]),
            }
        counts = Counts(found, below, later, tuple(damaged), unused)
        # One order for everything that follows, so that sums of floats do not depend on the order
        # of ingestion.
        rows.sort(key=_by_evidence_id)
        return rows, counts, (since, until)


def _first_ids(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(nsmallest(MOST_UNUSED, (row[EVIDENCE_ID] for row in rows)))


def _group_numbers(labels: GroupArray | None, chosen: Sequence[int]) -> GroupArray:
    if labels is None:
        return np.array([-1] * len(chosen))
    chosen_labels = labels[chosen].tolist()
    counts = Counter(chosen_labels)
    return np.array(numbered([label if counts[label] > 1 else None for label in chosen_labels]))


def _read_only(array: NDArray[Kind]) -> NDArray[Kind]:
    array.flags.writeable = False
    return array
