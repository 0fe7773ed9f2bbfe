"""The items of a data set as rows of evidence, so that what was trained on can be asked about.

Each item becomes one row per predicate that its entity is labelled with. Its label is its own, or
that of its entity: what it is trained with, too. If the file labels several predicates, the name of
the predicate is added to the item's ID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from lpf.datasets.dataset import DatasetEntity, DatasetItem
from lpf.datasets.json_fields import FieldError
from lpf.datasets.labelling import UNNAMED, Labelling, parse_entity
from lpf.errors import InputFileError
from lpf.ingest.input_rows import TEXT_NAMES, InputFile, InputRow
from lpf.schema import Schema

ROWS_INSPECTED = 20  # to find out if a file is a data set


def as_evidence(file: InputFile, schema: Schema, predicate: str | None = None) -> InputFile:
    """The file itself, or, if it is a data set, its items as rows. ``predicate`` is that of plain
    labels. InputFileError if there are plain labels and several predicates to choose from."""
    if file.columns is not None:  # a data set is JSONL
        return file
    first = next((row for row in islice(file.rows(), ROWS_INSPECTED) if not row.error), None)
    if first is None or not _is_entity(first):
        return file
    dataset = _DatasetRows(file, schema, predicate)
    return replace(
        file,
        rows=dataset.rows,
        read_as=(*file.read_as, "a data set, one entity per line"),
        notes=dataset.notes(),
        text_dates=False,
    )


def _is_entity(row: InputRow) -> bool:
    texts = [row.values.get(name) for name in TEXT_NAMES]
    return isinstance(row.values.get("evidence"), list) and not any(texts)


class _DatasetRows:
    """Converts entities. One pass over the file finds out which predicates it labels."""

    def __init__(self, file: InputFile, schema: Schema, predicate: str | None) -> None:
        self._file = file
        self._schema = schema
        names = [each.name for each in schema]
        plain = schema[predicate].name if predicate is not None else None
        if plain is None and len(names) == 1:
            plain = names[0]
        labelled: set[str] = set()
        for _, entity in self._entities():
            given = (plain if name == UNNAMED else name for name in entity.labels)
            labelled |= {name for name in given if name is not None}
            if plain is None and UNNAMED in entity.labels:
                raise InputFileError(
                    f"{file.name}: has labels without a predicate, and the schema has several: "
                    f"{names}. Nothing was read.",
                    field="predicate",
                    hint="Name the predicate with --predicate.",
                )
        known = [name for name in names if name in labelled]
        self._predicates = known or ([plain] if plain is not None else names)
        only = self._predicates[0] if len(labelled) == 1 and known else None
        self._labelling = Labelling(schema, plain, only)

    def rows(self) -> Iterator[InputRow]:
        for row in self._file.rows():
            if row.error:
                yield row
                continue
            try:
                entity, _ = self._labelling.resolve(parse_entity(row.values))
            except FieldError as error:
                yield InputRow(row.line, {}, f"{error.name}: {error.problem}")
                continue
            for item in entity.evidence:
                for predicate in self._predicates_of(entity):
                    yield InputRow(row.line, self._values(entity, item, predicate))

    def notes(self) -> tuple[str, ...]:
        """What of the data set is not stored with its items."""
        facts = outvoted = 0
        for _, entity in self._entities():
            facts += bool(entity.facts)
            try:
                resolved, _ = self._labelling.resolve(entity)
            except FieldError:
                continue  # reported as a row
            outvoted += _is_outvoted(resolved)
        notes = []
        if facts:
            notes.append(f"the facts of {facts:,} entities were not added; see 'lpf facts add'")
        if outvoted:
            notes.append(
                f"{outvoted:,} entities have a label that most of their items do not support; to "
                "train with their labels, train on the file itself"
            )
        return tuple(notes)

    def _entities(self) -> Iterator[tuple[int, DatasetEntity]]:
        for row in self._file.rows():
            if not row.error:
                try:
                    yield row.line, parse_entity(row.values)
                except FieldError:
                    continue  # reported as a row

    def _predicates_of(self, entity: DatasetEntity) -> list[str]:
        return [name for name in self._predicates if name in entity.labels] or self._predicates

    def _values(
        self, entity: DatasetEntity, item: DatasetItem, predicate: str
    ) -> dict[str, object]:
        several = len(self._predicates) > 1
        return {
            "evidence_id": f"{item.evidence_id}:{predicate}" if several else item.evidence_id,
            "entity_id": entity.entity_id,
            "predicate": predicate,
            "text": item.text,
            "claim": entity.claim,
            "credibility": item.credibility,
            "timestamp": item.timestamp,
            "source": item.source,
            "report_id": item.report_id,
            "supports_value": item.labels.get(predicate, entity.labels.get(predicate)),
        }


def _is_outvoted(entity: DatasetEntity) -> bool:
    for predicate, label in entity.labels.items():
        votes = Counter(item.labels.get(predicate, label) for item in entity.evidence)
        if votes and votes.most_common(1)[0][0] != label:
            return True
    return False
