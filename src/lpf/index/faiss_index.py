"""FAISS indexes over unit vectors: the kinds of index, building them, and measuring their recall.

For unit vectors the inner product is the cosine. ``flat`` compares the query with every vector.
``ivf_flat`` sorts vectors into lists by their nearest centroid and searches the ``nprobe`` lists
nearest to the query. ``ivf_pq`` also compresses each vector to a few bytes, so its order is only
used to choose the vectors that are compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from lpf.errors import ConfigError
from lpf.index.features import FeatureSource, vectors_of_rows
from lpf.storage.evidence import RowNumbers
from lpf.types import Float32Array

Kind = Literal["flat", "ivf_flat", "ivf_pq"]
KindChoice = Literal["auto", "flat", "ivf_flat", "ivf_pq"]

SAMPLE_PER_LIST = 64  # training vectors per centroid
# A centroid of very few vectors would reveal them after they were erased.
FEWEST_PER_LIST = 5
PQ_BITS = 8
RECALL_DEPTH = 10
NEGLIGIBLE = 0.005  # gain in recall that is not worth searching twice as many lists
TIE = 1e-5  # closer cosines are equal, so that identical texts do not count as missed


@dataclass(frozen=True)
class IndexConfig:
    """How the vector file is built. ``auto`` is flat below ``flat_below`` vectors, else ivf_flat.

    Recall is measured for the 10 nearest neighbours of up to ``recall_queries`` vectors of the
    store; more lists are searched until it reaches ``recall_target``. In ivf_pq a vector takes
    ``pq_bytes`` bytes, and ``rerank`` times the wanted number of vectors are compared exactly. New
    vectors are compared one by one until they are more than ``stale_share`` of the file's vectors
    plus ``stale_items``; then the file is rebuilt.
    """

    kind: KindChoice = "auto"
    flat_below: int = 50_000
    recall_target: float = 0.95
    recall_queries: int = 200
    pq_bytes: int = 48
    rerank: int = 10
    stale_share: float = 0.1
    stale_items: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(self.kind in get_args(KindChoice), "kind", f"one of {get_args(KindChoice)}")
        self._check(0.0 < self.recall_target <= 1.0, "recall_target", "in (0, 1]")
        for name in ("recall_queries", "pq_bytes", "rerank"):
            self._check(getattr(self, name) >= 1, name, "at least 1")
        for name in ("flat_below", "stale_share", "stale_items", "seed"):
            self._check(getattr(self, name) >= 0, name, "0 or above")

    def kind_for(self, count: int) -> Kind:
        """The kind to build over ``count`` vectors; always flat if there are too few for lists."""
        if list_count(count) < 2:
            return "flat"
        if self.kind != "auto":
            return self.kind
        return "flat" if count < self.flat_below else "ivf_flat"

    def _check(self, is_valid: bool, name: str, rule: str) -> None:
        if not is_valid:
            raise ConfigError(
                f"must be {rule}, got {getattr(self, name)!r}.", field=f"index.vectors.{name}"
            )


@dataclass(frozen=True)
class FaissIndex:
    """A FAISS index, and the number of lists a query searches."""

    kind: Kind
    index: Any
    nprobe: int = 1

    @property
    def count(self) -> int:
        return int(self.index.ntotal)

    @property
    def lists(self) -> int:
        return 1 if self.kind == "flat" else int(self.index.nlist)

    def add(self, row_ids: RowNumbers, units: Float32Array) -> None:
        self.index.add_with_ids(np.ascontiguousarray(units), row_ids)

    def remove(self, row_ids: RowNumbers) -> None:
        self.index.remove_ids(row_ids)

    def search(
        self, queries: Float32Array, depth: int, nprobe: int | None = None
    ) -> tuple[Float32Array, RowNumbers]:
        """Inner products and rows [Q, depth], descending; -inf and -1 if there are fewer."""
        result: tuple[Float32Array, RowNumbers] = self.index.search(
            np.ascontiguousarray(queries), depth, params=self._params(nprobe or self.nprobe)
        )
        products, row_ids = result
        products[row_ids < 0] = -np.inf
        return products, row_ids

    def _params(self, nprobe: int) -> Any:
        if self.kind == "flat":
            return None
        import faiss

        params = faiss.SearchParametersIVF()
        params.nprobe = nprobe
        return params


def list_count(count: int) -> int:
    """About 4·√N lists, but not more than there are training vectors for."""
    return min(int(4 * math.sqrt(count)), count // SAMPLE_PER_LIST)


def empty_index(kind: Kind, sample: Float32Array, config: IndexConfig, count: int) -> FaissIndex:
    """An index without vectors. Its lists are trained on the unit vectors ``sample`` [N, width]."""
    import faiss

    width = sample.shape[1]
    if kind == "flat":
        return FaissIndex(kind, faiss.IndexIDMap2(faiss.IndexFlatIP(width)))
    centroids = _centroids(sample, list_count(count), config.seed)
    coarse = faiss.IndexFlatIP(width)
    coarse.add(centroids)
    inner_product = faiss.METRIC_INNER_PRODUCT
    index: Any
    if kind == "ivf_flat":
        index = faiss.IndexIVFFlat(coarse, width, len(centroids), inner_product)
    else:
        parts = _parts(width, config.pq_bytes)
        index = faiss.IndexIVFPQ(coarse, width, len(centroids), parts, PQ_BITS, inner_product)
        _set_clustering(index.pq.cp)
    index.train(sample)  # the lists are given; this trains the compression
    return FaissIndex(kind, index)


def _centroids(sample: Float32Array, lists: int, seed: int) -> Float32Array:
    import faiss

    means: Any = faiss.Kmeans(sample.shape[1], lists, spherical=True, seed=seed)
    _set_clustering(means.cp)
    means.train(sample)
    nearest = means.index.search(sample, 1)[1].ravel()
    order = np.argsort(nearest, kind="stable")
    # One more step of k-means, here, so that the number of members of each centroid is known.
    _, starts, members = np.unique(nearest[order], return_index=True, return_counts=True)
    sums = np.add.reduceat(sample[order], starts)[members >= FEWEST_PER_LIST]
    centroids: Float32Array = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return centroids


def _set_clustering(parameters: Any) -> None:
    parameters.niter = 10
    parameters.max_points_per_centroid = SAMPLE_PER_LIST
    parameters.min_points_per_centroid = 1  # otherwise FAISS prints warnings


def _parts(width: int, at_most: int) -> int:
    """Bytes per vector: a product quantizer cuts the width into equal parts, here of 4 or more."""
    most = min(at_most, max(1, width // 4))
    return next(parts for parts in range(most, 0, -1) if width % parts == 0)


@dataclass(frozen=True)
class BuiltIndex:
    """A new index. ``recall`` is the share of the true 10 nearest neighbours that it finds; 1 for a
    flat index."""

    index: FaissIndex
    last_row_id: int
    recall: float


def build(source: FeatureSource, config: IndexConfig) -> BuiltIndex:
    """Build an index over all vectors of a reader. Reads them twice, chunk by chunk: to train, and
    to add and measure."""
    count = source.store.state(source.number)[0]
    kind = config.kind_for(count)
    queries, training = _queries_and_training(source, config, kind, count)
    index = empty_index(kind, training.units, config, count)
    exact, last = ExactNearest(queries, RECALL_DEPTH), 0
    for row_ids, units in unit_chunks(source):
        index.add(row_ids, units)
        exact.add(row_ids, units)
        last = int(row_ids[-1])
    if kind == "flat":
        return BuiltIndex(index, last, 1.0)
    tuned, recall = _tune(source, config, index, exact)
    return BuiltIndex(tuned, last, recall)


def unit_chunks(source: FeatureSource) -> Iterator[tuple[RowNumbers, Float32Array]]:
    """All row numbers and the unit vectors of their texts, ordered by row."""
    for row_ids, features in source.store.vectors(source.number):
        yield row_ids, units_of(source.texts(features))


def units_of(texts: Float32Array) -> Float32Array:
    """Scale rows to length 1; a row of zeros stays zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", texts, texts))[:, None]
    units: Float32Array = np.divide(texts, lengths, out=np.zeros_like(texts), where=lengths > 0)
    return units


def nearest_rows(
    source: FeatureSource,
    config: IndexConfig,
    index: FaissIndex,
    queries: Float32Array,
    depth: int,
    nprobe: int | None = None,
) -> tuple[Float32Array, RowNumbers]:
    """The nearest rows that the index finds: exact cosines and row numbers [Q, depth], in
    descending order; -inf and -1 if there are fewer. For ivf_pq the cosines are computed from the
    vectors in the store."""
    if index.kind != "ivf_pq":
        return index.search(queries, depth, nprobe)
    _, row_ids = index.search(queries, depth * config.rerank, nprobe)
    ranked = [
        _rerank(source, query, candidates[candidates >= 0], depth)
        for query, candidates in zip(queries, row_ids, strict=True)
    ]
    return np.stack([cosines for cosines, _ in ranked]), np.stack([rows for _, rows in ranked])


@dataclass(frozen=True)
class VectorRows:
    """Row numbers [N] and unit vectors [N, width]."""

    row_ids: RowNumbers
    units: Float32Array


class ExactNearest:
    """Finds the true nearest neighbours of some rows by comparing them with all vectors."""

    def __init__(self, queries: VectorRows, depth: int) -> None:
        self.queries = queries
        self.cosines = np.full((len(queries.units), depth), -np.inf, np.float32)

    def add(self, row_ids: RowNumbers, units: Float32Array) -> None:
        cosines = self.queries.units @ units.T
        cosines[self.queries.row_ids[:, None] == row_ids] = -np.inf  # not itself
        both = np.concatenate([self.cosines, cosines], axis=1)
        depth = self.cosines.shape[1]
        self.cosines = -np.sort(np.partition(-both, depth - 1, axis=1)[:, :depth], axis=1)

    def recall(self, cosines: Float32Array, row_ids: RowNumbers) -> float:
        """The share of the true nearest neighbours among those found. ``cosines`` and ``row_ids``
        are [Q, depth + 1], since the query itself is usually found too. A row as near as the last
        true neighbour counts as found."""
        depth = self.cosines.shape[1]
        others = np.where(row_ids == self.queries.row_ids[:, None], -np.inf, cosines)
        best = -np.sort(-others, axis=1)[:, :depth]
        return float((best >= self.cosines[:, -1:] - TIE).mean())


def _tune(
    source: FeatureSource, config: IndexConfig, index: FaissIndex, exact: ExactNearest
) -> tuple[FaissIndex, float]:
    """Set nprobe to the smallest power of two that reaches the target recall. If none does, to the
    smallest that comes close to the best."""
    recalls: dict[int, float] = {}
    for nprobe in _powers_of_two(index.lists):
        found = nearest_rows(source, config, index, exact.queries.units, RECALL_DEPTH + 1, nprobe)
        recalls[nprobe] = exact.recall(*found)
        if recalls[nprobe] >= config.recall_target:
            break
    best, target = max(recalls.values()), config.recall_target
    enough = target if best >= target else best - NEGLIGIBLE
    nprobe = next(nprobe for nprobe, recall in recalls.items() if recall >= enough)
    return replace(index, nprobe=nprobe), recalls[nprobe]


def _powers_of_two(most: int) -> Iterator[int]:
    """1, 2, 4, ... and ``most`` itself."""
    number = 1
    while number < most:
        yield number
        number *= 2
    yield most


def _queries_and_training(
    source: FeatureSource, config: IndexConfig, kind: Kind, count: int
) -> tuple[VectorRows, VectorRows]:
    """Random rows to measure recall with, and other rows to train on; none for a flat index."""
    if kind == "flat":
        nothing = VectorRows(np.empty(0, np.int64), np.empty((0, source.text_width), np.float32))
        return nothing, nothing
    wanted = config.recall_queries + SAMPLE_PER_LIST * list_count(count)
    random = np.random.default_rng(config.seed)
    places = random.permutation(count)[:wanted]
    drawn = _rows_at(source, np.sort(places))
    shuffled = random.permutation(len(drawn.units))
    queries, training = np.split(shuffled, [min(config.recall_queries, count // 10)])
    return (
        VectorRows(drawn.row_ids[queries], drawn.units[queries]),
        VectorRows(drawn.row_ids[training], drawn.units[training]),
    )


def _rows_at(source: FeatureSource, places: RowNumbers) -> VectorRows:
    """The rows at these positions (ascending) in the order of the store."""
    row_ids, units, start = [], [], 0
    for chunk_ids, chunk in unit_chunks(source):
        here = places[(places >= start) & (places < start + len(chunk))] - start
        row_ids.append(chunk_ids[here])
        units.append(chunk[here])
        start += len(chunk)
    return VectorRows(np.concatenate(row_ids), np.concatenate(units))


def _rerank(
    source: FeatureSource, query: Float32Array, row_ids: RowNumbers, depth: int
) -> tuple[Float32Array, RowNumbers]:
    stored, features = vectors_of_rows(source, row_ids.tolist())
    cosines = units_of(source.texts(features)) @ query
    order = np.lexsort((stored, -cosines))[:depth]
    padding = (0, depth - len(order))
    return (
        np.pad(cosines[order], padding, constant_values=-np.inf),
        np.pad(stored[order], padding, constant_values=-1),
    )
