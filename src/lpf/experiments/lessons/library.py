"""Texts of data sets to features, each text read once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lpf.datasets import Dataset
from lpf.factors.keys import content_key
from lpf.reading import Reader, ReadRequest, open_reader
from lpf.training import Examples, make_examples, read_features
from lpf.types import Float32Array


class Library:
    """Reads texts once: data sets are kept in a folder, single texts in memory, so that evidence
    to which something was done costs only what is new in it."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.folder, self.threads = folder, threads
        self._readers: dict[bool, Reader] = {}
        self._known: dict[tuple[str, bytes], Float32Array] = {}

    def examples(self, dataset: Dataset) -> Examples:
        """Of a data set as it was made."""
        reader = self.reader(dataset)
        features = read_features(dataset, reader, folder=self.folder)
        self._known.update(zip(self._keys(dataset, reader), features, strict=True))
        return make_examples(dataset, features)

    def altered(self, dataset: Dataset) -> Examples:
        """Of a data set most of whose texts were read before."""
        reader, keys = self.reader(dataset), self._keys(dataset, self.reader(dataset))
        requests = [
            ReadRequest(item.text, entity.claim) for entity in dataset for item in entity.evidence
        ]
        new = {key: one for key, one in zip(keys, requests, strict=True) if key not in self._known}
        if new:
            self._known.update(zip(new, reader.read_many(list(new.values())), strict=True))
        return make_examples(dataset, np.stack([self._known[key] for key in keys]))

    def reader(self, dataset: Dataset) -> Reader:
        """With its claim where entities have one: evidence for a claim cannot be read alone."""
        return self.opened(any(entity.claim is not None for entity in dataset))

    def opened(self, with_claim: bool) -> Reader:
        if with_claim not in self._readers:
            self._readers[with_claim] = open_reader(threads=self.threads, with_claim=with_claim)
        return self._readers[with_claim]

    def _keys(self, dataset: Dataset, reader: Reader) -> list[tuple[str, bytes]]:
        return [
            (reader.reader_id, content_key(item.text, entity.claim))
            for entity in dataset
            for item in entity.evidence
        ]
