"""Texts without a word: punctuation, numbers, emoji, base64. They say nothing about anything.

A word is two letters in a row, of any script; a vowel sign counts as a letter, and a single wide
character (Chinese, Japanese, Korean) is a word by itself. Letters inside base64 or hexadecimal
digits are not words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# An encoded string is at least this long and changes between upper case, lower case and digits
# every few characters: in base64 every 1.9 on average, in names such as "AuditReport2023Q4" 3.4.
SHORTEST_ENCODED = 12
LONGEST_PIECE = 2.75
_ENCODED = re.compile(r"(?:data:[\w/.+;=-]*;base64,)?([A-Za-z0-9+/=_-]+)")
_HEXADECIMAL = re.compile(r"(?=.*[0-9])(?:0x)?[0-9a-fA-F-]+")
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_REPEATED = re.compile(r"(.)\1+")
_RUNS = re.compile(r"[A-Za-z0-9]+")
_AROUND = "\"'`()[]{}<>.,;:!?"


def has_words(text: str) -> bool:
    """Return True if the text has at least one word."""
    was_encoded = False
    for found in re.finditer(r"\S+", text):
        part = found[0].strip(_AROUND)
        # The last line of wrapped base64 can be short.
        was_encoded = _is_encoded(part, 1 if was_encoded else SHORTEST_ENCODED)
        if not was_encoded and _has_letters(part):
            return True
    return False


def wordless(texts: Iterable[str]) -> NDArray[np.bool_] | None:
    """True for each text without a word [N]; None if all have one, which is the rule."""
    found = np.array([not has_words(text) for text in texts], np.bool_)
    return found if found.any() else None


def _is_encoded(part: str, shortest: int) -> bool:
    """Return True if ``part`` looks like base64 or hexadecimal digits."""
    found = _ENCODED.fullmatch(part)
    if found is None or len(found[1]) < shortest:
        return False
    if shortest == 1 and part.endswith("="):
        return True
    if len(found[1]) >= SHORTEST_ENCODED and _HEXADECIMAL.fullmatch(found[1]):
        return True
    # Zeros are encoded as AAAA. Pieces that a sign divides, as in yes/no/yes, are not changes.
    once = _REPEATED.sub(r"\1", found[1])
    runs, pieces = _RUNS.findall(once), _PIECES.findall(once)
    changes = len(pieces) - len(runs)
    return changes > 0 and sum(map(len, runs)) / (1 + changes) < LONGEST_PIECE


def _has_letters(part: str) -> bool:
    letters = 0
    for character in unicodedata.normalize("NFC", part):
        if character.isalpha():
            letters += 1
            if unicodedata.east_asian_width(character) == "W":
                return True
        elif not letters or unicodedata.category(character) not in ("Mn", "Mc"):
            letters = 0
            continue
        else:
            letters += 1
        if letters == 2:
            return True
    return False
