"""Factors and posteriors, computed once an item and kept.

A key holds all that the number depends on: text and claim (the item), reader, model, predicate,
integrator, samples, temperature and seed (the part).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lpf.engine import Engine, Items
from lpf.factors.convert import StepTimes
from lpf.storage.cache import Cache, NoCache
from lpf.types import Factors, FloatArray, Posteriors, QueryOptions


class KeptNumbers:
    """What an engine makes of items, through a cache."""

    def __init__(self, engine: Engine, cache: Cache, reader_id: str) -> None:
        self._engine = engine
        self._cache = cache
        self._reader_id = reader_id
        # Who wants every number computed anew wants no outcome kept either.
        self.keeps = not isinstance(cache, NoCache)
        self._factor_part = lru_cache(maxsize=256)(self._make_factor_part)
        self._posterior_part = lru_cache(maxsize=8)(self._make_posterior_part)

    def factors(
        self,
        items: Items,
        content_keys: Sequence[bytes],
        predicate: str,
        options: QueryOptions,
        times: StepTimes,
    ) -> Factors:
        """Soft factors of the items, from the cache where they are there."""
        if not self.keeps:
            return self._engine.factors(items, predicate, options, times)
        converter, _ = self._engine.conversion(predicate, options)
        width = len(converter.values) + 1

        def make(missing: Items) -> FloatArray:
            made = self._engine.factors(missing, predicate, options, times)
            return np.column_stack([made.potential, made.mean_sigma])

        part = self._factor_part(predicate, options)
        table = self._rows(items, content_keys, part, width, np.dtype("<f8"), make)
        config = converter.config
        return Factors(
            items.ids,
            predicate,
            converter.values,
            np.ascontiguousarray(table[:, :-1]),
            table[:, -1].copy(),
            config.sampler,
            config.samples,
            config.temperature,
        )

    def posteriors(
        self, items: Items, content_keys: Sequence[bytes], options: QueryOptions
    ) -> Posteriors:
        """q(z|e) of the items, from the cache where they are there."""
        model = self._engine.model_for(options)
        members, width = model.members, model.config.encoder.latent_width

        def make(missing: Items) -> np.ndarray[Any, Any]:
            made = self._engine.posteriors(missing, options)
            both = np.stack([made.mu, made.sigma])  # [2, S, n, d]
            return both.transpose(2, 0, 1, 3).reshape(len(missing.features), -1)

        part, row = self._posterior_part(options.mode), 2 * members * width
        table = self._rows(items, content_keys, part, row, np.dtype("<f4"), make)
        both = table.reshape(-1, 2, members, width).transpose(1, 2, 0, 3)
        return Posteriors(items.ids, np.ascontiguousarray(both[0]), np.ascontiguousarray(both[1]))

    def _rows(
        self,
        items: Items,
        content_keys: Sequence[bytes],
        part: bytes,
        width: int,
        kind: np.dtype[Any],
        make: Callable[[Items], np.ndarray[Any, Any]],
    ) -> np.ndarray[Any, Any]:
        """[N, width] numbers; those not kept are made in one pass and kept."""
        size = width * kind.itemsize
        found = self._cache.get_many(content_keys, part)
        missing = [place for place, kept in enumerate(found) if kept is None or len(kept) != size]
        if missing:
            whole = len(missing) == len(found)
            made = make(items if whole else _subset(items, missing)).astype(kind, copy=False)
            fresh = [row.tobytes() for row in made]
            self._cache.put_many([content_keys[place] for place in missing], part, fresh)
            if whole:
                return made
            for place, row in zip(missing, fresh, strict=True):
                found[place] = row
        return np.frombuffer(b"".join(found), dtype=kind).reshape(-1, width)  # type: ignore[arg-type]

    def _make_factor_part(self, predicate: str, options: QueryOptions) -> bytes:
        converter, _ = self._engine.conversion(predicate, options)
        config = converter.config
        return _part(
            "factor/1", self._reader_id, converter.runtime.version, predicate,
            list(converter.values), config.sampler, config.samples, config.temperature,
            config.seed if config.samples else None,
        )  # fmt: skip

    def _make_posterior_part(self, mode: str) -> bytes:
        model = self._engine.model_for(QueryOptions(mode=mode))  # type: ignore[arg-type]
        return _part("posterior/1", self._reader_id, model.version)


def _part(*recipe: object) -> bytes:
    return hashlib.blake2b(json.dumps(recipe).encode(), digest_size=16).digest()


def _subset(items: Items, places: list[int]) -> Items:
    return Items(
        items.features[places],
        ids=[items.ids[place] for place in places],
        keys=None if items.keys is None else items.keys[places],
    )
