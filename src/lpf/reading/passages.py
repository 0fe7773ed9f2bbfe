"""Long texts: cut before they are tokenised, divided into passages, and combined again.

A tokenizer needs about 150 bytes of memory per byte of text, so a long text is tokenised in pieces.
Pieces end where the tokenizer ends a word in any case: all pieces together have the tokens of the
whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from lpf.reading.reader import Features

Tokenise = Callable[[list[str]], list[list[int]]]  # texts to token ids, without special tokens

PIECE: Final = 20_000  # characters
# A word of this length is cut all the same. Words of more than 100 characters are unknown anyway.
LONGEST_WORD: Final = 80_000
PIECES_AT_ONCE: Final = 16
CHARACTERS_AT_ONCE: Final = 1_000_000  # of the texts that are tokenised together
CHARACTERS_IN_WINDOW: Final = 8_000_000  # of the texts that are batched together
# A tokenizer ends a word before each of these. Other white space may be a control character, which
# it removes.
_WORD_ENDS = re.compile(r"[ \t\n\r\u3400-\u4dbf\u4e00-\u9fff]")


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Parts of ``text`` of about ``size`` characters, which together are the text."""
    start = 0
    while len(text) - start > size:
        found = _WORD_ENDS.search(text, start + size, start + LONGEST_WORD)
        end = min(start + LONGEST_WORD, len(text)) if found is None else found.start()
        yield text[start:end]
        start = end
    yield text[start:]


def token_ids(text: str, tokenise: Tokenise, most: int | None = None) -> npt.NDArray[np.int32]:
    """The token ids of a text of any length, in bounded memory; the first ``most`` if given."""
    found: list[npt.NDArray[np.int32]] = []
    count = 0
    waiting = list(pieces(text))
    at_once = PIECES_AT_ONCE if most is None else 1
    for start in range(0, len(waiting), at_once):
        for row in tokenise(waiting[start : start + at_once]):
            found.append(np.array(row, np.int32))
            count += len(row)
        if most is not None and count >= most:
            break
    return np.concatenate(found)[:most]


def passages(ids: Sequence[int] | npt.NDArray[np.int32], most: int) -> list[npt.NDArray[np.int32]]:
    """Token ids in passages of nearly equal length, at most ``most`` tokens each."""
    count = -(-len(ids) // most)
    return np.array_split(np.asarray(ids, np.int32), count)


def combined(features: Features, lengths: Sequence[int]) -> Features:
    """One row of length 1 from the rows of a text's passages [P, width]: their mean, weighted by
    the number of tokens. It does not depend on how the passages were batched beyond rounding."""
    mean = np.asarray(lengths, np.float64) @ features.astype(np.float64)
    row: Features = (mean / np.linalg.norm(mean)).astype(np.float32)
    return row


def windows(
    lengths: Sequence[int], most_items: int, most_characters: int = CHARACTERS_IN_WINDOW
) -> Iterator[slice]:
    """Consecutive items that are read together: at most ``most_items`` with ``most_characters``,
    or a single item that has more. ``lengths`` are in characters."""
    start, room = 0, most_characters
    for place, length in enumerate(lengths):
        if place > start and (place - start >= most_items or room < length):
            yield slice(start, place)
            start, room = place, most_characters
        room -= length
    if len(lengths) > start:
        yield slice(start, len(lengths))
