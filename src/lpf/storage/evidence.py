"""Evidence and its vectors.

A row's number is given once and never again, so it can stand for the item everywhere. What was
erased leaves its id and the moment, nothing else.

Erasures that were begun: what must still be forgotten elsewhere, until it is.

An item's row goes first, and with it all that tells what caches and indexes hold of it. So the
same transaction notes that here: whoever is interrupted finds what is left to do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from sqlalchemy import bindparam, delete, insert, select, update

from lpf.errors import ConfigError, EvidenceError, UnknownEvidenceError
from lpf.storage import evidence_rows as statements
from lpf.storage.connections import Prepared, register_fork_reset
from lpf.storage.database import Connection, Database, Row
from lpf.storage.evidence_rows import (
    NewEvidence,
    RowNumbers,
    StoredEvidence,
    check_names,
    row_to_insert,
    stored,
    text_commitment,
    vector_bytes,
    vectors_of,
)
from lpf.storage.lookups import look_up, take_numbers
from lpf.storage.tables import erased_evidence, pending_erasures
from lpf.storage.values import iso, now_micros
from lpf.storage.versioned_cache import VersionedCache
from lpf.types import Float32Array


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """An item that is no longer in the store. ``row_id`` is what indexes know it by and
    ``content_key`` what caches do; zeros stand for a key that everybody has forgotten already."""

    evidence_id: str
    row_id: int
    content_key: bytes


_TOMBSTONE = Prepared(
    insert(erased_evidence).values(
        evidence_id=bindparam("evidence_id"), erased_at=bindparam("erased_at")
    ),
    "evidence_id",
    "erased_at",
)
_COLUMNS = tuple(pending_erasures.c.keys())
_BEGIN = Prepared(
    insert(pending_erasures).values({name: bindparam(name) for name in _COLUMNS}), *_COLUMNS
)
_PENDING = Prepared(
    select(
        pending_erasures.c.evidence_id, pending_erasures.c.row_id, pending_erasures.c.content_key
    ).order_by(pending_erasures.c.row_id)
)
_THIS = pending_erasures.c.evidence_id == bindparam("this")
_OVERWRITE = Prepared(
    update(pending_erasures).values(content_key=bindparam("content_key")).where(_THIS),
    "content_key",
    "this",
)
_DONE = Prepared(delete(pending_erasures).where(_THIS), "this")


def note_begun(
    database: Database, connection: Connection, gone: StoredEvidence, now: int
) -> PendingErasure:
    """Part of the transaction that removes the item."""
    evidence_id = gone.evidence.evidence_id
    database.run(connection, _TOMBSTONE, (evidence_id, now))
    database.run(connection, _BEGIN, (evidence_id, gone.row_id, gone.content_key, now))
    return PendingErasure(evidence_id, gone.row_id, gone.content_key)


def pending(database: Database) -> list[PendingErasure]:
    """In the order of ingestion."""
    return [PendingErasure(*row) for row in database.rows(_PENDING)]


def forget_keys(database: Database, items: Iterable[PendingErasure]) -> None:
    rows = [(bytes(len(item.content_key)), item.evidence_id) for item in items]
    with database.writing() as connection:
        database.run_many(connection, _OVERWRITE, rows)


def note_done(database: Database, evidence_ids: Iterable[str]) -> None:
    with database.writing() as connection:
        database.run_many(connection, _DONE, [(evidence_id,) for evidence_id in evidence_ids])


__all__ = [
    "EvidenceStore",
    "NewEvidence",
    "PendingErasure",
    "RowNumbers",
    "StoredEvidence",
    "text_commitment",
]

SERIES = "evidence"
VECTORS_AT_ONCE = 4096


class EvidenceStore:
    """All evidence of one store. Moments are in microseconds since 1970."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._readers: dict[str, tuple[int, int]] = {}
        self._memories: WeakSet[VersionedCache[Any, Any]] = WeakSet()
        self.reset_after_fork()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Called in the child of a fork too: the lock may be held by a thread that is not here."""
        self._memories_lock = threading.Lock()

    def reader_number(self, reader_id: str, width: int) -> int:
        """The small number that stands for a reader here. ConfigError where it is known with
        another width."""
        known = self._readers.get(reader_id)
        if known is None:
            known = self._readers[reader_id] = self._registered(reader_id, width)
        number, known_width = known
        if known_width != width:
            raise ConfigError(
                f"reader {reader_id!r}: has features of width {width}, this store knows it with "
                f"{known_width}. Nothing was read or written; a reader that reads otherwise "
                "needs another reader_id."
            )
        return number

    def version(self) -> int | None:
        """A number that moves with every change of evidence or vectors, whoever makes it. None
        within a transaction: what is read there may never come to be."""
        if self.database.is_writing:
            return None
        found = self.database.row(statements.VERSION)
        return None if found is None else int(found[0])

    def forget_in(self, memory: VersionedCache[Any, Any]) -> None:
        """``memory`` drops what it has whenever something is erased by this object. What another
        one erases, of this process or not, it notices by the version at its next look."""
        with self._memories_lock:
            self._memories.add(memory)

    def candidates(self, entity_id: str, predicate: str, reader: int) -> list[Row]:
        """What there is about a question, of any date, in the order of ingestion: (row_id,
        evidence_id, credibility, timestamp, source, report_id, content_key, commitment, vector).
        The vector is None where none was made yet."""
        return self.database.rows(statements.CANDIDATES, (reader, entity_id, predicate))

    def get(self, evidence_id: str) -> StoredEvidence:
        """UnknownEvidenceError where it is not here; it says when, if it was erased."""
        found = self.get_many([evidence_id]).get(evidence_id)
        if found is None:
            raise UnknownEvidenceError(self._why_unknown(evidence_id))
        return found

    def get_many(self, evidence_ids: Iterable[str]) -> dict[str, StoredEvidence]:
        """Those of the ids that are here."""
        rows = look_up(self.database, statements.BY_IDS, evidence_ids)
        return {item.evidence.evidence_id: item for item in map(stored, rows)}

    def by_rows(self, row_ids: Iterable[int]) -> list[StoredEvidence]:
        """Those of the rows that are here, in the order asked for."""
        wanted = [int(row_id) for row_id in row_ids]
        rows = look_up(self.database, statements.BY_ROWS, wanted)
        found = {item.row_id: item for item in map(stored, rows)}
        return [found[row_id] for row_id in wanted if row_id in found]

    def listed(
        self,
        entity_id: str | None = None,
        predicate: str | None = None,
        limit: int = 100,
        after_row: int = 0,
    ) -> list[StoredEvidence]:
        """A page of the store in the order of ingestion; the next starts after its last row."""
        given = {"entity_id": entity_id, "predicate": predicate}
        asked = {name: value for name, value in given.items() if value is not None}
        rows = self.database.rows(statements.listing(*asked), (*asked.values(), after_row, limit))
        return [stored(row) for row in rows]

    def count(self) -> int:
        return int(self._only(statements.COUNT)[0])

    def hashes(self, evidence_ids: Iterable[str]) -> dict[str, bytes]:
        """The content hashes of those ids that are here."""
        rows = look_up(self.database, statements.HASHES_BY_IDS, evidence_ids)
        return dict(rows)

    def ids_of_entities(self, entity_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        """(entity_id, evidence_id) of all items of some entities."""
        yield from look_up(self.database, statements.IDS_BY_ENTITIES, entity_ids)

    def known_contents(self, content_hashes: Iterable[bytes]) -> set[bytes]:
        """Those of the content hashes that some item has, under whatever id."""
        return {found for (found,) in look_up(self.database, statements.BY_CONTENT, content_hashes)}

    def erased(self, evidence_ids: Iterable[str]) -> dict[str, int]:
        """When those of the ids that were erased were erased."""
        rows = look_up(self.database, statements.ERASED_BY_IDS, evidence_ids)
        return dict(rows)

    def add(
        self, items: Sequence[NewEvidence], features: Float32Array | None, reader: int | None
    ) -> None:
        """Adds all items, with their vectors [N, width] where given, or none: EvidenceError where
        an id is taken or was erased, a name is empty or has blanks around it, or the content of a
        numbered item is here already."""
        check_names(items)
        vectors = self._vectors_to_add(len(items), features, reader)
        now = now_micros()
        with self.database.writing() as connection:
            # Taking numbers holds back other writers of evidence, so what is free now stays so.
            numbers = take_numbers(self.database, connection, SERIES, len(items))
            self._refuse_taken([item.evidence.evidence_id for item in items])
            self._refuse_known([item for item in items if item.numbered])
            rows = [row_to_insert(*numbered, now) for numbered in zip(numbers, items, strict=True)]
            self.database.run_many(connection, statements.INSERT, rows)
            if reader is not None:
                self._put_vectors(connection, reader, dict(zip(numbers, vectors, strict=True)))

    def missing_features(self, reader: int, limit: int, after_row: int = 0) -> list[StoredEvidence]:
        """Items that have no vector of this reader, in order; ``after_row`` goes on from there."""
        rows = self.database.rows(statements.MISSING, (reader, after_row, limit))
        return [stored(row) for row in rows]

    def put_features(self, reader: int, row_ids: Sequence[int], features: Float32Array) -> None:
        """Adds vectors of items that are here. Those that have one keep it; rows that were erased
        get none."""
        vectors = vector_bytes(features, len(row_ids), self._width(reader))
        by_row = dict(zip(map(int, row_ids), vectors, strict=True))
        with self.database.writing() as connection:
            self._hold_back_writers(connection)
            lacking = look_up(self.database, statements.ROWS_WITHOUT_VECTOR, by_row, reader)
            self._put_vectors(connection, reader, {row: by_row[row] for (row,) in lacking})

    def erase(self, evidence_id: str) -> PendingErasure:
        """Removes an item and its vectors and returns what others know it by. That they forget
        it, and the files of the store hold nothing of it any more, is up to ``ingest.erasure``;
        until then it is one of ``pending_erasures``."""
        with self.database.writing() as connection:
            self._hold_back_writers(connection)
            gone = self.get(evidence_id)
            for (reader,) in self.database.rows(statements.READERS_OF_ROW, (gone.row_id,)):
                self._count_vectors(connection, reader, -1)
            self.database.run(connection, statements.DELETE_FEATURES, (gone.row_id,))
            self.database.run(connection, statements.DELETE, (gone.row_id,))
            begun = note_begun(self.database, connection, gone, now_micros())
            # Here, because once this is committed nothing may fail any more.
            (version,) = self.database.run(connection, statements.VERSION).fetchone()
        self._forget_in_memories(version)
        return begun

    def pending_erasures(self) -> list[PendingErasure]:
        """Items that were erased from the store and perhaps not yet elsewhere."""
        return pending(self.database)

    def forget_keys(self, items: Iterable[PendingErasure]) -> None:
        """Overwrites the content keys of pending erasures, once nobody needs them any more: they
        are hashes without a salt, so that a text could be guessed by them."""
        forget_keys(self.database, items)

    def erasure_done(self, evidence_ids: Iterable[str]) -> None:
        """Nothing is left to do for these. Their ids stay taken."""
        note_done(self.database, evidence_ids)

    def vectors(self, reader: int) -> Iterator[tuple[RowNumbers, Float32Array]]:
        """All vectors of a reader, of one consistent state: row numbers [N] and [N, width], chunk
        by chunk in the order of the rows."""
        width = self._width(reader)
        for rows in self.database.stream(statements.VECTORS, (reader, 0), VECTORS_AT_ONCE):
            yield vectors_of(rows, width)

    def vectors_after(self, reader: int, row_id: int) -> tuple[RowNumbers, Float32Array]:
        """The vectors of rows with a higher number."""
        rows = self.database.rows(statements.VECTORS, (reader, row_id))
        return vectors_of(rows, self._width(reader))

    def state(self, reader: int) -> tuple[int, int, int]:
        """How many vectors there are, the highest row that has one, and how many items were ever
        erased: an index made at an equal state holds the same vectors."""
        count, highest, erased = self._only(statements.STATE, (_counter(reader), reader))
        return count or 0, highest or 0, erased

    def _forget_in_memories(self, version: int) -> None:
        with self._memories_lock:
            memories = list(self._memories)
        for memory in memories:
            memory.forget_before(version)

    def _registered(self, reader_id: str, width: int) -> tuple[int, int]:
        found = self.database.row(statements.READER, (reader_id,))
        if found is None:
            with self.database.writing() as connection:
                (number,) = take_numbers(self.database, connection, "readers", 1)
                found = self.database.run(connection, statements.READER, (reader_id,)).fetchone()
                if found is None:  # else another process was quicker
                    self.database.run(connection, statements.ADD_READER, (number, reader_id, width))
        return (found[0], found[1]) if found else (number, width)

    def _width(self, reader: int) -> int:
        for number, width in self._readers.values():
            if number == reader:
                return width
        found = self.database.row(statements.READER_WIDTH, (reader,))
        if found is None:
            raise ConfigError(f"reader {reader}: is not registered here; see reader_number.")
        return int(found[0])

    def _refuse_taken(self, evidence_ids: Sequence[str]) -> None:
        taken = {**self.hashes(evidence_ids), **self.erased(evidence_ids)}
        if taken or len(set(evidence_ids)) < len(evidence_ids):
            doubled = [name for name in evidence_ids if evidence_ids.count(name) > 1]
            raise EvidenceError(
                f"evidence {sorted({*taken, *doubled})[:5]}: these ids are taken, erased, or given "
                "twice. Nothing was added; an id stands for one item for ever."
            )

    def _refuse_known(self, items: Sequence[NewEvidence]) -> None:
        known = self.known_contents(item.content_hash for item in items)
        names = [item.evidence.evidence_id for item in items if item.content_hash in known]
        if names:
            raise EvidenceError(
                f"evidence {names[:5]}: items with this content are in the store already. Nothing "
                "was added; look again which are new."
            )

    def _vectors_to_add(
        self, rows: int, features: Float32Array | None, reader: int | None
    ) -> list[bytes]:
        if features is not None and reader is not None:
            return vector_bytes(features, rows, self._width(reader))
        if features is None and reader is None:
            return []
        raise ConfigError(
            "add: features and reader belong together; give both or neither. Nothing was added."
        )

    def _put_vectors(
        self, connection: Connection, reader: int, vectors: Mapping[int, bytes]
    ) -> None:
        rows = [(row, reader, vector) for row, vector in vectors.items()]
        self.database.run_many(connection, statements.PUT_VECTOR, rows)
        self._count_vectors(connection, reader, len(rows))

    def _count_vectors(self, connection: Connection, reader: int, change: int) -> None:
        take_numbers(self.database, connection, _counter(reader), change)

    def _hold_back_writers(self, connection: Connection) -> None:
        take_numbers(self.database, connection, SERIES, 0)

    def _why_unknown(self, evidence_id: str) -> str:
        erased_at = self.erased([evidence_id]).get(evidence_id)
        if erased_at is not None:
            return f"evidence {evidence_id!r}: was erased at {iso(erased_at)}; it cannot be read."
        return f"evidence {evidence_id!r}: is not in the store {self.database.name}."

    def _only(self, statement: Prepared, arguments: Sequence[object] = ()) -> Row:
        found = self.database.row(statement, arguments)
        assert found is not None, "a count always has a row"
        return found


def _counter(reader: int) -> str:
    return f"vectors of reader {reader}"
