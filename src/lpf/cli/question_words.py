"""The words a question was asked with: kept beside its record, until they are erased."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lpf.errors import LedgerBrokenError

if TYPE_CHECKING:
    from lpf.ledger import StoredRecord
    from lpf.workspace import Workspace

COMMITMENT = "query_text"


def query_words(workspace: Workspace, record: StoredRecord) -> str | None:
    """None where it was asked without any, or they were erased."""
    commitment = record.fields.get(COMMITMENT)
    kept = commitment and workspace.records.query_text(bytes.fromhex(commitment))
    return kept.text if kept else None


def why_no_words(workspace: Workspace, record_id: str) -> str | None:
    """Why there is nothing to erase; None where there is something, if only changed words."""
    record = workspace.records.get(record_id)
    if COMMITMENT not in record.fields:
        return "was asked without words"
    try:
        return None if query_words(workspace, record) is not None else "its words are erased"
    except LedgerBrokenError:
        return None
