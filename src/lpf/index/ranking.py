"""Ranks items: one score per item, from its relevance, credibility and age.

    score = (w_r·relevance + w_c·credibility + w_t·recency) / (w_r + w_c + w_t)

    relevance = (1 + cosine of the item's and the query's text) / 2
    recency   = 2^(-age / half-life)

Without a query text there is no relevance, and its weight is left out of both sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from lpf.errors import ConfigError
from lpf.items import GroupArray
from lpf.storage.values import MICROS_PER_DAY
from lpf.types import Float32Array


@dataclass(frozen=True)
class RankingConfig:
    """Weights of the score, and the values assumed if credibility or age is unknown."""

    relevance: float = 0.5
    credibility: float = 0.3
    recency: float = 0.2
    half_life_days: float = 365.0
    unknown_credibility: float = 0.5
    unknown_age_days: float = 365.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            _check(math.isfinite(value) and value >= 0, field.name, "finite and 0 or above", value)
        _check(self.half_life_days > 0, "half_life_days", "above 0", self.half_life_days)
        _check(
            self.unknown_credibility <= 1,
            "unknown_credibility",
            "in [0, 1]",
            self.unknown_credibility,
        )
        _check(
            self.credibility + self.recency > 0,
            "credibility",
            "above 0 if recency is 0, or nothing ranks items without a query text",
            self.credibility,
        )


class Ranker:
    """The score and the order of the items of one question."""

    def __init__(self, config: RankingConfig) -> None:
        self._config = config
        self._rate = -1.0 / (config.half_life_days * MICROS_PER_DAY)
        self._unknown_recency = 2.0 ** (-config.unknown_age_days / config.half_life_days)

    def scores(
        self,
        credibility: Sequence[float | None],
        timestamps: Sequence[int | None],
        as_of: int,
        relevance: Sequence[float] | None = None,
    ) -> list[float]:
        """One score per item, in [0, 1]. Times are microseconds, none later than ``as_of``.

        Plain Python: for a few items it is several times as fast as arrays, and for thousands
        the look-up costs more than either.
        """
        config, rate, unknown_recency = self._config, self._rate, self._unknown_recency
        unknown = config.unknown_credibility
        total = config.credibility + config.recency + (config.relevance if relevance else 0.0)
        trusted, fresh = config.credibility / total, config.recency / total
        scores = [
            trusted * (unknown if credible is None else credible)
            + fresh * (unknown_recency if moment is None else 2.0 ** ((as_of - moment) * rate))
            for credible, moment in zip(credibility, timestamps, strict=True)
        ]
        if not relevance:
            return scores
        relevant = config.relevance / total
        return [
            score + relevant * closeness for score, closeness in zip(scores, relevance, strict=True)
        ]


def best_first(scores: Sequence[float], timestamps: Sequence[int | None]) -> list[int]:
    """Positions by decreasing score. Of equal scores the newer is first, an undated one last; items
    equal in both keep their order."""
    return sorted(
        range(len(scores)),
        key=lambda place: (
            -scores[place],
            math.inf if (moment := timestamps[place]) is None else -moment,
        ),
    )


def take_best(order: Sequence[int], labels: GroupArray | None, top_k: int) -> list[int]:
    """The ``top_k`` positions to use, in the order given. The best item of each group of copies
    (``labels``, see ``copies.copy_labels``) comes before any second one of a group, so that copies
    do not displace independent items."""
    if labels is None or len(order) <= top_k:
        return list(order[:top_k])
    seen: set[int] = set()
    firsts: list[int] = []
    seconds: list[int] = []
    for rank, label in enumerate(labels[order].tolist()):
        (seconds if label in seen else firsts).append(rank)
        seen.add(label)
    return [order[rank] for rank in sorted((firsts + seconds)[:top_k])]


def relevance_to(texts: Float32Array, query: Float32Array) -> list[float]:
    """(1 + cosine) / 2 of each row of ``texts`` [K, width] with ``query`` [width]. A row of zeros
    has no direction: its cosine is 0."""
    lengths = np.sqrt(np.einsum("ij,ij->i", texts, texts) * np.dot(query, query))
    cosines = np.divide(texts @ query, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    relevance: list[float] = ((1.0 + cosines.clip(-1.0, 1.0)) / 2.0).tolist()
    return relevance


def _check(holds: bool, name: str, rule: str, value: float) -> None:
    if not holds:
        raise ConfigError(f"must be {rule}, got {value!r}.", field=f"index.ranking.{name}")
