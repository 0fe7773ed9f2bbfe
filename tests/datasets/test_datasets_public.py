"""Public data sets as dataset files, if they are available next to this repository."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lpf.datasets import Dataset, assign_splits, find_leakage, read_dataset, write_dataset

FOLDER = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the public data sets are not in {FOLDER}"
)
EXPECTED = {
    "climate_fever": (
        5.0,
        {"SUPPORTS": 654, "REFUTES": 253, "NOT_ENOUGH_INFO": 474, "DISPUTED": 154},
    ),
    "peerread_iclr2017": (3.05, {"accept": 172, "reject": 255}),
    "scifact": (10.4, {"SUPPORT": 456, "CONTRADICT": 237, "NOT_ENOUGH_INFO": 416}),
    "fever_dev_sr": (1.66, {"SUPPORTS": 6552, "REFUTES": 6540}),
    "fever_symmetric": (1.0, {"SUPPORTS": 710, "REFUTES": 710}),
    "rumoureval2017": (17.1, {"true": 145, "false": 74, "unverified": 106}),
}


def read(name: str) -> Dataset:
    return read_dataset(FOLDER / f"{name}.jsonl")


@pytest.mark.parametrize("name", EXPECTED)
def test_counts_are_as_stated(name: str, tmp_path: Path) -> None:
    items, values = EXPECTED[name]
    data = read(name)
    assert Counter(each.labels["label"] for each in data) == values
    assert len(data) == sum(values.values())
    assert data.offsets[-1] / len(data) == pytest.approx(items, abs=0.05)
    assert bool(data.exclusions) == (name == "rumoureval2017")
    write_dataset(tmp_path / "again.jsonl", data)
    assert read_dataset(tmp_path / "again.jsonl", name=name) == data


def test_stances_of_replies_are_not_labels() -> None:
    data = read("rumoureval2017")
    assert data.exclusions[0].startswith("4,519 ")
    assert not any(item.labels for item in data.items)


def test_labels_of_single_sentences_are_read() -> None:
    data = read("climate_fever")
    values = Counter(item.labels["label"] for item in data.items)
    assert values == {"NOT_ENOUGH_INFO": 4930, "SUPPORTS": 1943, "REFUTES": 802}


def test_known_leak_of_scifact_is_found() -> None:
    leaks = {leak.kind: leak for leak in find_leakage(read("scifact"))}
    assert leaks["text"].splits == ("validation", "train")
    assert (leaks["text"].entities, leaks["text"].of_entities) == (199, 300)


def test_splitting_by_group_leaves_no_group_in_two_splits() -> None:
    data = read("scifact")
    anew = assign_splits(data.in_splits([None] * len(data)), "label", seed=0)
    assert "group_id" not in {leak.kind for leak in find_leakage(anew)}
