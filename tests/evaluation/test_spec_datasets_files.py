"""Files in every way they can be split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from split_entities import ids, split_sizes

from lpf.datasets import SPLITS, Dataset, read_dataset
from lpf.errors import ConfigError, DatasetError
from lpf.evaluation.fitted_methods import flat
from lpf.evaluation.spec_datasets import file_dataset, has_own_test, labelled_dataset
from small_specs import all_three, entities, file_data, in_splits, written


def labelled(path: Path, predicate: str | None) -> tuple[Dataset, str]:
    return labelled_dataset(read_dataset(path), predicate)


def test_a_file_with_all_splits_is_used_unchanged(tmp_path: Path) -> None:
    path = written(tmp_path / "own.jsonl", in_splits(entities(80), all_three))
    dataset, predicate = file_dataset(file_data(path))
    assert predicate == "label"
    assert split_sizes(dataset) == {"train": 48, "validation": 16, "test": 16}
    for split in SPLITS:
        given = {e.entity_id for e in labelled(path, None)[0] if e.split == split}
        assert ids(dataset, split) == given


def test_train_and_test_have_validation_taken_out_of_train(tmp_path: Path) -> None:
    rows = in_splits(entities(80), lambda place: "test" if place < 20 else "train")
    dataset, _ = file_dataset(file_data(written(tmp_path / "two.jsonl", rows)))
    assert ids(dataset, "test") == {f"e{place}" for place in range(20)}
    sizes = split_sizes(dataset)
    assert sizes["train"] + sizes["validation"] == 60
    assert 8 <= sizes["validation"] <= 14


def test_dev_is_divided_if_there_is_no_train(tmp_path: Path) -> None:
    rows = in_splits(entities(80), lambda place: "test" if place < 20 else "dev")
    dataset, _ = file_dataset(file_data(written(tmp_path / "dev.jsonl", rows)))
    assert ids(dataset, "test") == {f"e{place}" for place in range(20)}
    assert split_sizes(dataset)["train"] > 40
    assert split_sizes(dataset)["validation"] >= 8


@pytest.mark.parametrize(
    ("split", "own"),
    [
        (all_three, True),
        (lambda place: "test" if place < 9 else "dev", True),
        (lambda place: "dev" if place < 9 else "train", False),
        (lambda place: "test", False),
        (lambda place: None, False),
        (lambda place: "test" if place < 9 else None, False),
    ],
)
def test_a_file_with_a_test_split_is_recognised(split: object, own: bool, tmp_path: Path) -> None:
    rows = in_splits(entities(60), split)  # type: ignore[arg-type]
    path = written(tmp_path / "file.jsonl", rows)
    assert has_own_test(labelled(path, None)[0]) is own
    if not own:
        with pytest.raises(DatasetError, match="has no test entities, or no others"):
            file_dataset(file_data(path))


def test_folds_are_disjoint_and_together_all(tmp_path: Path) -> None:
    rows = in_splits(entities(83), lambda place: "dev" if place < 20 else "train")
    path = written(tmp_path / "folds.jsonl", rows)
    placed = [file_dataset(file_data(path, folds=4, fold=fold))[0] for fold in range(4)]
    asked = [ids(dataset, "test") for dataset in placed]
    assert sum(map(len, asked)) == len(set().union(*asked)) == 83
    for dataset in placed:
        assert min(split_sizes(dataset).values()) >= 8
        assert len(dataset) == 83


def test_folds_do_not_divide_groups(tmp_path: Path) -> None:
    rows = [{**row, "group_id": f"g{place // 4}"} for place, row in enumerate(entities(80))]
    path = written(tmp_path / "groups.jsonl", rows)
    for fold in range(5):
        dataset, _ = file_dataset(file_data(path, folds=5, fold=fold))
        for one, other in (("train", "test"), ("validation", "test"), ("train", "validation")):
            groups = [{e.group_id for e in dataset if e.split == split} for split in (one, other)]
            assert not groups[0] & groups[1]


def test_the_prior_is_that_of_the_training_entities(tmp_path: Path) -> None:
    """The test split has no bad entities, and the prior must not reveal that. One is added to each
    count."""
    rows = [
        {**row, "label": "bad" if place >= 60 else "good"} for place, row in enumerate(entities(80))
    ]
    splits = in_splits(rows, lambda place: ("test", "dev", "train", "train")[place % 4])
    few_bad = [row for row in splits if row["split"] != "test" or row["label"] == "good"]
    dataset, predicate = file_dataset(file_data(written(tmp_path / "uneven.jsonl", few_bad)))
    train = dataset.labels(predicate)[dataset.positions("train")]
    bad = ((train == 0).sum() + 1) / (len(train) + 2)
    assert dataset.schema[predicate].values == ("bad", "good")
    np.testing.assert_allclose(dataset.schema[predicate].prior, (bad, 1 - bad))
    np.testing.assert_allclose(flat(dataset.schema)[predicate].prior, (0.5, 0.5))


def test_one_predicate_is_trained_and_entities_without_it_are_left_out(tmp_path: Path) -> None:
    rows = [
        {
            **{name: value for name, value in row.items() if name != "label"},
            "labels": {"taste": row["label"]} | ({"price": "low"} if place % 3 else {}),
        }
        for place, row in enumerate(entities(90))
    ]
    rows[1]["labels"]["price"] = "high"
    path = written(tmp_path / "several.jsonl", rows)
    dataset, predicate = labelled(path, None)
    assert (predicate, len(dataset)) == ("price", 60)
    assert all("price" in entity.labels for entity in dataset)
    assert len(labelled(path, "taste")[0]) == 90
    with pytest.raises(ConfigError, match=r"a label of 'label'; they have \['price', 'taste'\]"):
        labelled(path, "label")


def test_a_plain_label_belongs_to_the_predicate_label(tmp_path: Path) -> None:
    path = written(tmp_path / "plain.jsonl", entities(60))
    assert labelled(path, "label") == labelled(path, None)
    with pytest.raises(ConfigError, match=r"no entity of .* has a label of 'lable'; they have"):
        labelled(path, "lable")
