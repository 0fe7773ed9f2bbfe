"""Search evidence by text across all entities, over the vectors in the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lpf.errors import ConfigError
from lpf.index.faiss_index import FaissIndex, IndexConfig, build, nearest_rows, units_of
from lpf.index.features import (
    CREDIBILITY,
    ENTITY_ID,
    EVIDENCE_ID,
    PREDICATE,
    FeatureSource,
    entries,
    vectors_of_entity,
)
from lpf.index.vector_file import Manifest, VectorFile, forget_rows, versions
from lpf.storage.evidence import RowNumbers
from lpf.types import Float32Array

DEEPER = 4  # how much deeper to search if the filters leave too few hits

State = tuple[int, int, int]  # see EvidenceStore.state


@dataclass(frozen=True, slots=True)
class Hit:
    """An item found by a search; ``similarity`` is the cosine with the query."""

    evidence_id: str
    entity_id: str
    predicate: str
    similarity: float
    row_id: int


@dataclass(frozen=True)
class _LoadedIndex:
    """A vector file in memory, and newer rows ("tail"), which are compared one by one."""

    manifest: Manifest
    index: FaissIndex
    tail_ids: RowNumbers
    tail_units: Float32Array

    @property
    def last_row_id(self) -> int:
        return int(self.tail_ids[-1]) if len(self.tail_ids) else self.manifest.last_row_id

    @property
    def count(self) -> int:
        return self.manifest.count + len(self.tail_ids)


class VectorIndex:
    """The vectors of one reader in one store, searched with FAISS.

    The file in ``folder`` is a copy of the vectors in the store, for speed. It is built on first
    use, and again when it is damaged or out of date. Results always reflect the current store.
    """

    def __init__(
        self,
        source: FeatureSource,
        folder: Path | str,
        config: IndexConfig = IndexConfig(),  # noqa: B008  frozen, so it may be shared
    ) -> None:
        self._source = source
        self._store = source.store
        self._config = config
        self._file = VectorFile.of_reader(Path(folder), source.reader_id)
        self._loaded: _LoadedIndex | None = None

    def search(
        self,
        query: str | Float32Array,
        k: int = 10,
        *,
        entity_id: str | None = None,
        predicate: str | None = None,
        min_credibility: float = 0.0,
    ) -> list[Hit]:
        """The ``k`` items nearest to a text or vector that pass the filters, nearest first. Items
        of unknown credibility pass; items without features of this reader are not found."""
        if k < 1:
            raise ConfigError(f"must be at least 1, got {k}. Nothing was searched.", field="k")
        unit = self._unit(query)
        if entity_id is not None:
            cosines, row_ids = self._entity_rows(unit, entity_id)
            return self._filter(cosines, row_ids, predicate, min_credibility)[:k]
        loaded, depth, thorough = self._current(), k, False
        while True:
            cosines, row_ids = self._nearest(loaded, unit, depth, thorough)
            hits = self._filter(cosines, row_ids, predicate, min_credibility)
            if len(hits) >= k or (thorough and len(row_ids) < depth):
                return hits[:k]
            depth, thorough = DEEPER * depth, True

    @property
    def manifest(self) -> Manifest:
        """The manifest of the vector file, with its measured recall. Builds the file if needed."""
        return self._current().manifest

    def rebuild(self) -> Manifest:
        """Build the file again."""
        with self._file.locked():
            self._loaded = self._build()
        return self._loaded.manifest

    def forget(self, *row_ids: int) -> None:
        """Remove erased rows from the files of all readers; see ``forget_rows``."""
        self._loaded = None
        forget_rows(self._store, self._file.folder, row_ids)

    # Following the store

    def _current(self) -> _LoadedIndex:
        """The index in memory if it is still usable, else the file, else a new file."""
        state = self._store.state(self._source.number)
        loaded = self._loaded and self._updated(self._loaded, state)
        if loaded is None:
            with self._file.locked():
                loaded = self._load(state) or self._build()
        self._loaded = loaded
        return loaded

    def _load(self, state: State) -> _LoadedIndex | None:
        content = self._file.load()
        if content is None:
            return None
        manifest, index = content
        if manifest.width != self._source.text_width:
            return None
        return self._updated(_LoadedIndex(manifest, index, *self._no_tail()), state)

    def _updated(self, loaded: _LoadedIndex, state: State) -> _LoadedIndex | None:
        """``loaded`` with newer rows in its tail. None if it is not usable: something was erased,
        there are too many new rows, or vectors were added to older rows."""
        count, highest, erased = state
        manifest, config = loaded.manifest, self._config
        new = count - manifest.count
        allowed = config.stale_share * manifest.count + config.stale_items
        if erased != manifest.erased_count or not 0 <= new <= allowed:
            return None
        if highest > loaded.last_row_id:
            loaded = self._with_new_rows(loaded, highest)
        return loaded if loaded.count == count else None

    def _with_new_rows(self, loaded: _LoadedIndex, highest: int) -> _LoadedIndex:
        row_ids, features = self._store.vectors_after(self._source.number, loaded.last_row_id)
        known = row_ids <= highest  # later rows are not part of this state
        units = units_of(self._source.texts(features[known]))
        return replace(
            loaded,
            tail_ids=np.concatenate([loaded.tail_ids, row_ids[known]]),
            tail_units=np.concatenate([loaded.tail_units, units]),
        )

    def _build(self) -> _LoadedIndex:
        # Read first: an erasure during the build must make the index out of date.
        erased = self._store.state(self._source.number)[2]
        built = build(self._source, self._config)
        manifest = Manifest(
            kind=built.index.kind,
            reader_id=self._source.reader_id,
            width=self._source.text_width,
            count=built.index.count,
            last_row_id=built.last_row_id,
            erased_count=erased,
            recall=built.recall,
            recall_target=self._config.recall_target,
            nprobe=built.index.nprobe,
            lists=built.index.lists,
            versions=versions(),
        )
        return _LoadedIndex(self._file.save(built.index, manifest), built.index, *self._no_tail())

    def _no_tail(self) -> tuple[RowNumbers, Float32Array]:
        return np.empty(0, np.int64), np.empty((0, self._source.text_width), np.float32)

    # Searching

    def _unit(self, query: str | Float32Array) -> Float32Array:
        vector = self._source.query_vector(query) if isinstance(query, str) else query
        checked = self._source.checked_query(np.asarray(vector, np.float32))
        unit: Float32Array = units_of(checked[None])[0]
        return unit

    def _nearest(
        self, loaded: _LoadedIndex, unit: Float32Array, depth: int, thorough: bool
    ) -> tuple[Float32Array, RowNumbers]:
        """Cosines and rows, at most ``depth``; ``thorough`` searches all lists."""
        nprobe = loaded.index.lists if thorough else None
        found, row_ids = nearest_rows(
            self._source, self._config, loaded.index, unit[None], depth, nprobe
        )
        cosines = np.concatenate([found[0], loaded.tail_units @ unit])
        all_ids = np.concatenate([row_ids[0], loaded.tail_ids])
        order = np.lexsort((all_ids, -cosines))[:depth]
        order = order[all_ids[order] >= 0]
        return cosines[order], all_ids[order]

    def _entity_rows(self, unit: Float32Array, entity_id: str) -> tuple[Float32Array, RowNumbers]:
        source = self._source
        row_ids, features = vectors_of_entity(source, entity_id)
        cosines = units_of(source.texts(features)) @ unit
        order = np.lexsort((row_ids, -cosines))
        return cosines[order], row_ids[order]

    def _filter(
        self,
        cosines: Float32Array,
        row_ids: RowNumbers,
        predicate: str | None,
        min_credibility: float,
    ) -> list[Hit]:
        """Hits for the rows that are still in the store and pass the filters."""
        known = entries(self._store, row_ids.tolist())
        hits = []
        for row_id, cosine in zip(row_ids.tolist(), cosines.tolist(), strict=True):
            if row_id not in known:
                continue
            entry = known[row_id]
            about, credibility = entry[PREDICATE], entry[CREDIBILITY]
            is_credible = credibility is None or credibility >= min_credibility
            if predicate in (None, about) and is_credible:
                hits.append(Hit(entry[EVIDENCE_ID], entry[ENTITY_ID], about, cosine, row_id))
        return hits
