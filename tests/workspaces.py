"""A real workspace in a folder: store, key, a small model with random weights, the real reader."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import lpf
from builders import model_config, sharp_tensors
from lpf.factors.keys import content_key
from lpf.ingest import content_hash
from lpf.model.artefact import ModelCard, save_model
from lpf.reading import Reader
from lpf.schema import Predicate, Relation, Schema
from lpf.storage.evidence import NewEvidence
from lpf.types import Evidence
from lpf.workspace import Workspace

LEVELS = ("low", "medium", "high")
NOW = datetime.now(UTC)
CARD = ModelCard("test", "none", "tests", "anything else")
TEXTS = (
    "Filings were complete and on time in every quarter.",
    "The auditor found two late payments and one missing form.",
    "Internal controls are documented and tested each year.",
    "A regulator opened an inquiry into offshore accounts.",
    "The certificate was renewed without findings.",
    "Records of the subsidiary could not be produced.",
    "Staff receive yearly training in reporting duties.",
)


@cache
def reader() -> Reader:
    return lpf.open_reader()


def schema() -> Schema:
    return Schema(
        (Predicate("level", LEVELS), Predicate("outcome", ("clean", "qualified"))),
        (Relation(("level", "outcome")),),
    )


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def evidence(entity_id: str, count: int = 5, start: int = 0, **changes: object) -> list[Evidence]:
    """Items as a person would write them, each in its own words."""
    return [
        Evidence(
            **{
                "evidence_id": f"{entity_id}_E{number + 1:03d}",
                "entity_id": entity_id,
                "predicate": "level",
                "text_content": f"{entity_id}: {TEXTS[(number + start) % len(TEXTS)]}",
                "credibility": 0.95 - 0.05 * number,
                "timestamp": days_ago(30 * number + 1),
                "source": f"source {number % 3}",
                **changes,
            }
        )
        for number in range(count)
    ]


def add(workspace: Workspace, items: Sequence[Evidence], read: bool = True) -> None:
    """Straight into the store, read by the real reader or not yet."""
    features = number = None
    if read:
        features = reader().read_many([item.text_content for item in items])
        number = workspace.evidence.reader_number(reader().reader_id, reader().width)
    rows = [
        NewEvidence(item, content_key(item.text_content, item.claim), content_hash(item))
        for item in items
    ]
    workspace.evidence.add(rows, features, number)


def give_model(workspace: Workspace, members: int = 2, **changes: object) -> str:
    config = model_config(members, reader_id=reader().reader_id, **changes)
    version = save_model(workspace.folder / "models", config, sharp_tensors(config), CARD)
    workspace.use_model(version)
    return version


def make(folder: Path, store_url: str | None = None, members: int = 2) -> Workspace:
    """Two entities with evidence, a model in use."""
    workspace = Workspace.create(folder, schema(), store_url=store_url)
    add(workspace, [*evidence("C0001"), *evidence("C0002", 3, start=3)])
    give_model(workspace, members)
    return workspace
