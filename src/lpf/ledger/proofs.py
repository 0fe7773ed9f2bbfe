"""Proof bundles for people who have neither the store nor this package.

A bundle is one JSON document, checked by ``check_bundle.py``. An inclusion bundle has a record, the
path from it to the root of a signed checkpoint, and the blobs it refers to. A consistency bundle
has two signed checkpoints and the path that proves that the later ledger extends the earlier one.
"""

from __future__ import annotations

from typing import Any

from lpf.errors import ProofError
from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.formats import CONSISTENCY_FORMAT, INCLUSION_FORMAT
from lpf.ledger.merkle import consistency_path, inclusion_path, leaf_hash, root_of
from lpf.ledger.reader import LedgerReader, referenced_blobs
from lpf.ledger.records import record_id
from lpf.ledger.tiles import StoredTree
from lpf.storage.database import Database


def prove_inclusion(
    database: Database, identifier: str, checkpoint: Checkpoint | None = None
) -> dict[str, Any]:
    """The inclusion bundle of a record under ``checkpoint`` or the newest one. ProofError if that
    does not cover the record or does not match the store."""
    reader = LedgerReader(database)
    record = reader.get(identifier)
    checkpoint = checkpoint or reader.latest_checkpoint()
    if checkpoint is None or checkpoint.size < record.seq:
        raise ProofError(
            f"{identifier}: no signed checkpoint covers it yet, so nothing can be proved.",
            hint="Create one with 'lpf ledger checkpoint' on the machine with the signing key.",
        )
    tree = _tree_of(database, reader, checkpoint)
    if leaf_hash(record.body) != tree.subtree(0, record.seq - 1):
        raise ProofError(f"{identifier}: its body does not match its hash in the tree.")
    blobs = {digest: reader.blob(digest) for digest in referenced_blobs(record.fields)}
    return {
        "format": INCLUSION_FORMAT,
        "body": record.body.decode(),
        "index": record.seq - 1,
        "path": [node.hex() for node in inclusion_path(tree, record.seq - 1, checkpoint.size)],
        "checkpoint": checkpoint.document(),
        "blobs": {digest.hex(): blob.decode() for digest, blob in sorted(blobs.items())},
    }


def prove_consistency(database: Database, first: Checkpoint, second: Checkpoint) -> dict[str, Any]:
    """The bundle that proves that ``second`` extends ``first``. ProofError if it does not."""
    if not 0 < first.size <= second.size:
        raise ProofError(
            f"the first checkpoint covers {first.size} records, the second {second.size}.",
            hint="Give the earlier one first.",
        )
    reader = LedgerReader(database)
    tree = _tree_of(database, reader, second)
    _require_root(tree, first)
    path = consistency_path(tree, first.size, second.size)
    return {
        "format": CONSISTENCY_FORMAT,
        "first": first.document(),
        "second": second.document(),
        "path": [node.hex() for node in path],
    }


def checkpoint_at(database: Database, size: int) -> Checkpoint:
    """The signed checkpoint over the first ``size`` records. ProofError if there is none."""
    checkpoint = LedgerReader(database).get(record_id(size)).checkpoint
    if checkpoint is None:
        raise ProofError(
            f"{record_id(size)} has no checkpoint.",
            hint="'lpf ledger show' lists the records that have one.",
        )
    return checkpoint


def _tree_of(database: Database, reader: LedgerReader, checkpoint: Checkpoint) -> StoredTree:
    checkpoint.verify()
    size = reader.size
    if checkpoint.size > size:
        raise ProofError(
            f"the checkpoint covers {checkpoint.size} records, the ledger has {size}: records were "
            "lost, or it belongs to another ledger.",
            hint="Run 'lpf ledger verify' with this checkpoint.",
        )
    tree = StoredTree(database.rows, size)
    _require_root(tree, checkpoint)
    return tree


def _require_root(tree: StoredTree, checkpoint: Checkpoint) -> None:
    root = root_of(tree, 0, checkpoint.size)
    if root != checkpoint.root:
        raise ProofError(
            f"the first {checkpoint.size} records have the root {root.hex()}, the checkpoint says "
            f"{checkpoint.root.hex()}: nothing can be proved.",
            hint="Run 'lpf ledger verify'.",
        )
