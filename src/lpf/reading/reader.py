"""The seam between text and features.

A reader turns a text, with the claim it is read against and its structured fields where given,
into one row of features. Everything behind the seam asks a reader for its ``width`` and
``reader_id`` and never for its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lpf.errors import EvidenceError

Features = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]
Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One item to read: its text, the claim it is read against, its structured fields."""

    text: str
    claim: str | None = None
    fields: Fields | None = None


@runtime_checkable
class Reader(Protocol):
    """Text to features, deterministic for a given ``reader_id``.

    A reader that cannot use a claim or fields ignores them and says so: a caller that depends on
    them checks ``uses_claim`` and ``uses_fields`` first. Readers here inherit what has a body.
    """

    @property
    def reader_id(self) -> str:
        """Name, weights hash, precision and max length: what features depend on but the text."""

    @property
    def width(self) -> int:
        """Length of a row of features."""

    @property
    def uses_claim(self) -> bool:
        """Whether features depend on the claim."""
        return False

    @property
    def uses_fields(self) -> bool:
        """Whether features depend on the fields."""
        return False

    def read(self, text: str, claim: str | None = None, fields: Fields | None = None) -> Features:
        """Features [width] of one item. Raises EvidenceError if it cannot be read."""
        features: Features = self.read_many([ReadRequest(text, claim, fields)])[0]
        return features

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        """Features [N, width] in the order of ``items``; ``progress`` gets (done, total).

        An item that cannot be read raises EvidenceError with its index, before any is read.
        """


def as_requests(items: Sequence[ReadRequest | str]) -> list[ReadRequest]:
    """Every item as a request with a usable text. Raises EvidenceError naming the index."""
    if isinstance(items, str):
        raise EvidenceError("read_many takes a list of texts, got one text: use read for one")
    return [_as_request(item, index) for index, item in enumerate(items)]


def _as_request(item: ReadRequest | str, index: int) -> ReadRequest:
    request = item if isinstance(item, ReadRequest) else ReadRequest(item)
    check_text(request.text, "text", index)
    return request


def check_text(text: object, role: str, index: int) -> None:
    """Raise EvidenceError unless ``text`` is a string with something in it to read."""
    if not isinstance(text, str):
        kind = type(text).__name__
        raise EvidenceError(f"item {index}: {role} must be a string, got {kind}; nothing was read")
    if not text.strip():
        raise EvidenceError(f"item {index}: {role} is empty; nothing was read")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EvidenceError(
            f"item {index}: {role} is not valid Unicode ({error.reason} at {error.start}); "
            "nothing was read"
        ) from error
