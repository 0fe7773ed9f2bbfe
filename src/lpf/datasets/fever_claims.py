"""FEVER's files of claims: ``train.jsonl``, ``shared_task_dev.jsonl`` and so on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lpf.datasets.fever_pages import page_name
from lpf.datasets.fields import FieldError, Record, shown
from lpf.datasets.lines import object_lines
from lpf.errors import DatasetError

NOT_ENOUGH_INFO = "NOT ENOUGH INFO"
_FORM = "Write a list of evidence sets, each a list of [annotation id, evidence id, page, number]."
Citation = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FeverClaim:
    """A claim and what all its evidence sets cite: page and number of the sentence, each once. The
    label is FEVER's; None in its blind test file."""

    line: int
    fever_id: str
    text: str
    label: str | None
    citations: tuple[Citation, ...]

    @property
    def place(self) -> str:
        return f"claim {self.fever_id}, line {self.line}"


def read_claims(path: Path, labels: Collection[str]) -> list[FeverClaim]:
    """DatasetError where a line is not in FEVER's form, has none of the ``labels``, or an id that
    came before."""
    claims: dict[str, FeverClaim] = {}
    for line, values in object_lines(path):
        try:
            claim = _claim(line, values, labels)
            if claim.fever_id in claims:
                before = claims[claim.fever_id].line
                raise FieldError(
                    "id",
                    f"{shown(claim.fever_id)} stands already in line {before}",
                    "Give every claim an id of its own.",
                )
        except FieldError as error:
            raise DatasetError(
                f"{path}, line {line}: {error}. Nothing was read. {error.remedy}"
            ) from error
        claims[claim.fever_id] = claim
    if not claims:
        raise DatasetError(f"{path}: is empty. Nothing was read. Write one claim a line.")
    return list(claims.values())


def _claim(line: int, values: Mapping[str, object], labels: Collection[str]) -> FeverClaim:
    record = Record(values)
    label = record.identifier("label")
    if label is not None and label not in labels:
        raise record.error(
            "label", f"{shown(label)} is none of {list(labels)}", "Use FEVER's own labels."
        )
    citations = tuple(dict.fromkeys(_citations(record)))
    return FeverClaim(
        line, record.required_identifier("id"), record.required_text("claim"), label, citations
    )


def _citations(record: Record) -> Iterator[Citation]:
    """In the order of the file. A claim that is NOT ENOUGH INFO has nulls in their place."""
    given = record.values.get("evidence")
    sets = [] if given is None else _listed(record, given, "evidence")
    for outer, evidence_set in enumerate(sets):
        for inner, cited in enumerate(_listed(record, evidence_set, f"evidence[{outer}]")):
            match cited:
                case [_, _, str(page), int(number)]:
                    yield page_name(page), number
                case [_, _, None, None]:
                    pass
                case _:
                    raise record.error(
                        f"evidence[{outer}][{inner}]", f"is no citation: {shown(cited)}", _FORM
                    )


def _listed(record: Record, value: object, field: str) -> list[object]:
    if not isinstance(value, list):
        raise record.error(field, f"must be a list, got {shown(value)}", _FORM)
    return value
