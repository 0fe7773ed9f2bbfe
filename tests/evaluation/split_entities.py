"""Who is in which split of a data set."""

from __future__ import annotations

from lpf.datasets import SPLITS, Dataset


def ids(dataset: Dataset, split: str) -> set[str]:
    return {entity.entity_id for entity in dataset if entity.split == split}


def split_sizes(dataset: Dataset) -> dict[str, int]:
    return {split: len(dataset.positions(split)) for split in SPLITS}
