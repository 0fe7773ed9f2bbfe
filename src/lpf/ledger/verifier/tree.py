"""The verifier's own Merkle tree (RFC 6962), and the check of stored tiles against it."""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256

from lpf.ledger.formats import HASH_BYTES, TILE_HEIGHT, TILE_WIDTH
from lpf.ledger.verifier.findings import Findings
from lpf.ledger.verifier.sources import RawTile, RecordSource

_FULL_TILE = TILE_WIDTH * HASH_BYTES


def leaf_of(body: bytes) -> bytes:
    """The leaf hash of a record."""
    return sha256(b"\x00" + body).digest()


class CountingTree:
    """A tree that leaves are streamed through; memory grows with the logarithm of their number.

    Works like a binary counter: ``_levels[h]`` is the root of a complete subtree of 2**h leaves
    that has no right neighbour yet.
    """

    def __init__(self) -> None:
        self.size = 0
        self._levels: list[bytes | None] = []

    def add(self, leaf: bytes) -> list[tuple[int, int, bytes]]:
        """Add a leaf. Return the tile hashes that this completes as (level, index within the level,
        hash), starting with the leaf itself."""
        carried, height = leaf, 0
        entries = [(0, self.size, leaf)]
        while height < len(self._levels) and (left := self._levels[height]) is not None:
            self._levels[height] = None
            carried = sha256(b"\x01" + left + carried).digest()
            height += 1
            if height % TILE_HEIGHT == 0:
                entries.append((height // TILE_HEIGHT, self.size >> height, carried))
        self._levels += [None] * (height + 1 - len(self._levels))
        self._levels[height] = carried
        self.size += 1
        return entries

    def root(self) -> bytes:
        root: bytes | None = None
        for subtree in self._levels:
            if subtree is not None:
                root = subtree if root is None else sha256(b"\x01" + subtree + root).digest()
        return sha256().digest() if root is None else root


class TileCheck:
    """Compares every stored tile with the tree. Needs a quarter of a byte per record: of the leaves
    only a digest of each full tile is stored."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._filling = bytearray()
        self._leaf_digests = bytearray()
        self._above: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._next: defaultdict[int, int] = defaultdict(int)  # number of the next tile, by level

    def add(self, entries: list[tuple[int, int, bytes]]) -> None:
        """Add what ``CountingTree.add`` returned for a record."""
        for level, _, entry in entries:
            (self._above[level] if level else self._filling).extend(entry)
        if len(self._filling) == _FULL_TILE:
            self._leaf_digests += sha256(self._filling).digest()
            self._filling.clear()

    def compare(self, source: RecordSource, size: int) -> None:
        """Compare all tiles of the source after its first ``size`` records were added."""
        for tile in source.tiles():
            self._report_missing(tile.level, tile.number)
            if not (self._matches(tile) or self._has_grown(tile, source.last_number())):
                self._findings.add_each(
                    "tile",
                    "hashes",
                    tile.where,
                    f"its {len(tile.hashes)} bytes do not follow from the {size} records",
                )
        for level in (0, *self._above):
            self._report_missing(level, self._count(level))

    def _report_missing(self, level: int, number: int) -> None:
        """Add a finding for each tile of the level before ``number`` that was not seen."""
        for missing in range(self._next[level], min(number, self._count(level))):
            self._findings.add(f"tile {missing} of level {level}", "is missing")
        self._next[level] = max(self._next[level], number + 1)

    def _count(self, level: int) -> int:
        """The number of tiles of the level according to the records."""
        if level == 0:
            return len(self._leaf_digests) // HASH_BYTES
        return -(-len(self._above.get(level, b"")) // _FULL_TILE)

    def _matches(self, tile: RawTile) -> bool:
        if not 0 <= tile.number < self._count(tile.level):
            return False
        if tile.level == 0:
            start = tile.number * HASH_BYTES
            digest = self._leaf_digests[start : start + HASH_BYTES]
            return sha256(tile.hashes).digest() == digest
        return tile.hashes == self._expected(tile)

    def _has_grown(self, tile: RawTile, size_now: int) -> bool:
        """Return True if the tile differs only by records appended during the verification."""
        full_leaves = tile.level == 0 and tile.number < self._count(0)
        known = b"" if tile.level == 0 else self._expected(tile)
        extends = tile.hashes.startswith(known) and len(tile.hashes) % HASH_BYTES == 0
        return (
            extends
            and not full_leaves
            and len(known) < len(tile.hashes) <= _max_length(tile, size_now)
        )

    def _expected(self, tile: RawTile) -> bytes:
        start = tile.number * _FULL_TILE
        return bytes(self._above.get(tile.level, bytearray())[start : start + _FULL_TILE])


def _max_length(tile: RawTile, size: int) -> int:
    """Length of the tile in bytes with ``size`` records. Level 0 has only full tiles."""
    if tile.level < 0 or tile.number < 0:
        return 0
    hashes = (size >> TILE_HEIGHT * tile.level) - tile.number * TILE_WIDTH
    least = 1 if tile.level else TILE_WIDTH
    return min(hashes, TILE_WIDTH) * HASH_BYTES if hashes >= least else 0
