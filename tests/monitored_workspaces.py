"""A workspace whose model has held-out answers, with recorded answers and outcomes to draw.

The networks are random and so are the features of the texts: answers are as good as any, and
outcomes drawn from their probabilities make them honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import workspaces
from lpf.factors.keys import content_key
from lpf.ingest import content_hash
from lpf.model.config import HeldOutConfig
from lpf.model.held_out import HeldOutAnswers
from lpf.results import QueryResult
from lpf.storage.evidence import NewEvidence
from lpf.storage.facts import NewFact
from lpf.workspace import Workspace

LEVELS = workspaces.LEVELS
ASKED = [f"N{number:04d}" for number in range(80)]
HELD_OUT = [f"H{number:04d}" for number in range(100)]


def make_monitored(folder: Path) -> Workspace:
    """Answers about ``ASKED`` are recorded; nothing is known of their outcomes."""
    space = Workspace.create(folder, workspaces.schema())
    items = [one for name in (*HELD_OUT, *ASKED) for one in workspaces.evidence(name, 2)]
    features = np.random.default_rng(3).standard_normal((len(items), 384)).astype(np.float32)
    rows = [
        NewEvidence(one, content_key(one.text_content, one.claim), content_hash(one))
        for one in items
    ]
    reader = workspaces.reader()
    number = space.evidence.reader_number(reader.reader_id, reader.width)
    space.evidence.add(rows, features / 20.0, number)
    workspaces.give_model(space, members=1)
    give_held_out(space)
    space.query_many([(name, "level") for name in ASKED])
    return space


def give_held_out(space: Workspace) -> str:
    """The same model, which now knows how its answers about ``HELD_OUT`` turned out."""
    results = space.query_many([(name, "level") for name in HELD_OUT], audit="off")
    labels = np.array([LEVELS.index(value) for value in drawn(results, seed=1)], np.intp)
    distribution = np.array([one.probabilities for one in results])
    groups = np.arange(len(labels), dtype=np.intp)
    held = HeldOutAnswers.from_answers("apart", distribution, labels, groups)
    model = space.model
    assert model is not None
    config = replace(model.config, held_out={"level": HeldOutConfig(len(held), "apart")})
    tensors = {**model.tensors, **held.tensors("level")}
    version = space.models.save(config, tensors, model.card)
    space.use_model(version)
    return version


def drawn(results: Sequence[QueryResult], *, flipped: float = 0.0, seed: int = 0) -> list[str]:
    """A value for each answer from its own probabilities; a share of them is then replaced by
    another value."""
    random = np.random.default_rng(seed)
    found = []
    for one in results:
        value = int(random.choice(3, p=np.array(one.probabilities) / sum(one.probabilities)))
        if random.random() < flipped:
            value = (value + int(random.integers(1, 3))) % 3
        found.append(LEVELS[value])
    return found


def add_outcomes(space: Workspace, *, flipped: float = 0.0, names: Sequence[str] = ASKED) -> None:
    """As facts, which are recorded now."""
    results = space.query_many([(name, "level") for name in names], audit="off")
    now = datetime.now(UTC)
    values = drawn(results, flipped=flipped)
    space.facts.add(
        [NewFact(name, "level", value, now) for name, value in zip(names, values, strict=True)]
    )
