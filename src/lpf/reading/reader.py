"""The interface of readers, which turn a text into a row of features.

A text may come with a claim and structured fields. The rest of the package uses only a reader's
``width`` and ``reader_id`` and never depends on its class.
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

NOTHING_READ = "Nothing was read."
# Ends the id of a reader that reads long texts in passages. Without it, they are cut.
IN_PASSAGES = ";passages=1"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One item to read: its text, its claim and its structured fields."""

    text: str
    claim: str | None = None
    fields: Fields | None = None


@runtime_checkable
class Reader(Protocol):
    """Turns texts into features, deterministically for a given ``reader_id``.

    A reader that cannot use claims or fields ignores them, and says so in ``uses_claim`` and
    ``uses_fields``. Subclasses inherit the methods that have a body.
    """

    @property
    def reader_id(self) -> str:
        """Everything besides the item that features depend on: name, weights hash, precision,
        maximum length."""

    @property
    def width(self) -> int:
        """Number of features per item."""

    @property
    def uses_claim(self) -> bool:
        """True if features depend on the claim."""
        return False

    @property
    def uses_fields(self) -> bool:
        """True if features depend on the fields."""
        return False

    @property
    def cuts_after(self) -> int | None:
        """The number of tokens after which a text is cut; None if all of it is read."""
        return None

    @property
    def base(self) -> Reader:
        """The reader whose features this one extends at little cost; this reader itself if none."""
        return self

    def extend(self, features: Features, requests: Sequence[ReadRequest]) -> Features:
        """Features of this reader [N, width], from those of ``base``."""
        return features

    def pinned(self, reader_id: str) -> Reader:
        """The variant of this reader that has the given id; this reader itself if none has.

        Models and stores pin the id of their reader: one from before long texts were read in
        passages gets the reader that cuts them."""
        return self

    def newest(self) -> Reader:
        """The variant of this reader that new models are trained with."""
        return self

    def count_cut(self, items: Sequence[ReadRequest | str]) -> int:
        """How many of the texts are longer than ``cuts_after``, so that their end is not read."""
        return 0

    def read(self, text: str, claim: str | None = None, fields: Fields | None = None) -> Features:
        """Features [width] of one item. EvidenceError if it cannot be read."""
        features: Features = self.read_many([ReadRequest(text, claim, fields)])[0]
        return features

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        """Features [N, width] in the order of ``items``; ``progress`` is called with (done, total).

        EvidenceError names the first item that cannot be read.
        """


def as_requests(items: Sequence[ReadRequest | str]) -> list[ReadRequest]:
    """Convert items to requests. EvidenceError names the first item without a valid text."""
    if isinstance(items, str):
        raise EvidenceError(
            "read_many takes a list of texts, got one string; use read for one text."
        )
    return [_as_request(item, index) for index, item in enumerate(items)]


def _as_request(item: ReadRequest | str, index: int) -> ReadRequest:
    request = item if isinstance(item, ReadRequest) else ReadRequest(item)
    check_text(request.text, "text", index)
    return request


def check_text(text: object, role: str, index: int) -> None:
    """Raise EvidenceError unless ``text`` is a valid string that is not empty. ``role`` is "text"
    or "claim"."""
    field = f"items[{index}].{role}"
    if not isinstance(text, str):
        kind = type(text).__name__
        raise EvidenceError(f"must be a string, got {kind}.", field=field, hint=NOTHING_READ)
    if not text.strip():
        raise EvidenceError("is empty.", field=field, hint=NOTHING_READ)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EvidenceError(
            f"is not valid Unicode ({error.reason} at {error.start}).",
            field=field,
            hint=NOTHING_READ,
        ) from error
