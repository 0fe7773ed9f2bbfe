"""All items that may answer a question, made ready to choose the best from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

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
from lpf.index.copies import GroupArray, copy_labels, cut, numbered
from lpf.index.features import STORED, FeatureSource
from lpf.index.ranking import Ranker, best_first, relevance_to
from lpf.index.retrieved import Retrieved
from lpf.storage.database import Row
from lpf.types import Float32Array, FloatArray

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
