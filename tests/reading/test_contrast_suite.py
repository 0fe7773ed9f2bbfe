"""The contrast suite: minimal pairs, labels in balance, and the counts that its README states."""

from __future__ import annotations

import json
import re
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "packages" / "lpf-stance" / "contrast"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
CATEGORIES = [
    "negation",
    "numbers_and_units",
    "comparatives",
    "dates",
    "names_swapped",
    "hedges",
    "double_negation",
    "irrelevant_but_similar",
]
LABELS = ["supports", "refutes", "neutral"]
FIELDS = ["id", "pair", "claim", "evidence", "label"]
SMALLEST_RATIO = 0.6
# Pairs whose edit may be larger, by id and with the reason. None so far.
LARGER_EDITS: dict[str, str] = {}
NEGATION = re.compile(
    r"\b(not|no|never|none|nobody|nothing|nowhere|neither|nor|cannot|without)\b|n't\b",
    re.IGNORECASE,
)

Line = dict[str, str]
Pair = tuple[Line, Line]


def read(category: str) -> list[Line]:
    text = (FOLDER / f"{category}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def pairs_of(lines: list[Line]) -> list[Pair]:
    return list(zip(lines[::2], lines[1::2], strict=True))


def edited_sides(pair: Pair) -> list[str]:
    first, second = pair
    return [side for side in ("claim", "evidence") if first[side] != second[side]]


def tokens(text: str) -> list[str]:
    return re.findall(r"[\w']+|[^\w\s]", text.lower())


def is_small_edit(before: str, after: str) -> bool:
    first, second = tokens(before), tokens(after)
    ratio = SequenceMatcher(None, first, second, autojunk=False).ratio()
    return ratio >= SMALLEST_RATIO or sorted(first) == sorted(second)


SUITE = {category: read(category) for category in CATEGORIES}
LINES = [line for lines in SUITE.values() for line in lines]
PAIRS = [pair for lines in SUITE.values() for pair in pairs_of(lines)]


def counts(lines: list[Line]) -> list[int]:
    """The numbers of a row of the README's table."""
    pairs = pairs_of(lines)
    edited = Counter(edited_sides(pair)[0] for pair in pairs)
    labels = Counter(line["label"] for line in lines)
    return [
        len(pairs),
        edited["claim"],
        edited["evidence"],
        *(labels[label] for label in LABELS),
    ]


def test_each_category_has_its_file() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.jsonl")) == sorted(CATEGORIES)


@pytest.mark.parametrize("category", CATEGORIES)
def test_lines_have_their_fields(category: str) -> None:
    for line in SUITE[category]:
        assert list(line) == FIELDS
        assert line["label"] in LABELS
        for side in ("claim", "evidence"):
            assert line[side] == " ".join(line[side].split())
            assert line[side][-1] in '.?!"'


@pytest.mark.parametrize("category", CATEGORIES)
def test_ids_count_the_pairs(category: str) -> None:
    for number, (first, second) in enumerate(pairs_of(SUITE[category]), 1):
        name = f"{category}-{number:03d}"
        assert first["pair"] == second["pair"] == name
        assert (first["id"], second["id"]) == (f"{name}a", f"{name}b")


def test_a_pair_differs_in_one_side_and_in_the_label() -> None:
    assert not [
        pair[0]["pair"]
        for pair in PAIRS
        if len(edited_sides(pair)) != 1 or pair[0]["label"] == pair[1]["label"]
    ]


def test_edits_are_small() -> None:
    large = {
        first["pair"]
        for first, second in PAIRS
        for side in edited_sides((first, second))
        if not is_small_edit(first[side], second[side])
    }
    assert large == set(LARGER_EDITS)


def test_no_line_occurs_twice_and_no_claim_in_two_pairs() -> None:
    assert len({(line["claim"], line["evidence"]) for line in LINES}) == len(LINES)
    claims = Counter(claim for pair in PAIRS for claim in {line["claim"] for line in pair})
    assert not [claim for claim, count in claims.items() if count > 1]


def test_the_table_of_the_readme() -> None:
    rows = {}
    for row in re.findall(r"^\| `?(\w+)`? \|.*?\| ((?:\d+ \| ){5}\d+) \|$", README, re.MULTILINE):
        rows[row[0]] = [int(number) for number in row[1].split(" | ")]
    expected = {category: counts(lines) for category, lines in SUITE.items()}
    assert rows == {**expected, "total": counts(LINES)}


def test_there_are_enough_pairs() -> None:
    assert len(PAIRS) >= 320
    assert all(len(lines) >= 2 * 40 for lines in SUITE.values())


def test_the_length_of_evidence() -> None:
    lengths = [len(line["evidence"].split()) for line in LINES]
    stated = re.search(r"Evidence has (\d+) to (\d+) words", README)
    assert stated is not None
    assert [min(lengths), max(lengths)] == [int(number) for number in stated.groups()]
    assert min(lengths) >= 8
    assert max(lengths) <= 60


def test_labels_are_in_balance() -> None:
    labels = Counter(line["label"] for line in LINES)
    first = Counter(pair[0]["label"] for pair in PAIRS)
    for label in LABELS:
        assert labels[label] / len(LINES) >= 0.25
        assert first[label] / len(PAIRS) >= 0.2


def test_both_sides_are_edited_equally_often() -> None:
    edited = sum(edited_sides(pair) == ["claim"] for pair in PAIRS)
    assert 0.45 <= edited / len(PAIRS) <= 0.55


@pytest.mark.parametrize("side", ["claim", "evidence"])
def test_words_of_negation_do_not_tell_the_label(side: str) -> None:
    labels = Counter(line["label"] for line in LINES if NEGATION.search(line[side]))
    assert abs(labels["supports"] - labels["refutes"]) / labels.total() <= 0.05
