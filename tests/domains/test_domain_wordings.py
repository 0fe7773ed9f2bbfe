"""Wordings: numbering, splits and slots."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lpf.datasets import SPLITS
from lpf.domains.wordings import MOST_LISTED, Filling, Sentence, WordingCell
from lpf.errors import DatasetError

SENTENCE = Sentence.parse("{a|b} x {c|d|e|}  y.")
CELL = WordingCell(
    "d/a/v", tuple(Sentence.parse(f"{{p|q|r}} {{s|t}} {n} {{u|v|w}}.") for n in range(10))
)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_numbers_and_wordings_match_one_to_one() -> None:
    assert SENTENCE.count == 8
    wordings = [SENTENCE.wording(number) for number in range(8)]
    assert wordings == [f"{a} x {c}y." for a in "ab" for c in ("c ", "d ", "e ", "")]


def test_a_sentence_without_alternatives_has_one_wording() -> None:
    assert Sentence.parse("It rains.").count == 1


def test_splits_of_wordings_do_not_change() -> None:
    """Fixed results, so that a change of the hash is noticed."""
    owners = [CELL.wording_split(CELL.sentences[1].wording(k))[:2] for k in range(18)]
    assert " ".join(owners) == "tr tr te tr tr va tr tr tr tr tr tr va va tr va va va"
    assert Counter(
        CELL.wording_split(sentence.wording(k)) for sentence in CELL.sentences for k in range(18)
    ) == {"train": 121, "validation": 35, "test": 24}


@pytest.mark.parametrize("unseen", ["wordings", "sentences"])
def test_no_two_splits_share_a_wording(unseen: str) -> None:
    random = generator()
    drawn = {split: {CELL.draw(split, unseen, random)[1] for _ in range(600)} for split in SPLITS}
    assert not drawn["train"] & drawn["test"]
    assert not drawn["train"] & drawn["validation"]
    assert not drawn["validation"] & drawn["test"]
    assert sum(map(len, drawn.values())) == 180


def test_sentences_and_wordings_are_equally_likely() -> None:
    """Whatever the number of its wordings in the split."""
    cell = WordingCell(
        "d/a/v", (Sentence.parse("{a|b|c} {d|e|f} {g|h}."), Sentence.parse("{i|j} {k|l}."))
    )
    random = generator()
    drawn = Counter(cell.draw("train", "wordings", random)[1] for _ in range(8000))
    long, short = (
        [wording for wording in map(sentence.wording, range(sentence.count)) if wording in drawn]
        for sentence in cell.sentences
    )
    assert sum(drawn[wording] for wording in short) == pytest.approx(4000, abs=200)
    for wordings in (long, short):
        for wording in wordings:
            assert drawn[wording] == pytest.approx(4000 / len(wordings), rel=0.35)


def test_sentence_without_wordings_in_the_split_is_not_drawn() -> None:
    only = Sentence.parse("One wording.")
    many = Sentence.parse("{a|b|c|d} {e|f|g|h} {i|j|k|l}.")
    cell = WordingCell("d/a/v", (only, many))
    elsewhere = next(split for split in SPLITS if cell.wording_split(only.wording(0)) != split)
    random = generator()
    assert {cell.draw(elsewhere, "wordings", random)[0].sentence for _ in range(50)} == {many}


def test_sentence_with_very_many_wordings_is_sampled() -> None:
    huge = Sentence.parse(" ".join(["{a|b|c|d}"] * 12) + ".")
    assert huge.count == 4**12 > MOST_LISTED
    cell = WordingCell("d/a/v", (huge,))
    random = generator()
    for split in SPLITS:
        wordings = {cell.draw(split, "wordings", random)[1] for _ in range(20)}
        assert len(wordings) == 20
        assert {cell.wording_split(wording) for wording in wordings} == {split}


@pytest.mark.parametrize(("count", "parts"), [(22, (13, 4, 5)), (10, (6, 2, 2)), (3, (1, 1, 1))])
def test_sentences_are_split_in_proportion(count: int, parts: tuple[int, int, int]) -> None:
    cell = WordingCell("d/a/v", tuple(Sentence.parse(f"Number {n}.") for n in range(count)))
    pools = [cell.pool(split, "sentences") for split in SPLITS]
    assert tuple(map(len, pools)) == parts
    assert len({pool.sentence for part in pools for pool in part}) == count


@pytest.mark.parametrize("unseen", ["wordings", "sentences"])
def test_too_few_wordings_for_a_split_are_refused(unseen: str) -> None:
    cell = WordingCell("d/a/v", (Sentence.parse("One wording."),))
    with pytest.raises(DatasetError, match=f"d/a/v: too few {unseen} .*split 'train'"):
        cell.draw("train", unseen, generator())


def test_slots_are_filled() -> None:
    seen: dict[str, set[str]] = {"whole": set(), "decimal": set(), "month": set()}
    for seed in range(300):
        filling = Filling({"town": "Elton"}, generator(seed))
        whole, decimal, month, town = filling.text("[3..5] [0.9..1.10] [month] [town]").split()
        seen["whole"].add(whole)
        seen["decimal"].add(decimal)
        seen["month"].add(month)
        assert town == "Elton"
    assert seen["whole"] == {"3", "4", "5"}
    assert len(seen["month"]) == 12
    assert {len(number) for number in seen["decimal"]} == {4}
    assert (min(seen["decimal"]), max(seen["decimal"])) == ("0.90", "1.10")


def test_copy_has_the_same_numbers() -> None:
    filling = Filling({}, generator())
    first = filling.text("from [1..999] to [1..999]")
    assert filling.text("out of [1..999] into [1..999]").split()[2::2] == first.split()[1::2]
    assert first.split()[1] != first.split()[3]


@pytest.mark.parametrize(
    ("wording", "text"),
    [
        ("a [town] day", "An Elton day"),
        ("a [other] day", "A Hove day"),
        ("in a [town]", "In an Elton"),
        ("data [town]", "Data Elton"),
    ],
)
def test_articles_match_the_filled_text(wording: str, text: str) -> None:
    assert Filling({"town": "Elton", "other": "Hove"}, generator()).text(wording) == text
