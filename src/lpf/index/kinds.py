"""Kinds of FAISS index over unit vectors, where the inner product is the cosine.

``flat`` compares with every vector. ``ivf_flat`` sorts vectors into lists by their nearest centroid
and looks into the ``nprobe`` lists nearest to the query. ``ivf_pq`` also keeps a few bytes in place
of each vector, so its order is only good for choosing what is compared exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from lpf.errors import ConfigError
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
