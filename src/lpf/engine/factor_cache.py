"""Factors and posteriors, computed once per item and cached.

An entry is found by the item (the content key of its text and claim) and by a recipe: everything
else that the numbers depend on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from lpf.factors.convert import Converter
from lpf.items import Items
from lpf.storage.cache import Cache, NoCache
from lpf.types import Factors, Posteriors

Table: TypeAlias = np.ndarray[Any, Any]


class FactorCache:
    """Rows of numbers per item, stored in ``cache`` under the reader's id."""

    def __init__(self, cache: Cache, reader_id: str) -> None:
        self._cache = cache
        self.is_off = isinstance(cache, NoCache)
        self._reader_id = reader_id
        self._factor_recipe = lru_cache(maxsize=256)(self._make_factor_recipe)
        self._posterior_recipe = lru_cache(maxsize=8)(
            lambda version: _recipe("posterior/1", reader_id, version)
        )

    def factors(
        self, items: Items, converter: Converter, compute: Callable[[Items], Factors]
    ) -> Factors:
        """The items' factors; ``compute`` makes those that are not in the cache."""

        def rows(missing: Items) -> Table:
            fresh = compute(missing)
            return np.column_stack([fresh.potential, fresh.mean_sigma])

        width, config = len(converter.values) + 1, converter.config
        table = self._rows(items, self._factor_recipe(converter), width, "<f8", rows)
        return Factors(
            items.ids,
            converter.predicate,
            converter.values,
            np.ascontiguousarray(table[:, :-1]),
            table[:, -1].copy(),
            config.sampler,
            config.samples,
            config.temperature,
        )

    def posteriors(
        self,
        items: Items,
        version: str,
        shape: tuple[int, int],
        compute: Callable[[Items], Posteriors],
    ) -> Posteriors:
        """q(z|e) of the items under the model ``version`` with ``shape`` (members, latent width);
        ``compute`` makes those that are not in the cache."""
        members, width = shape

        def rows(missing: Items) -> Table:
            fresh = compute(missing)
            both = np.stack([fresh.mu, fresh.sigma])  # [2, S, n, d]
            return both.transpose(2, 0, 1, 3).reshape(len(missing), -1)

        recipe = self._posterior_recipe(version)
        table = self._rows(items, recipe, 2 * members * width, "<f4", rows)
        both = table.reshape(-1, 2, members, width).transpose(1, 2, 0, 3)
        return Posteriors(items.ids, np.ascontiguousarray(both[0]), np.ascontiguousarray(both[1]))

    def _rows(
        self,
        items: Items,
        recipe: bytes,
        width: int,
        kind: str,
        compute: Callable[[Items], Table],
    ) -> Table:
        """[N, width] numbers; those not in the cache are computed in one pass and stored."""
        size, keys = width * np.dtype(kind).itemsize, items.content_keys
        cached: Sequence[bytes | None] = self._cache.get_many(keys, recipe)
        missing = [row for row, value in enumerate(cached) if value is None or len(value) != size]
        if not missing:
            return np.frombuffer(b"".join(cached), kind).reshape(-1, width)  # type: ignore[arg-type]
        all_missing = len(missing) == len(cached)
        fresh = compute(items if all_missing else items.take(missing)).astype(kind, copy=False)
        stored = [row.tobytes() for row in fresh]
        self._cache.put_many([keys[row] for row in missing], recipe, stored)
        if all_missing:
            return fresh
        by_row = dict(zip(missing, stored, strict=True))
        all_rows = b"".join([by_row.get(row) or value or b"" for row, value in enumerate(cached)])
        return np.frombuffer(all_rows, kind).reshape(-1, width)

    def _make_factor_recipe(self, converter: Converter) -> bytes:
        config = converter.config
        return _recipe(
            "factor/1", self._reader_id, converter.runtime.version, converter.predicate,
            list(converter.values), config.sampler, config.samples, config.temperature,
            config.seed if config.samples else None,
        )  # fmt: skip


def _recipe(*parts: object) -> bytes:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()
