"""Kinds: by source, type and credibility, with those left out named."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.explain.kinds import ENOUGH, FEWEST, MOST_KINDS, Kinds

SHARES = st.lists(
    st.one_of(st.none(), st.floats(0.0, 1.0, allow_nan=False)), min_size=1, max_size=80
)


@settings(max_examples=50, deadline=None)
@given(SHARES)
def test_bands_are_disjoint_and_have_every_known_credibility(shares: list[float | None]) -> None:
    kinds = Kinds.of([None] * len(shares), ["text"] * len(shares), shares)
    bands = [rows for name, rows in kinds.places.items() if name.startswith("credibility:")]
    together = np.concatenate([np.empty(0, np.intp), *bands])
    assert len(together) == len(set(together.tolist()))
    assert all(len(rows) >= FEWEST for rows in bands)
    assert all(shares[place] is not None for place in together.tolist())
    for low, high in itertools.pairwise(bands):
        ends = sorted([[shares[p] for p in rows] for rows in (low, high)])
        assert max(ends[0]) <= min(ends[1])
    assert kinds.places["any"].tolist() == list(range(len(shares)))


def test_rare_kinds_are_left_out_and_named() -> None:
    sources = ["common"] * FEWEST + ["rare"] + [None]
    kinds = Kinds.of(sources, ["text"] * len(sources), [None] * len(sources))
    assert set(kinds.places) == {"any", "source:common"}
    assert "source:rare" in kinds.left_out[0]


def test_of_many_sources_the_most_frequent_stay() -> None:
    sources = [
        f"source {number}" for number in range(MOST_KINDS + 3) for _ in range(FEWEST + number)
    ]
    kinds = Kinds.of(sources, ["text"] * len(sources), [None] * len(sources))
    assert len(kinds.places) == MOST_KINDS + 1
    assert "source:source 0" not in kinds.places
    assert f"source:source {MOST_KINDS + 2}" in kinds.places


def test_one_type_is_no_kind_of_its_own() -> None:
    several = Kinds.of([None] * 20, ["text"] * 10 + ["hybrid"] * 10, [None] * 20)
    assert {"type:text", "type:hybrid"} <= set(several.places)
    one = Kinds.of([None] * 20, ["text"] * 20, [None] * 20)
    assert set(one.places) == {"any"}


def test_an_unread_item_is_most_like_its_source_if_enough_is_known_of_that() -> None:
    sources = ["a"] * ENOUGH + ["b"] * (ENOUGH - 1)
    types = ["text"] * ENOUGH + ["hybrid"] * (ENOUGH - 1)
    kinds = Kinds.of(sources, types, [None] * len(sources))
    assert kinds.like("a", "text") == "source:a"
    assert kinds.like("b", "text") == "type:text"
    assert kinds.like("b", "hybrid") == "any"
    assert kinds.like(None, "unknown") == "any"
