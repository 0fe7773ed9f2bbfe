"""Files that are no evidence files but look like ones: data sets, an entity a line."""

from __future__ import annotations

from itertools import islice

from lpf.errors import InputFileError
from lpf.ingest.columns import TEXT_NAMES
from lpf.ingest.files import InputFile
from lpf.ingest.rows import InputRow

ROWS_LOOKED_AT = 20


def refuse_dataset(file: InputFile) -> None:
    """InputFileError where the first row that can be read is an entity with a list of evidence,
    rather than an item: then all of them are, and none would be usable."""
    if file.columns is not None:  # a data set is JSONL
        return
    first = next((row for row in islice(file.rows(), ROWS_LOOKED_AT) if not row.error), None)
    if first is not None and _is_entity(first):
        raise InputFileError(
            f"{file.name}, line {first.line}: has a list 'evidence', so this is a data set, an "
            "entity a line; evidence files have an item a line. Nothing was added; 'lpf train "
            "FILE' and 'lpf evaluate FILE' take data sets."
        )


def _is_entity(row: InputRow) -> bool:
    texts = [row.values.get(name) for name in TEXT_NAMES]
    return isinstance(row.values.get("evidence"), list) and not any(texts)
