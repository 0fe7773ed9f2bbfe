"""The verification itself: one pass over the raw records, everything recomputed."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

from lpf.ledger.formats import RECORD_FORMAT
from lpf.ledger.verifier.exported import ExportSource
from lpf.ledger.verifier.findings import EnoughFound, Findings, Verification
from lpf.ledger.verifier.seals import Seal, read_seal
from lpf.ledger.verifier.sources import RawBlob, RawRecord, Source, StoreSource
from lpf.ledger.verifier.strict import NotStrictError, strict_object, strict_value
from lpf.ledger.verifier.texts import TextCheck
from lpf.ledger.verifier.tiles import TileCheck
from lpf.ledger.verifier.tree import CountingTree, leaf_of
from lpf.storage.database import Database

MOST_FINDINGS = 100


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
    ``most_findings``.
    """
    findings = Findings(most_findings)
    raw: Source = (
        StoreSource(source, findings)
        if isinstance(source, Database)
        else ExportSource(source, findings)
    )
    audit = _Audit(raw, findings)
    with contextlib.suppress(EnoughFound):
        audit.run(public_key, trusted)
    return audit.result()


class _Audit:
    def __init__(self, source: Source, findings: Findings) -> None:
        self._source = source
        self._findings = findings
        self._tree = CountingTree()
        self._expected_seq = 1
        self._checkpoints = 0
        self._signed_size = 0
        self._identity: tuple[str, bytes] | None = None
        self._trusted: Seal | None = None
        self._referenced: dict[bytes, str] = {}
        self._tiles = TileCheck(findings) if source.has_tiles else None
        self._texts = TextCheck(findings)

    def run(self, public_key: bytes | None, trusted: bytes | None) -> None:
        self._identity = self._source.identity()
        if public_key is not None and self._identity is not None:
            self._findings.expect("identity", "public key", public_key, self._identity[1])
        if trusted is not None:
            self._trusted = self._seal("trusted checkpoint", trusted.strip())
        self._texts.read(self._source)
        for record in self._source.records():
            self._check_record(record)
        self._check_reached()
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
            checkpoints=self._checkpoints,
            unsigned_tail=self._tree.size - self._signed_size,
            root=self._tree.root(),
            findings=self._findings.all(),
        )

    def _check_record(self, record: RawRecord) -> None:
        where = f"INF{self._expected_seq:08d} ({record.where})"
        self._findings.expect(where, "seq", self._expected_seq, record.seq)
        leaf = leaf_of(record.body)
        self._findings.expect(where, "leaf", leaf, record.leaf)
        self._check_body(where, record)
        completed = self._tree.add(leaf)
        if self._tiles is not None:
            self._tiles.add(completed)
        if record.checkpoint is not None:
            self._check_checkpoint(f"checkpoint of {where}", record.checkpoint)
        if self._trusted is not None and self._trusted.size == self._tree.size:
            self._check_trusted(where, self._trusted)
        # From here on count from what was found, so that one gap is one finding.
        self._expected_seq = record.seq + 1

    def _check_body(self, where: str, record: RawRecord) -> None:
        try:
            fields = strict_object(record.body)
        except NotStrictError as error:
            self._findings.add(where, f"body: {error}")
            return
        self._findings.expect(where, "format", RECORD_FORMAT, fields.get("format"))
        self._findings.expect(where, "record_id", f"INF{record.seq:08d}", fields.get("record_id"))
        self._texts.claim(fields)
        for digest in _references(fields):
            self._referenced.setdefault(digest, where)

    def _check_checkpoint(self, where: str, data: bytes) -> None:
        seal = self._seal(where, data)
        if seal is None:
            return
        self._checkpoints += 1
        sound = self._findings.expect(where, "size", self._tree.size, seal.size)
        if sound and self._findings.expect(where, "root", self._tree.root(), seal.root):
            self._signed_size = seal.size

    def _seal(self, where: str, data: bytes) -> Seal | None:
        """A checkpoint that is signed by this ledger's key; a finding and None if it is not."""
        try:
            seal = read_seal(data)
        except NotStrictError as error:
            self._findings.add(where, str(error))
            return None
        if self._identity is not None:
            self._findings.expect(where, "origin", self._identity[0], seal.origin)
            self._findings.expect(where, "key", self._identity[1], seal.key)
        return seal

    def _check_trusted(self, where: str, trusted: Seal) -> None:
        if self._tree.root() != trusted.root:
            self._findings.add(
                where,
                "rewritten: the records up to here have the root "
                f"{self._tree.root().hex()}, the trusted checkpoint says {trusted.root.hex()}",
            )

    def _check_reached(self) -> None:
        if self._trusted is not None and self._trusted.size > self._tree.size:
            self._findings.add(
                f"INF{self._tree.size + 1:08d}",
                f"truncated: the trusted checkpoint covers {self._trusted.size} records, "
                f"there are {self._tree.size}",
            )

    def _check_blob(self, blob: RawBlob) -> None:
        self._findings.expect(blob.where, "hash", hashlib.sha256(blob.body).digest(), blob.digest)
        try:
            strict_value(blob.body)
        except NotStrictError as error:
            self._findings.add(blob.where, str(error))
        self._referenced.pop(blob.digest, None)


def _references(value: Any) -> set[bytes]:
    if isinstance(value, dict):
        if value.keys() == {"blob"} and _is_hash(value["blob"]):
            return {bytes.fromhex(value["blob"])}
        value = list(value.values())
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef")
