"""The verification itself: one pass over the raw records, everything recomputed.

Checkpoints against the tree: those in the ledger, and the one that was kept elsewhere.

Query texts: each must be what a record commits to. One that is missing may have been erased.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from lpf.errors import InputFileError
from lpf.ledger.formats import HASH_BYTES, QUERY_TEXT_FIELD, RECORD_FORMAT
from lpf.ledger.verifier.exported import ExportSource
from lpf.ledger.verifier.findings import EnoughFound, Findings, Verification
from lpf.ledger.verifier.sources import RawBlob, RawRecord, Source, StoreSource
from lpf.ledger.verifier.strict import NotStrictError, Seal, read_seal, strict_object, strict_value
from lpf.ledger.verifier.tree import CountingTree, TileCheck, leaf_of
from lpf.storage.database import Database


def read_trusted(data: bytes) -> Seal:
    """InputFileError for what is no checkpoint: that says nothing about the ledger."""
    try:
        return read_seal(data.strip())
    except NotStrictError as error:
        raise InputFileError(
            f"the trusted checkpoint is none ({error}); nothing was verified. Give the file as "
            "'lpf ledger checkpoint' wrote it."
        ) from error


class SealCheck:
    """``count`` of the ledger's checkpoints so far, ``signed_size`` of the last that fits."""

    def __init__(self, findings: Findings, tree: CountingTree, trusted: Seal | None) -> None:
        self._findings = findings
        self._tree = tree
        self._trusted = trusted
        self._identity: tuple[str, bytes] | None = None
        self.count = 0
        self.signed_size = 0

    def begin(self, identity: tuple[str, bytes] | None) -> None:
        """The ledger's name and key, which all checkpoints must be of."""
        self._identity = identity
        if self._trusted is not None:
            self._is_of_this_ledger("trusted checkpoint", self._trusted)

    def check(self, where: str, seq: int, data: bytes | None) -> None:
        """After record ``seq`` was added to the tree; ``data`` is the checkpoint stored with it."""
        if data is not None:
            self._check_stored(f"checkpoint of {where}", seq, data)
        trusted = self._trusted
        if trusted is not None and trusted.size == seq and self._tree.root() != trusted.root:
            self._findings.add(
                where,
                "rewritten: the records up to here have the root "
                f"{self._tree.root().hex()}, the trusted checkpoint says {trusted.root.hex()}",
            )

    def finish(self, last_seq: int) -> None:
        if self._trusted is not None and self._trusted.size > last_seq:
            self._findings.add(
                f"INF{last_seq + 1:08d}",
                f"truncated: the trusted checkpoint covers {self._trusted.size} records, "
                f"there are {last_seq}",
            )

    def _check_stored(self, where: str, seq: int, data: bytes) -> None:
        try:
            seal = read_seal(data)
        except NotStrictError as error:
            self._findings.add(where, str(error))
            return
        self.count += 1
        sound = self._is_of_this_ledger(where, seal)
        if not self._findings.expect(where, "size", seq, seal.size):
            return
        root = self._tree.root()
        if self._findings.expect_each("checkpoint", where, "root", root, seal.root) and sound:
            self.signed_size = seal.size

    def _is_of_this_ledger(self, where: str, seal: Seal) -> bool:
        origin, key = self._identity or (seal.origin, seal.key)
        expect = self._findings.expect_each
        same_origin = expect("checkpoint", where, "origin", origin, seal.origin)
        return expect("checkpoint", where, "key", key, seal.key) and same_origin


class TextCheck:
    """Read before the records, so that each text's record is among those; keeps 32 bytes a text
    until then."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._unclaimed: set[bytes] = set()

    def read(self, source: Source) -> None:
        for text in source.texts():
            committed = hashlib.sha256(text.salt + text.words).digest()
            self._findings.expect(text.where, "commitment", committed, text.commitment)
            self._unclaimed.add(text.commitment)

    def claim(self, fields: dict[str, Any]) -> None:
        """The fields of one record."""
        named = fields.get(QUERY_TEXT_FIELD)
        if self._unclaimed and isinstance(named, str):
            try:
                self._unclaimed.discard(bytes.fromhex(named))
            except ValueError:
                return  # not a commitment; records may hold what they like

    def finish(self) -> None:
        for commitment in self._unclaimed:
            self._findings.add(f"query text {commitment.hex()}", "no record refers to it")


MOST_FINDINGS = 100
KEY_BYTES = 32


def verify(
    source: Database | Path,
    public_key: bytes | None = None,
    trusted: bytes | None = None,
    *,
    most_findings: int = MOST_FINDINGS,
) -> Verification:
    """Checks a store's ledger or an export file, in one pass; memory stays small.

    ``public_key``: the ledger must be this key's. ``trusted``: a checkpoint kept elsewhere, as
    ``Checkpoint.to_bytes`` gave it; the ledger must be a continuation of it. Stops after
    ``most_findings``. InputFileError for a file that is no export, a checkpoint or key that is
    none: then nothing was verified.
    """
    _require_key(public_key)
    findings = Findings(most_findings)
    raw: Source = (
        StoreSource(source, findings)
        if isinstance(source, Database)
        else ExportSource(source, findings)
    )
    audit = _Audit(raw, findings, None if trusted is None else read_trusted(trusted))
    with contextlib.suppress(EnoughFound):
        audit.run(public_key)
    return replace(audit.result(), keyed=public_key is not None, trusted=trusted is not None)


def _require_key(public_key: bytes | None) -> None:
    if public_key is not None and len(public_key) != KEY_BYTES:
        raise InputFileError(
            f"a public key has {KEY_BYTES} bytes, this one {len(public_key)}; nothing was verified."
        )


class _Audit:
    def __init__(self, source: Source, findings: Findings, trusted: Seal | None) -> None:
        self._source = source
        self._findings = findings
        self._tree = CountingTree()
        self._last_seq = 0
        self._referenced: dict[bytes, str] = {}
        self._seals = SealCheck(findings, self._tree, trusted)
        self._tiles = TileCheck(findings) if source.has_tiles else None
        self._texts = TextCheck(findings)

    def run(self, public_key: bytes | None) -> None:
        identity = self._source.identity()
        if public_key is not None and identity is not None:
            self._findings.expect("identity", "public key", public_key, identity[1])
        self._seals.begin(identity)
        self._texts.read(self._source)
        for record in self._source.records():
            self._check_record(record)
        self._seals.finish(self._last_seq)
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
            checkpoints=self._seals.count,
            unsigned_tail=self._tree.size - self._seals.signed_size,
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
        self._seals.check(record.where, record.seq, record.checkpoint)

    def _check_order(self, record: RawRecord) -> None:
        due = self._last_seq + 1
        if record.seq > due:
            missing = f"INF{due:08d}", f"INF{record.seq - 1:08d}"
            further = f", and so are all others up to {missing[1]}" if record.seq > due + 1 else ""
            self._findings.add(missing[0], f"is missing{further}")
        elif record.seq < due:
            what = f"seq: stands where INF{due:08d} belongs"
            self._findings.add_each("record", "seq", record.where, what)
        self._last_seq = max(self._last_seq, record.seq)

    def _leaf(self, record: RawRecord) -> bytes:
        """The hash of the body. Where that was replaced by another type, which was found already,
        the stored hash: so that one change does not look like one of all that follows."""
        if record.body is None:
            return record.leaf or bytes(HASH_BYTES)
        leaf = leaf_of(record.body)
        if record.leaf not in (None, leaf):
            self._findings.add(record.where, _unlike(leaf, record.leaf or b""))
        return leaf

    def _check_body(self, where: str, seq: int, body: bytes) -> None:
        try:
            fields = strict_object(body)
        except NotStrictError as error:
            self._findings.add(where, f"body: {error}")
            return
        self._findings.expect(where, "format", RECORD_FORMAT, fields.get("format"))
        named = fields.get("record_id")
        self._findings.expect_each("record", where, "record_id", f"INF{seq:08d}", named)
        self._texts.claim(fields)
        for digest in _references(fields):
            self._referenced.setdefault(digest, where)

    def _check_blob(self, blob: RawBlob) -> None:
        self._findings.expect(blob.where, "hash", hashlib.sha256(blob.body).digest(), blob.digest)
        try:
            strict_value(blob.body)
        except NotStrictError as error:
            self._findings.add(blob.where, str(error))
        self._referenced.pop(blob.digest, None)


def _unlike(body: bytes, stored: bytes) -> str:
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


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef")
