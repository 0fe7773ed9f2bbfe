"""Items of other entities, by kind: what one more item may look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np
from sqlalchemy import bindparam, select

from lpf.explain.kinds import Kinds
from lpf.explain.recombination import Places
from lpf.factors.keys import stored_keys
from lpf.index.copies import numbered
from lpf.index.features import FeatureSource
from lpf.items import Items
from lpf.storage.seals import DamagedItem
from lpf.storage.statements import Prepared
from lpf.storage.tables import evidence

MOST_ROWS: Final = 100_000  # a store may have millions
# An order that looks random and is always the same: steps of the golden ratio favour no source,
# even if sources take turns. The remainder keeps the product within 64 bits.
_SCATTERED = evidence.c.row_id % 2**30 * 2_654_435_761 % 2**32

_OTHERS = Prepared(
    select(evidence.c.row_id, evidence.c.source, evidence.c.evidence_type, evidence.c.credibility)
    .where(
        evidence.c.predicate == bindparam("predicate"),
        evidence.c.entity_id != bindparam("entity_id"),
    )
    .order_by(_SCATTERED, evidence.c.row_id)
    .limit(bindparam("most")),
    "predicate",
    "entity_id",
    "most",
)


@dataclass(frozen=True, eq=False)
class StoredPool:
    """Items of other entities as one entity's, without groups. ``kinds`` are positions of the items
    that were drawn for a kind, ``stored`` how many it has among the MOST_ROWS items of the store
    that are looked at. ``source_names`` are those of the items."""

    items: Items
    source_names: tuple[str | None, ...]
    kinds: Mapping[str, Places]
    stored: Mapping[str, int]
    left_out: tuple[str, ...]


def stored_pool(
    source: FeatureSource, entity_id: str, predicate: str, most: int, seed: int
) -> StoredPool:
    """Up to ``most`` items of each kind about other entities, drawn with ``seed``. Features that
    are missing are read now and stored. Damaged items are left out."""
    scattered = source.store.database.rows(_OTHERS, (predicate, entity_id, MOST_ROWS))
    rows = sorted(scattered, key=itemgetter(0))
    full = (f"only {MOST_ROWS:,} items are looked at",) if len(rows) == MOST_ROWS else ()
    kinds = Kinds.of(*([row[column] for row in rows] for column in (1, 2, 3)))
    # One order for all kinds, so that the samples overlap and few items have to be read.
    rank = np.random.default_rng(seed).permutation(len(rows))
    drawn = {
        name: np.sort(places[np.argsort(rank[places])[:most]])
        for name, places in kinds.places.items()
    }
    damaged: list[DamagedItem] = []
    wanted = np.unique(np.concatenate([np.empty(0, np.intp), *drawn.values()]))
    stored = source.store.by_rows([rows[place][0] for place in wanted], damaged)
    keys = [item.content_key for item in stored]
    names = tuple(item.evidence.source for item in stored)
    blank = np.empty((0, source.width), np.float32)
    items = Items(
        source.stored_or_read(stored) if stored else blank,
        [item.evidence.evidence_id for item in stored],
        stored_keys(keys, source.reader_id),
        np.array([item.evidence.credibility for item in stored], np.float64),
        sources=np.array(numbered(names), np.int64).reshape(len(names)),
        content_keys=keys,
        wordless=source.wordless([item.row_id for item in stored]),
    )
    position = {item.row_id: place for place, item in enumerate(stored)}
    numbers = [row[0] for row in rows]
    return StoredPool(
        items,
        names,
        {
            name: np.array(
                [position[numbers[p]] for p in places if numbers[p] in position], np.intp
            )
            for name, places in drawn.items()
        },
        {name: len(places) for name, places in kinds.places.items()},
        (
            *full,
            *kinds.left_out,
            *(f"{one.evidence_id} is damaged: {one.reason}" for one in damaged),
        ),
    )
