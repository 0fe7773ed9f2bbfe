"""The dataset file: JSONL, one entity a line. See docs/datasets.md for its fields.

What was left out of a data set, counted, with the first of each kind named.

Lines of a JSONL file, each with its number, or a DatasetError that says which one is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Never

from lpf.datasets.dataset import Dataset, DatasetEntity
from lpf.datasets.json_fields import FieldError, shown
from lpf.datasets.labelling import Labelling, entity_of, labelling_of, values_of
from lpf.errors import DatasetError
from lpf.schema import Schema
from lpf.storage.atomic_files import write_atomically

NO_EVIDENCE = (
    "entity has no evidence and was left out",
    "entities have no evidence and were left out",
)
NO_LABEL = ("entity has no label and was left out", "entities have no label and were left out")


@dataclass(slots=True)
class _Kind:
    count: int
    first: str


@dataclass(slots=True)
class Exclusions:
    """Counts by kind. A kind is its sentence for one and for several, both without the number:
    ``("entity has no evidence and was left out", "entities have no ...")``."""

    _kinds: dict[tuple[str, str], _Kind] = field(default_factory=dict)

    def note(self, kind: tuple[str, str], place: str) -> None:
        """Counts one more; ``place`` is told if it is the first of its kind."""
        self._kinds.setdefault(kind, _Kind(0, place)).count += 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """Such as "3 entities have no evidence and were left out (first: C0007, line 12)."."""
        return tuple(
            f"{found.count:,} {one if found.count == 1 else several} (first: {found.first})."
            for (one, several), found in self._kinds.items()
        )


_BOM = b"\xef\xbb\xbf"


def object_lines(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """The number of each line, from 1, and its JSON object. Blank lines are passed over."""
    try:
        with path.open("rb") as file:
            # Bytes end a line at \n alone; texts also end one at marks that JSON allows within.
            for number, line in enumerate(file, 1):
                content = line.removeprefix(_BOM) if number == 1 else line
                if content.strip():
                    yield number, _object(content, f"{path}, line {number}")
    except OSError as error:
        raise DatasetError(
            f"{path}: cannot be read ({error.strerror}). Nothing was read. "
            "Give the path of a JSONL file."
        ) from error


def _object(line: bytes, place: str) -> dict[str, object]:
    try:
        found = _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{place}: is not valid UTF-8 ({error.reason} at byte {error.start + 1}). "
            "Nothing was read. Save the file as UTF-8."
        ) from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"{place}: is not JSON ({error}). Nothing was read. Write one JSON object a line."
        ) from error
    if not isinstance(found, dict):
        raise DatasetError(
            f"{place}: must be a JSON object, got a {type(found).__name__}. Nothing was read. "
            "Write one JSON object a line."
        )
    return found


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no number of JSON; write null")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


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
    for part in fields(entity):
        if getattr(again, part.name) != getattr(entity, part.name):
            raise FieldError(part.name, "would not be read back as it is", _PLAIN)
    return line


def _refusal(path: Path, line: int, error: FieldError) -> DatasetError:
    return DatasetError(f"{path}, line {line}: {error}. Nothing was read. {error.remedy}")
