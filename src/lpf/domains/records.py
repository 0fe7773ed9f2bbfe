"""Entities before any text: their fields, the value these decide on, and what is known besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from lpf.domains.declaration import Domain, Value
from lpf.domains.evidence_model import EvidenceModel
from lpf.domains.streams import uniforms
from lpf.types import FloatArray

NOT_BORDERLINE = -1
# Of the score's spread, what the fields do not explain.
SCORE_NOISE = 0.5
_SCORE_DECIMALS = 3
_EXTRA_DRAWS = 3  # the score's noise, the related value, and whether that is known
_SMALLEST = 2.0**-54  # a uniform draw of exactly 0 would be an infinite normal one


@dataclass(frozen=True)
class Records:
    """E entities: the position of each value, its rank from 0 to 1, the value it is borderline
    towards, the related value and whether it is a known fact, and the fields."""

    values: NDArray[np.int64]
    ranks: FloatArray
    towards: NDArray[np.int64]
    related: NDArray[np.int64]
    known: NDArray[np.bool_]
    fields: tuple[Mapping[str, Value], ...]


def draw_records(
    domain: Domain, model: EvidenceModel, count: int, *, seed: int, path: tuple[str, ...]
) -> Records:
    """``count`` entities, ranked among themselves, so that the shares of their values hold."""
    own, shared = _draws(domain, count, seed, path)
    normal = _normals(domain, own, shared)
    values, ranks = labels_by_rank(_scores(domain, normal, own), model.shares)
    related = (own[:, -2, None] >= np.cumsum(domain.table, axis=1)[values, :-1]).sum(axis=1)
    return Records(
        values,
        ranks,
        borderline_towards(values, ranks, model),
        related.astype(np.int64),
        own[:, -1] < model.parameters.fact_share,
        tuple(_fields(domain, own, shared, ndtr(normal), ranks)),
    )


def labels_by_rank(
    scores: FloatArray, shares: Sequence[float]
) -> tuple[NDArray[np.int64], FloatArray]:
    """The value of each entity, the last for the highest scores, and its rank from 0 to 1."""
    order = np.argsort(scores, kind="stable")
    places = np.empty(len(scores), dtype=np.int64)
    places[order] = np.arange(len(scores))
    by_place = np.repeat(np.arange(len(shares)), exact_counts(shares, len(scores)))
    return by_place[places], (places + 0.5) / len(scores)


def exact_counts(shares: Sequence[float], total: int) -> NDArray[np.int64]:
    """Whole numbers nearest to the shares with the right sum (largest remainders)."""
    wanted = np.array(shares) * total
    counts: NDArray[np.int64] = np.floor(wanted).astype(np.int64)
    largest = np.argsort(counts - wanted, kind="stable")
    counts[largest[: total - counts.sum()]] += 1
    return counts


def borderline_towards(
    values: NDArray[np.int64], ranks: FloatArray, model: EvidenceModel
) -> NDArray[np.int64]:
    """The value across the threshold that an entity stands within the band of, else -1."""
    ends = np.concatenate([[-np.inf], _thresholds(values, model.size), [np.inf]])
    below, above = ranks - ends[values], ends[values + 1] - ranks
    neighbour = np.where(below < above, values - 1, values + 1)
    is_near = np.minimum(below, above) < model.band
    return np.where(is_near, neighbour, np.int64(NOT_BORDERLINE))


def _thresholds(values: NDArray[np.int64], size: int) -> FloatArray:
    counts = np.bincount(values, minlength=size)
    return np.asarray(np.cumsum(counts)[:-1] / len(values))


def _draws(
    domain: Domain, count: int, seed: int, path: tuple[str, ...]
) -> tuple[FloatArray, FloatArray]:
    """Uniform draws of each entity, and those of the group it belongs to."""
    width = sum(field.draws for field in domain.fields) + _EXTRA_DRAWS
    own = uniforms(seed, (*path, "record"), range(count), width)
    if not domain.years:
        return own, own
    groups = np.arange(count) // len(domain.years)
    shared = uniforms(seed, (*path, "group"), range(int(groups[-1]) + 1), width)
    return own, shared[groups]


def _normals(domain: Domain, own: FloatArray, shared: FloatArray) -> FloatArray:
    """Standard normal draws; entities of one group have half of each one's variance in common."""
    normal = ndtri(np.maximum(own, _SMALLEST))
    if domain.years:
        normal = (normal + ndtri(np.maximum(shared, _SMALLEST))) / np.sqrt(2.0)
    return np.asarray(normal)


def _scores(domain: Domain, normal: FloatArray, own: FloatArray) -> FloatArray:
    weights = np.concatenate([[field.weight] * field.draws for field in domain.fields])
    noise = SCORE_NOISE * np.sqrt((weights**2).sum()) * ndtri(np.maximum(own[:, -3], _SMALLEST))
    return np.asarray((normal[:, : len(weights)] * weights).sum(axis=1) + noise)


def _fields(
    domain: Domain, own: FloatArray, shared: FloatArray, weighted: FloatArray, ranks: FloatArray
) -> list[Mapping[str, Value]]:
    made: list[dict[str, Value]] = [{} for _ in ranks]
    start = 0
    for field in domain.fields:
        source = weighted if field.weight else shared if field.is_shared else own
        for record, draws in zip(
            made, source[:, start : start + field.draws].tolist(), strict=True
        ):
            record[field.name] = field.value(draws)
        start += field.draws
    for entity, record in enumerate(made):
        if domain.grouped_by is not None:
            record[domain.grouped_by] = domain.years[entity % len(domain.years)]
        record[domain.score_field] = round(float(ranks[entity]), _SCORE_DECIMALS)
    return list(made)
