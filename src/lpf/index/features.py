"""The features of one reader in one store: those stored, and those still to be read.

At the end of the file: what a search by text needs from the store beyond ``EvidenceStore``.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, func, select

from lpf.errors import ConfigError, EvidenceError
from lpf.reading.reader import IN_PASSAGES, Progress, Reader, ReadRequest
from lpf.reading.words import has_words
from lpf.storage.database import Row
from lpf.storage.evidence import EvidenceStore, RowNumbers, StoredEvidence
from lpf.storage.evidence_rows import (
    READER,
    SEALED_COLUMNS,
    SEALED_VECTOR,
    VECTORS_OF_ROWS,
    vectors_from_rows,
)
from lpf.storage.seals import (
    FIELDS_CHANGED,
    DamagedItem,
    damaged_error,
    printable,
    row_seal,
    stored_number,
)
from lpf.storage.statements import KEYS, Prepared, any_of
from lpf.storage.tables import erased_evidence, evidence, features, readers
from lpf.types import Float32Array

# Columns of ``EvidenceStore.candidates``. The rows stay tuples: there may be thousands for a
# question, and naming each field would cost more than looking them up.
_NAMES = [column.name for column in SEALED_COLUMNS]
EVIDENCE_ID, CREDIBILITY, TIMESTAMP, SOURCE, REPORT_ID, CONTENT_KEY, COMMITMENT = (
    _NAMES.index(name)
    for name in (
        *("evidence_id", "credibility", "timestamp", "source"),
        *("report_id", "content_key", "commitment"),
    )
)
ENTITY_ID, PREDICATE = _NAMES.index("entity_id"), _NAMES.index("predicate")
ROW_ID, HAS_CLAIM, VECTOR = range(len(_NAMES) + 2, len(_NAMES) + 5)  # after the two seals


STORED: Final = np.dtype("<f4")
ITEMS_AT_ONCE = 512
CHARACTERS_PER_TOKEN = 4
_NAMED = 5  # items in a message
_PLACE = re.compile(r"items\[(\d+)\]\.(text|claim)")  # in the field of a reader's error
_MAX_LENGTH = re.compile(r";max_length=(\d+)")


class FeatureSource:
    """Features under one ``reader_id``. The reader itself is opened when a text must be read.

    ``text_part`` says which features describe the text alone (None: all of them). Texts and
    queries are compared by these.
    """

    def __init__(
        self,
        store: EvidenceStore,
        reader_id: str,
        width: int,
        open_reader: Callable[[], Reader],
        text_part: slice | None = None,
    ) -> None:
        self.store = store
        self.reader_id = reader_id
        self.width = width
        self.text_part = text_part
        self.text_width = width if text_part is None else len(range(*text_part.indices(width)))
        self.number = store.reader_number(reader_id, width)
        self._open_reader = open_reader
        self._reader: Reader | None = None
        self._lock = threading.Lock()

    @property
    def reader(self) -> Reader:
        """Opened once. ConfigError if it is not the reader of the stored features."""
        with self._lock:
            if self._reader is None:
                self._reader = self._opened()
            return self._reader

    def texts(self, features: Float32Array) -> Float32Array:
        """The part of ``features`` [N, width] that describes the text alone."""
        return features if self.text_part is None else features[:, self.text_part]

    def query_vector(self, text: str) -> Float32Array:
        """The vector of a text for comparisons, [text_width]."""
        # A reader that needs a claim reads the text against itself: its text part is the same.
        features = self.reader.read(text, text if self.reader.uses_claim else None)
        vector: Float32Array = self.texts(features[None])[0]
        return vector

    def checked_query(self, vector: Float32Array) -> Float32Array:
        """EvidenceError unless ``vector`` can be compared with the stored texts."""
        if np.shape(vector) != (self.text_width,) or not np.isfinite(vector).all():
            raise EvidenceError(
                f"query vector: must be {self.text_width} finite numbers for the reader "
                f"{self.reader_id}, got shape {np.shape(vector)}. Nothing was looked up."
            )
        return vector

    def completed(self, rows: list[Row], damaged: list[DamagedItem]) -> list[Row]:
        """Candidates with all vectors; missing ones are read now and stored. Rows whose text was
        erased meanwhile are left out, and those whose text is ``damaged`` are added there."""
        missing = [row[ROW_ID] for row in rows if row[VECTOR] is None]
        stored = self.store.by_rows(missing, damaged)
        features = self._read_and_store(stored)
        fresh = {item.row_id: features[place].tobytes() for place, item in enumerate(stored)}
        filled = (
            row if row[VECTOR] is not None else (*row[:VECTOR], fresh.get(row[ROW_ID]))
            for row in rows
        )
        return [row for row in filled if row[VECTOR] is not None]

    def read_missing(self, progress: Progress | None = None) -> int:
        """Reads all items that have no features of this reader yet; returns how many."""
        total, done, last = self._lacking(), 0, 0
        while stored := self.store.missing_features(self.number, ITEMS_AT_ONCE, last):
            self._read_and_store(stored)
            last, done = stored[-1].row_id, done + len(stored)
            if progress is not None:
                progress(done, max(total, done))
        return done

    @property
    def cuts_after(self) -> int | None:
        """About how many characters of a text are read, if long texts are cut; None if all are.
        Known without opening the reader, so only an estimate: a token has about four."""
        found = None if IN_PASSAGES in self.reader_id else _MAX_LENGTH.search(self.reader_id)
        return None if found is None else CHARACTERS_PER_TOKEN * int(found[1])

    def longer_than_read(self, evidence_ids: Iterable[str]) -> int:
        """How many of the items' texts have more characters than ``cuts_after``."""
        most = self.cuts_after
        if most is None:
            return 0
        lengths = self.store.database.look_up(_LENGTHS, evidence_ids)
        return sum(length > most for (length,) in lengths)

    def wordless(self, row_ids: Sequence[int]) -> NDArray[np.bool_] | None:
        """True for each item whose text has no word [N]; None if all have one. A text that does not
        match its hash does not count as such."""
        texts = self.store.database.look_up(_TEXTS, row_ids)
        found = {row for row, text in texts if isinstance(text, str) and not has_words(text)}
        if not found:
            return None
        sound = {item.row_id for item in self.store.by_rows(sorted(found), [])}
        return np.array([row in sound for row in row_ids], np.bool_) if sound else None

    def _lacking(self) -> int:
        return self.store.count() - self.store.state(self.number)[0]

    def _read_and_store(self, stored: Sequence[StoredEvidence]) -> Float32Array:
        if not stored:
            return np.empty((0, self.width), STORED)
        items = [item.evidence for item in stored]
        try:
            features = self._read(stored)
        except EvidenceError as error:
            raise EvidenceError(
                f"{_unread([item.evidence_id for item in items], error, self.reader_id)} Nothing "
                "was read.",
                hint="Use a model of the reader that it was ingested with ('lpf models use "
                "VERSION'), or erase the item ('lpf evidence erase ID').",
            ) from error
        self.store.put_features(self.number, [item.row_id for item in stored], features)
        return features.astype(STORED, copy=False)

    def _read(self, stored: Sequence[StoredEvidence]) -> Float32Array:
        requests = [ReadRequest(one.evidence.text_content, one.evidence.claim) for one in stored]
        base = self.reader.base
        if base is self.reader:
            return self.reader.read_many(requests)
        source = FeatureSource(self.store, base.reader_id, base.width, lambda: base)
        return self.reader.extend(source.stored_or_read(stored), requests)

    def stored_or_read(self, stored: Sequence[StoredEvidence]) -> Float32Array:
        """Features [N, width] of these items; missing ones are read now and stored."""
        row_ids, found = vectors_of_rows(self, [one.row_id for one in stored])
        known = dict(zip(row_ids.tolist(), found, strict=True))
        missing = [one for one in stored if one.row_id not in known]
        fresh = self._read_and_store(missing)
        known |= zip((one.row_id for one in missing), fresh, strict=True)
        return np.stack([known[one.row_id] for one in stored])

    def _opened(self) -> Reader:
        reader = self._open_reader()
        if (reader.reader_id, reader.width) != (self.reader_id, self.width):
            raise ConfigError(
                f"reader: {reader.reader_id} of width {reader.width} was opened, but this index "
                f"is of {self.reader_id} of width {self.width}. Nothing was read.",
                hint="The active model was trained with another reader than [reader] in lpf.toml "
                "names: set it to the model's, use another model ('lpf models use VERSION'), or "
                "train a new one ('lpf train').",
            )
        return reader


def _unread(names: Sequence[str], error: EvidenceError, reader_id: str) -> str:
    """In words: which item the reader's ``error`` is about, or all if it does not say, and why."""
    found = _PLACE.fullmatch(error.field or "")
    if found is not None and int(found[1]) < len(names):
        named, why = repr(names[int(found[1])]), f"its {found[2]} {error.message}"
    else:
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        named, why = ", ".join(map(repr, names[:_NAMED])) + more, error.message
    return f"evidence {named} has not been read by {reader_id} yet, and cannot be: {why}"


_OF_READER = features.c.reader == bindparam("reader")

_ENTRIES = Prepared(
    select(*SEALED_COLUMNS, evidence.c.seal, evidence.c.row_id).where(any_of(evidence.c.row_id)),
    *KEYS,
)
_ENTITY_VECTORS = Prepared(
    select(*SEALED_VECTOR)
    .join_from(evidence, features, features.c.row_id == evidence.c.row_id)
    .where(evidence.c.entity_id == bindparam("entity_id"), _OF_READER)
    .order_by(features.c.row_id),
    "entity_id",
    "reader",
)
_LENGTHS = Prepared(
    select(func.length(evidence.c.text_content)).where(any_of(evidence.c.evidence_id)), *KEYS
)
_TEXTS = Prepared(
    select(evidence.c.row_id, evidence.c.text_content).where(any_of(evidence.c.row_id)), *KEYS
)
_READERS = Prepared(select(readers.c.reader, readers.c.reader_id).order_by(readers.c.reader))
_ERASED = Prepared(select(func.count()).select_from(erased_evidence))


def entries(store: EvidenceStore, row_ids: Iterable[int]) -> dict[int, Row]:
    """The SEALED_COLUMNS of the rows that exist. StoreDamagedError if one was changed."""
    found, damaged = {}, []
    for *fields, seal, row_id in store.database.look_up(_ENTRIES, row_ids):
        if row_seal(fields) == seal:
            found[row_id] = tuple(fields)
        else:
            damaged.append(DamagedItem(printable(fields[EVIDENCE_ID]), FIELDS_CHANGED))
    if damaged:
        raise damaged_error(damaged, "Nothing was searched.")
    return found


def vectors_of_rows(
    source: FeatureSource, row_ids: Iterable[int]
) -> tuple[RowNumbers, Float32Array]:
    """The rows that exist and their vectors, in no particular order."""
    rows = list(source.store.database.look_up(VECTORS_OF_ROWS, row_ids, source.number))
    return vectors_from_rows(rows, source.width, source.reader_id)


def vectors_of_entity(source: FeatureSource, entity_id: str) -> tuple[RowNumbers, Float32Array]:
    """All vectors of one entity, in the order of the rows."""
    rows = source.store.database.rows(_ENTITY_VECTORS, (entity_id, source.number))
    return vectors_from_rows(rows, source.width, source.reader_id)


def known_reader(store: EvidenceStore, reader_id: str) -> int | None:
    """The number of a reader, or None: unlike ``reader_number`` this never assigns one."""
    row = store.database.row(READER, (reader_id,))
    return None if row is None else stored_number(row[0], "readers")


def readers_used(store: EvidenceStore) -> list[str]:
    """The IDs of the readers that have read any item of the store."""
    rows = store.database.rows(_READERS)
    return [reader_id for number, reader_id in rows if store.state(number)[0]]


def count_erased(store: EvidenceStore) -> int:
    """How many items were ever erased."""
    row = store.database.row(_ERASED)
    assert row is not None, "a count always has a row"
    return int(row[0])
