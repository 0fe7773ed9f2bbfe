"""The score worked out by hand, and the settings that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import AS_OF

from lpf.errors import ConfigError
from lpf.index.ranking import Ranker, RankingConfig, best_first, relevance_to
from lpf.storage.values import MICROS_PER_DAY

YEAR = 365 * MICROS_PER_DAY


def test_without_a_query_text_its_weight_is_left_out() -> None:
    scores = Ranker(RankingConfig()).scores([0.9, 0.6], [AS_OF, AS_OF - YEAR], AS_OF)
    assert scores == pytest.approx([(0.3 * 0.9 + 0.2 * 1.0) / 0.5, (0.3 * 0.6 + 0.2 * 0.5) / 0.5])


def test_with_a_query_text_all_three_count() -> None:
    scores = Ranker(RankingConfig()).scores([0.9], [AS_OF - 2 * YEAR], AS_OF, [0.8])
    assert scores == pytest.approx([0.5 * 0.8 + 0.3 * 0.9 + 0.2 * 0.25])


def test_missing_values_get_the_configured_score() -> None:
    config = RankingConfig(unknown_credibility=0.4, unknown_age_days=730)
    assert Ranker(config).scores([None], [None], AS_OF) == pytest.approx(
        [(0.3 * 0.4 + 0.2 * 0.25) / 0.5]
    )


def test_relevance_is_the_cosine_on_a_scale_from_0_to_1() -> None:
    texts = np.array([[2, 0], [0, 3], [-1, 0], [1, 1], [0, 0]], np.float32)
    relevance = relevance_to(texts, np.array([4, 0], np.float32))
    assert relevance == pytest.approx([1.0, 0.5, 0.0, 0.5 + 0.5 / np.sqrt(2), 0.5])


def test_equal_scores_put_the_newer_first_and_the_undated_last() -> None:
    assert best_first([0.5, 0.5, 0.5, 0.7, 0.5], [10, None, 20, None, 10]) == [3, 2, 0, 4, 1]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"relevance": -0.1}, "relevance"),
        ({"recency": float("nan")}, "recency"),
        ({"half_life_days": 0.0}, "half_life_days"),
        ({"unknown_credibility": 1.2}, "unknown_credibility"),
        ({"unknown_age_days": float("inf")}, "unknown_age_days"),
        ({"credibility": 0.0, "recency": 0.0}, "credibility"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict[str, float], name: str) -> None:
    with pytest.raises(ConfigError, match=rf"index\.ranking\.{name}: must be"):
        RankingConfig(**settings)
