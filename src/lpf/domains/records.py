"""Records of entities: fields, the value they determine, and the related value. Also the named
random streams that everything in a domain is drawn from, so that results do not depend on the order
of drawing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from lpf.datasets.splits import rounded_shares
from lpf.domains.declaration import Domain, Value
from lpf.domains.evidence_model import EvidenceModel
from lpf.types import FloatArray

NOT_BORDERLINE = -1
# Standard deviation of the part of the score that the fields do not explain, relative to theirs.
SCORE_NOISE = 0.5
_SCORE_DECIMALS = 3
_EXTRA_DRAWS = 3  # noise of the score, related value, whether it is known
_SMALLEST = 2.0**-54  # the normal quantile of 0 is infinite


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """Return a generator; the same seed and path give the same numbers on every machine."""
    words = [step if isinstance(step, int) else _word(step) for step in path]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


def uniforms(seed: int, path: tuple[str, ...], members: Iterable[int], width: int) -> FloatArray:
    """Return uniform numbers [members, width], one stream per row."""
    rows = [stream(seed, *path, member).random(width) for member in members]
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _word(step: str) -> int:
    return int.from_bytes(hashlib.blake2b(step.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True)
class Records:
    """Records of E entities.

    ``values``: position of the value. ``ranks``: rank of the score from 0 to 1. ``towards``: the
    value an entity is borderline towards, or NOT_BORDERLINE. ``related``: position of the related
    value. ``known``: True if it is a known fact.
    """

    values: NDArray[np.int64]
    ranks: FloatArray
    towards: NDArray[np.int64]
    related: NDArray[np.int64]
    known: NDArray[np.bool_]
    fields: tuple[Mapping[str, Value], ...]


def draw_records(
    domain: Domain, model: EvidenceModel, count: int, *, seed: int, path: tuple[str, ...]
) -> Records:
    """Draw ``count`` entities. Values follow from the rank of the score, so shares are exact."""
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
    """Return the value of each entity (the last value for the highest scores) and its rank."""
    order = np.argsort(scores, kind="stable")
    places = np.empty(len(scores), dtype=np.int64)
    places[order] = np.arange(len(scores))
    by_place = np.repeat(np.arange(len(shares)), rounded_shares(len(scores), shares))
    return by_place[places], (places + 0.5) / len(scores)


def borderline_towards(
    values: NDArray[np.int64], ranks: FloatArray, model: EvidenceModel
) -> NDArray[np.int64]:
    """Return the value across the nearest threshold if the rank is within the band, else -1."""
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
    """Return uniform draws per entity, and those of its group."""
    width = sum(field.draws for field in domain.fields) + _EXTRA_DRAWS
    own = uniforms(seed, (*path, "record"), range(count), width)
    if not domain.years:
        return own, own
    groups = np.arange(count) // len(domain.years)
    shared = uniforms(seed, (*path, "group"), range(int(groups[-1]) + 1), width)
    return own, shared[groups]


def _normals(domain: Domain, own: FloatArray, shared: FloatArray) -> FloatArray:
    """Return standard normal draws; entities of one group share half of their variance."""
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
    records: list[dict[str, Value]] = [{} for _ in ranks]
    start = 0
    for field in domain.fields:
        source = weighted if field.weight else shared if field.is_shared else own
        for record, draws in zip(
            records, source[:, start : start + field.draws].tolist(), strict=True
        ):
            record[field.name] = field.value(draws)
        start += field.draws
    for entity, record in enumerate(records):
        if domain.grouped_by is not None:
            record[domain.grouped_by] = domain.years[entity % len(domain.years)]
        record[domain.score_field] = round(float(ranks[entity]), _SCORE_DECIMALS)
    return list(records)
