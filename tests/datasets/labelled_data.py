"""Small labelled data sets, and files with one line changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lpf.datasets import Dataset, DatasetEntity, DatasetItem, Split
from lpf.schema import Predicate, Schema

LEVELS = ("low", "medium", "high")
SCHEMA = Schema((Predicate("level", LEVELS),))
TWO = Schema((Predicate("level", LEVELS), Predicate("outcome", ("clean", "qualified"))))


def entity(
    number: int,
    value: str | None = "low",
    *,
    split: Split | None = None,
    group: str | None = None,
    **item: Any,
) -> DatasetEntity:
    """Entity C<number> with one item; further arguments are the item's fields or ``claim``."""
    claim = item.pop("claim", None)
    text = item.pop("text", f"text {number}")
    return DatasetEntity(
        entity_id=f"C{number:04d}",
        labels={} if value is None else {"level": value},
        evidence=(DatasetItem(f"C{number:04d}_E001", text, **item),),
        claim=claim,
        split=split,
        group_id=group,
    )


def dataset(entities: Sequence[DatasetEntity], schema: Schema = SCHEMA) -> Dataset:
    return Dataset("made up", schema, tuple(entities))


def line(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A valid line with some fields changed; ``...`` removes a field."""
    values = {
        "entity_id": f"C{number}",
        "claim": None,
        "label": "low",
        "split": None,
        "group_id": None,
        "evidence": [item(number)],
        **changes,
    }
    return {name: value for name, value in values.items() if value is not ...}


def item(number: int = 1, **changes: Any) -> dict[str, Any]:
    values = {"evidence_id": f"C{number}_E1", "text": f"text {number}", **changes}
    return {name: value for name, value in values.items() if value is not ...}


def write_lines(path: Path, *lines: dict[str, Any] | str) -> Path:
    texts = (each if isinstance(each, str) else json.dumps(each) for each in lines)
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path
