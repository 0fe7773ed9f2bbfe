"""A reader of evidence together with its claim, built from any reader of plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress
from typing import Final

import numpy as np

from lpf.errors import ConfigError, EvidenceError
from lpf.reading.fitted_words import words_width
from lpf.reading.reader import (
    Features,
    Progress,
    Reader,
    ReadRequest,
    as_requests,
    check_text,
)
from lpf.reading.stance import STANCE_WIDTH, STANCES

PARTS: Final = 4
NAME: Final = "pair("
WITH_STANCE: Final = "+stance("
_TEXT_FIELD = re.compile(r"items\[(\d+)\]\.text")


def text_part(reader_id: str, width: int) -> slice:
    """Where the features of the text alone lie among all ``width`` features of a reader."""
    width -= words_width(reader_id)
    if not is_pair(reader_id):
        return slice(0, width)
    inner = (width - (STANCE_WIDTH if reads_stance(reader_id) else 0)) // PARTS
    return slice(inner, 2 * inner)


def claim_part(reader_id: str, width: int) -> slice | None:
    """Where the features of the claim alone lie; None for a reader that does not read claims."""
    text = text_part(reader_id, width)
    return slice(0, text.start) if is_pair(reader_id) else None


def stance_start(reader_id: str, width: int) -> int | None:
    """The first of the stance logits, which are the last of all ``width`` features of a reader but
    for those of words. None for a reader that does not read stances."""
    last = width - words_width(reader_id)
    return last - len(STANCES) if reads_stance(reader_id) else None


class PairReader(Reader):
    """Features [c, e, |c - e|, c * e] of claim c and evidence e, each read on its own: four times
    the inner width. With ``stance``, the features of the stance reader follow.

    The claim of an item without one is a row of zeros. A claim shared by several items is read once
    per call. Fields are passed to the inner reader with the text.
    """

    def __init__(self, inner: Reader, stance: Reader | None = None) -> None:
        if inner.uses_claim:
            raise ConfigError(f"the inner reader {inner.reader_id} already reads the claim.")
        self._inner, self._stance = inner, stance

    @property
    def reader_id(self) -> str:
        plain = f"{NAME}{self._inner.reader_id})"
        return plain if self._stance is None else f"{plain}{WITH_STANCE}{self._stance.reader_id})"

    @property
    def width(self) -> int:
        return PARTS * self._inner.width + (0 if self._stance is None else self._stance.width)

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
        plain, _, stance = reader_id.partition(WITH_STANCE)
        inner = self._inner.pinned(plain.removeprefix(NAME).removesuffix(")"))
        if not stance and self._stance is not None:
            return PairReader(inner)  # a model from before there was a stance reader
        own = self._stance
        return self._with(inner, None if own is None else own.pinned(stance.removesuffix(")")))

    def newest(self) -> Reader:
        own = self._stance
        return self._with(self._inner.newest(), None if own is None else own.newest())

    @property
    def stance(self) -> Reader | None:
        """The reader of stances, if there is one."""
        return self._stance

    def with_stance(self, stance: Reader) -> PairReader:
        """The same reader, whose stances are read by ``stance``."""
        return self._with(self._inner, stance)

    def _with(self, inner: Reader, stance: Reader | None) -> PairReader:
        is_same = inner is self._inner and stance is self._stance
        return self if is_same else PairReader(inner, stance)

    def count_cut(self, items: Sequence[ReadRequest | str]) -> int:
        return self._inner.count_cut(items)

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        claim_features = self._read_claims([request.claim for request in requests])
        texts = [ReadRequest(request.text, fields=request.fields) for request in requests]
        if self._stance is None:
            return _combine(claim_features, self._inner.read_many(texts, progress=progress))
        # The stance takes most of the time: its progress is shown.
        text_features = self._inner.read_many(texts)
        stances = self._stance.read_many(requests, progress=progress)
        return np.concatenate([_combine(claim_features, text_features), stances], axis=1)

    def _read_claims(self, claims: Sequence[str | None]) -> Features:
        """[N, inner width]; zeros where there is no claim."""
        has_claim = [claim is not None for claim in claims]
        for index in compress(range(len(claims)), has_claim):
            check_text(claims[index], "claim", index)
        places = {claim: place for place, claim in enumerate(dict.fromkeys(filter(None, claims)))}
        features = np.zeros((len(claims), self._inner.width), np.float32)
        if places:
            try:
                distinct = self._inner.read_many(list(places))
            except EvidenceError as error:
                raise _about_claim(error, list(places), claims) from error
            features[has_claim] = distinct[[places[claim] for claim in filter(None, claims)]]
        return features


def is_pair(reader_id: str) -> bool:
    """Return True for the ID of a reader of texts with their claims."""
    return reader_id.startswith(NAME)


def reads_stance(reader_id: str) -> bool:
    """Return True for the ID of a reader of claims that also has the stance reader."""
    return is_pair(reader_id) and WITH_STANCE in reader_id


def _about_claim(
    error: EvidenceError, distinct: Sequence[str], claims: Sequence[str | None]
) -> EvidenceError:
    """The inner reader counts the distinct claims: the same error, with the item's own place."""
    found = _TEXT_FIELD.fullmatch(error.field or "")
    if found is None:
        return error
    place = claims.index(distinct[int(found[1])])
    return type(error)(*error.args, field=f"items[{place}].claim", hint=error.hint)


def _combine(claims: Features, texts: Features) -> Features:
    return np.concatenate([claims, texts, np.abs(claims - texts), claims * texts], axis=1)
