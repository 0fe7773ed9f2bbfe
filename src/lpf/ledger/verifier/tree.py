"""The tree of RFC 6962 once more, by way of a counter: ``levels[h]`` holds the root of a complete
subtree of 2**h leaves that waits for its right neighbour.

The stored tiles against those that follow from the records: each byte, and each row.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from hashlib import sha256

from lpf.ledger.formats import HASH_BYTES, TILE_HEIGHT, TILE_WIDTH
from lpf.ledger.verifier.findings import Findings
from lpf.ledger.verifier.sources import RawTile, Source


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


_FULL = TILE_WIDTH * HASH_BYTES


class TileCheck:
    """Keeps a quarter of a byte a record: of leaves only the digest of each full tile."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._filling = bytearray()
        self._leaf_digests = bytearray()
        self._above: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._next: defaultdict[int, int] = defaultdict(int)  # number of the tile due, by level

    def add(self, entries: list[tuple[int, int, bytes]]) -> None:
        """What one more record completes, as (level, index within that level, hash)."""
        for level, _, entry in entries:
            (self._above[level] if level else self._filling).extend(entry)
        if len(self._filling) == _FULL:
            self._leaf_digests += sha256(self._filling).digest()
            self._filling.clear()

    def compare(self, source: Source, size: int) -> None:
        """With all rows of the source, whose first ``size`` records were added."""
        for tile in source.tiles():
            self._report_missing(tile.level, tile.number)
            if not (self._fits(tile) or self._has_grown(tile, source.last_number())):
                self._findings.add_each(
                    "tile",
                    "hashes",
                    tile.where,
                    f"its {len(tile.hashes)} bytes do not follow from the {size} records",
                )
        for level in (0, *self._above):
            self._report_missing(level, self._count(level))

    def _report_missing(self, level: int, number: int) -> None:
        """All tiles of the level that come before ``number`` and were not seen."""
        for missing in range(self._next[level], min(number, self._count(level))):
            self._findings.add(f"tile {missing} of level {level}", "is missing")
        self._next[level] = max(self._next[level], number + 1)

    def _count(self, level: int) -> int:
        """How many tiles of the level follow from the records."""
        if level == 0:
            return len(self._leaf_digests) // HASH_BYTES
        return -(-len(self._above.get(level, b"")) // _FULL)

    def _fits(self, tile: RawTile) -> bool:
        if not 0 <= tile.number < self._count(tile.level):
            return False
        if tile.level == 0:
            start = tile.number * HASH_BYTES
            digest = self._leaf_digests[start : start + HASH_BYTES]
            return sha256(tile.hashes).digest() == digest
        return tile.hashes == self._expected(tile)

    def _has_grown(self, tile: RawTile, size_now: int) -> bool:
        """Whether records that came while the others were read explain what is more here."""
        full_leaves = tile.level == 0 and tile.number < self._count(0)
        known = b"" if tile.level == 0 else self._expected(tile)
        fits = tile.hashes.startswith(known) and len(tile.hashes) % HASH_BYTES == 0
        return fits and not full_leaves and len(known) < len(tile.hashes) <= _length(tile, size_now)

    def _expected(self, tile: RawTile) -> bytes:
        start = tile.number * _FULL
        return bytes(self._above.get(tile.level, bytearray())[start : start + _FULL])


def _length(tile: RawTile, size: int) -> int:
    """In bytes, among ``size`` records. Leaves are written when their tile is full."""
    if tile.level < 0 or tile.number < 0:
        return 0
    hashes = (size >> TILE_HEIGHT * tile.level) - tile.number * TILE_WIDTH
    least = 1 if tile.level else TILE_WIDTH
    return min(hashes, TILE_WIDTH) * HASH_BYTES if hashes >= least else 0
