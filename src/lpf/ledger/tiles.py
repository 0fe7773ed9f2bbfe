"""Interior hashes of the tree, 256 to a row, so that a proof reads a handful of rows.

Tile ``n`` of level 0 holds the hashes of records 256n+1 to 256n+256 and is written once, when the
last of them is. A tile of a higher level holds the roots of the tiles below it and grows by one
with each of them. What no tile holds yet is read from the records' own rows.
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
    """Roots of complete subtrees among the first ``size`` records. Keeps the tiles it read, so it
    is meant for one proof or one catching up."""

    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self._size = size
        self._tiles: dict[tuple[int, int], list[bytes]] = {}

    def subtree(self, height: int, index: int) -> bytes:
        level, within = divmod(height, TILE_HEIGHT)
        number, offset = divmod(index << within, TILE_WIDTH)
        hashes = self._tile(level, number)[offset : offset + (1 << within)]
        if len(hashes) != 1 << within:
            raise _lacking(level, number)
        return fold(hashes)

    def _tile(self, level: int, number: int) -> list[bytes]:
        if (level, number) not in self._tiles:
            self._tiles[level, number] = self._fetched(level, number)
        return self._tiles[level, number]

    def _fetched(self, level: int, number: int) -> list[bytes]:
        first = number * TILE_WIDTH + 1
        last = first + TILE_WIDTH - 1
        if level == 0 and last > self._size:
            rows = self._read(statements.LEAVES, (first, self._size))
            return leaves_of(rows, first)
        rows = self._read(statements.TILE, (level, number))
        if not rows:
            raise _lacking(level, number)
        return _hashes(level, number, rows[0][0])


def write_completed_tiles(
    database: Database, connection: Connection, before: int, after: int
) -> None:
    """Part of the transaction that took the ledger from ``before`` to ``after`` records."""
    for number in range(before // TILE_WIDTH, after // TILE_WIDTH):
        first = number * TILE_WIDTH + 1
        found = database.run(connection, statements.LEAVES, (first, first + TILE_WIDTH - 1))
        leaves = leaves_of(found.fetchall(), first)
        _put(database, connection, 0, number, leaves)
        _carry_up(database, connection, number, fold(leaves))


def _carry_up(database: Database, connection: Connection, index: int, root: bytes) -> None:
    """Adds ``root`` of the tile ``index`` to the tile above it, and so on while tiles fill up."""
    level, offset = 0, TILE_WIDTH - 1
    while offset == TILE_WIDTH - 1:
        level += 1
        index, offset = divmod(index, TILE_WIDTH)
        hashes = [*_grown(database, connection, level, index, offset), root]
        _put(database, connection, level, index, hashes)
        root = fold(hashes) if offset == TILE_WIDTH - 1 else b""


def _grown(
    database: Database, connection: Connection, level: int, number: int, count: int
) -> list[bytes]:
    """The first ``count`` hashes of a tile that is growing."""
    if count == 0:
        return []
    row = database.run(connection, statements.TILE, (level, number)).fetchone()
    hashes = _hashes(level, number, row[0])[:count] if row else []
    if len(hashes) != count:
        raise _lacking(level, number)
    return hashes


def _put(
    database: Database, connection: Connection, level: int, number: int, hashes: list[bytes]
) -> None:
    row = (level, number, b"".join(hashes))
    database.run(connection, statements.PUT_TILE.of(database), row)


def leaves_of(rows: Sequence[Row], first: int) -> list[bytes]:
    """What ``statements.LEAVES`` found from record ``first`` on."""
    return [require_leaf(seq, leaf) for seq, (leaf,) in enumerate(rows, first)]


def _hashes(level: int, number: int, value: object) -> list[bytes]:
    hashes = require_bytes(f"tile {number} of level {level}", "content", value)
    return [hashes[i : i + HASH_BYTES] for i in range(0, len(hashes), HASH_BYTES)]


def _lacking(level: int, number: int) -> LedgerBrokenError:
    return broken(f"tile {number} of level {level}", "hashes are missing")
