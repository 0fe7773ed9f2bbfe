"""Checkpoints against the tree: those in the ledger, and the one that was kept elsewhere."""

from __future__ import annotations

from lpf.errors import InputFileError
from lpf.ledger.verifier.findings import Findings
from lpf.ledger.verifier.seals import Seal, read_seal
from lpf.ledger.verifier.strict import NotStrictError
from lpf.ledger.verifier.tree import CountingTree


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
