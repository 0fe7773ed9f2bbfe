"""Claims that are read by an untrained stance reader with two narrow layers, and rungs that tune it
in a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelled_workspaces import WordReader
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.reading import PairReader, StanceReader
from lpf.schema import Predicate, Schema
from lpf.training import ladder
from lpf.training.ladder import Rung
from lpf.training.reader_choice import RungOutcome
from lpf.training.tuning import TuningSettings
from tiny_stance import tiny_stance

VALUES = ("yes", "no")
SCHEMA = Schema((Predicate("verdict", VALUES),))
COLOURS = ("red", "blue", "green", "white")
QUICK_RUNGS = (
    Rung("two passes", TuningSettings(rate=1e-3, head_rate=1e-3, passes=2)),
    Rung("one pass", TuningSettings(rate=1e-3, head_rate=1e-3, passes=1)),
)


def tiny_reader(folder: Path) -> PairReader:
    """Words of claim and text, and the stances of an untrained network."""
    stance = StanceReader(
        source=tiny_stance(folder / "weights"),
        weights_dir=folder / "weights",
        cache_dir=folder,
        threads=1,
    )
    return PairReader(WordReader(), stance)


def coloured(count: int, *, seed: int = 0, own_labels: bool = False) -> Dataset:
    """Claims about the colour of a box, with one or two texts; yes if the colours agree. With
    ``own_labels``, the second text says no. Without splits."""
    generator = np.random.default_rng(seed)
    entities = []
    for number in range(count):
        claimed, seen = generator.choice(len(COLOURS), 2)
        if generator.random() < 0.4:
            seen = claimed
        label = VALUES[int(claimed != seen)]
        texts = [f"box {number} was painted {COLOURS[seen]} in spring"]
        if number % 3 == 0:
            texts.append(f"nobody has looked into room {number} yet")
        own = {"verdict": "no"} if own_labels else {}
        items = tuple(
            DatasetItem(f"E{number}:{place}", text, own if place else {})
            for place, text in enumerate(texts)
        )
        claim = f"box {number} is {COLOURS[claimed]}"
        entities.append(DatasetEntity(f"E{number}", {"verdict": label}, items, claim=claim))
    return Dataset("coloured", SCHEMA, tuple(entities))


def quick_ladder(monkeypatch: pytest.MonkeyPatch, *, always_better: bool = True) -> None:
    """Few entities suffice, tuning takes a second, and a tuned reader is always preferred."""
    monkeypatch.setattr(ladder, "FEWEST_LABELS", 20)
    monkeypatch.setattr(ladder, "RUNGS", QUICK_RUNGS)
    monkeypatch.setattr("lpf.training.trainer.RUNGS", QUICK_RUNGS)
    if always_better:
        monkeypatch.setattr(RungOutcome, "is_better", property(lambda one: one.nll is not None))
