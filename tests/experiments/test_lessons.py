"""Who is learned from and who is asked: of domains, of files in every way they can be split, and of
evidence that something was done to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lpf.datasets import SPLITS, Dataset
from lpf.domains import load_domain, perfect_answers
from lpf.errors import ConfigError, DatasetError
from lpf.experiments.cells import DomainData, Exam, Lesson
from lpf.experiments.lessons import (
    Library,
    exam_dataset,
    file_dataset,
    flat,
    has_own_test,
    labelled_file,
    lesson_dataset,
)
from small_lessons import DATA, LESSON, all_three, entities, file_data, in_splits, written

PREDICATE = "compliance_level"


def ids(dataset: Dataset, split: str) -> set[str]:
    return {entity.entity_id for entity in dataset if entity.split == split}


def split_sizes(dataset: Dataset) -> dict[str, int]:
    return {split: len(dataset.positions(split)) for split in SPLITS}


@pytest.fixture(scope="module")
def domain() -> Dataset:
    return lesson_dataset(LESSON)[0]


def test_a_domain_comes_in_three_splits_and_with_its_predicate(domain: Dataset) -> None:
    assert lesson_dataset(LESSON)[1] == PREDICATE
    assert split_sizes(domain) == {"train": 84, "validation": 18, "test": 18}
    assert domain.digest == lesson_dataset(replace(LESSON, seed=9))[0].digest
    other = lesson_dataset(replace(LESSON, data=replace(DATA, seed=2)))[0]
    assert other.digest != domain.digest


def test_fewer_entities_keep_shares_and_validation_and_are_among_more(domain: Dataset) -> None:
    sizes = (9, 30, 60)
    few = {size: lesson_dataset(replace(LESSON, entities=size))[0] for size in sizes}
    shares = np.bincount(domain.labels(PREDICATE)[domain.positions("train")]) / 84
    for size, dataset in few.items():
        labels = dataset.labels(PREDICATE)[dataset.positions("train")]
        assert len(labels) == size
        assert np.abs(np.bincount(labels, minlength=3) - size * shares).max() <= 1.5
        assert ids(dataset, "validation") == ids(domain, "validation")
        assert ids(dataset, "test") == ids(domain, "test")
    assert ids(few[9], "train") < ids(few[30], "train") < ids(few[60], "train")
    other = lesson_dataset(replace(LESSON, entities=30, seed=2))[0]
    assert ids(other, "train") != ids(few[30], "train")


@pytest.mark.parametrize("enough", [84, 500])
def test_as_many_as_there_are_is_all(enough: int, domain: Dataset) -> None:
    assert lesson_dataset(replace(LESSON, entities=enough))[0] == domain


# Files.


def test_a_file_with_all_splits_is_taken_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "own.jsonl", in_splits(entities(80), all_three))
    dataset, predicate = file_dataset(file_data(path))
    assert predicate == "label"
    assert split_sizes(dataset) == {"train": 48, "validation": 16, "test": 16}
    for split in SPLITS:
        given = {e.entity_id for e in labelled_file(path, None)[0] if e.split == split}
        assert ids(dataset, split) == given


def test_train_and_test_have_validation_taken_out_of_train(tmp_path: Path) -> None:
    rows = in_splits(entities(80), lambda place: "test" if place < 20 else "train")
    dataset, _ = file_dataset(file_data(written(tmp_path / "two.jsonl", rows)))
    assert ids(dataset, "test") == {f"e{place}" for place in range(20)}
    sizes = split_sizes(dataset)
    assert sizes["train"] + sizes["validation"] == 60
    assert 8 <= sizes["validation"] <= 14


def test_dev_and_test_alone_learn_from_dev(tmp_path: Path) -> None:
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
def test_whether_a_file_says_whom_to_ask(split: object, own: bool, tmp_path: Path) -> None:
    rows = in_splits(entities(60), split)  # type: ignore[arg-type]
    path = written(tmp_path / "file.jsonl", rows)
    assert has_own_test(labelled_file(path, None)[0]) is own
    if not own:
        with pytest.raises(DatasetError, match="has no test entities, or nobody else"):
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


def test_folds_keep_groups_whole(tmp_path: Path) -> None:
    rows = [{**row, "group_id": f"g{place // 4}"} for place, row in enumerate(entities(80))]
    path = written(tmp_path / "groups.jsonl", rows)
    for fold in range(5):
        dataset, _ = file_dataset(file_data(path, folds=5, fold=fold))
        for one, other in (("train", "test"), ("validation", "test"), ("train", "validation")):
            groups = [{e.group_id for e in dataset if e.split == split} for split in (one, other)]
            assert not groups[0] & groups[1]


def test_the_prior_is_that_of_who_is_learned_from(tmp_path: Path) -> None:
    """The test has no bad ones at all, which nobody may be told. One more of each is counted."""
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


def test_of_several_predicates_one_is_learned_and_who_lacks_it_left_out(tmp_path: Path) -> None:
    rows = [
        {
            **{name: value for name, value in row.items() if name != "label"},
            "labels": {"taste": row["label"]} | ({"price": "low"} if place % 3 else {}),
        }
        for place, row in enumerate(entities(90))
    ]
    rows[1]["labels"]["price"] = "high"
    path = written(tmp_path / "several.jsonl", rows)
    dataset, predicate = labelled_file(path, None)
    assert (predicate, len(dataset)) == ("price", 60)
    assert all("price" in entity.labels for entity in dataset)
    assert len(labelled_file(path, "taste")[0]) == 90


# Exams.


def test_the_lessons_own_test_entities(domain: Dataset) -> None:
    asked = exam_dataset(Exam(), domain, PREDICATE)
    assert {entity.entity_id for entity in asked} == ids(domain, "test")


def test_new_entities_of_a_domain(domain: Dataset) -> None:
    exam = Exam(DomainData("compliance", seed=1000, changes=("items=3",)), entities=25)
    asked = exam_dataset(exam, domain, PREDICATE)
    assert len(asked) == 25
    assert asked == exam_dataset(exam, domain, PREDICATE)
    learned = {
        item.text for entity in domain if entity.split == "train" for item in entity.evidence
    }
    assert sum(item.text in learned for item in asked.items) < len(list(asked.items)) / 10
    assert perfect_answers(asked).shape == (25, 3)


def test_the_best_items_alone(domain: Dataset) -> None:
    whole = exam_dataset(Exam(), domain, PREDICATE)
    cut = exam_dataset(Exam(top_k=2), domain, PREDICATE)
    assert [len(entity.evidence) for entity in cut] == [2] * len(whole)
    for before, after in zip(whole, cut, strict=True):
        assert all(item in before.evidence for item in after.evidence)
        assert (before.labels, after.truth) == (after.labels, None)


def test_a_perturbation_changes_evidence_and_nothing_else(domain: Dataset) -> None:
    whole = exam_dataset(Exam(), domain, PREDICATE)
    exam = Exam(perturbation="noise", level=0.5)
    spoilt = exam_dataset(exam, domain, PREDICATE)
    changed = [one.text != other.text for one, other in zip(whole.items, spoilt.items, strict=True)]
    assert sum(changed) == len(changed) // 2
    assert [entity.labels for entity in whole] == [entity.labels for entity in spoilt]
    assert spoilt == exam_dataset(exam, domain, PREDICATE)
    assert exam_dataset(replace(exam, level=0.0), domain, PREDICATE) == whole


def test_foreign_texts_are_of_another_domain(domain: Dataset) -> None:
    spoilt = exam_dataset(Exam(perturbation="foreign", level=0.7), domain, PREDICATE)
    own = {item.text for item in domain.items}
    share = np.mean([item.text not in own for item in spoilt.items])
    assert share == pytest.approx(0.7, abs=0.02)


def test_what_cannot_be_done_to_evidence_is_refused(domain: Dataset) -> None:
    with pytest.raises(ConfigError, match="'rust' is none"):
        exam_dataset(Exam(perturbation="rust", level=0.5), domain, PREDICATE)
    with pytest.raises(ConfigError, match="top_k: must be 1 or above, got 0"):
        exam_dataset(Exam(top_k=0), domain, PREDICATE)


def test_entities_of_another_domain_are_asked_in_our_words_by_place(domain: Dataset) -> None:
    exam = Exam(DomainData("legal", seed=1000), entities=30)
    asked = exam_dataset(exam, domain, PREDICATE)
    theirs = load_domain("legal")
    native = exam_dataset(exam, lesson_dataset(Lesson(DomainData("legal")))[0], theirs.predicate)
    np.testing.assert_array_equal(asked.labels(PREDICATE), native.labels(theirs.predicate))
    assert asked.schema == domain.schema
    assert [item.text for item in asked.items] == [item.text for item in native.items]
    assert all(set(entity.labels) == {PREDICATE} for entity in asked)
    assert all(entity.truth is None and not entity.facts for entity in asked)
    assert all(item.truth is None and not item.labels for item in asked.items)


def test_a_domain_of_more_values_cannot_be_asked_in_the_words_of_fewer(tmp_path: Path) -> None:
    path = written(tmp_path / "two.jsonl", in_splits(entities(60), all_three))
    lesson, predicate = file_dataset(file_data(path))
    with pytest.raises(DatasetError, match="has 2 values and 'litigation_outcome' 3"):
        exam_dataset(Exam(DomainData("legal"), entities=10), lesson, predicate)


def test_what_was_read_before_is_not_read_again(domain: Dataset, tmp_path: Path) -> None:
    asked = exam_dataset(Exam(), domain, PREDICATE).select(range(4))
    library = Library(tmp_path)
    first = library.examples(asked)
    (kept,) = tmp_path.iterdir()
    fewer = replace(asked, entities=tuple(replace(one, evidence=one.evidence[1:]) for one in asked))
    before = kept.stat().st_mtime_ns
    again = library.altered(fewer)
    rows = np.concatenate([np.arange(begin + 1, begin + 3) for begin in range(0, 12, 3)])
    np.testing.assert_array_equal(again.features, first.features[rows])
    np.testing.assert_array_equal(Library(tmp_path).examples(asked).features, first.features)
    assert [(path, path.stat().st_mtime_ns) for path in tmp_path.iterdir()] == [(kept, before)]


def test_entities_with_claims_are_read_with_them(tmp_path: Path) -> None:
    rows = [{**row, "claim": f"Part {place} is fine."} for place, row in enumerate(entities(4))]
    claimed = labelled_file(written(tmp_path / "claims.jsonl", rows), None)[0]
    plain = labelled_file(written(tmp_path / "plain.jsonl", entities(4)), None)[0]
    library = Library(tmp_path / "features")
    assert library.reader(claimed) is not library.reader(plain)
    assert library.reader(plain) is library.opened(with_claim=False)
    assert library.examples(claimed).features.shape[1] > library.examples(plain).features.shape[1]
