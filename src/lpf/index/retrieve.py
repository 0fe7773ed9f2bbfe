"""Which items answer a question: looked up, filtered, freed of crowding copies, best first."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from lpf.index.candidates import CREDIBILITY, EVIDENCE_ID, TIMESTAMP, VECTOR
from lpf.index.choice import Choice, Counts, Span
from lpf.index.copies import DEFAULT_SIMILARITY, checked_similarity
from lpf.index.features import FeatureSource
from lpf.index.ranking import Ranker, RankingConfig
from lpf.index.retrieved import Retrieved
from lpf.reading.reader import Reader
from lpf.storage.database import Row
from lpf.storage.evidence import EvidenceStore
from lpf.storage.remembered import Remembered
from lpf.types import Float32Array

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
        self._remembered: Remembered[_Asked, Choice] = Remembered(MOST_REMEMBERED)
        store.forget_in(self._remembered)

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
