"""A reader of evidence together with its claim, built from any reader of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from lpf.errors import ConfigError, EvidenceError
from lpf.reading.reader import (
    NOTHING_READ,
    Features,
    Progress,
    Reader,
    ReadRequest,
    as_requests,
    check_text,
)

PARTS: Final = 4
PAIR: Final = "pair("  # begins the id of a PairReader


def text_part(reader_id: str, width: int) -> slice:
    """Where the features of the text alone lie among all ``width`` features of a reader."""
    if not reader_id.startswith(PAIR):
        return slice(0, width)
    return slice(width // PARTS, 2 * width // PARTS)


class PairReader(Reader):
    """Features [c, e, |c - e|, c * e] of claim c and evidence e: four times the inner width.

    Every item needs a claim; EvidenceError names the first item without one. A claim shared by
    several items is read once per call. Fields are passed to the inner reader with the text.
    """

    def __init__(self, inner: Reader) -> None:
        if inner.uses_claim:
            raise ConfigError(f"the inner reader {inner.reader_id} already reads the claim.")
        self._inner = inner

    @property
    def reader_id(self) -> str:
        return f"{PAIR}{self._inner.reader_id})"

    @property
    def width(self) -> int:
        return PARTS * self._inner.width

    @property
    def uses_claim(self) -> bool:
        return True

    @property
    def uses_fields(self) -> bool:
        return self._inner.uses_fields

    @property
    def cuts_after(self) -> int | None:
        return self._inner.cuts_after

    def pinned(self, reader_id: str) -> Reader:
        inner = self._inner.pinned(reader_id.removeprefix(PAIR).removesuffix(")"))
        return self if inner is self._inner else PairReader(inner)

    def count_cut(self, items: Sequence[ReadRequest | str]) -> int:
        return self._inner.count_cut(items)

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        claims = _claims(requests)
        places = {claim: place for place, claim in enumerate(dict.fromkeys(claims))}
        distinct = self._inner.read_many(list(places))
        claim_features = distinct[[places[claim] for claim in claims]]
        texts = [ReadRequest(request.text, fields=request.fields) for request in requests]
        text_features = self._inner.read_many(texts, progress=progress)
        return _combine(claim_features, text_features)


def _claims(requests: list[ReadRequest]) -> list[str]:
    claims = []
    for index, request in enumerate(requests):
        if request.claim is None:
            raise EvidenceError(
                "is missing, but this reader needs it.",
                field=f"items[{index}].claim",
                hint=NOTHING_READ,
            )
        check_text(request.claim, "claim", index)
        claims.append(request.claim)
    return claims


def _combine(claims: Features, texts: Features) -> Features:
    return np.concatenate([claims, texts, np.abs(claims - texts), claims * texts], axis=1)
