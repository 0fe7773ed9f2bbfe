"""The dataset file: JSONL, one entity a line. See docs/datasets.md for its fields."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from lpf.datasets.dataset import Dataset, DatasetEntity
from lpf.datasets.entities import entity_of, values_of
from lpf.datasets.exclusions import NO_EVIDENCE, NO_LABEL, Exclusions
from lpf.datasets.fields import FieldError, shown
from lpf.datasets.labelling import Labelling, labelling_of
from lpf.datasets.lines import object_lines
from lpf.errors import DatasetError
from lpf.schema import Schema
from lpf.storage.files import write_atomically

_IGNORED = (
    "label of evidence is no value of what its entity is labelled with; its item is learned from "
    "as if it said what the entity is",
    "labels of evidence are no values of what their entities are labelled with; their items are "
    "learned from as if they said what the entities are",
)
_PLAIN = "Use plain JSON values, names without blanks around them, and moments with a zone."


@dataclass(frozen=True, slots=True)
class _Placed:
    """An entity and the line it stands in."""

    line: int
    entity: DatasetEntity

    @property
    def place(self) -> str:
        return f"{self.entity.entity_id}, line {self.line}"


def read_dataset(
    path: str | Path,
    *,
    schema: Schema | None = None,
    predicate: str | None = None,
    name: str | None = None,
) -> Dataset:
    """All entities of a file that have evidence and a label; ``exclusions`` tells of the others.

    ``predicate`` is what is to be learned: what a plain ``label`` is about, and entities without a
    value of it are left out. Without a ``schema`` the values are those found, sorted. ``name`` is
    the file's unless given. DatasetError names line and field of what is wrong first.
    """
    path = Path(path)
    exclusions = Exclusions()
    placed = _with_evidence(_read(path), exclusions)
    if schema is None and not any(each.entity.labels for each in placed):
        raise _useless(path, predicate, exclusions)
    labelling = labelling_of([each.entity for each in placed], schema, predicate)
    settled = _settled(path, placed, labelling, exclusions)
    entities = _labelled(settled, predicate, exclusions)
    if not entities:
        raise _useless(path, predicate, exclusions)
    return Dataset(name or path.stem, labelling.schema, entities, exclusions.sentences)


def write_dataset(path: str | Path, dataset: Dataset) -> None:
    """Replaces the file as a whole. What is read from it with the same schema is equal to
    ``dataset``, but for entities without evidence or label; DatasetError where it would not be."""
    path = Path(path)
    ids = _Ids("entity")
    labelling = Labelling(dataset.schema, None, None)
    lines = []
    for number, entity in enumerate(dataset, 1):
        try:
            ids.note(number, entity)
            lines.append(_line(entity, labelling))
        except FieldError as error:
            raise DatasetError(
                f"{path}: entity {entity.entity_id!r}: {error}. Nothing was written. {error.remedy}"
            ) from error
    write_atomically(path, b"".join(lines))


class _Ids:
    """Refuses ids that came before. Those of entities and of evidence may be alike."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._entities: dict[str, int] = {}
        self._evidence: dict[str, int] = {}

    def note(self, number: int, entity: DatasetEntity) -> None:
        self._once(self._entities, entity.entity_id, "entity_id", number)
        for position, item in enumerate(entity.evidence):
            field = f"evidence[{position}].evidence_id"
            self._once(self._evidence, item.evidence_id, field, number)

    def _once(self, seen: dict[str, int], identifier: str, field: str, number: int) -> None:
        if identifier in seen:
            problem = f"{shown(identifier)} stands already in {self._place} {seen[identifier]}"
            raise FieldError(field, problem, "Give every one an id of its own.")
        seen[identifier] = number


def _read(path: Path) -> list[_Placed]:
    ids = _Ids("line")
    placed = []
    for line, values in object_lines(path):
        try:
            entity = entity_of(values)
            ids.note(line, entity)
        except FieldError as error:
            raise _refusal(path, line, error) from error
        placed.append(_Placed(line, entity))
    if not placed:
        raise DatasetError(f"{path}: is empty. Nothing was read. Write one entity a line.")
    return placed


def _with_evidence(placed: Sequence[_Placed], exclusions: Exclusions) -> list[_Placed]:
    for each in placed:
        if not each.entity.evidence:
            exclusions.note(NO_EVIDENCE, each.place)
    return [each for each in placed if each.entity.evidence]


def _settled(
    path: Path, placed: Sequence[_Placed], labelling: Labelling, exclusions: Exclusions
) -> list[_Placed]:
    """All labels under their predicates."""
    settled: list[_Placed] = []
    for each in placed:
        try:
            entity, ignored = labelling.settled(each.entity)
        except FieldError as error:
            raise _refusal(path, each.line, error) from error
        settled.append(_Placed(each.line, entity))
        for value in ignored:
            exclusions.note(_IGNORED, f"{shown(value)}, line {each.line}")
    return settled


def _labelled(
    placed: Sequence[_Placed], predicate: str | None, exclusions: Exclusions
) -> tuple[DatasetEntity, ...]:
    """The entities that have a label, of ``predicate`` where one is given."""
    labelled = []
    for each in placed:
        labels = each.entity.labels
        if labels if predicate is None else predicate in labels:
            labelled.append(each.entity)
        else:
            exclusions.note(NO_LABEL, each.place)
    return tuple(labelled)


def _useless(path: Path, predicate: str | None, exclusions: Exclusions) -> DatasetError:
    about = "" if predicate is None else f" of {predicate!r}"
    return DatasetError(
        f"{path}: no entity has both evidence and a label{about}. Nothing was read. "
        "Give some entity both. " + " ".join(exclusions.sentences)
    )


def _line(entity: DatasetEntity, labelling: Labelling) -> bytes:
    """FieldError where it would be read back as something else, or not at all."""
    try:
        text = json.dumps(values_of(entity), ensure_ascii=False, allow_nan=False)
        line = text.encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise FieldError("some field", f"cannot be written as JSON ({error})", _PLAIN) from error
    again, _ = labelling.settled(entity_of(json.loads(text)))
    for field in fields(entity):
        if getattr(again, field.name) != getattr(entity, field.name):
            raise FieldError(field.name, "would not be read back as it is", _PLAIN)
    return line


def _refusal(path: Path, line: int, error: FieldError) -> DatasetError:
    return DatasetError(f"{path}, line {line}: {error}. Nothing was read. {error.remedy}")
