"""Items that repeat each other.

Two items are copies if they come from one report, have the same text and claim, or have texts of
nearly the same direction; so are copies of copies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from lpf.errors import ConfigError
from lpf.items import GroupArray
from lpf.types import Float32Array

# Between "the same news in similar words" and "another year": see docs/retrieval.md.
DEFAULT_SIMILARITY = 0.97
_UNSHARED = (1 << 18) - 1  # multiplications
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
