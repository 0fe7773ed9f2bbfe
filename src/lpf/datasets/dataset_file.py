"""The dataset file: JSONL with one entity per line. Its fields are in docs/datasets.md.

Every error names file, line and field. ``Exclusions`` counts what is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Never

from lpf.datasets.dataset import Dataset, DatasetEntity
from lpf.datasets.json_fields import FieldError, shortened
from lpf.datasets.labelling import Labelling, entity_to_json, infer_labelling, parse_entity
from lpf.errors import DatasetError
from lpf.schema import Schema
from lpf.storage.atomic_files import write_atomically

NO_EVIDENCE = (
    "entity has no evidence and was left out",
    "entities have no evidence and were left out",
)
NO_LABEL = ("entity has no label and was left out", "entities have no label and were left out")


@dataclass(slots=True)
class _Count:
    count: int
    first: str


@dataclass(slots=True)
class Exclusions:
    """Counts what was left out of a data set, by kind. A kind is a pair of phrases, singular and
    plural: ``("entity has no evidence and was left out", "entities have no ...")``."""

    _kinds: dict[tuple[str, str], _Count] = field(default_factory=dict)

    def note(self, kind: tuple[str, str], place: str) -> None:
        """Count one more. ``place`` is shown if it is the first of its kind."""
        self._kinds.setdefault(kind, _Count(0, place)).count += 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence per kind: "3 entities have no label and were left out (first: C7)."."""
        return tuple(
            f"{kind.count:,} {singular if kind.count == 1 else plural} (first: {kind.first})."
            for (singular, plural), kind in self._kinds.items()
        )


_ONE_OBJECT = "Write one JSON object per line."
_BOM = b"\xef\xbb\xbf"
LONGEST_LINE = 64 * 1024 * 1024  # bytes
NumberedObject = tuple[int, dict[str, object]]


def object_lines(path: Path) -> Iterator[NumberedObject]:
    """Yield the number of each line, from 1, and its JSON object. Blank lines are skipped."""
    try:
        with path.open("rb") as file:
            # In binary mode only \n ends a line; text mode also splits at characters JSON allows.
            for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), 1):
                if len(line) > LONGEST_LINE:
                    raise DatasetError(
                        f"{path}, line {number}: is longer than {LONGEST_LINE // 2**20} MiB. "
                        "Nothing was read.",
                        hint=_ONE_OBJECT,
                    )
                content = line.removeprefix(_BOM) if number == 1 else line
                if content.strip():
                    yield number, _object(content, f"{path}, line {number}")
    except OSError as error:
        raise DatasetError(
            f"{path}: cannot be read ({error.strerror}). Nothing was read.",
            hint="Give the path of a JSONL file.",
        ) from error


def _object(line: bytes, place: str) -> dict[str, object]:
    try:
        value = _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{place}: is not valid UTF-8 ({error.reason} at byte {error.start + 1}). "
            "Nothing was read.",
            hint="Save the file as UTF-8.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"{place}: is not JSON ({error}). Nothing was read.", hint=_ONE_OBJECT
        ) from error
    if not isinstance(value, dict):
        raise DatasetError(
            f"{place}: must be a JSON object, got a {type(value).__name__}. Nothing was read.",
            hint=_ONE_OBJECT,
        )
    return value


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not allowed in JSON; write null")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


_IGNORED = (
    "evidence label is not a value of the predicate and was ignored; the item is trained with its "
    "entity's label",
    "evidence labels are not values of the predicate and were ignored; the items are trained with "
    "their entities' labels",
)
_PLAIN = "Use plain JSON values, names without surrounding blanks, and times with a time zone."


@dataclass(frozen=True, slots=True)
class _NumberedEntity:
    """An entity and the number of its line."""

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
    lines: Iterable[NumberedObject] | None = None,
) -> Dataset:
    """Read the entities of a file that have evidence and a label; ``exclusions`` counts the others.
    ``lines`` are the objects of its lines with their numbers, for a file in another format.

    ``predicate`` is the predicate of a plain ``label``; entities without a value for it are left
    out. Without a ``schema`` the values are those in the file, sorted. ``name`` defaults to the
    file's name. DatasetError names the first line and field that is wrong.
    """
    path = Path(path)
    exclusions = Exclusions()
    numbered = _with_evidence(
        _read(path, object_lines(path) if lines is None else lines), exclusions
    )
    if schema is None and not any(each.entity.labels for each in numbered):
        raise _nothing_usable(path, predicate, exclusions)
    labelling = infer_labelling([each.entity for each in numbered], schema, predicate)
    resolved = _resolve_labels(path, numbered, labelling, exclusions)
    entities = _labelled(resolved, predicate, exclusions)
    if not entities:
        raise _nothing_usable(path, predicate, exclusions)
    return Dataset(name or path.stem, labelling.schema, entities, exclusions.sentences)


def write_dataset(path: str | Path, dataset: Dataset) -> None:
    """Write a data set, replacing the file.

    Reading the file with the same schema gives an equal data set, except for entities without
    evidence or label. DatasetError if it would not; nothing is written then.
    """
    path = Path(path)
    ids = _UniqueIds("entity")
    labelling = Labelling(dataset.schema, None, None)
    lines = []
    for number, entity in enumerate(dataset, 1):
        try:
            ids.note(number, entity)
            lines.append(_line(entity, labelling))
        except FieldError as error:
            raise DatasetError(
                f"{error.problem}. Nothing was written.",
                field=f"{path}: entity {entity.entity_id!r}: {error.name}",
                hint=error.hint,
            ) from error
    write_atomically(path, b"".join(lines))


class _UniqueIds:
    """Raises FieldError for a repeated id. An entity and an item may have the same id."""

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
            problem = f"{shortened(identifier)} is already used in {self._place} {seen[identifier]}"
            raise FieldError(field, problem, "Ids must be unique.")
        seen[identifier] = number


def _read(path: Path, lines: Iterable[NumberedObject]) -> list[_NumberedEntity]:
    ids = _UniqueIds("line")
    numbered = []
    for line, values in lines:
        try:
            entity = parse_entity(values)
            ids.note(line, entity)
        except FieldError as error:
            raise line_error(path, line, error) from error
        numbered.append(_NumberedEntity(line, entity))
    if not numbered:
        raise DatasetError(f"{path} is empty. Nothing was read.", hint="Write one entity per line.")
    return numbered


def _with_evidence(
    numbered: Sequence[_NumberedEntity], exclusions: Exclusions
) -> list[_NumberedEntity]:
    for each in numbered:
        if not each.entity.evidence:
            exclusions.note(NO_EVIDENCE, each.place)
    return [each for each in numbered if each.entity.evidence]


def _resolve_labels(
    path: Path, numbered: Sequence[_NumberedEntity], labelling: Labelling, exclusions: Exclusions
) -> list[_NumberedEntity]:
    """Assign every label to its predicate."""
    resolved: list[_NumberedEntity] = []
    for each in numbered:
        try:
            entity, ignored = labelling.resolve(each.entity)
        except FieldError as error:
            raise line_error(path, each.line, error) from error
        resolved.append(_NumberedEntity(each.line, entity))
        for value in ignored:
            exclusions.note(_IGNORED, f"{shortened(value)}, line {each.line}")
    return resolved


def _labelled(
    numbered: Sequence[_NumberedEntity], predicate: str | None, exclusions: Exclusions
) -> tuple[DatasetEntity, ...]:
    """Return the entities with a label (for ``predicate``, if given)."""
    labelled = []
    for each in numbered:
        labels = each.entity.labels
        if labels if predicate is None else predicate in labels:
            labelled.append(each.entity)
        else:
            exclusions.note(NO_LABEL, each.place)
    return tuple(labelled)


def _nothing_usable(path: Path, predicate: str | None, exclusions: Exclusions) -> DatasetError:
    about = "" if predicate is None else f" of {predicate!r}"
    return DatasetError(
        f"{path}: no entity has both evidence and a label{about}. Nothing was read.",
        hint=" ".join(exclusions.sentences),
    )


def _line(entity: DatasetEntity, labelling: Labelling) -> bytes:
    """FieldError if it could not be read back, or would be read back differently."""
    try:
        text = json.dumps(entity_to_json(entity), ensure_ascii=False, allow_nan=False)
        line = text.encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise FieldError("some field", f"cannot be written as JSON ({error})", _PLAIN) from error
    read_back, _ = labelling.resolve(parse_entity(json.loads(text)))
    for part in fields(entity):
        if getattr(read_back, part.name) != getattr(entity, part.name):
            raise FieldError(part.name, "would not be read back unchanged", _PLAIN)
    return line


def line_error(path: Path, line: int, error: FieldError) -> DatasetError:
    """Return the error for a field of one line of a file."""
    return DatasetError(
        f"{error.problem}. Nothing was read.",
        field=f"{path}, line {line}: {error.name}",
        hint=error.hint,
    )
