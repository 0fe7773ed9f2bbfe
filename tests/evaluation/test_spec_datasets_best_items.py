"""The best items of an entity are those that a question would choose."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.errors import ConfigError
from lpf.evaluation.spec_datasets import best_items
from lpf.schema import Predicate, Schema

SCHEMA = Schema((Predicate("label", ("no", "yes")),))


def a_dataset(*items: DatasetItem) -> Dataset:
    entity = DatasetEntity("e", {"label": "yes"}, items, truth={"known": 1})
    return Dataset("made", SCHEMA, (entity,))


def an_item(name: str, credibility: float | None, year: int | None = None) -> DatasetItem:
    moment = None if year is None else datetime(year, 6, 1, tzinfo=UTC)
    return DatasetItem(name, f"text of {name}", credibility=credibility, timestamp=moment)


def kept(dataset: Dataset, top_k: int) -> list[str]:
    return [item.evidence_id for item in best_items(dataset, top_k).items]


def test_the_most_credible_items_keep_their_order() -> None:
    dataset = a_dataset(an_item("a", 0.2), an_item("b", 0.9), an_item("c", 0.5), an_item("d", 0.95))
    assert kept(dataset, 1) == ["d"]
    assert kept(dataset, 2) == ["b", "d"]
    assert kept(dataset, 3) == ["b", "c", "d"]


def test_equally_credible_items_are_chosen_by_date() -> None:
    dataset = a_dataset(an_item("old", 0.8, 2010), an_item("new", 0.8, 2020))
    assert kept(dataset, 1) == ["new"]


def test_the_truth_is_dropped_if_items_are_dropped() -> None:
    dataset = a_dataset(an_item("a", 0.2), an_item("b", 0.9))
    assert best_items(dataset, 1).entities[0].truth is None
    assert best_items(dataset, 2) == dataset
    assert best_items(dataset, 5).entities[0].truth == {"known": 1}


@pytest.mark.parametrize("top_k", [0, -1])
def test_no_items_at_all_are_refused(top_k: int) -> None:
    with pytest.raises(ConfigError, match="top_k: must be 1 or above"):
        best_items(a_dataset(an_item("a", 0.2)), top_k)
