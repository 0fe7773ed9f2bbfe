"""Export the whole ledger to one file that can be read and verified without a database.

The lines are canonical JSON: a header, the records in order, the blobs, and a last line with their
counts and the SHA-256 of everything before it. A record's body is a JSON string, so that its bytes
are preserved exactly. Query texts are not exported, because they can be erased.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from lpf.errors import LedgerError
from lpf.ledger import statements
from lpf.ledger.canonical import canonical
from lpf.ledger.formats import EXPORT_FORMAT
from lpf.ledger.identity import broken, read_identity, require_blob, require_body, require_bytes
from lpf.ledger.reader import LedgerReader
from lpf.ledger.records import record_id
from lpf.storage.atomic_files import atomic_file
from lpf.storage.database import Database


def export(database: Database, path: Path) -> int:
    """Write the ledger to ``path`` atomically and return the number of records. Records appended in
    the meantime are left out. LedgerBrokenError if a body does not match its hash."""
    try:
        with atomic_file(path) as file:
            records = _write(database, file)
    except OSError as error:
        raise LedgerError(
            f"{path}: the ledger was not exported ({error.strerror}); no file was written."
        ) from error
    return records


def _write(database: Database, file: BinaryIO) -> int:
    digest = hashlib.sha256()
    counts = {"record": 0, "blob": 0, "header": 0}
    for kind, document in _documents(database):
        line = canonical(document) + b"\n"
        digest.update(line)
        file.write(line)
        counts[kind] += 1
    end = {"blobs": counts["blob"], "records": counts["record"], "sha256": digest.hexdigest()}
    file.write(canonical({"end": end}) + b"\n")
    return counts["record"]


def _documents(database: Database) -> Iterator[tuple[str, dict[str, Any]]]:
    identity = read_identity(database)
    yield (
        "header",
        {
            "format": EXPORT_FORMAT,
            "origin": identity.origin,
            "public_key": identity.public_key.hex(),
        },
    )
    size = LedgerReader(database).size
    for chunk in database.stream(statements.RECORDS, (1, size)):
        for row in chunk:
            yield "record", _record_line(*row)
    # After the records: a blob is stored with the first record that refers to it, so every blob
    # that the records above refer to is included.
    for chunk in database.stream(statements.BLOBS):
        for digest, body in chunk:
            content = require_blob(digest, body)
            yield "blob", {"blob": digest.hex(), "body": _text(f"blob {digest.hex()}", content)}


def _record_line(seq: int, leaf: object, body: object, checkpoint: object) -> dict[str, Any]:
    where = record_id(seq)
    digest, content = require_body(seq, leaf, body)
    line = {"seq": seq, "leaf": digest.hex(), "body": _text(where, content), "checkpoint": None}
    if checkpoint is not None:
        signed = require_bytes(where, "checkpoint", checkpoint)
        line["checkpoint"] = _text(f"checkpoint of {where}", signed)
    return line


def _text(where: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise broken(where, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
