"""The ledger's table of contents: finds records by what they are about.

The ledger itself finds a record by its number only. This table has one row per record with what the
record says of itself, and is brought up to date whenever it is read. Only the records count: rows
are not signed, and ``rebuild`` makes them again. Who needs more of a record, or must be sure of it,
gets it from ``LedgerReader``, which checks its hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, bindparam, delete, func, select

from lpf.errors import NotAnAnswerError, StoreDamagedError, UnknownRecordError
from lpf.ledger import statements
from lpf.ledger.reader import is_digest
from lpf.ledger.records import record_id, sequence_of
from lpf.ledger.statements import LedgerStatement
from lpf.storage.database import Database, Row
from lpf.storage.seals import is_sound
from lpf.storage.statements import KEYS, Prepared, any_of
from lpf.storage.tables import ledger_contents
from lpf.storage.values import to_micros

ANSWER: Final = "answer"  # records without the field "kind"
UNREADABLE: Final = "unreadable"  # a body that is no record; ``verify`` reports it
NO_ANSWER_METHOD = "prior"
LONGEST_ID = 10_000  # characters; far longer than any that can be stored
RECORDS_AT_ONCE = 2000

_TABLE = ledger_contents.c
_COLUMNS = (
    *(_TABLE.seq, _TABLE.kind, _TABLE.entity_id, _TABLE.predicate, _TABLE.value),
    *(_TABLE.confidence, _TABLE.timestamp, _TABLE.about, _TABLE.context),
)
_NAMES = tuple(column.name for column in _COLUMNS)
_KINDS = (
    *("number", "text", "text", "text", "text?"),
    *("share?", "time", "number?", "bytes?"),
)
_IS_ANSWER = _TABLE.kind == ANSWER


def _newest(*conditions: Any) -> Select[Any]:
    """The newest answer to each question."""
    newest = (
        select(func.max(_TABLE.seq))
        .where(_IS_ANSWER, *conditions)
        .group_by(_TABLE.entity_id, _TABLE.predicate)
    )
    return select(*_COLUMNS).where(_TABLE.seq.in_(newest)).order_by(_TABLE.seq)


_SIZE = Prepared(select(func.max(_TABLE.seq)))
_PUT = LedgerStatement(
    lambda insert_: (
        insert_(ledger_contents)
        .values(**{name: bindparam(name) for name in _NAMES})
        .on_conflict_do_nothing()
    ),
    *_NAMES,
)
_ALL = Prepared(select(*_COLUMNS).order_by(_TABLE.seq))
_CLEAR = Prepared(delete(ledger_contents))
_NEWEST_OF = Prepared(_newest(any_of(_TABLE.entity_id)), *KEYS)
_NEWEST_ABOUT = Prepared(_newest(_TABLE.predicate == bindparam("predicate")), "predicate")
_HISTORY = Prepared(
    select(*_COLUMNS)
    .where(
        _TABLE.entity_id == bindparam("entity_id"),
        _TABLE.predicate == bindparam("predicate"),
        _TABLE.seq > bindparam("after"),
    )
    .order_by(_TABLE.seq),
    "entity_id",
    "predicate",
    "after",
)
_OF_KIND = Prepared(
    select(*_COLUMNS)
    .where(
        _TABLE.predicate == bindparam("predicate"),
        _TABLE.kind == bindparam("kind"),
        _TABLE.seq > bindparam("after"),
    )
    .order_by(_TABLE.seq),
    "predicate",
    "kind",
    "after",
)
_LINKED = Prepared(select(*_COLUMNS).where(_TABLE.about.is_not(None)).order_by(_TABLE.seq))
_ABOUT = Prepared(select(*_COLUMNS).where(any_of(_TABLE.about)).order_by(_TABLE.seq), *KEYS)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a record says of itself. ``kind`` is "answer" unless the record has another; ``value``
    and ``confidence`` are None if there was no answer; ``timestamp`` is in microseconds since 1970.
    ``about`` is the number of the record that it refers to, ``context`` the hash of its context."""

    seq: int
    kind: str
    entity_id: str
    predicate: str
    value: str | None
    confidence: float | None
    timestamp: int
    about: int | None
    context: bytes | None

    @property
    def record_id(self) -> str:
        return record_id(self.seq)


def require_answer(fields: Mapping[str, Any]) -> None:
    """NotAnAnswerError for the fields of a record of another kind."""
    kind = fields.get("kind", ANSWER)
    if kind != ANSWER:
        about = fields.get("about")
        raise NotAnAnswerError(
            f"{fields['record_id']} is a record of the kind {kind!r}, not an answer. Nothing was "
            "done.",
            field="record",
            hint=None if about is None else f"It is about {about}; name that one.",
        )


class LedgerContents:
    """Finds records by entity, predicate, kind, or the record that they are about."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest_of(self, entity_ids: Iterable[str]) -> Iterator[Entry]:
        """The newest answer to every question about these entities."""
        self.update()
        for row in self._database.look_up(_NEWEST_OF, entity_ids):
            yield _entry(row)

    def newest_about(self, predicate: str) -> Iterator[Entry]:
        """The newest answer about each entity, in the order in which they were given."""
        return self._stream(_NEWEST_ABOUT, (predicate,))

    def history(self, entity_id: str, predicate: str, after: int = 0) -> Iterator[Entry]:
        """All records about one question behind number ``after``, in order."""
        return self._stream(_HISTORY, (entity_id, predicate, after))

    def of_kind(self, kind: str, predicate: str, after: int = 0) -> Iterator[Entry]:
        """All records of one kind about a predicate behind number ``after``, in order."""
        return self._stream(_OF_KIND, (predicate, kind, after))

    def about(self, numbers: Iterable[int]) -> Iterator[Entry]:
        """All records that refer to one of these records."""
        self.update()
        for row in self._database.look_up(_ABOUT, numbers):
            yield _entry(row)

    def linked(self) -> Iterator[Entry]:
        """All records that refer to another one, in order."""
        return self._stream(_LINKED, ())

    def update(self) -> int:
        """Add the records that are not listed yet, and return how many there were."""
        (listed,) = self._database.row(_SIZE) or (0,)
        (size,) = self._database.row(statements.SIZE) or (0,)
        first, last = int(listed or 0) + 1, int(size or 0)
        if first > last + 1:  # an older ledger was put back
            return self.rebuild()
        for start in range(first, last + 1, RECORDS_AT_ONCE):
            bounds = start, min(last, start + RECORDS_AT_ONCE - 1)
            found = self._database.rows(statements.RECORDS, bounds)
            rows = [_row_of(seq, body) for seq, _, body, _ in found]
            with self._database.transaction() as connection:
                self._database.run_many(connection, _PUT.of(self._database), rows)
        return max(0, last - first + 1)

    def rebuild(self) -> int:
        """Make the table again from the records, and return how many there are."""
        with self._database.transaction() as connection:
            self._database.run(connection, _CLEAR)
        return self.update()

    def differences(self) -> Iterator[str]:
        """The IDs of the records that are listed otherwise than they are, or left out. Records
        after the last listed one are added by ``update``. Nothing is written."""
        listed = (row for chunk in self._database.stream(_ALL) for row in chunk)
        (last,) = self._database.row(_SIZE) or (0,)
        row = next(listed, None)
        for chunk in self._database.stream(statements.RECORDS, (1, int(last or 0))):
            for seq, _, body, _ in chunk:
                if row == _row_of(seq, body):
                    row = next(listed, None)
                    continue
                yield record_id(seq)
                while row is not None and row[0] <= seq:
                    row = next(listed, None)

    def _stream(self, statement: Prepared, arguments: Sequence[Any]) -> Iterator[Entry]:
        self.update()
        for chunk in self._database.stream(statement, arguments):
            for row in chunk:
                yield _entry(row)


def _entry(row: Row) -> Entry:
    """StoreDamagedError for a row that was not made by ``update``."""
    if not is_sound(row, _KINDS):
        raise StoreDamagedError(
            f"the ledger's table of contents is damaged: the row of record {ascii(row[0])[:40]} "
            "does not have the right types. Nothing was listed or done.",
            hint="Make it again: lpf ledger reindex.",
        )
    return Entry(*row)


def _row_of(seq: int, body: object) -> Row:
    """One row of the table. A body that was damaged gets one too, so that it is read only once."""
    try:
        return seq, *_checked(json.loads(body if isinstance(body, bytes) else b""))
    except (ValueError, TypeError, KeyError, RecursionError, UnknownRecordError):
        return seq, UNREADABLE, "", "", None, None, 0, None, None


def _checked(fields: Any) -> Row:
    if not isinstance(fields, dict):
        raise TypeError("not a JSON object")
    about, context = fields.get("about"), fields.get("context")
    answered = fields.get("method") != NO_ANSWER_METHOD
    digest = context.get("blob") if isinstance(context, dict) else None
    confidence = fields.get("confidence") if answered else None
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise ValueError("not a probability")
    return (
        _text(fields.get("kind", ANSWER)),
        _text(fields["entity_id"]),
        _text(fields["predicate"]),
        _text(fields["top_value"]) if answered and fields.get("top_value") is not None else None,
        None if confidence is None else float(confidence),
        to_micros(datetime.fromisoformat(fields["timestamp"])),
        None if about is None else sequence_of(about),
        bytes.fromhex(digest) if digest is not None and is_digest(digest) else None,
    )


def _text(value: Any) -> str:
    """ValueError for what a store cannot hold as text."""
    if not isinstance(value, str) or "\0" in value or len(value) > LONGEST_ID:
        raise ValueError("not a text that can be stored")
    value.encode()  # UnicodeEncodeError, a ValueError, for a lone surrogate
    return value
