"""Erasing the words of questions. The records stay as they are: they hold commitments only."""

from __future__ import annotations

from collections.abc import Iterable

from lpf.ledger import statements
from lpf.ledger.formats import QUERY_TEXT_FIELD
from lpf.ledger.reading import LedgerReader, is_digest
from lpf.storage.database import Database


def erase_query_texts(database: Database, record_ids: Iterable[str]) -> int:
    """Deletes the words that these records were asked in, all in one transaction, and returns how
    many texts that were. UnknownRecordError, with nothing erased, where one is no record.

    The store's files may hold deleted bytes until they are overwritten; to scrub them is up to the
    caller.
    """
    reader = LedgerReader(database)
    named = [reader.get(each).fields.get(QUERY_TEXT_FIELD, "") for each in record_ids]
    commitments = {bytes.fromhex(name) for name in named if is_digest(name)}
    with database.writing() as connection:
        runs = [database.run(connection, statements.DELETE_TEXT, (c,)) for c in commitments]
        return sum(run.rowcount for run in runs)
