"""Reasons for weights: one wording, with what is left for each reason."""

from __future__ import annotations

import numpy as np
import pytest

from lpf.explain import ItemPart, Weight
from lpf.explain.weight_reasons import listed_reasons, reason_for_weight, weight_reasons


def item(
    weight: Weight,
    *,
    credibility: float | None = None,
    copies_of: tuple[str, ...] = (),
    wordless: bool = False,
) -> ItemPart:
    zero = np.zeros(2)
    return ItemPart("item", "E001", zero, None, None, weight, credibility, copies_of, wordless)


def test_a_full_weight_needs_no_reason() -> None:
    full = item(Weight(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, None, 0.0))
    assert weight_reasons(full) == []
    assert listed_reasons(full) == reason_for_weight(full) == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (item(Weight(0.5, copies=0.5), copies_of=("E002",)), "E002"),
        (item(Weight(0.2, familiarity=0.2)), "unlike"),
        (item(Weight(0.2, relevance=0.2)), "claim"),
        (item(Weight(1.0, doubt=0.8), credibility=0.2), "credibility"),
        (item(Weight(1.0, doubt=0.8)), "nothing"),
        (item(Weight(0.0, familiarity=0.0), wordless=True), "words"),
        (item(Weight(0.1, given=0.1)), "given"),
    ],
)
def test_each_reason_is_named_with_its_number(found: ItemPart, words: str) -> None:
    (reason,) = weight_reasons(found)
    assert words in reason.words
    assert reason.is_strong
    assert reason.words == reason_for_weight(found)
    assert listed_reasons(found) == f"{reason.words} ({reason.share:.2f})"


def test_what_holds_for_all_items_is_listed_and_not_blamed_on_one() -> None:
    found = item(Weight(0.1, shared=0.4, trust=0.3))
    assert reason_for_weight(found) == ""
    assert len(weight_reasons(found)) == 2


def test_a_weight_that_is_raised_is_no_reason_to_count_little() -> None:
    found = item(Weight(3.0, given=3.0))
    assert reason_for_weight(found) == ""
    assert "more" in listed_reasons(found)


def test_of_many_copies_some_are_named() -> None:
    others = tuple(f"E{n:03d}" for n in range(2, 12))
    reason = reason_for_weight(item(Weight(0.1, copies=1 / 11), copies_of=others))
    assert "E002" in reason
    assert "E011" not in reason
    assert "7 more" in reason
