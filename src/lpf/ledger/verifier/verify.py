"""Verify a ledger in one pass over its raw records, recomputing everything."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from lpf.errors import InputFileError
from lpf.ledger.formats import HASH_BYTES, RECORD_FORMAT, TEXT_FIELDS
from lpf.ledger.verifier.checkpoints import CheckpointCheck, SignedCheckpoint, read_trusted
from lpf.ledger.verifier.exported import ExportSource
from lpf.ledger.verifier.findings import FindingLimitReached, Findings, Verification
from lpf.ledger.verifier.sources import RawBlob, RawRecord, RecordSource, StoreSource
from lpf.ledger.verifier.strict import NotStrictError, strict_object, strict_value
from lpf.ledger.verifier.tree import CountingTree, TileCheck, leaf_of
from lpf.storage.database import Database

MOST_FINDINGS = 100
KEY_BYTES = 32


def verify(
    source: Database | Path,
    public_key: bytes | None = None,
    trusted: bytes | None = None,
    *,
    most_findings: int = MOST_FINDINGS,
) -> Verification:
    """Verify the ledger of a store, or an export file; needs little memory.

    ``public_key``: the key the ledger must have. ``trusted``: a checkpoint from a trusted place, as
    written by ``Checkpoint.to_bytes``; the ledger must extend it. Stops after ``most_findings``.
    InputFileError if the file is not an export, or the checkpoint or key is not valid: then nothing
    was verified.
    """
    if public_key is not None and len(public_key) != KEY_BYTES:
        raise InputFileError(
            f"a public key has {KEY_BYTES} bytes, this one has {len(public_key)}. Nothing was "
            "verified."
        )
    findings = Findings(most_findings)
    raw: RecordSource = (
        StoreSource(source, findings)
        if isinstance(source, Database)
        else ExportSource(source, findings)
    )
    run = _Verifier(raw, findings, None if trusted is None else read_trusted(trusted))
    with contextlib.suppress(FindingLimitReached):
        run.run(public_key)
    return replace(run.result(), keyed=public_key is not None, trusted=trusted is not None)


class _Verifier:
    """One verification. Reads the source in its fixed order and hands each part to its check."""

    def __init__(
        self, source: RecordSource, findings: Findings, trusted: SignedCheckpoint | None
    ) -> None:
        self._source = source
        self._findings = findings
        self._tree = CountingTree()
        self._last_seq = 0
        self._referenced: dict[bytes, str] = {}
        self._checkpoints = CheckpointCheck(findings, self._tree, trusted)
        self._tiles = TileCheck(findings) if source.has_tiles else None
        self._texts = TextCheck(findings)

    def run(self, public_key: bytes | None) -> None:
        identity = self._source.identity()
        if public_key is not None and identity is not None:
            self._findings.expect("identity", "public key", public_key, identity[1])
        self._checkpoints.begin(identity)
        self._texts.read(self._source)
        for record in self._source.records():
            self._check_record(record)
        self._checkpoints.finish(self._last_seq)
        self._texts.finish()
        if self._tiles is not None:
            self._tiles.compare(self._source, self._tree.size)
        for blob in self._source.blobs():
            self._check_blob(blob)
        for digest, where in self._referenced.items():
            self._findings.add(where, f"refers to blob {digest.hex()}, which is missing")

    def result(self) -> Verification:
        return Verification(
            records=self._tree.size,
            checkpoints=self._checkpoints.count,
            unsigned_tail=self._tree.size - self._checkpoints.signed_size,
            root=self._tree.root(),
            findings=self._findings.all(),
        )

    def _check_record(self, record: RawRecord) -> None:
        self._check_order(record)
        completed = self._tree.add(self._leaf(record))
        if record.body is not None:
            self._check_body(record.where, record.seq, record.body)
        if self._tiles is not None:
            self._tiles.add(completed)
        self._checkpoints.check(record.where, record.seq, record.checkpoint)

    def _check_order(self, record: RawRecord) -> None:
        expected = self._last_seq + 1
        if record.seq > expected:
            last = f"INF{record.seq - 1:08d}"
            more = f", and so are all others up to {last}" if record.seq > expected + 1 else ""
            self._findings.add(f"INF{expected:08d}", f"is missing{more}")
        elif record.seq < expected:
            what = f"seq: is in the place of INF{expected:08d}"
            self._findings.add_each("record", "seq", record.where, what)
        self._last_seq = max(self._last_seq, record.seq)

    def _leaf(self, record: RawRecord) -> bytes:
        """The hash of the body. If the body has the wrong type, which is a finding already, the
        stored hash, so that one change does not invalidate everything after it."""
        if record.body is None:
            return record.leaf or bytes(HASH_BYTES)
        leaf = leaf_of(record.body)
        if record.leaf not in (None, leaf):
            self._findings.add(record.where, _wrong_leaf(leaf, record.leaf or b""))
        return leaf

    def _check_body(self, where: str, seq: int, body: bytes) -> None:
        try:
            fields = strict_object(body)
        except NotStrictError as error:
            self._findings.add(where, f"body: {error}")
            return
        self._findings.expect(where, "format", RECORD_FORMAT, fields.get("format"))
        record_id = fields.get("record_id")
        self._findings.expect_each("record", where, "record_id", f"INF{seq:08d}", record_id)
        self._texts.note_record(fields)
        for digest in _references(fields):
            self._referenced.setdefault(digest, where)

    def _check_blob(self, blob: RawBlob) -> None:
        self._findings.expect(blob.where, "hash", hashlib.sha256(blob.body).digest(), blob.digest)
        try:
            strict_value(blob.body)
        except NotStrictError as error:
            self._findings.add(blob.where, str(error))
        self._referenced.pop(blob.digest, None)


class TextCheck:
    """Checks that each query text or comment matches its salted hash and that a record refers to
    it. A missing text is not a finding: it may have been erased.

    Texts are read before the records, so that their records are seen later; until then 32 bytes
    per text are held in memory.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._unreferenced: set[bytes] = set()

    def read(self, source: RecordSource) -> None:
        for text in source.texts():
            committed = hashlib.sha256(text.salt + text.words).digest()
            self._findings.expect(text.where, "commitment", committed, text.commitment)
            self._unreferenced.add(text.commitment)

    def note_record(self, fields: dict[str, Any]) -> None:
        """Note which text the fields of a record refer to."""
        if not self._unreferenced:
            return
        for commitment in map(fields.get, TEXT_FIELDS):
            if _is_hash(commitment):
                self._unreferenced.discard(bytes.fromhex(commitment))

    def finish(self) -> None:
        """Call after the last record."""
        for commitment in self._unreferenced:
            self._findings.add(f"query text {commitment.hex()}", "no record refers to it")


def _wrong_leaf(body: bytes, stored: bytes) -> str:
    return (
        "its body is not the one that was recorded: leaf: expected "
        f"{body.hex()}, the hash of the body, found {stored.hex()}"
    )


def _references(value: Any) -> set[bytes]:
    if isinstance(value, dict):
        if value.keys() == {"blob"} and _is_hash(value["blob"]):
            return {bytes.fromhex(value["blob"])}
        value = list(value.values())
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


def _is_hash(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef")
