"""Features of data sets, each text read once, and the examples of one training spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from filelock import FileLock

from lpf.baselines.interface import labelled
from lpf.datasets import Dataset
from lpf.evaluation.spec_datasets import DataSources, eval_dataset, train_dataset
from lpf.evaluation.specs import EvalSpec, TrainSpec
from lpf.factors.keys import content_key
from lpf.reading import PairReader, Reader, ReadRequest, open_reader
from lpf.reading.reader import Progress, as_requests
from lpf.reading.stance import STANCE_WIDTH
from lpf.reading.tuned import TunedReader, with_tuned
from lpf.storage.atomic_files import PRIVATE_FILE, private_folder
from lpf.training import Examples, make_examples
from lpf.training.examples import features_key, item_requests, read_stored
from lpf.types import Float32Array

LOCK = ".lock"
Key = tuple[str, bytes]  # a reader's ID, and the hash of a text with its claim


class FeatureCache:
    """Reads each text with its claim once, in all processes that share ``folder``. It has the
    features of whole data sets; those of single texts are in memory. ``distinct`` also reads texts
    once that occur several times."""

    def __init__(
        self, folder: Path, threads: int = 1, *, passages: bool = True, distinct: bool = True
    ) -> None:
        self.folder, self.threads, self.passages = folder, threads, passages
        self.distinct = distinct
        self._readers: dict[bool, Reader] = {}
        self._tuned: dict[str, Reader] = {}
        self._known: dict[Key, Float32Array] = {}

    def examples(self, dataset: Dataset, reader: Reader) -> Examples:
        """Examples of an unchanged data set."""
        requests = item_requests(dataset)
        self._read_stored(requests, reader)
        return make_examples(dataset, self.features(requests, reader))

    def examples_of_changed(self, dataset: Dataset, reader: Reader) -> Examples:
        """Examples of a data set most of whose texts were read before."""
        return make_examples(dataset, self.features(item_requests(dataset), reader))

    def tuned_examples(self, examples: Examples, tuned: TunedReader) -> Examples:
        """``examples``, which were read with their claims, with the stances of a tuned reader."""
        reader = with_tuned(self.open_reader(with_claim=True), tuned)
        assert isinstance(reader, PairReader)
        assert reader.stance is not None
        if reader.stance.reader_id not in self._tuned:
            self._tuned[reader.stance.reader_id] = reader.stance  # opening one takes a second
        opened = self._tuned[reader.stance.reader_id]
        requests = item_requests(examples.dataset)
        if not any(key in self._known for key in _keys(requests, opened)):
            self._read_stored(requests, opened)  # of changed evidence, most is known
        stances = self.features(requests, opened)
        features = np.hstack([examples.features[:, :-STANCE_WIDTH], stances])
        return replace(examples, features=features)

    def features(self, requests: Sequence[ReadRequest], reader: Reader) -> Float32Array:
        """[N, width]. What was not read before is not stored in the folder."""
        keys = _keys(requests, reader)
        new = {key: one for key, one in zip(keys, requests, strict=True) if key not in self._known}
        if new:
            self._known.update(zip(new, reader.read_many(list(new.values())), strict=True))
        return np.stack([self._known[key] for key in keys])

    def claim_reader(self, dataset: Dataset) -> Reader:
        """Reads claims as texts of their own, those of the data set once."""
        reader = self.open_reader(with_claim=False)
        claims = dict.fromkeys(entity.claim for entity in dataset)
        requests = [ReadRequest(claim) for claim in claims if claim is not None]
        if requests:
            self._read_stored(requests, reader)
        return RememberingReader(
            reader.reader_id, reader.width, lambda items: self.features(items, reader)
        )

    def _read_stored(self, requests: Sequence[ReadRequest], reader: Reader) -> None:
        """Read what is not known yet, or take it from the folder. Processes that need the same
        texts wait for the one that reads them."""
        keys = _keys(requests, reader)
        if all(key in self._known for key in keys):
            return
        if self.distinct:
            once = dict(zip(keys, requests, strict=True))
            keys, requests = list(once), list(once.values())
        private_folder(self.folder)
        path = self.folder / f"{features_key(requests, reader.reader_id)}{LOCK}"
        with FileLock(path, mode=PRIVATE_FILE):
            features = read_stored(requests, reader, folder=self.folder)
            with suppress(OSError):  # another process waits for it, where that keeps the file
                path.unlink()
        self._known.update(zip(keys, features, strict=True))

    def reader(self, dataset: Dataset) -> Reader:
        """Reads a text together with its claim if entities have claims."""
        return self.open_reader(any(entity.claim is not None for entity in dataset))

    def open_reader(self, with_claim: bool) -> Reader:
        if with_claim not in self._readers:
            self._readers[with_claim] = open_reader(
                threads=self.threads, passages=self.passages, with_claim=with_claim
            )
        return self._readers[with_claim]


class RememberingReader(Reader):
    """A reader whose features come from ``read``, which remembers them."""

    def __init__(
        self, reader_id: str, width: int, read: Callable[[Sequence[ReadRequest]], Float32Array]
    ) -> None:
        self._reader_id, self._width, self._read = reader_id, width, read

    @property
    def reader_id(self) -> str:
        return self._reader_id

    @property
    def width(self) -> int:
        return self._width

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Float32Array:
        return self._read(as_requests(items))


def _keys(requests: Sequence[ReadRequest], reader: Reader) -> list[Key]:
    return [(reader.reader_id, content_key(one.text, one.claim)) for one in requests]


class SpecExamples:
    """Training, validation and test examples of one training spec, made when first needed."""

    def __init__(
        self,
        train_spec: TrainSpec,
        feature_cache: FeatureCache,
        sources: DataSources | None = None,
    ) -> None:
        self.train_spec, self.feature_cache = train_spec, feature_cache
        self._sources = sources
        self._tests: dict[EvalSpec, Examples] = {}

    @property
    def examples(self) -> Examples:
        """Examples of all splits."""
        return self._data[0]

    @property
    def predicate(self) -> str:
        return self._data[1]

    @property
    def reader_id(self) -> str:
        return self.reader.reader_id

    @property
    def reader(self) -> Reader:
        """The reader of the training data, which reads all test data too: whether claims are read
        must not depend on which entities have one."""
        return self.feature_cache.reader(self.examples.dataset)

    @cached_property
    def train(self) -> Examples:
        return self._part("train")

    @cached_property
    def validation(self) -> Examples:
        return self._part("validation")

    def test_examples(self, eval_spec: EvalSpec) -> Examples:
        if eval_spec not in self._tests:
            self._tests[eval_spec] = labelled(self._read(eval_spec), self.predicate)
        return self._tests[eval_spec]

    @cached_property
    def _data(self) -> tuple[Examples, str]:
        dataset, predicate = train_dataset(self.train_spec, self._sources)
        reader = self.feature_cache.reader(dataset)
        return self.feature_cache.examples(dataset, reader), predicate

    def _part(self, split: str) -> Examples:
        part = self.examples.split(split)  # type: ignore[arg-type]
        assert part is not None  # training data has every split
        return labelled(part, self.predicate)

    def _read(self, eval_spec: EvalSpec) -> Examples:
        test = eval_dataset(eval_spec, self.examples.dataset, self.predicate)
        if not eval_spec.is_changed:
            return self.feature_cache.examples(test, self.reader)
        self.test_examples(replace(eval_spec, change=None, top_k=None))  # reads most of the texts
        return self.feature_cache.examples_of_changed(test, self.reader)
