"""Words as features: logits of a regression on words, beside the features of another reader.

The regression (``training.lexical``) is fitted to labels, so it belongs to a model and is stored
with it. Its hash is part of the reader's ID: features under another one are never mixed up.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Final

import numpy as np

from lpf.reading.lexical import ngram_counts, weighted_rows
from lpf.reading.reader import Features, Progress, Reader, ReadRequest, as_requests
from lpf.types import Float32Array, FloatArray

_SUFFIX: Final = re.compile(r"\+words\((\d+);[0-9a-f]+\)$")  # of the ID of a ``WordsReader``
_DIGEST_LENGTH: Final = 16


def words_width(reader_id: str) -> int:
    """How many of a reader's features, the last ones, are logits of words."""
    found = _SUFFIX.search(reader_id)
    return 0 if found is None else int(found[1])


def without_words(reader_id: str) -> str:
    """The ID of the same reader without words."""
    return _SUFFIX.sub("", reader_id)


@dataclass(frozen=True)
class LexicalModel:
    """Logits of texts: ``idf`` [B], ``weight`` [B, V] and ``bias`` [V]."""

    idf: Float32Array
    weight: Float32Array
    bias: Float32Array


LEXICAL_TENSORS: Final = tuple(one.name for one in fields(LexicalModel))  # in a model's file


@dataclass(frozen=True)
class FittedWords:
    """One regression per predicate; the logits of all stand side by side."""

    models: Mapping[str, LexicalModel]

    @property
    def width(self) -> int:
        return sum(len(one.bias) for one in self.models.values())

    def logits(self, requests: Sequence[ReadRequest]) -> FloatArray:
        """[N, width], item by item. Equal items are read once."""
        keys = [(one.text, one.claim) for one in requests]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        counts = ngram_counts([ReadRequest(text, claim) for text, claim in places])
        found = [
            weighted_rows(counts, one.idf) @ one.weight + one.bias for one in self.models.values()
        ]
        rows = np.asarray(np.hstack(found), np.float64)
        return rows[[places[key] for key in keys]]

    def beside(self, features: Features, requests: Sequence[ReadRequest]) -> Features:
        """``features`` [N, d] of another reader with the logits after them, [N, d + width]."""
        return np.hstack([features, self.logits(requests).astype(np.float32)])

    @cached_property
    def suffix(self) -> str:
        """What the ID of a reader ends with if these logits are among its features."""
        digest = hashlib.sha256()
        for name, one in self.models.items():
            digest.update(f"{name}\0".encode())
            for tensor in LEXICAL_TENSORS:
                digest.update(np.ascontiguousarray(getattr(one, tensor), "<f4").tobytes())
        return f"+words({self.width};{digest.hexdigest()[:_DIGEST_LENGTH]})"


class WordsReader(Reader):
    """The features of ``base`` and the logits of ``words``."""

    def __init__(self, base: Reader, words: FittedWords) -> None:
        self._base, self._words = base, words

    @property
    def reader_id(self) -> str:
        return f"{self._base.reader_id}{self._words.suffix}"

    @property
    def width(self) -> int:
        return self._base.width + self._words.width

    @property
    def uses_claim(self) -> bool:
        return self._base.uses_claim

    @property
    def uses_fields(self) -> bool:
        return self._base.uses_fields

    @property
    def cuts_after(self) -> int | None:
        return self._base.cuts_after

    @property
    def base(self) -> Reader:
        return self._base

    def pinned(self, reader_id: str) -> Reader:
        return self if reader_id == self.reader_id else self._base.pinned(reader_id)

    def newest(self) -> Reader:
        return self._base.newest()

    def count_cut(self, items: Sequence[ReadRequest | str]) -> int:
        return self._base.count_cut(items)

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        return self.extend(self._base.read_many(requests, progress=progress), requests)

    def extend(self, features: Features, requests: Sequence[ReadRequest]) -> Features:
        """Features of this reader, from those of ``base``."""
        return self._words.beside(features, requests) if requests else self._empty()

    def _empty(self) -> Features:
        return np.zeros((0, self.width), np.float32)


def with_words(reader: Reader, words: FittedWords | None) -> Reader:
    """``reader`` itself if there are no words."""
    return reader if words is None else WordsReader(reader, words)
