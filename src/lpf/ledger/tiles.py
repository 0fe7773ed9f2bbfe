"""Stored hashes of the tree, 256 per row ("tile"), so that a proof reads only a few rows.

Tile ``n`` of level 0 has the hashes of records 256n+1 to 256n+256 and is written once, together
with the last of them. A tile of a higher level has the roots of up to 256 tiles of the level below
and grows with each of them. Leaves that are not in a tile yet are read from the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lpf.errors import LedgerBrokenError
from lpf.ledger import statements
from lpf.ledger.formats import HASH_BYTES, TILE_HEIGHT, TILE_WIDTH
from lpf.ledger.identity import broken, require_bytes, require_leaf
from lpf.ledger.merkle import fold
from lpf.storage.database import Connection, Database, Row
from lpf.storage.statements import Prepared

Read = Callable[[Prepared, Sequence[Any]], list[Row]]


class StoredTree:
    """Roots of complete subtrees of the first ``size`` records. Caches the tiles it has read, so
    use one object per proof."""

    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self._size = size
        self._tiles: dict[tuple[int, int], list[bytes]] = {}

    def subtree(self, height: int, index: int) -> bytes:
        level, within = divmod(height, TILE_HEIGHT)
        number, offset = divmod(index << within, TILE_WIDTH)
        hashes = self._tile(level, number)[offset : offset + (1 << within)]
        if len(hashes) != 1 << within:
            raise _hashes_missing(level, number)
        return fold(hashes)

    def _tile(self, level: int, number: int) -> list[bytes]:
        if (level, number) not in self._tiles:
            self._tiles[level, number] = self._fetch(level, number)
        return self._tiles[level, number]

    def _fetch(self, level: int, number: int) -> list[bytes]:
        first = number * TILE_WIDTH + 1
        last = first + TILE_WIDTH - 1
        if level == 0 and last > self._size:
            rows = self._read(statements.LEAVES, (first, self._size))
            return leaves_of(rows, first)
        rows = self._read(statements.TILE, (level, number))
        if not rows:
            raise _hashes_missing(level, number)
        return _hashes(level, number, rows[0][0])


def write_completed_tiles(
    database: Database, connection: Connection, before: int, after: int
) -> None:
    """Part of the transaction in which the ledger grew from ``before`` to ``after`` records."""
    for number in range(before // TILE_WIDTH, after // TILE_WIDTH):
        first = number * TILE_WIDTH + 1
        cursor = database.run(connection, statements.LEAVES, (first, first + TILE_WIDTH - 1))
        leaves = leaves_of(cursor.fetchall(), first)
        _put(database, connection, 0, number, leaves)
        _add_to_parents(database, connection, number, fold(leaves))


def _add_to_parents(database: Database, connection: Connection, index: int, root: bytes) -> None:
    """Add the root of tile ``index`` to the tile above it, and so on while tiles become full."""
    level, offset = 0, TILE_WIDTH - 1
    while offset == TILE_WIDTH - 1:
        level += 1
        index, offset = divmod(index, TILE_WIDTH)
        hashes = [*_first_hashes(database, connection, level, index, offset), root]
        _put(database, connection, level, index, hashes)
        root = fold(hashes) if offset == TILE_WIDTH - 1 else b""


def _first_hashes(
    database: Database, connection: Connection, level: int, number: int, count: int
) -> list[bytes]:
    """The first ``count`` hashes of a tile."""
    if count == 0:
        return []
    row = database.run(connection, statements.TILE, (level, number)).fetchone()
    hashes = _hashes(level, number, row[0])[:count] if row else []
    if len(hashes) != count:
        raise _hashes_missing(level, number)
    return hashes


def _put(
    database: Database, connection: Connection, level: int, number: int, hashes: list[bytes]
) -> None:
    row = (level, number, b"".join(hashes))
    database.run(connection, statements.PUT_TILE.of(database), row)


def leaves_of(rows: Sequence[Row], first: int) -> list[bytes]:
    """Leaf hashes from rows of ``statements.LEAVES``, which start at record ``first``."""
    return [require_leaf(seq, leaf) for seq, (leaf,) in enumerate(rows, first)]


def _hashes(level: int, number: int, value: object) -> list[bytes]:
    hashes = require_bytes(f"tile {number} of level {level}", "content", value)
    return [hashes[i : i + HASH_BYTES] for i in range(0, len(hashes), HASH_BYTES)]


def _hashes_missing(level: int, number: int) -> LedgerBrokenError:
    return broken(f"tile {number} of level {level}", "hashes are missing")
