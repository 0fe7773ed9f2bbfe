"""Which items answer a question: looked up, filtered, freed of crowding copies, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lpf.index.candidates import (
    COMMITMENT,
    CONTENT_KEY,
    CREDIBILITY,
    EVIDENCE_ID,
    REPORT_ID,
    ROW_ID,
    SOURCE,
    TIMESTAMP,
    VECTOR,
)
from lpf.index.copies import (
    DEFAULT_SIMILARITY,
    GroupArray,
    checked_similarity,
    copy_labels,
    cut,
    numbered,
)
from lpf.index.features import STORED, FeatureSource
from lpf.index.ranking import Ranker, RankingConfig, best_first, relevance_to
from lpf.reading.reader import Reader
from lpf.storage.database import Row
from lpf.storage.evidence import EvidenceStore
from lpf.types import Float32Array, FloatArray

# Positions kept, best first; scores, labels of copies and features of all that could be.
_Picked: TypeAlias = tuple[list[int], list[float], GroupArray | None, Float32Array]
_by_evidence_id = itemgetter(EVIDENCE_ID)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The items of one question, best first: K of ``considered`` that were found.

    ``features`` are [K, width]; ``credibility`` [K] is NaN where unknown; ``timestamps`` are in
    microseconds. ``groups`` [K] number copies among these items, -1 for an item without any;
    ``sources`` [K] number sources, -1 for unknown. ``below_credibility`` were left out by the
    minimum, ``dated_later`` by their dates, ``cut`` by top_k.
    """

    row_ids: tuple[int, ...]
    ids: tuple[str, ...]
    content_keys: tuple[bytes, ...]
    commitments: tuple[bytes, ...]
    features: Float32Array
    credibility: FloatArray
    timestamps: tuple[int | None, ...]
    groups: GroupArray
    sources: NDArray[np.int64]
    scores: FloatArray
    considered: int
    below_credibility: int
    dated_later: int
    cut: int

    def __len__(self) -> int:
        return len(self.ids)


class _Counts(NamedTuple):
    considered: int
    below_credibility: int
    dated_later: int


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
        found = self.source.store.candidates(entity_id, predicate, self.source.number)
        known = [row for row in found if (dated := row[TIMESTAMP]) is None or dated <= as_of]
        rows = [
            row
            for row in known
            if (credible := row[CREDIBILITY]) is None or credible >= min_credibility
        ]
        counts = _Counts(len(found), len(known) - len(rows), len(found) - len(known))
        if None in [row[VECTOR] for row in rows]:
            rows = self.source.completed(rows)
        if not rows:
            return self._nothing(counts)
        # One order for all that follows, so that sums of floats do not hang on that of ingestion.
        rows.sort(key=_by_evidence_id)
        picked = self._picked(rows, top_k, as_of, query_vector)
        return _gathered(rows, picked, counts)

    def _picked(
        self, rows: list[Row], top_k: int, as_of: int, query: Float32Array | None
    ) -> _Picked:
        columns = list(zip(*rows, strict=True))
        timestamps = columns[TIMESTAMP]
        features = np.frombuffer(b"".join(columns[VECTOR]), STORED).reshape(
            len(rows), self.source.width
        )
        texts = self.source.texts(features)
        relevance = None if query is None else self._relevance(texts, query)
        scores = self._ranker.scores(columns[CREDIBILITY], timestamps, as_of, relevance)
        labels = copy_labels(columns[CONTENT_KEY], columns[REPORT_ID], texts, self._copy_similarity)
        positions = cut(best_first(scores, timestamps), labels, top_k)
        return positions, scores, labels, features

    def _relevance(self, texts: Float32Array, query: Float32Array) -> list[float]:
        return relevance_to(texts, self.source.checked_query(query))

    def _nothing(self, counts: _Counts) -> Retrieved:
        features = np.empty((0, self.source.width), np.float32)
        none, numbers = np.empty(0), np.empty(0, np.int64)
        return Retrieved((), (), (), (), features, none, (), numbers, numbers, none, *counts, 0)


def _gathered(rows: list[Row], picked: _Picked, counts: _Counts) -> Retrieved:
    positions, scores, labels, features = picked
    columns = list(zip(*[rows[position] for position in positions], strict=True))
    return Retrieved(
        columns[ROW_ID],
        columns[EVIDENCE_ID],
        columns[CONTENT_KEY],
        columns[COMMITMENT],
        features.take(positions, axis=0),
        np.array(columns[CREDIBILITY], np.float64),  # None becomes NaN
        columns[TIMESTAMP],
        _numbered_groups(labels, positions),
        np.array(numbered(columns[SOURCE])),
        np.array([scores[position] for position in positions]),
        *counts,
        len(rows) - len(positions),
    )


def _numbered_groups(labels: GroupArray | None, positions: Sequence[int]) -> GroupArray:
    if labels is None:
        return np.array([-1] * len(positions))
    chosen = labels[positions].tolist()
    counts = Counter(chosen)
    return np.array(numbered([label if counts[label] > 1 else None for label in chosen]))
