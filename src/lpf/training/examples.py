"""A data set as arrays: features, credibilities and copies, item by item."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lpf.datasets import Dataset, Split
from lpf.errors import EvidenceError, TrainingError
from lpf.factors.keys import content_key
from lpf.index.copies import DEFAULT_SIMILARITY, copy_groups
from lpf.items import Items, Segments
from lpf.reading.reader import Reader, ReadRequest
from lpf.reading.words import wordless
from lpf.storage.atomic_files import atomic_file, private_folder
from lpf.types import Float32Array, FloatArray

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Examples:
    """Labelled entities with their items as arrays: ``features`` [N, width], ``credibility`` [N]
    (NaN if unknown), ``groups`` [N], the number of an item's group of copies within its entity (-1
    for none), and ``wordless`` [N], True for texts without a word (None: there are none)."""

    dataset: Dataset
    features: Float32Array
    credibility: FloatArray
    groups: NDArray[np.int64]
    wordless: NDArray[np.bool_] | None = None

    @property
    def segments(self) -> Segments:
        return Segments(self.dataset.offsets)

    @property
    def items(self) -> Items:
        """The items as the engine takes them."""
        ids = [item.evidence_id for item in self.dataset.items]
        return Items(
            self.features,
            ids,
            credibility=self.credibility,
            groups=self.groups,
            segments=self.segments,
            wordless=self.wordless,
        )

    def select(self, entities: NDArray[np.intp]) -> Examples:
        """Some of the entities, with their items."""
        rows = self.rows(entities)
        return Examples(
            self.dataset.select(entities.tolist()),
            self.features[rows],
            self.credibility[rows],
            self.groups[rows],
            None if self.wordless is None else self.wordless[rows],
        )

    def split(self, split: Split) -> Examples | None:
        """The entities of a split, or None if it is empty."""
        places = self.dataset.positions(split)
        return self.select(places) if len(places) else None

    def rows(self, entities: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of the items of ``entities`` among all items."""
        offsets = self.dataset.offsets
        spans = [np.arange(offsets[place], offsets[place + 1]) for place in entities]
        return np.concatenate([np.empty(0, np.intp), *spans]).astype(np.intp)


def make_examples(
    dataset: Dataset, features: Float32Array, copy_similarity: float | None = DEFAULT_SIMILARITY
) -> Examples:
    """Add credibilities, groups of copies and marks of texts without a word to the features. Copies
    are found as for answers: by report, by equal text, by nearly equal features."""
    items = list(dataset.items)
    if len(features) != len(items):
        raise EvidenceError(f"{len(features)} rows of features for {len(items)} items.")
    credibility = np.array(
        [np.nan if item.credibility is None else item.credibility for item in items], np.float64
    )
    groups = np.full(len(items), -1, np.int64)
    for place in range(len(dataset)):
        rows = slice(*dataset.offsets[place : place + 2].tolist())
        groups[rows] = _copies(dataset, place, features[rows], copy_similarity)
    return Examples(dataset, features, credibility, groups, wordless(item.text for item in items))


def read_features(
    dataset: Dataset,
    reader: Reader,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Float32Array:
    """Features [N, width] of all items, cached in ``folder`` under the hash of the texts."""
    return read_stored(item_requests(dataset), reader, folder=folder, progress=progress)


def item_requests(dataset: Dataset) -> list[ReadRequest]:
    """What a reader reads of a data set, item by item."""
    return [ReadRequest(item.text, entity.claim) for entity in dataset for item in entity.evidence]


def read_stored(
    requests: Sequence[ReadRequest],
    reader: Reader,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Float32Array:
    """Features [N, width] of texts with their claims, cached in ``folder`` under their hash."""
    path = None if folder is None else folder / f"{features_key(requests, reader.reader_id)}.npy"
    if path is not None and path.is_file():
        return _load(path, len(requests), reader.width)
    features = reader.read_many(requests, progress=progress)
    if path is not None:
        private_folder(path.parent)
        with atomic_file(path) as file:
            np.save(file, features, allow_pickle=False)
    return features


def _load(path: Path, rows: int, width: int) -> Float32Array:
    try:
        features = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise TrainingError(
            f"{path} cannot be read ({error}). Nothing was trained; remove the file and try again."
        ) from error
    if features.shape != (rows, width) or features.dtype != np.float32:
        raise TrainingError(
            f"{path} does not hold {rows} rows of {width} float32 numbers. Nothing was trained; "
            "remove the file and try again."
        )
    return np.asarray(features, np.float32)


def features_key(requests: Sequence[ReadRequest], reader_id: str) -> str:
    """The name under which ``read_stored`` stores their features."""
    hashed = hashlib.sha256(reader_id.encode())
    for request in requests:
        hashed.update(content_key(request.text, request.claim))
    return hashed.hexdigest()[:32]


def _copies(
    dataset: Dataset, place: int, features: Float32Array, similarity: float | None
) -> NDArray[np.int64]:
    entity = dataset.entities[place]
    return copy_groups(
        [content_key(item.text, entity.claim) for item in entity.evidence],
        [item.report_id for item in entity.evidence],
        features,
        similarity,
    )
