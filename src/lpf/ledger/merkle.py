"""The Merkle tree of RFC 6962 over the bytes of the records, for the writer and for proofs.

The complete subtree (``height``, ``index``) has the leaves from index * 2**height up to but not
including (index + 1) * 2**height, counted from 0. Its root never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

EMPTY_ROOT = sha256().digest()


def leaf_hash(body: bytes) -> bytes:
    return sha256(b"\x00" + body).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def fold(hashes: Sequence[bytes]) -> bytes:
    """The root over hashes, whose number is a power of two."""
    while len(hashes) > 1:
        hashes = [node_hash(*hashes[i : i + 2]) for i in range(0, len(hashes), 2)]
    return hashes[0]


class Subtrees(Protocol):
    """A source of roots of complete subtrees."""

    def subtree(self, height: int, index: int) -> bytes: ...


@dataclass
class Frontier:
    """What is needed to append to a tree: the roots of its complete subtrees, largest first."""

    size: int = 0
    peaks: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, source: Subtrees, size: int) -> Frontier:
        heights = [height for height in reversed(range(size.bit_length())) if size >> height & 1]
        # The leaves to the left of a set bit's subtree are those of all higher bits.
        peaks = [source.subtree(height, (size >> height) - 1) for height in heights]
        return cls(size, peaks)

    def append(self, leaf: bytes) -> None:
        below = self.size
        while below & 1:
            leaf = node_hash(self.peaks.pop(), leaf)
            below >>= 1
        self.peaks.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        if not self.peaks:
            return EMPTY_ROOT
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node_hash(peak, root)
        return root

    def copy(self) -> Frontier:
        return Frontier(self.size, self.peaks.copy())


def root_of(source: Subtrees, start: int, stop: int) -> bytes:
    """The root over the leaves from ``start`` to ``stop``, which must be a subtree of the tree."""
    size = stop - start
    if size == 0:
        return EMPTY_ROOT
    if size & (size - 1) == 0:
        height = size.bit_length() - 1
        return source.subtree(height, start >> height)
    middle = start + _split(size)
    return node_hash(root_of(source, start, middle), root_of(source, middle, stop))


def inclusion_path(source: Subtrees, index: int, size: int, start: int = 0) -> list[bytes]:
    """PATH of RFC 6962, 2.1.1: the siblings from leaf ``index`` up to the root of ``size``."""
    if size - start == 1:
        return []
    middle = start + _split(size - start)
    if index < middle:
        return [*inclusion_path(source, index, middle, start), root_of(source, middle, size)]
    return [*inclusion_path(source, index, size, middle), root_of(source, start, middle)]


def consistency_path(source: Subtrees, first: int, second: int) -> list[bytes]:
    """PROOF of RFC 6962, 2.1.2: that the tree of ``second`` leaves extends that of ``first``.
    Requires 0 < first <= second."""
    return _subproof(source, first, 0, second, known=True)


def _subproof(source: Subtrees, first: int, start: int, stop: int, known: bool) -> list[bytes]:
    """``known`` is True if the root from start to first is the old root, which the checker has."""
    if first == stop:
        return [] if known else [root_of(source, start, stop)]
    middle = start + _split(stop - start)
    if first <= middle:
        left = _subproof(source, first, start, middle, known)
        return [*left, root_of(source, middle, stop)]
    right = _subproof(source, first, middle, stop, known=False)
    return [*right, root_of(source, start, middle)]


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << (size - 1).bit_length() - 1
