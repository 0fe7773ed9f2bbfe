"""The tree of RFC 6962 once more, by way of a counter: ``levels[h]`` holds the root of a complete
subtree of 2**h leaves that waits for its right neighbour."""

from __future__ import annotations

import hashlib

from lpf.ledger.formats import TILE_HEIGHT


def leaf_of(body: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + body).digest()


class CountingTree:
    """Memory grows with the logarithm of the leaves, so any ledger can be streamed through it."""

    def __init__(self) -> None:
        self.size = 0
        self._levels: list[bytes | None] = []

    def add(self, leaf: bytes) -> list[tuple[int, int, bytes]]:
        """Adds a leaf and returns what that completes among the stored tiles' hashes, as (level,
        index within that level, hash); the leaf itself is the first."""
        carried, height = leaf, 0
        entries = [(0, self.size, leaf)]
        while height < len(self._levels) and (left := self._levels[height]) is not None:
            self._levels[height] = None
            carried = hashlib.sha256(b"\x01" + left + carried).digest()
            height += 1
            if height % TILE_HEIGHT == 0:
                entries.append((height // TILE_HEIGHT, self.size >> height, carried))
        self._levels += [None] * (height + 1 - len(self._levels))
        self._levels[height] = carried
        self.size += 1
        return entries

    def root(self) -> bytes:
        root: bytes | None = None
        for waiting in self._levels:
            if waiting is not None:
                joined = b"\x01" + waiting + root if root is not None else None
                root = waiting if joined is None else hashlib.sha256(joined).digest()
        return hashlib.sha256().digest() if root is None else root
