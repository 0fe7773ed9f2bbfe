"""Write all feedback to a file: one row per review and adjudication."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from lpf.errors import ConfigError
from lpf.ledger.contents import NO_ANSWER_METHOD
from lpf.ledger.reader import LedgerReader
from lpf.review.feedback import AllFeedback, AnswerFeedback, in_order
from lpf.review.records import Adjudication, Review, iso_of
from lpf.storage.table_files import Columns, table_writer

COLUMNS: Final[Columns] = {
    "record": "text",
    "time": "time",
    "answer": "text",
    "entity_id": "text",
    "predicate": "text",
    "answered": "text",
    "confidence": "share",
    "reviewer": "text",
    "verdict": "text",
    "value": "text",
    "follows": "text",
    "judgements": "text",
    "revised_value": "text",
    "revised_confidence": "share",
    "comment": "text",
    "withdrawn": "text",
    "status": "text",
    "final_value": "text",
}
TABLES = (".csv", ".xlsx", ".parquet")
LINES = (".jsonl", ".ndjson", ".json")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_format(target: str | Path) -> str:
    """The suffix that decides how feedback is written. ConfigError for one of another kind."""
    suffix = Path(target).suffix.lower()
    if suffix in TABLES:
        return suffix
    if suffix in LINES:
        return LINES[0]
    raise ConfigError(
        f"{target}: reviews are written as .jsonl, .csv, .xlsx or .parquet. Nothing was written.",
        field="FILE",
    )


def write_feedback(
    suffix: str, file: IO[bytes], feedback: AllFeedback, records: LedgerReader
) -> int:
    """Write into an open file and return the number of rows. In CSV, which has no types, a text
    that a spreadsheet program would take for a formula gets an apostrophe in front."""
    table = table_writer(suffix, file, COLUMNS)
    count = 0
    for row, document in _rows(feedback, records):
        count += 1
        if table is None:
            line = json.dumps(document, allow_nan=False).replace("\x7f", "\\u007f")
            file.write(line.encode() + b"\n")
        else:
            cells = [row[name] for name in COLUMNS]
            table.write([*map(_plain, cells)] if suffix == ".csv" else cells)
    if table is not None:
        table.close()
    return count


def _plain(cell: object) -> object:
    is_formula = isinstance(cell, str) and cell.startswith(FORMULA)
    return f"'{cell}" if is_formula else cell


def _rows(
    feedback: AllFeedback, records: LedgerReader
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The cells and the JSON document of each review and adjudication."""
    for answer in feedback.by_answer.values():
        given = list(in_order([answer]))
        if not given:
            continue
        fields = records.get(answer.about).fields
        names = {"answered": "top_value", "confidence": "confidence"}
        has_answer = fields["method"] != NO_ANSWER_METHOD
        answered = {name: fields[of] if has_answer else None for name, of in names.items()}
        state = {"status": answer.status, "final_value": answer.value}
        for one in given:
            withdrawn = answer.withdrawn.get(one.record_id)
            more = {
                **answered,
                **state,
                "withdrawn": None if withdrawn is None else iso_of(withdrawn.timestamp),
            }
            document = one.to_dict() | more
            yield _cells(answer, one) | more, document


def _cells(answer: AnswerFeedback, one: Review | Adjudication) -> dict[str, Any]:
    cells: dict[str, Any] = {
        "record": one.record_id,
        "time": one.timestamp,
        "answer": one.about,
        "entity_id": one.entity_id,
        "predicate": one.predicate,
        "reviewer": one.reviewer,
        "verdict": "adjudicate",
        "value": one.value,
        "follows": None,
        "judgements": None,
        "revised_value": None,
        "revised_confidence": None,
        "comment": "(erased)" if one.is_erased else one.comment,
    }
    if isinstance(one, Review):
        cells["verdict"], cells["follows"] = one.verdict, one.follows
        cells["judgements"] = "; ".join(one.judged) or None
        if one.revised_top is not None:
            cells["revised_value"], cells["revised_confidence"] = one.revised_top
    return cells
