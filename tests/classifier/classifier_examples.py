"""Short distinct texts about suppliers, and settings that learn them in a second."""

from __future__ import annotations

from functools import cache

import numpy as np

from lpf import LPFClassifier, Predicate, Schema
from lpf.datasets import Dataset, DatasetEntity, DatasetItem, assign_splits
from lpf.reading import Reader, open_reader
from lpf.reading.reader import Features, Progress, ReadRequest

FAST = {
    "seeds": (1, 2),
    "members": 2,
    "hidden": (32, 16),
    "latent_width": 8,
    "max_epochs": 12,
    "batch_size": 16,
    "learning_rate": 3e-3,
}
GOOD = (
    "Every delivery of order {} came on time.",
    "Audit {} found the books in order.",
    "Customer {} praised the quality.",
)
BAD = (
    "Order {} arrived weeks late and broken.",
    "Audit {} found forged invoices.",
    "Customer {} complained of defects.",
)

Entities = list[list[dict[str, object]]]


def suppliers(count: int, seed: int = 0, first: int = 0) -> tuple[Entities, list[str]]:
    """One to three items each, about one in six speaking for the other class; some repeat a report,
    some come without a credibility."""
    generator = np.random.default_rng(seed)
    labels = [("good", "bad")[place % 2] for place in range(count)]
    X = [
        [_item(label, first + 3 * place + n, generator) for n in range(1 + place % 3)]
        for place, label in enumerate(labels)
    ]
    return X, labels


@cache
def plain_reader() -> Reader:
    return open_reader()


@cache
def fitted(variant: str = "spn") -> LPFClassifier:
    """On 60 suppliers, the fewest that are split. Tests that change it make their own."""
    return LPFClassifier(**FAST, variant=variant).fit(*suppliers(60))


def texts_of(X: Entities) -> list[list[str]]:
    return [[str(item["text"]) for item in entity] for entity in X]


def dataset_of(
    X: Entities,
    y: list[str],
    *,
    prior: tuple[float, ...] = (0.5, 0.5),
    groups: list[str | None] | None = None,
    claim: str | None = None,
) -> Dataset:
    """What X and y should become, made by hand."""
    entities = tuple(
        DatasetEntity(
            f"S{place}",
            {"label": label},
            tuple(DatasetItem(f"S{place}_{n}", **item) for n, item in enumerate(items)),
            claim=claim,
            group_id=None if groups is None else groups[place],
        )
        for place, (items, label) in enumerate(zip(X, y, strict=True))
    )
    return Dataset("reference", Schema((Predicate("label", ("bad", "good"), prior),)), entities)


def in_splits(dataset: Dataset) -> Dataset:
    return assign_splits(dataset, "label", shares=(0.85, 0.15, 0.0), seed=42)


def _item(label: str, number: int, generator: np.random.Generator) -> dict[str, object]:
    honest = generator.random() < 5 / 6
    wordings = GOOD if (label == "good") == honest else BAD
    item: dict[str, object] = {"text": str(generator.choice(wordings)).format(number)}
    if generator.random() < 0.7:
        item["credibility"] = round(0.6 + 0.4 * generator.random(), 3)
    if generator.random() < 0.4:
        item["report_id"] = "weekly"
    return item


class CountingReader(Reader):
    """The real reader, and how many texts it was given to read."""

    def __init__(self) -> None:
        self._inner = plain_reader()
        self.count = 0

    @property
    def reader_id(self) -> str:
        return self._inner.reader_id

    @property
    def width(self) -> int:
        return self._inner.width

    def read_many(
        self, items: list[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        self.count += len(items)
        return self._inner.read_many(items, progress=progress)
