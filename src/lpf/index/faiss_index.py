"""Kinds of FAISS index over unit vectors, where the inner product is the cosine.

``flat`` compares with every vector. ``ivf_flat`` sorts vectors into lists by their nearest centroid
and looks into the ``nprobe`` lists nearest to the query. ``ivf_pq`` also keeps a few bytes in place
of each vector, so its order is only good for choosing what is compared exactly.

Building an index over the store's own vectors, and measuring what it misses.
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

SAMPLE_PER_LIST = 64  # vectors a centroid is trained on
# A centroid of very few vectors would give them away after they were erased.
FEWEST_PER_LIST = 5
PQ_BITS = 8


@dataclass(frozen=True)
class IndexConfig:
    """How the vector file is made. ``auto`` is flat below ``flat_below`` vectors, else ivf_flat.

    Recall is measured for the 10 nearest of up to ``recall_queries`` of the store's own vectors;
    lists are added until it reaches ``recall_target``. ``pq_bytes`` stand for a vector in ivf_pq,
    and ``rerank`` times the wanted number is compared exactly. A file is made anew once more than
    ``stale_share`` of its vectors plus ``stale_items`` came after it; until then these are compared
    one by one.
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
        """The kind to build over ``count`` vectors; too few for lists are always compared all."""
        if list_count(count) < 2:
            return "flat"
        if self.kind != "auto":
            return self.kind
        return "flat" if count < self.flat_below else "ivf_flat"

    def _check(self, holds: bool, name: str, rule: str) -> None:
        if not holds:
            raise ConfigError(f"index.vectors.{name}: must be {rule}, got {getattr(self, name)!r}.")


@dataclass(frozen=True)
class FaissIndex:
    """An index of FAISS, and how many lists a query looks into."""

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
        """Products and rows [Q, depth], falling; -inf and -1 where there are fewer."""
        found: tuple[Float32Array, RowNumbers] = self.index.search(
            np.ascontiguousarray(queries), depth, params=self._params(nprobe or self.nprobe)
        )
        products, row_ids = found
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
    """About 4·√N lists, and never so many that a list has too few vectors to be trained on."""
    return min(int(4 * math.sqrt(count)), count // SAMPLE_PER_LIST)


def empty_index(kind: Kind, sample: Float32Array, config: IndexConfig, count: int) -> FaissIndex:
    """An index without vectors; its lists are trained on ``sample`` [N, width], units all."""
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
    index.train(sample)  # the lists are given; this fits what is kept of a vector
    return FaissIndex(kind, index)


def _centroids(sample: Float32Array, lists: int, seed: int) -> Float32Array:
    import faiss

    means: Any = faiss.Kmeans(sample.shape[1], lists, spherical=True, seed=seed)
    _set_clustering(means.cp)
    means.train(sample)
    nearest = means.index.search(sample, 1)[1].ravel()
    order = np.argsort(nearest, kind="stable")
    # One more step of k-means, by hand: now every centroid is a mean of members that were counted.
    _, starts, members = np.unique(nearest[order], return_index=True, return_counts=True)
    sums = np.add.reduceat(sample[order], starts)[members >= FEWEST_PER_LIST]
    centroids: Float32Array = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return centroids


def _set_clustering(parameters: Any) -> None:
    parameters.niter = 10
    parameters.max_points_per_centroid = SAMPLE_PER_LIST
    parameters.min_points_per_centroid = 1  # FAISS would warn on the console


def _parts(width: int, at_most: int) -> int:
    """Bytes a vector: a product quantizer cuts the width into equal parts, here of 4 or more."""
    most = min(at_most, max(1, width // 4))
    return next(parts for parts in range(most, 0, -1) if width % parts == 0)


RECALL_DEPTH = 10
NEGLIGIBLE = 0.005  # recall that is not worth looking into twice the lists
TIE = 1e-5  # products this near are equal: identical texts must not count as missed


@dataclass(frozen=True)
class Built:
    """An index and what was found when it was made: ``recall`` is the share of the true 10 nearest
    that it finds, 1 for one that compares all."""

    index: FaissIndex
    last_row_id: int
    recall: float


def build(source: FeatureSource, config: IndexConfig) -> Built:
    """Reads the vectors of the store twice, chunk by chunk: to train, and to add and measure."""
    count = source.store.state(source.number)[0]
    kind = config.kind_for(count)
    queries, training = _held_and_training(source, config, kind, count)
    index = empty_index(kind, training.units, config, count)
    exact, last = ExactNearest(queries, RECALL_DEPTH), 0
    for row_ids, units in unit_chunks(source):
        index.add(row_ids, units)
        exact.see(row_ids, units)
        last = int(row_ids[-1])
    if kind == "flat":
        return Built(index, last, 1.0)
    tuned, recall = _tuned(source, config, index, exact)
    return Built(tuned, last, recall)


def unit_chunks(source: FeatureSource) -> Iterator[tuple[RowNumbers, Float32Array]]:
    """All rows and their texts' unit vectors, in the order of the rows."""
    for row_ids, features in source.store.vectors(source.number):
        yield row_ids, units_of(source.texts(features))


def units_of(texts: Float32Array) -> Float32Array:
    """Rows of length 1; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", texts, texts))[:, None]
    units: Float32Array = np.divide(texts, lengths, out=np.zeros_like(texts), where=lengths > 0)
    return units


def approximate(
    source: FeatureSource,
    config: IndexConfig,
    index: FaissIndex,
    queries: Float32Array,
    depth: int,
    nprobe: int | None = None,
) -> tuple[Float32Array, RowNumbers]:
    """Cosines and rows [Q, depth], falling, -inf and -1 where there are fewer. All cosines are
    exact: those of shortened vectors are computed again from the store."""
    if index.kind != "ivf_pq":
        return index.search(queries, depth, nprobe)
    _, row_ids = index.search(queries, depth * config.rerank, nprobe)
    ranked = [
        _reranked(source, query, some[some >= 0], depth)
        for query, some in zip(queries, row_ids, strict=True)
    ]
    return np.stack([cosines for cosines, _ in ranked]), np.stack([rows for _, rows in ranked])


@dataclass(frozen=True)
class SomeRows:
    """Rows of the store by number [N] and unit vector [N, width]."""

    row_ids: RowNumbers
    units: Float32Array


class ExactNearest:
    """The true nearest of some rows of the store among all others, as vectors come by."""

    def __init__(self, queries: SomeRows, depth: int) -> None:
        self.queries = queries
        self.cosines = np.full((len(queries.units), depth), -np.inf, np.float32)

    def see(self, row_ids: RowNumbers, units: Float32Array) -> None:
        cosines = self.queries.units @ units.T
        cosines[self.queries.row_ids[:, None] == row_ids] = -np.inf  # not itself
        both = np.concatenate([self.cosines, cosines], axis=1)
        depth = self.cosines.shape[1]
        self.cosines = -np.sort(np.partition(-both, depth - 1, axis=1)[:, :depth], axis=1)

    def recall(self, cosines: Float32Array, row_ids: RowNumbers) -> float:
        """The share of the true nearest among those found, [Q, depth + 1] as the query itself is
        usually found too. What is as near as the last of the true ones is as good."""
        depth = self.cosines.shape[1]
        others = np.where(row_ids == self.queries.row_ids[:, None], -np.inf, cosines)
        best = -np.sort(-others, axis=1)[:, :depth]
        return float((best >= self.cosines[:, -1:] - TIE).mean())


def _tuned(
    source: FeatureSource, config: IndexConfig, index: FaissIndex, exact: ExactNearest
) -> tuple[FaissIndex, float]:
    """The index with the fewest lists, in powers of two, that reach the target; where none do, the
    fewest that come close to the best."""
    tried: dict[int, float] = {}
    for nprobe in _doubled_up_to(index.lists):
        found = approximate(source, config, index, exact.queries.units, RECALL_DEPTH + 1, nprobe)
        tried[nprobe] = exact.recall(*found)
        if tried[nprobe] >= config.recall_target:
            break
    best, target = max(tried.values()), config.recall_target
    enough = target if best >= target else best - NEGLIGIBLE
    nprobe = next(nprobe for nprobe, recall in tried.items() if recall >= enough)
    return replace(index, nprobe=nprobe), tried[nprobe]


def _doubled_up_to(most: int) -> Iterator[int]:
    """1, 2, 4, ... and ``most`` itself."""
    number = 1
    while number < most:
        yield number
        number *= 2
    yield most


def _held_and_training(
    source: FeatureSource, config: IndexConfig, kind: Kind, count: int
) -> tuple[SomeRows, SomeRows]:
    """Rows to measure with, and others to train on; none of either for an exact index."""
    if kind == "flat":
        nothing = SomeRows(np.empty(0, np.int64), np.empty((0, source.text_width), np.float32))
        return nothing, nothing
    wanted = config.recall_queries + SAMPLE_PER_LIST * list_count(count)
    random = np.random.default_rng(config.seed)
    places = random.permutation(count)[:wanted]
    drawn = _at(source, np.sort(places))
    held = random.permutation(len(drawn.units))
    queries, training = np.split(held, [min(config.recall_queries, count // 10)])
    return (
        SomeRows(drawn.row_ids[queries], drawn.units[queries]),
        SomeRows(drawn.row_ids[training], drawn.units[training]),
    )


def _at(source: FeatureSource, places: RowNumbers) -> SomeRows:
    """The rows at these places, ascending, of the store's order."""
    row_ids, units, start = [], [], 0
    for chunk_ids, chunk in unit_chunks(source):
        here = places[(places >= start) & (places < start + len(chunk))] - start
        row_ids.append(chunk_ids[here])
        units.append(chunk[here])
        start += len(chunk)
    return SomeRows(np.concatenate(row_ids), np.concatenate(units))


def _reranked(
    source: FeatureSource, query: Float32Array, row_ids: RowNumbers, depth: int
) -> tuple[Float32Array, RowNumbers]:
    there, features = vectors_of_rows(source.store, source.number, source.width, row_ids.tolist())
    cosines = units_of(source.texts(features)) @ query
    order = np.lexsort((there, -cosines))[:depth]
    padding = (0, depth - len(order))
    return (
        np.pad(cosines[order], padding, constant_values=-np.inf),
        np.pad(there[order], padding, constant_values=-1),
    )
