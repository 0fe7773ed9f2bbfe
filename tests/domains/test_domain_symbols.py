"""Drawing of symbols: frequencies match the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lpf.datasets.splits import rounded_shares
from lpf.domains import GeneratorParameters
from lpf.domains.evidence_model import EvidenceModel
from lpf.domains.records import borderline_towards, labels_by_rank
from lpf.domains.symbols import Symbols, draw_symbols, draws_needed

SHARES = (0.3, 0.4, 0.3)
SOURCES = (3, 4, 3)
BASE = GeneratorParameters(contradiction=0.2, ambiguity=0.0, credibility_correlation=0.0)


def drawn(
    parameters: GeneratorParameters, value: int = 1, towards: int = -1, count: int = 20_000
) -> Symbols:
    model = EvidenceModel(parameters, SHARES)
    uniform = np.random.default_rng(0).random((count, draws_needed(parameters, len(SOURCES))))
    same = np.ones(count, dtype=np.int64)
    return draw_symbols(model, value * same, towards * same, SOURCES, uniform)


def frequencies(symbols: Symbols, size: int = 5) -> np.ndarray:
    return np.bincount(symbols.symbols[:, 0], minlength=size) / len(symbols.symbols)


def test_wrong_grades_have_the_stated_frequency() -> None:
    assert frequencies(drawn(BASE, value=0)) == pytest.approx(
        [0.8, 0.2 * 2 / 3, 0.2 / 3, 0, 0], abs=0.01
    )


def test_borderline_entity_shows_the_other_value() -> None:
    pulled = drawn(replace(BASE, contradiction=0.0, pull=0.3), value=1, towards=2)
    assert frequencies(pulled) == pytest.approx([0, 0.7, 0.3, 0, 0], abs=0.01)


def test_ambiguous_items_show_a_pair() -> None:
    middle = drawn(replace(BASE, contradiction=0.0, ambiguity=0.4), value=1)
    assert frequencies(middle) == pytest.approx([0, 0.6, 0, 0.2, 0.2], abs=0.01)
    last = drawn(replace(BASE, contradiction=0.0, ambiguity=0.4), value=2)
    assert frequencies(last) == pytest.approx([0, 0, 0.6, 0, 0.4], abs=0.01)


def test_credible_items_are_wrong_less_often() -> None:
    symbols = drawn(replace(BASE, credibility_correlation=1.5))
    right = symbols.symbols == 1
    credible = symbols.credibility > np.median(symbols.credibility)
    assert right.mean() == pytest.approx(0.8, abs=0.01)
    assert right[credible].mean() > right[~credible].mean() + 0.1


def test_old_items_are_wrong_more_often() -> None:
    symbols = drawn(replace(BASE, drift=0.5))
    old = symbols.age_days > 365
    right = symbols.symbols == 1
    assert right[~old].mean() > right[old].mean() + 0.1
    assert (symbols.age_days.min(), symbols.age_days.max()) == (0, 730)


def test_aspects_repeat_only_after_all_were_used() -> None:
    symbols = drawn(replace(BASE, items=7), count=300)
    assert (np.sort(symbols.aspects[:, :3], axis=1) == [0, 1, 2]).all()
    assert (np.sort(symbols.aspects[:, 3:6], axis=1) == [0, 1, 2]).all()
    assert (symbols.sources < np.array(SOURCES)[symbols.aspects]).all()
    assert set(symbols.sources[symbols.aspects == 1].tolist()) == {0, 1, 2, 3}


def test_copies_repeat_an_earlier_original() -> None:
    symbols = drawn(replace(BASE, items=6, copies=0.4), count=2000)
    rows = np.arange(2000)[:, None]
    places = np.arange(6)
    is_copy = symbols.origins != places
    assert is_copy[:, 1:].mean() == pytest.approx(0.4, abs=0.02)
    assert (symbols.origins <= places).all()
    assert not is_copy[rows, symbols.origins].any()
    for content in (symbols.aspects, symbols.sources, symbols.symbols):
        assert (content == content[rows, symbols.origins]).all()
    later = symbols.age_days[rows, symbols.origins] - symbols.age_days
    assert set(later[is_copy].tolist()) == set(range(31))
    assert (symbols.credibility != symbols.credibility[rows, symbols.origins])[is_copy].mean() > 0.9


def test_numbers_of_items() -> None:
    ranged = drawn(replace(BASE, items=5, items_min=2)).counts
    assert np.bincount(ranged) / len(ranged) == pytest.approx([0, 0, *[0.25] * 4], abs=0.02)
    thinned = drawn(replace(BASE, items=3, missing=0.5)).counts
    assert np.bincount(thinned) / len(thinned) == pytest.approx([0, 4 / 8, 3 / 8, 1 / 8], abs=0.02)
    assert (drawn(BASE).counts == 5).all()


@pytest.mark.parametrize(
    ("shares", "total", "counts"),
    [
        ((0.3, 0.4, 0.3), 900, [270, 360, 270]),
        ((0.35, 0.4, 0.25), 900, [315, 360, 225]),
        ((1 / 3, 1 / 3, 1 / 3), 10, [4, 3, 3]),
        ((0.05, 0.15, 0.8), 7, [0, 1, 6]),
    ],
)
def test_shares_are_rounded_to_whole_entities(
    shares: tuple[float, ...], total: int, counts: list[int]
) -> None:
    assert rounded_shares(total, shares) == counts


def test_values_and_borderline_entities_follow_the_ranks() -> None:
    scores = np.random.default_rng(1).permutation(1000).astype(float)
    model = EvidenceModel(GeneratorParameters(borderline=0.2), SHARES)
    values, ranks = labels_by_rank(scores, SHARES)
    towards = borderline_towards(values, ranks, model)
    assert ranks == pytest.approx((scores + 0.5) / 1000)
    by_rank = list(zip(values[np.argsort(scores)], towards[np.argsort(scores)], strict=True))
    expected = [
        *[(0, -1)] * 250,
        *[(0, 1)] * 50,
        *[(1, 0)] * 50,
        *[(1, -1)] * 300,
        *[(1, 2)] * 50,
        *[(2, 1)] * 50,
        *[(2, -1)] * 250,
    ]
    assert by_rank == expected
