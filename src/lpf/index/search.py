"""Search by text across entities, over the vectors that the store already has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lpf.errors import ConfigError
from lpf.index.faiss_index import FaissIndex, IndexConfig, approximate, build, units_of
from lpf.index.features import FeatureSource, entries, vectors_of_entity
from lpf.index.vector_file import Manifest, VectorFile, forget_rows, versions
from lpf.storage.evidence import RowNumbers
from lpf.types import Float32Array

DEEPER = 4  # how many times as far to look when filters left too few

State = tuple[int, int, int]  # vectors, the highest row that has one, items ever erased


@dataclass(frozen=True, slots=True)
class Hit:
    """An item found by its text; ``similarity`` is the cosine with the query."""

    evidence_id: str
    entity_id: str
    predicate: str
    similarity: float
    row_id: int


@dataclass(frozen=True)
class _Held:
    """A file in memory, and the rows that came after it, which are compared one by one."""

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

    The file in ``folder`` is a copy of what the store has, for speed: it is made when first needed,
    and anew when it is damaged or fell behind. An answer holds what the store holds now.
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
        self._held: _Held | None = None

    def search(
        self,
        query: str | Float32Array,
        k: int = 10,
        *,
        entity_id: str | None = None,
        predicate: str | None = None,
        min_credibility: float = 0.0,
    ) -> list[Hit]:
        """The ``k`` items nearest to a text or vector, nearest first, that pass the filters. Items
        of unknown credibility pass; items without features of this reader are not found."""
        if k < 1:
            raise ConfigError(f"k: must be at least 1, got {k}. Nothing was searched.")
        unit = self._unit(query)
        if entity_id is not None:
            cosines, row_ids = self._of_entity(unit, entity_id)
            return self._passing(cosines, row_ids, predicate, min_credibility)[:k]
        held, depth, thorough = self._current(), k, False
        while True:
            cosines, row_ids = self._nearest(held, unit, depth, thorough)
            hits = self._passing(cosines, row_ids, predicate, min_credibility)
            if len(hits) >= k or (thorough and len(row_ids) < depth):
                return hits[:k]
            depth, thorough = DEEPER * depth, True

    @property
    def manifest(self) -> Manifest:
        """What the file holds, with its measured recall; builds it where there is none."""
        return self._current().manifest

    def rebuild(self) -> Manifest:
        """Makes the file anew, whatever there is."""
        with self._file.locked():
            self._held = self._built()
        return self._held.manifest

    def forget(self, *row_ids: int) -> None:
        """Removes erased rows from the files of all readers; see ``forget_rows``."""
        self._held = None
        forget_rows(self._store, self._file.folder, row_ids)

    # Keeping up with the store

    def _current(self) -> _Held:
        """What is in memory if it still serves, else the file, else a new file."""
        state = self._store.state(self._source.number)
        held = self._held and self._caught_up(self._held, state)
        if held is None:
            with self._file.locked():
                held = self._opened(state) or self._built()
        self._held = held
        return held

    def _opened(self, state: State) -> _Held | None:
        loaded = self._file.load()
        if loaded is None:
            return None
        manifest, index = loaded
        if manifest.width != self._source.text_width:
            return None
        return self._caught_up(_Held(manifest, index, *self._no_tail()), state)

    def _caught_up(self, held: _Held, state: State) -> _Held | None:
        """``held`` with the rows that came since; None where it cannot serve: something was erased,
        too much came, or vectors were added among its own rows."""
        count, highest, erased = state
        manifest, config = held.manifest, self._config
        new = count - manifest.count
        allowed = config.stale_share * manifest.count + config.stale_items
        if erased != manifest.erased_count or not 0 <= new <= allowed:
            return None
        if highest > held.last_row_id:
            held = self._lengthened(held, highest)
        return held if held.count == count else None

    def _lengthened(self, held: _Held, highest: int) -> _Held:
        row_ids, features = self._store.vectors_after(self._source.number, held.last_row_id)
        known = row_ids <= highest  # later ones are not part of the state that was looked at
        units = units_of(self._source.texts(features[known]))
        return replace(
            held,
            tail_ids=np.concatenate([held.tail_ids, row_ids[known]]),
            tail_units=np.concatenate([held.tail_units, units]),
        )

    def _built(self) -> _Held:
        # Asked first: what is erased while the index is built makes it stale at once.
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
        return _Held(self._file.save(built.index, manifest), built.index, *self._no_tail())

    def _no_tail(self) -> tuple[RowNumbers, Float32Array]:
        return np.empty(0, np.int64), np.empty((0, self._source.text_width), np.float32)

    # Looking

    def _unit(self, query: str | Float32Array) -> Float32Array:
        vector = self._source.query_vector(query) if isinstance(query, str) else query
        checked = self._source.checked_query(np.asarray(vector, np.float32))
        unit: Float32Array = units_of(checked[None])[0]
        return unit

    def _nearest(
        self, held: _Held, unit: Float32Array, depth: int, thorough: bool
    ) -> tuple[Float32Array, RowNumbers]:
        """Cosines and rows, at most ``depth``; ``thorough`` looks into all lists."""
        nprobe = held.index.lists if thorough else None
        found, row_ids = approximate(
            self._source, self._config, held.index, unit[None], depth, nprobe
        )
        cosines = np.concatenate([found[0], held.tail_units @ unit])
        both = np.concatenate([row_ids[0], held.tail_ids])
        order = np.lexsort((both, -cosines))[:depth]
        order = order[both[order] >= 0]
        return cosines[order], both[order]

    def _of_entity(self, unit: Float32Array, entity_id: str) -> tuple[Float32Array, RowNumbers]:
        source = self._source
        row_ids, features = vectors_of_entity(self._store, source.number, source.width, entity_id)
        cosines = units_of(source.texts(features)) @ unit
        order = np.lexsort((row_ids, -cosines))
        return cosines[order], row_ids[order]

    def _passing(
        self,
        cosines: Float32Array,
        row_ids: RowNumbers,
        predicate: str | None,
        min_credibility: float,
    ) -> list[Hit]:
        """Rows that are still in the store and pass the filters."""
        known = entries(self._store, row_ids.tolist())
        hits = []
        for row_id, cosine in zip(row_ids.tolist(), cosines.tolist(), strict=True):
            if row_id not in known:
                continue
            _, evidence_id, entity_id, of, credibility = known[row_id]
            if predicate in (None, of) and (credibility is None or credibility >= min_credibility):
                hits.append(Hit(evidence_id, entity_id, of, cosine, row_id))
        return hits
