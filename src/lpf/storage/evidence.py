"""The evidence store: items and their feature vectors.

A row number is given out once and never reused, so it identifies a version of an item everywhere.
Of an erased item only its ID and the time of erasure remain.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any
from weakref import WeakSet

import numpy as np

from lpf.errors import ConfigError, EvidenceError, UnknownEvidenceError
from lpf.storage import evidence_rows as statements
from lpf.storage.connections import register_fork_reset
from lpf.storage.database import Connection, Database, Row
from lpf.storage.evidence_rows import (
    NewEvidence,
    PendingErasure,
    RowNumbers,
    StoredEvidence,
    check_names,
    damaged_rows,
    row_to_insert,
    sound_items,
    vector_bytes,
    vectors_from_rows,
)
from lpf.storage.seals import (
    FIELDS_CHANGED,
    VECTOR_CHANGED,
    DamagedItem,
    printable,
    row_seal,
    stored_number,
    text_commitment,
    vector_is_intact,
    vector_seal,
)
from lpf.storage.statements import Prepared
from lpf.storage.values import iso, now_micros
from lpf.storage.versioned_cache import VersionedCache
from lpf.types import Float32Array

__all__ = [
    "DamagedItem",
    "EvidenceStore",
    "NewEvidence",
    "PendingErasure",
    "RowNumbers",
    "StoredEvidence",
    "text_commitment",
]

SERIES = "evidence"
_COMMITMENT = [column.name for column in statements.SEALED_COLUMNS].index("commitment")
VECTORS_AT_ONCE = 4096


class EvidenceStore:
    """All evidence of one store. Times are in microseconds since 1970."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._readers: dict[str, tuple[int, int]] = {}
        self._caches: WeakSet[VersionedCache[Any, Any]] = WeakSet()
        self.reset_after_fork()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Also called in a forked child, where the lock may be held by a thread of the parent."""
        self._caches_lock = threading.Lock()

    def reader_number(self, reader_id: str, width: int) -> int:
        """The number of a reader in this store; registers the reader if it is new. ConfigError if
        it is registered with a different width."""
        known = self._readers.get(reader_id)
        if known is None:
            known = self._readers[reader_id] = self._register(reader_id, width)
        number, known_width = known
        if known_width != width:
            raise ConfigError(
                f"reader {reader_id!r} has features of width {width}, but is registered in this "
                f"store with width {known_width}. Nothing was read or written; give a changed "
                "reader another reader_id."
            )
        return number

    def version(self) -> int | None:
        """A number that changes with every change of evidence or vectors, by any process. None
        inside a transaction, whose changes may yet be rolled back."""
        if self.database.in_transaction:
            return None
        row = self.database.row(statements.VERSION)
        return None if row is None else stored_number(row[0], "evidence_version")

    def register_cache(self, cache: VersionedCache[Any, Any]) -> None:
        """Clear ``cache`` at once when this object erases an item. Erasures made elsewhere are
        noticed by the changed version at the cache's next lookup."""
        with self._caches_lock:
            self._caches.add(cache)

    def candidates(
        self, entity_id: str, predicate: str, reader: int
    ) -> tuple[list[Row], tuple[DamagedItem, ...]]:
        """All items for a question, of any date, in the order of ingestion, and those that do not
        match their seals. Columns: SEALED_COLUMNS, both seals, row_id, has_claim, vector. The
        vector is None if it has not been computed yet."""
        rows = self.database.rows(statements.CANDIDATES, (reader, entity_id, predicate))
        reader_id = self._reader_id(reader)
        fields, commitment = len(statements.SEALED_COLUMNS), _COMMITMENT
        damaged: list[DamagedItem] = []
        sound = []
        for row in rows:
            vector = row[-1]
            if row_seal(row[:fields]) != row[fields]:
                damaged.append(DamagedItem(printable(row[0]), FIELDS_CHANGED))
            elif vector is None or vector_is_intact(
                row[commitment], reader_id, vector, row[fields + 1]
            ):
                sound.append(row)
            else:
                damaged.append(DamagedItem(row[0], VECTOR_CHANGED))
        return sound, tuple(damaged)

    def get(self, evidence_id: str) -> StoredEvidence:
        """The current version. UnknownEvidenceError if it is not in the store; it says when, if it
        was erased. StoreDamagedError if it does not match its hashes."""
        current = self.get_many([evidence_id])
        if not current:
            self.require_known(evidence_id)
        return current[evidence_id]

    def get_many(
        self, evidence_ids: Iterable[str], damaged: list[DamagedItem] | None = None
    ) -> dict[str, StoredEvidence]:
        """Items by ID; IDs that are not in the store are left out. For ``damaged`` see
        ``sound_items``; here and below."""
        rows = self.database.look_up(statements.BY_IDS, evidence_ids)
        return {item.evidence.evidence_id: item for item in sound_items(rows, damaged)}

    def by_rows(
        self, row_ids: Iterable[int], damaged: list[DamagedItem] | None = None
    ) -> list[StoredEvidence]:
        """Items by row number, in the given order; rows that are not in the store are left out."""
        wanted = [int(row_id) for row_id in row_ids]
        rows = self.database.look_up(statements.BY_ROWS, wanted)
        items = {item.row_id: item for item in sound_items(rows, damaged)}
        return [items[row_id] for row_id in wanted if row_id in items]

    def require_known(self, evidence_id: str) -> None:
        """UnknownEvidenceError if the item is not in the store; it says when, if it was erased."""
        if self.hashes([evidence_id]):
            return
        erased_at = self.erasure_times([evidence_id]).get(evidence_id)
        if erased_at is not None:
            raise UnknownEvidenceError(f"evidence {evidence_id!r} was erased at {iso(erased_at)}.")
        raise UnknownEvidenceError(
            f"evidence {evidence_id!r} is not in the store {self.database.name}."
        )

    def claims(
        self, evidence_ids: Iterable[str], damaged: list[DamagedItem] | None = None
    ) -> dict[str, str]:
        """Claims by ID; items without a claim are left out."""
        with_claim = [
            name for (name,) in self.database.look_up(statements.WITH_CLAIM, evidence_ids)
        ]
        items = self.get_many(with_claim, damaged) if with_claim else {}
        claims = {name: item.evidence.claim for name, item in items.items()}
        return {name: claim for name, claim in claims.items() if claim is not None}

    def page(
        self,
        entity_id: str | None = None,
        predicate: str | None = None,
        limit: int = 100,
        after_row: int = 0,
        damaged: list[DamagedItem] | None = None,
    ) -> list[StoredEvidence]:
        """Up to ``limit`` items in the order of ingestion. For the next page, pass the last
        ``row_id`` as ``after_row``. There are fewer only at the end: damaged ones do not count."""
        given = {"entity_id": entity_id, "predicate": predicate}
        filters = {name: value for name, value in given.items() if value is not None}
        statement = statements.page_statement(*filters)
        items: list[StoredEvidence] = []
        while len(items) < limit:
            wanted = limit - len(items)
            rows = self.database.rows(statement, (*filters.values(), after_row, wanted))
            items += sound_items(rows, damaged)
            if len(rows) < wanted:
                break
            after_row = rows[-1][0]
        return items

    def row_of(self, evidence_id: str) -> int:
        """The row of an item, damaged or not. UnknownEvidenceError like ``get``."""
        self.require_known(evidence_id)
        ((_, row_id, _),) = self.database.look_up(statements.TO_REPLACE, [evidence_id])
        return int(row_id)

    def count(self) -> int:
        """The number of items."""
        return int(self._one_row(statements.COUNT)[0])

    def hashes(self, evidence_ids: Iterable[str]) -> dict[str, bytes]:
        """Content hashes by ID; IDs that are not in the store are left out."""
        return dict(self.database.look_up(statements.HASHES_BY_IDS, evidence_ids))

    def sources(self, evidence_ids: Iterable[str]) -> dict[str, str | None]:
        """The source of each item, unread: rows are not compared with their seals."""
        return dict(self.database.look_up(statements.SOURCES_BY_IDS, evidence_ids))

    def earlier_hashes(self, evidence_ids: Iterable[str]) -> dict[str, set[bytes]]:
        """Content hashes of the replaced versions by ID; items never replaced are left out."""
        hashes: dict[str, set[bytes]] = {}
        for name, content_hash in self._earlier_hashes(evidence_ids):
            hashes.setdefault(name, set()).add(content_hash)
        return hashes

    def ids_of_entities(self, entity_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        """(entity_id, evidence_id) of all items of the given entities."""
        for entity_id, evidence_id in self.database.look_up(statements.IDS_BY_ENTITIES, entity_ids):
            yield entity_id, printable(evidence_id)

    def dated_items(
        self, entity_ids: Iterable[str], before: int
    ) -> dict[tuple[str, str, str | None, int], str]:
        """Items of the given entities with a date that were added before a moment: their IDs by
        (entity_id, predicate, source, timestamp). The source may be None."""
        rows = self.database.look_up(statements.DATED_BY_ENTITIES, entity_ids, before)
        return {tuple(row[:4]): row[4] for row in rows}

    def known_contents(self, content_hashes: Iterable[bytes]) -> set[bytes]:
        """The content hashes that some item in the store has or had before it was replaced, under
        any ID. A file that is ingested again must not bring back a text that was corrected."""
        wanted = list(content_hashes)
        return {
            content_hash
            for statement in (statements.BY_CONTENT, statements.SUPERSEDED_BY_CONTENT)
            for (content_hash,) in self.database.look_up(statement, wanted)
        }

    def erasure_times(self, evidence_ids: Iterable[str]) -> dict[str, int]:
        """When each ID was erased; IDs that were not erased are left out."""
        rows = self.database.look_up(statements.ERASED_BY_IDS, evidence_ids)
        return {name: stored_number(at, f"erased_evidence: {name!r}") for name, at in rows}

    def add(
        self, items: Sequence[NewEvidence], features: Float32Array | None, reader: int | None
    ) -> None:
        """Add all items, with their vectors [N, width] if given, or none of them.

        EvidenceError if an ID is taken or was erased, if a name is empty or begins or ends with
        whitespace, or if the content of a numbered item is already in the store.
        """
        check_names(items)
        vectors = self._vectors_to_add(len(items), features, reader)
        now = now_micros()
        with self.database.transaction() as connection:
            # Taking numbers blocks other writers of evidence, so IDs that are free now stay free.
            numbers = self.database.take_numbers(connection, SERIES, len(items))
            self._refuse_taken([item.evidence.evidence_id for item in items])
            self._refuse_known([item for item in items if item.numbered])
            rows = [row_to_insert(*numbered, now) for numbered in zip(numbers, items, strict=True)]
            self._insert(connection, rows, vectors, reader)

    def replace(
        self, items: Sequence[NewEvidence], features: Float32Array | None, reader: int | None
    ) -> None:
        """Replace the stored items with the same IDs, all of them or none. Their vectors [N, width]
        are read later unless given.

        The replaced version stays in the store, with the time, but answers no more questions: its
        text and salt are kept, its vectors are not. The new version has a row number of its own.
        UnknownEvidenceError if an ID is not in the store; EvidenceError if an ID is given twice, a
        name is invalid or the stored item has the same content already.
        """
        check_names(items)
        vectors = self._vectors_to_add(len(items), features, reader)
        names, now = [item.evidence.evidence_id for item in items], now_micros()
        with self.database.transaction() as connection:
            numbers = self.database.take_numbers(connection, SERIES, len(items))
            stored = self._to_replace(items)
            for name in names:
                row, _ = stored[name]
                self.database.run(connection, statements.SUPERSEDE, (now, row))
                self._remove(connection, row)
            rows = [
                row_to_insert(number, item, now, stored[name][1] + 1)
                for number, item, name in zip(numbers, items, names, strict=True)
            ]
            self._insert(connection, rows, vectors, reader)

    def versions(
        self, evidence_id: str, damaged: list[DamagedItem] | None = None
    ) -> list[StoredEvidence]:
        """All versions of an item, the current one last. UnknownEvidenceError like ``get``."""
        current = list(self.database.look_up(statements.BY_IDS, [evidence_id]))
        if not current:
            self.require_known(evidence_id)
        earlier = self.database.look_up(statements.VERSIONS_BY_IDS, [evidence_id])
        return sound_items([*sorted(earlier, key=itemgetter(0)), *current], damaged)

    def missing_features(self, reader: int, limit: int, after_row: int = 0) -> list[StoredEvidence]:
        """Up to ``limit`` items after ``after_row`` that have no vector of this reader."""
        return sound_items(self.database.rows(statements.MISSING, (reader, after_row, limit)))

    def put_features(self, reader: int, row_ids: Sequence[int], features: Float32Array) -> None:
        """Add vectors [N, width] to stored items. An existing vector is not replaced, and rows that
        are no longer in the store are skipped."""
        vectors = vector_bytes(features, len(row_ids), self._width(reader))
        by_row = dict(zip(map(int, row_ids), vectors, strict=True))
        with self.database.transaction() as connection:
            self._block_writers(connection)
            missing = self.database.look_up(statements.ROWS_WITHOUT_VECTOR, by_row, reader)
            sealed = [(row, commitment, by_row[row]) for row, commitment in missing]
            self._put_vectors(connection, reader, sealed)

    def erase(self, evidence_id: str) -> list[PendingErasure]:
        """Remove all versions of an item and their vectors; the current version is last.

        The rows are the only place that says what caches and indexes hold of the item, so the same
        transaction records pending erasures: after an interruption they show what is left to do.
        ``lpf.ingest.erasure`` removes the item everywhere else.
        """
        database = self.database
        with database.transaction() as connection:
            self._block_writers(connection)
            self.require_known(evidence_id)
            versions = database.rows(statements.ROWS_TO_ERASE, (evidence_id, evidence_id))
            for row_id, _ in versions:
                self._remove(connection, row_id)
            database.run(connection, statements.DELETE_VERSIONS, (evidence_id,))
            now = now_micros()
            database.run(connection, statements.MARK_ERASED, (evidence_id, now))
            pending = [(evidence_id, row_id, key, now) for row_id, key in versions]
            database.run_many(connection, statements.ADD_PENDING_ERASURE, pending)
            # Read before the commit: after it, nothing may fail any more.
            (version,) = database.run(connection, statements.VERSION).fetchone()
        self._clear_caches(version)
        return [PendingErasure(*row[:3]) for row in pending]

    def pending_erasures(self) -> list[PendingErasure]:
        """Versions of items that were removed from the store but perhaps not yet from elsewhere,
        in the order of ingestion."""
        rows = self.database.rows(statements.PENDING_ERASURES)
        return [PendingErasure(printable(name), *others) for name, *others in rows]

    def clear_erased_keys(self, items: Iterable[PendingErasure]) -> None:
        """Overwrite the content keys of pending erasures, once they are no longer needed: they are
        unsalted hashes, from which a text could be guessed."""
        rows = [(bytes(len(item.content_key)), item.row_id) for item in items]
        with self.database.transaction() as connection:
            self.database.run_many(connection, statements.OVERWRITE_ERASED_KEY, rows)

    def finish_erasures(self, evidence_ids: Iterable[str]) -> None:
        """Remove pending erasures after they were carried out everywhere. The IDs stay taken."""
        rows = [(evidence_id,) for evidence_id in evidence_ids]
        with self.database.transaction() as connection:
            self.database.run_many(connection, statements.REMOVE_PENDING_ERASURE, rows)

    def vectors(self, reader: int) -> Iterator[tuple[RowNumbers, Float32Array]]:
        """All vectors of a reader from one consistent snapshot, in chunks ordered by row: row
        numbers [N] and vectors [N, width]."""
        width, reader_id = self._width(reader), self._reader_id(reader)
        for rows in self.database.stream(statements.VECTORS, (reader, 0), VECTORS_AT_ONCE):
            yield vectors_from_rows(rows, width, reader_id)

    def vectors_after(self, reader: int, row_id: int) -> tuple[RowNumbers, Float32Array]:
        """The vectors of all rows after ``row_id``: row numbers [N] and vectors [N, width]."""
        rows = self.database.rows(statements.VECTORS, (reader, row_id))
        return vectors_from_rows(rows, self._width(reader), self._reader_id(reader))

    def damaged_items(self) -> Iterator[DamagedItem]:
        """Every item, superseded version and vector that does not match its hash. Reads all."""
        for statement in (statements.ALL_ITEMS, statements.ALL_SUPERSEDED):
            for rows in self.database.stream(statement):
                yield from damaged_rows(rows)
        for rows in self.database.stream(statements.ALL_VECTORS):
            for row_id, name, commitment, vector, seal, reader_id in rows:
                if not vector_is_intact(commitment, reader_id, vector, seal):
                    shown = f"row {row_id}" if name is None else printable(name)
                    yield DamagedItem(shown, VECTOR_CHANGED)

    def changed_vectors(
        self, reader: int, expected: Mapping[int, Float32Array], tolerance: float
    ) -> set[int]:
        """The rows whose stored vector is damaged or is not the expected one [width]. Rows without
        a vector of this reader do not count."""
        changed = set()
        reader_id = self._reader_id(reader)
        rows = self.database.look_up(statements.VECTORS_OF_ROWS, expected, reader)
        for row_id, _, commitment, vector, seal in rows:
            right = expected[row_id]
            if not vector_is_intact(commitment, reader_id, vector, seal):
                changed.add(row_id)
                continue
            stored = np.frombuffer(vector, "<f4")
            if stored.shape != right.shape or np.abs(stored - right).max() > tolerance:
                changed.add(row_id)
        return changed

    def state(self, reader: int) -> tuple[int, int, int]:
        """(number of vectors, highest row with a vector, number of items ever erased). An index
        built at an equal state holds the same vectors."""
        count, highest, erased = self._one_row(statements.STATE, (_counter(reader), reader))
        count = stored_number(count or 0, f"counters: {_counter(reader)!r}")
        return count, stored_number(highest or 0, "features: row_id"), erased

    def _clear_caches(self, version: int) -> None:
        with self._caches_lock:
            caches = list(self._caches)
        for cache in caches:
            cache.forget_before(version)

    def _register(self, reader_id: str, width: int) -> tuple[int, int]:
        row = self.database.row(statements.READER, (reader_id,))
        if row is None:
            with self.database.transaction() as connection:
                (number,) = self.database.take_numbers(connection, "readers", 1)
                row = self.database.run(connection, statements.READER, (reader_id,)).fetchone()
                if row is None:  # otherwise another process has just registered it
                    self.database.run(connection, statements.ADD_READER, (number, reader_id, width))
        return (row[0], row[1]) if row else (number, width)

    def _width(self, reader: int) -> int:
        for number, width in self._readers.values():
            if number == reader:
                return width
        row = self.database.row(statements.READER_WIDTH, (reader,))
        if row is None:
            raise ConfigError(f"reader {reader} is not registered; call reader_number first.")
        return int(row[0])

    def _reader_id(self, reader: int) -> str:
        for reader_id, (number, _) in self._readers.items():
            if number == reader:
                return reader_id
        row = self.database.row(statements.READER_ID, (reader,))
        if row is None:
            raise ConfigError(f"reader {reader} is not registered; call reader_number first.")
        return str(row[0])

    def _to_replace(self, items: Sequence[NewEvidence]) -> dict[str, tuple[int, int]]:
        """Row and version of each item. A damaged item may be replaced too, so versions are
        counted, not read."""
        names = [item.evidence.evidence_id for item in items]
        stored = {row[0]: row[1:] for row in self.database.look_up(statements.TO_REPLACE, names)}
        for name in names:
            if name not in stored:
                self.require_known(name)
        refused = {name for name, times in Counter(names).items() if times > 1}
        for name, item in zip(names, items, strict=True):
            if stored[name][1] == item.content_hash:
                refused.add(name)
        if refused:
            raise EvidenceError(
                f"{sorted(refused)[:5]} are given twice or have this content already. Nothing was "
                "replaced.",
                field="evidence_id",
            )
        earlier = Counter(name for name, _ in self._earlier_hashes(names))
        return {name: (row_id, earlier[name] + 1) for name, (row_id, _) in stored.items()}

    def _earlier_hashes(self, evidence_ids: Iterable[str]) -> Iterator[Row]:
        """(evidence_id, content_hash) of each version that was replaced."""
        return self.database.look_up(statements.EARLIER_HASHES, evidence_ids)

    def _insert(
        self,
        connection: Connection,
        rows: Sequence[Row],
        vectors: Sequence[bytes],
        reader: int | None,
    ) -> None:
        self.database.run_many(connection, statements.INSERT, rows)
        if reader is not None:
            places = (statements.COLUMNS.index(name) for name in ("row_id", "commitment"))
            row_id, commitment = places
            sealed = [
                (row[row_id], row[commitment], vector)
                for row, vector in zip(rows, vectors, strict=True)
            ]
            self._put_vectors(connection, reader, sealed)

    def _remove(self, connection: Connection, row_id: int) -> None:
        """Remove a row and its vectors."""
        for (reader,) in self.database.rows(statements.READERS_OF_ROW, (row_id,)):
            self._count_vectors(connection, reader, -1)
        self.database.run(connection, statements.DELETE_FEATURES, (row_id,))
        self.database.run(connection, statements.DELETE, (row_id,))

    def _refuse_taken(self, evidence_ids: Sequence[str]) -> None:
        taken = {**self.hashes(evidence_ids), **self.erasure_times(evidence_ids)}
        if taken or len(set(evidence_ids)) < len(evidence_ids):
            repeated = [name for name in evidence_ids if evidence_ids.count(name) > 1]
            raise EvidenceError(
                f"{sorted({*taken, *repeated})[:5]} are in the store, were erased, or are given "
                "twice. Nothing was added; an ID is never reused.",
                field="evidence_id",
            )

    def _refuse_known(self, items: Sequence[NewEvidence]) -> None:
        known = self.known_contents(item.content_hash for item in items)
        names = [item.evidence.evidence_id for item in items if item.content_hash in known]
        if names:
            raise EvidenceError(
                f"evidence {names[:5]}: the store already has items with the same content. Nothing "
                "was added; check again which items are new."
            )

    def _vectors_to_add(
        self, rows: int, features: Float32Array | None, reader: int | None
    ) -> list[bytes]:
        if features is not None and reader is not None:
            return vector_bytes(features, rows, self._width(reader))
        if features is None and reader is None:
            return []
        raise ConfigError("give both features and reader, or neither. Nothing was added.")

    def _put_vectors(
        self, connection: Connection, reader: int, vectors: Sequence[tuple[int, bytes, bytes]]
    ) -> None:
        """``vectors`` are (row_id, commitment, vector)."""
        reader_id = self._reader_id(reader)
        rows = [
            (row, reader, vector, vector_seal(commitment, reader_id, vector))
            for row, commitment, vector in vectors
        ]
        self.database.run_many(connection, statements.PUT_VECTOR, rows)
        self._count_vectors(connection, reader, len(rows))

    def _count_vectors(self, connection: Connection, reader: int, change: int) -> None:
        self.database.take_numbers(connection, _counter(reader), change)

    def _block_writers(self, connection: Connection) -> None:
        self.database.take_numbers(connection, SERIES, 0)

    def _one_row(self, statement: Prepared, arguments: Sequence[object] = ()) -> Row:
        row = self.database.row(statement, arguments)
        assert row is not None, "a count always has a row"
        return row


def _counter(reader: int) -> str:
    return f"vectors of reader {reader}"
