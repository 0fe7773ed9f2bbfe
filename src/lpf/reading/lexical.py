"""Texts as sparse rows of hashed words and character n-grams. There is no vocabulary to store.

    words        single words and pairs of neighbours
    characters   3 to 5 characters in a row within a word, whose ends count as blanks
    claim        single words of the claim
    shared       single words of the text that are also in its claim
    overlap      one number: the share of the claim's words that are in the text

Each of the first four parts has its own range of buckets. An n-gram falls into the same bucket on
every machine; different ones may share it. Upper and lower case are equal. A word is a run of
letters, digits and underscores of any script; Chinese characters and Japanese kana are words of
their own, because those languages put no blanks between words.

    counts = ngram_counts(texts)
    rows = weighted_rows(counts, inverse_frequencies(counts))
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from lpf.reading.reader import ReadRequest
from lpf.types import Float32Array, FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Part = Literal["words", "characters", "claim", "shared", "overlap"]
# Powers of two, because the highest bits of a hash are the bucket. A word has the same place in
# ``claim`` and ``shared``.
BUCKET_BITS: Final[Mapping[Part, int]] = MappingProxyType(
    {"words": 15, "characters": 14, "claim": 13, "shared": 13}
)
HASHED: Final[tuple[Part, ...]] = tuple(BUCKET_BITS)
PARTS: Final[tuple[Part, ...]] = (*HASHED, "overlap")
OVERLAP: Final = sum(2**bits for bits in BUCKET_BITS.values())  # its column, the last one
BUCKETS: Final = OVERLAP + 1
# An overlap varies much less than 1, the length of the other parts.
OVERLAP_WEIGHT = 3.0
SHORTEST, LONGEST = 3, 5  # characters of an n-gram
MOST_CHARACTERS = 2**16  # of a text or claim; the rest is not read
BATCH_CHARACTERS = 2**19  # texts that are counted together

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003134f"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W{_UNSPACED}]+")
_BLANK = ord(" ")
_FACTOR = np.uint32(0x01000193)
_PAIR_FACTOR = np.uint32(0x9E3779B1)

Hashes = NDArray[np.uint32]
Places = NDArray[np.int64]


def part_range(part: Part) -> slice:
    """The buckets of one part."""
    first = sum(2 ** BUCKET_BITS[one] for one in HASHED[: PARTS.index(part)])
    return slice(first, first + (1 if part == "overlap" else 2 ** BUCKET_BITS[part]))


def ngram_counts(items: Sequence[ReadRequest | str]) -> csr_matrix:
    """How often each bucket occurs in each item, [N, BUCKETS]. A row depends on the item's text and
    claim only; without a claim, ``claim`` and ``shared`` are empty. Any string is allowed. The
    overlap is computed by ``weighted_rows``, not counted."""
    from scipy.sparse import vstack

    requests = [item if isinstance(item, ReadRequest) else ReadRequest(item) for item in items]
    counted = [_as_matrix(_keys(batch), len(batch)) for batch in _batches(requests)]
    return vstack(counted, format="csr") if len(counted) > 1 else counted[0]


def inverse_frequencies(counts: csr_matrix, exponent: float = 1.0) -> Float32Array:
    """The weight of each bucket, [BUCKETS]: (1 + log((1 + N)/(1 + n)))^exponent if n of the N rows
    have it. With exponent 0 all buckets weigh the same."""
    rows, width = counts.shape
    having = np.bincount(counts.indices[counts.data > 0], minlength=width)
    weights = (1.0 + np.log((1.0 + rows) / (1.0 + having))) ** exponent
    weights[OVERLAP] = OVERLAP_WEIGHT
    return np.asarray(weights, np.float32)


def weighted_rows(counts: csr_matrix, idf: Float32Array) -> csr_matrix:
    """(1 + log count)·idf, [N, BUCKETS]. Each hashed part of a row has length 1, or 0 if it is
    empty; an ``idf`` of 0 leaves a bucket out. The words of an overlap are weighted with the idf of
    the claim's words."""
    from scipy.sparse import csr_matrix as matrix

    rows, _ = counts.shape
    owner = np.repeat(np.arange(rows), np.diff(counts.indptr))
    values = (1.0 + np.log(counts.data)) * idf[counts.indices]
    ends = [part_range(part).stop for part in HASHED]
    part = np.searchsorted(ends, counts.indices, side="right")
    place = owner * len(HASHED) + part
    squares = np.bincount(place, values.astype(np.float64) ** 2, minlength=rows * len(HASHED))
    lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    overlap = idf[OVERLAP] * _overlap(counts.indices, owner, part, idf, rows)
    filled = np.flatnonzero(overlap)
    at = counts.indptr[filled + 1]
    added = np.zeros(rows + 1, counts.indptr.dtype)
    added[filled + 1] = 1
    return matrix(
        (
            np.insert(values / lengths[place], at, overlap[filled]).astype(np.float32),
            np.insert(counts.indices, at, OVERLAP),
            counts.indptr + np.cumsum(added),
        ),
        shape=counts.shape,
    )


def _overlap(
    buckets: Places, owner: Places, part: Places, idf: Float32Array, rows: int
) -> FloatArray:
    """The share of each row's claim that its text shares, in [0, 1]; 0 without a claim."""
    of_claim, of_both = (part == HASHED.index(one) for one in ("claim", "shared"))
    shift = part_range("shared").start - part_range("claim").start
    total = np.bincount(owner[of_claim], idf[buckets[of_claim]], minlength=rows)
    found = np.bincount(owner[of_both], idf[buckets[of_both] - shift], minlength=rows)
    return found / np.where(total > 0.0, total, 1.0)


def _batches(requests: Sequence[ReadRequest]) -> Iterator[Sequence[ReadRequest]]:
    """At least one batch, which may be empty."""
    first = size = 0
    for place, request in enumerate(requests):
        length = min(len(request.text), MOST_CHARACTERS)
        if place > first and size + length > BATCH_CHARACTERS:
            yield requests[first:place]
            first, size = place, 0
        size += length
    yield requests[first:]


def _keys(batch: Sequence[ReadRequest]) -> Places:
    """row·BUCKETS + bucket of every n-gram."""
    texts = [_prepared(request.text) for request in batch]
    distinct = dict.fromkeys(request.claim for request in batch if request.claim)
    claims = {claim: _word_hashes(_prepared(claim)) for claim in distinct}
    words = [_word_hashes(text) for text in texts]
    of_claims = [claims[request.claim] if request.claim else [] for request in batch]
    shared = [
        [one for one in mine if one in known] if known else []
        for mine, known in zip(words, map(frozenset, of_claims), strict=True)
    ]
    single = _Hashed.of(words)
    found: dict[Part, tuple[_Hashed, ...]] = {
        "words": (single, single.pairs()),
        "characters": tuple(_character_hashes(texts)),
        "claim": (_Hashed.of(of_claims),),
        "shared": (_Hashed.of(shared),),
    }
    keys = [
        hashed.rows * BUCKETS + part_range(part).start + hashed.buckets(BUCKET_BITS[part])
        for part in HASHED
        for hashed in found[part]
    ]
    return np.concatenate(keys)


def _prepared(text: str) -> str:
    """In lower case, with composed characters."""
    lowered = text[:MOST_CHARACTERS].lower()
    return lowered if lowered.isascii() else unicodedata.normalize("NFC", lowered)


def _word_hashes(text: str) -> list[int]:
    # Lone surrogates are not valid, but occur in scraped texts.
    return [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in _WORD.findall(text)]


@dataclass(frozen=True)
class _Hashed:
    """Hashes of n-grams and the rows that they belong to, in the order of the texts."""

    hashes: Hashes
    rows: Places

    @classmethod
    def of(cls, found: Sequence[Sequence[int]]) -> _Hashed:
        flat = np.array([one for row in found for one in row], np.uint32)
        return cls(flat, np.repeat(np.arange(len(found)), [len(row) for row in found]))

    def pairs(self) -> _Hashed:
        """The pairs of neighbours in the same row."""
        within = self.rows[:-1] == self.rows[1:]
        both = self.hashes[:-1] * _PAIR_FACTOR + self.hashes[1:] + np.uint32(1)
        return _Hashed(both[within], self.rows[:-1][within])

    def buckets(self, bits: int) -> Places:
        """The highest bits after mixing: every bit of a hash affects them."""
        mixed = self.hashes ^ (self.hashes >> np.uint32(16))
        mixed *= np.uint32(0x7FEB352D)
        mixed ^= mixed >> np.uint32(15)
        mixed *= np.uint32(0x846CA68B)
        return (mixed >> np.uint32(32 - bits)).astype(np.int64)


def _character_hashes(texts: Iterable[str]) -> Iterator[_Hashed]:
    """One polynomial Σ code·factor^place per n-gram, modulo 2^32, for one length after the other.
    Only its first and its last character may be a blank."""
    spaced = [f" {' '.join(text.split())} " for text in texts]
    codes = np.frombuffer("".join(spaced).encode("utf-32-le", "surrogatepass"), "<u4")
    codes = codes.astype(np.uint32)
    rows = np.repeat(np.arange(len(spaced)), [len(text) for text in spaced])
    inside = codes != _BLANK
    hashes, whole = codes, np.ones(len(codes), np.bool_)
    for length in range(2, LONGEST + 1):
        hashes = hashes[:-1] * _FACTOR + codes[length - 1 :]
        # The character before the last is now an inner one.
        whole = whole[:-1] & inside[length - 2 : -1] if length > 2 else whole[:-1]
        if length >= SHORTEST:
            yield _Hashed(hashes[whole] + np.uint32(length), rows[: len(hashes)][whole])


def _as_matrix(keys: Places, rows: int) -> csr_matrix:
    from scipy.sparse import csr_matrix as matrix

    distinct, counts = np.unique(keys, return_counts=True)
    starts = np.searchsorted(distinct, np.arange(rows + 1) * BUCKETS)
    return matrix(
        (counts.astype(np.float32), (distinct % BUCKETS).astype(np.int32), starts),
        shape=(rows, BUCKETS),
    )
