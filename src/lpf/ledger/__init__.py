"""An append-only record of every answer: canonical JSON, a Merkle tree over it, signed checkpoints.

See docs/ledger.md.
"""

from lpf.ledger.canonical import canonical
from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.export import export
from lpf.ledger.identity import Identity
from lpf.ledger.keys import KeyFiles, create_key, load_private, load_public, public_bytes
from lpf.ledger.proofs import checkpoint_at, prove_consistency, prove_inclusion
from lpf.ledger.reader import LedgerReader, StoredRecord
from lpf.ledger.records import (
    Draft,
    QueryText,
    Receipt,
    query_text_commitment,
    record_id,
    reference,
    sequence_of,
)
from lpf.ledger.verifier import Finding, Verification, verify
from lpf.ledger.writer import Ledger, erase_query_texts

__all__ = [
    "Checkpoint",
    "Draft",
    "Finding",
    "Identity",
    "KeyFiles",
    "Ledger",
    "LedgerReader",
    "QueryText",
    "Receipt",
    "StoredRecord",
    "Verification",
    "canonical",
    "checkpoint_at",
    "create_key",
    "erase_query_texts",
    "export",
    "load_private",
    "load_public",
    "prove_consistency",
    "prove_inclusion",
    "public_bytes",
    "query_text_commitment",
    "record_id",
    "reference",
    "sequence_of",
    "verify",
]
