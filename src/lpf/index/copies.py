"""Items that repeat each other.

Two items are copies if they come from one report, have the same text and claim, or have texts of
nearly the same direction; so are copies of copies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.items import GroupArray
from lpf.types import Float32Array

# Between "the same news in similar words" and "another year": see docs/retrieval.md.
DEFAULT_SIMILARITY = 0.97
_UNSHARED = (1 << 18) - 1  # multiplications
# Among many items, groups of copies are followed through at most this many copies of copies.
MOST_FOLLOWED = 256
ROWS_TOGETHER = 16
BLOCK_ROWS = 512  # rows compared with all others at once: 10 MB for 5,000 items


def checked_similarity(similarity: float | None) -> float | None:
    """The threshold; None (also for 0) means no comparison of texts. ConfigError outside [0, 1]."""
    if similarity is not None and not 0.0 <= similarity <= 1.0:
        raise ConfigError(
            f"index.copy_similarity: must lie in (0, 1], or be 0 for off, got {similarity!r}."
        )
    return similarity or None


def copy_labels(
    content_keys: Sequence[bytes],
    report_ids: Sequence[str | None],
    texts: Float32Array,
    similarity: float | None,
) -> GroupArray | None:
    """One number per item, the same for copies: the position of the group's first item. None if
    no item is a copy of another."""
    groups = [*_repeated(content_keys), *_repeated(report_ids)]
    close = None if similarity is None else _close_texts(texts, similarity)
    if not groups and close is None:
        return None
    labels = np.arange(len(texts))
    for members in groups:
        _join(labels, np.array(members))
    for near in close or ():
        _join(labels, near)
    return labels if (labels != np.arange(len(texts))).any() else None


class GroupsOnDemand:
    """Groups of copies among many items, found only as far as the choice of the best needs them.

    ``copy_labels`` compares all texts with each other. Here each chosen item is compared with all
    others, so the work grows with the number of items times ``top_k``. The groups are the same,
    unless the copies of the chosen items have more than MOST_FOLLOWED copies in turn: beyond that,
    texts are compared with the chosen items only.
    """

    def __init__(
        self,
        content_keys: Sequence[bytes],
        report_ids: Sequence[str | None],
        texts: Float32Array,
        similarity: float,
    ) -> None:
        self._texts = np.ascontiguousarray(texts)
        lengths = np.sqrt(np.einsum("ij,ij->i", self._texts, self._texts))
        lengths[lengths == 0] = np.inf  # a row of zeros is never a copy
        self._lengths, self._similarity = lengths, similarity
        self._mates: dict[int, list[GroupArray]] = {}
        for members in [*_repeated(content_keys), *_repeated(report_ids)]:
            together = np.array(members)
            for member in members:
                self._mates.setdefault(member, []).append(together)

    def labels(self, order: Sequence[int], top_k: int) -> GroupArray:
        """Like ``copy_labels``, for choosing the ``top_k`` best of ``order``: copies of items that
        come after those are not looked for."""
        labels = np.full(len(self._texts), -1, np.int64)
        groups, left = 0, MOST_FOLLOWED
        close: dict[int, NDArray[np.bool_]] = {}
        for rank, place in enumerate(order):
            if labels[place] >= 0:
                continue
            groups += 1
            if groups == top_k:
                break
            if place not in close:
                upcoming = (other for other in islice(order, rank, None) if labels[other] < 0)
                rows = list(islice(upcoming, min(ROWS_TOGETHER, top_k - groups)))
                close = dict(zip(rows, self._close(rows), strict=True))
            left -= self._label(place, close[place], labels, left)
        return np.where(labels < 0, np.arange(len(labels)), labels)

    def _label(self, first: int, close: NDArray[np.bool_], labels: GroupArray, most: int) -> int:
        """Label the group of ``first``; return how many copies were compared with all items."""
        labels[first] = first
        new = self._add(np.flatnonzero(close), [first], labels, first)
        followed = 0
        while new and bool((labels < 0).any()):
            rows = new[: min(ROWS_TOGETHER, most - followed)]
            reached = np.empty(0, np.int64)
            if rows:
                reached = np.flatnonzero(self._close(rows).any(axis=0))
                followed += len(rows)
            rest = new[len(rows) :] if rows else []
            new = rest + self._add(reached, rows or new, labels, first)
        return followed

    def _add(
        self, reached: GroupArray, of: Sequence[int], labels: GroupArray, first: int
    ) -> list[int]:
        """Label the rows reached and the mates of ``of``; return those that were not yet."""
        mates = [group for place in of for group in self._mates.get(place, ())]
        both = np.unique(np.concatenate([reached, *mates])) if mates else reached
        new = both[labels[both] < 0]
        labels[new] = first
        return [int(place) for place in new]

    def _close(self, rows: Sequence[int]) -> NDArray[np.bool_]:
        """Which items are near copies of each row, [R, N]."""
        products = self._texts[rows] @ self._texts.T
        least = self._similarity * self._lengths[rows][:, None] * self._lengths
        return np.asarray(products >= least)


def copy_groups(
    content_keys: Sequence[bytes],
    report_ids: Sequence[str | None],
    texts: Float32Array,
    similarity: float | None,
) -> GroupArray:
    """Like ``copy_labels``, with -1 for an item without copies."""
    labels = copy_labels(content_keys, report_ids, texts, similarity)
    if labels is None:
        return np.full(len(texts), -1, np.int64)
    alone = np.bincount(labels, minlength=len(labels))[labels] == 1
    return np.where(alone, -1, labels).astype(np.int64)


def numbered(labels: Sequence[Hashable | None]) -> list[int]:
    """Labels as numbers from 0 in the order they appear; None as -1."""
    numbers: dict[Hashable, int] = {}
    return [-1 if label is None else numbers.setdefault(label, len(numbers)) for label in labels]


def _repeated(keys: Sequence[Hashable | None]) -> list[list[int]]:
    """Positions of each key that occurs more than once; None does not count as a key."""
    if not any(keys) or len(set(keys)) == len(keys):
        return []
    places: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        if key is not None:
            places.setdefault(key, []).append(position)
    return [positions for positions in places.values() if len(positions) > 1]


def _close_texts(texts: Float32Array, similarity: float) -> Iterable[GroupArray] | None:
    """For each row that has copies, the rows whose cosine with it is at least ``similarity``,
    itself included; None if a quick test shows that there are none."""
    if len(texts) <= BLOCK_ROWS and _all_apart(texts, similarity):
        return None
    return _neighbours(texts, similarity)


def _all_apart(texts: Float32Array, similarity: float) -> bool:
    """Return True if all products are too small even for the shortest row's length. This decides
    rows of equal length, as readers give them, without normalising."""
    products = _products(texts)
    least = similarity * min(products.diagonal().tolist())
    return bool(np.count_nonzero(products >= least) <= len(texts))


def _products(texts: Float32Array) -> Float32Array:
    """All products of rows, [K, K], in blocks below the size from which OpenBLAS uses threads: on a
    busy machine its threads wait for each other far longer than they work."""
    # With a copy, NumPy does not use its routine for symmetric products, which is three times as
    # slow for a few rows.
    others = texts.copy().T
    rows = max(1, _UNSHARED // max(1, others.size))
    if rows >= len(texts):
        return np.asarray(texts.dot(others))
    blocks = [texts[start : start + rows].dot(others) for start in range(0, len(texts), rows)]
    return np.concatenate(blocks)


def _neighbours(texts: Float32Array, similarity: float) -> Iterable[GroupArray]:
    lengths = np.sqrt(np.einsum("ij,ij->i", texts, texts))
    lengths[lengths == 0] = np.inf  # a row of zeros is never a copy
    for start in range(0, len(texts), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        # Earlier rows have been compared with these already.
        close = texts[block] @ texts[start:].T >= (
            similarity * lengths[block, None] * lengths[start:]
        )
        for row in np.flatnonzero(np.count_nonzero(close, axis=1) > 1):
            yield start + np.flatnonzero(close[row])


def _join(labels: GroupArray, members: GroupArray) -> None:
    """Merges the groups of ``members``, in place. Labels are positions, so they can be indices."""
    joined_labels = labels[members]
    first = joined_labels.min()
    if (joined_labels != first).any():
        joined = np.zeros(len(labels), dtype=bool)
        joined[joined_labels] = True
        labels[joined[labels]] = first
