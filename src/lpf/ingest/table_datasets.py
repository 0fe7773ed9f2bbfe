"""A data set from a table: one item per row, grouped by entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lpf.datasets import Dataset, read_dataset
from lpf.datasets.dataset_file import NumberedObject
from lpf.datasets.labelling import DEFAULT_PREDICATE
from lpf.errors import DatasetError, InputFileError
from lpf.ingest.cell_values import CellReader
from lpf.ingest.evidence_drafts import claim_field, required_text
from lpf.ingest.input_files import OPENERS, open_input
from lpf.ingest.input_rows import TEXT_NAMES, FileOptions, InputFile, InputRow
from lpf.ingest.row_fields import (
    FieldReader,
    RowError,
    identifier_field,
    label_field,
    moment_field,
    named_problems,
    share_field,
)
from lpf.ingest.text_files import open_jsonl
from lpf.schema import Schema

LABELS = ("label", "supports_value")
# What all rows of an entity must agree on.
OF_ENTITY = ("claim", "split", "group_id")


def read_labelled(
    path: str | Path,
    *,
    schema: Schema | None = None,
    predicate: str | None = None,
    options: FileOptions | None = None,
) -> Dataset:
    """A data set file, or a CSV, Excel or Parquet file with labelled items: ``entity_id``, ``text``
    and ``label`` (of the entity) or ``supports_value`` (of the item), and optionally the other
    fields of evidence, ``split`` and ``group_id``.

    Without ``label``, an entity has the value that most of its items support. ``options`` say how
    to read a table. DatasetError names what is wrong.
    """
    path, options = Path(path), options or FileOptions()
    if not path.is_file() or OPENERS.get(path.suffix.lower(), open_jsonl) is open_jsonl:
        options.refuse(f"{path}, which is not a table")
        return read_dataset(path, schema=schema, predicate=predicate)
    try:
        file, plain = open_input(path, options), _plain_predicate(schema, predicate)
        lines = list(_TableEntities(file, options, plain).lines())
    except InputFileError as error:
        raise DatasetError(error.message, field=error.field, hint=error.hint) from error
    return read_dataset(path, schema=schema, predicate=predicate, lines=lines)


def _plain_predicate(schema: Schema | None, predicate: str | None) -> str:
    """The predicate of rows that name none; "" if it is not known."""
    if predicate is not None:
        return predicate
    if schema is None:
        return DEFAULT_PREDICATE
    names = [one.name for one in schema]
    return names[0] if len(names) == 1 else ""


class _TableEntities:
    """Groups the rows of a table by entity. ``plain`` is the predicate of rows that name none."""

    def __init__(self, file: InputFile, options: FileOptions, plain: str) -> None:
        file.require(("entity_id",), TEXT_NAMES, LABELS)
        self._file = file
        self._cells = CellReader.of(file, options.date_format)
        self._plain = plain
        columns = file.columns or ()
        self._has_labels, self._has_predicates = "label" in columns, "predicate" in columns

    def lines(self) -> Iterator[NumberedObject]:
        """One object per entity, with the number of its first row."""
        entities: dict[str, dict[str, Any]] = {}
        first: dict[str, int] = {}
        for row in self._file.rows():
            values = self._read(row)
            entity_id = values["entity_id"]
            first.setdefault(entity_id, row.line)
            entity = entities.setdefault(
                entity_id, {"entity_id": entity_id, "labels": {}, "evidence": [], "votes": {}}
            )
            self._add(entity, values, row.line)
        for entity_id, entity in entities.items():
            votes = entity.pop("votes")
            if not self._has_labels:
                most = {name: _most(counts) for name, counts in votes.items()}
                entity["labels"] = {name: value for name, value in most.items() if value}
            yield first[entity_id], _with_plain_label(entity)

    def _read(self, row: InputRow) -> dict[str, Any]:
        place, fields, values = f"{self._file.unit} {row.line}", FieldReader(), row.values
        if row.error:
            raise self._error(row.line, row.error)
        names = ("entity_id", "evidence_id", "source", "report_id", "predicate", "group_id")
        read: dict[str, Any] = {name: fields.take(identifier_field, values, name) for name in names}
        read |= {name: fields.take(label_field, values, name) for name in (*LABELS, "split")}
        read["claim"] = fields.take(claim_field, values)
        read["text"] = fields.take(required_text, values)
        read["credibility"] = fields.take(share_field, values, "credibility", self._cells, place)
        read["timestamp"] = fields.take(moment_field, values, "timestamp", self._cells)
        try:
            fields.finish()
        except RowError as error:
            raise self._error(row.line, named_problems(error.problems)) from None
        if read["entity_id"] is None:
            raise self._error(row.line, "entity_id: is missing")
        return read

    def _add(self, entity: dict[str, Any], values: dict[str, Any], line: int) -> None:
        predicate = values["predicate"] or self._plain
        self._agree(entity, {name: values[name] for name in OF_ENTITY}, line)
        if values["label"] is not None:
            self._agree(entity["labels"], {predicate: values["label"]}, line)
        item = {name: values[name] for name in ("text", "source", "credibility", "report_id")}
        number = len(entity["evidence"]) + 1
        item["evidence_id"] = values["evidence_id"] or f"{values['entity_id']}_E{number:03d}"
        moment = values["timestamp"]
        item["timestamp"] = None if moment is None else moment.isoformat()
        value = values["supports_value"]
        if value is not None:
            entity["votes"].setdefault(predicate, Counter())[value] += 1
            is_named = self._has_predicates and predicate
            item |= {"labels": {predicate: value}} if is_named else {"label": value}
        entity["evidence"].append(item)

    def _agree(self, known: dict[str, Any], given: dict[str, Any], line: int) -> None:
        for name, value in given.items():
            if value is not None and known.setdefault(name, value) != value:
                raise self._error(
                    line,
                    f"{name or 'label'}: differs from another row of the same entity, "
                    f"{known[name]!r} and {value!r}",
                )

    def _error(self, line: int, problem: str) -> DatasetError:
        return DatasetError(
            f"{self._file.name}, {self._file.unit} {line}: {problem}. Nothing was read."
        )


def _most(counts: Counter[str]) -> str | None:
    """The value that most items support; None if two are equally frequent."""
    (value, count), *others = counts.most_common(2)
    return None if others and others[0][1] == count else value


def _with_plain_label(entity: dict[str, Any]) -> dict[str, object]:
    """A label of an unknown predicate is a plain ``label`` of a data set, which is refused."""
    labels = entity.pop("labels")
    if "" in labels:
        return {**entity, "label": labels[""]}
    return {**entity, "labels": labels}
