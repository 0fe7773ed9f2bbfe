"""Change single fields of a stored item: the item gets a new version."""

from __future__ import annotations

from collections.abc import Mapping

from lpf.errors import ConfigError, EvidenceError
from lpf.ingest.evidence_drafts import DraftReader
from lpf.ingest.input_rows import InputRow
from lpf.ingest.row_fields import RowError, named_problems
from lpf.reading.reader import Reader, ReadRequest
from lpf.schema import Schema
from lpf.storage.evidence import EvidenceStore, StoredEvidence

# The ID, the entity and the predicate say which item it is; a change of them is another item.
EDITABLE = (
    "text_content",
    "credibility",
    "timestamp",
    "source",
    "claim",
    "report_id",
    "supports_value",
    "evidence_type",
)


def edit_item(
    evidence_id: str,
    changes: Mapping[str, object],
    store: EvidenceStore,
    schema: Schema,
    reader: Reader,
) -> StoredEvidence:
    """Replace an item by a version with other values of some of the fields EDITABLE; an empty text
    or None removes a value. The item as it is now is returned.

    ConfigError for another field, UnknownEvidenceError if the item is not in the store,
    EvidenceError for a value that is invalid, or if nothing would change.
    """
    for name in changes.keys() - set(EDITABLE):
        raise ConfigError(
            f"{name!r} cannot be edited, only {list(EDITABLE)}. Nothing was changed.", field=name
        )
    stored = store.get(evidence_id)
    fields = ("evidence_id", "entity_id", "predicate", *EDITABLE)
    values = {name: getattr(stored.evidence, name) for name in fields} | dict(changes)
    try:
        draft = DraftReader(schema).draft(InputRow(1, values))
    except RowError as error:
        raise EvidenceError(
            f"evidence {evidence_id!r}: {named_problems(error.problems)}. Nothing was changed."
        ) from None
    if draft.content_hash == stored.content_hash:
        raise EvidenceError(
            f"evidence {evidence_id!r} already has these values. Nothing was changed."
        )
    request = ReadRequest(draft.evidence.text_content, draft.evidence.claim)
    number = store.reader_number(reader.reader_id, reader.width)
    store.replace([draft.as_new()], reader.read_many([request]), number)
    return store.get(evidence_id)
