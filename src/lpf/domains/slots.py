"""Open places in sentences: ``[field]``, ``[3..7]``, ``[1.5..3.5]`` and ``[month]``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from lpf.domains.wordings import Sentence
from lpf.errors import DatasetError

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
MONTH = "month"
_SLOT_AND_ARTICLE = re.compile(r"(\b[Aa] )?\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)")
# A "u" is left alone: it is "an umpire" but "a union".
_VOWELS = tuple("aeioAEIO")


def check_slots(sentence: Sentence, names: Sequence[str]) -> None:
    """DatasetError for a slot that is neither a field of ``names`` nor a month nor a range."""
    for slot in sentence.slots:
        ends = _RANGE.fullmatch(slot)
        if ends and not float(ends[1]) < float(ends[2]):
            raise DatasetError(f"[{slot}] is no rising range: {sentence.line}")
        if not ends and slot != MONTH and slot not in names:
            raise DatasetError(
                f"unknown slot [{slot}]; it may be a range such as [3..7], [{MONTH}] or one of "
                f"{sorted(names)}: {sentence.line}"
            )


class Filling:
    """What slots are filled with: the entity's fields, and numbers and months that are drawn once,
    so that a text and its copies in other words name the same ones."""

    def __init__(self, fields: Mapping[str, str], generator: np.random.Generator) -> None:
        self._fields = fields
        self._generator = generator
        self._drawn: dict[tuple[str, int], str] = {}

    def text(self, wording: str) -> str:
        """The wording with its slots filled and its first letter raised."""
        seen: Counter[str] = Counter()

        def filled(match: re.Match[str]) -> str:
            article, slot = match[1] or "", match[2]
            seen[slot] += 1
            text = self._fields[slot] if slot in self._fields else self._once(slot, seen[slot])
            needs_an = article and text.startswith(_VOWELS)
            return (f"{article[0]}n " if needs_an else article) + text

        text = " ".join(_SLOT_AND_ARTICLE.sub(filled, wording).split())
        return text[:1].upper() + text[1:]

    def _once(self, slot: str, occurrence: int) -> str:
        key = (slot, occurrence)
        if key not in self._drawn:
            self._drawn[key] = _drawn(slot, self._generator)
        return self._drawn[key]


def _drawn(slot: str, generator: np.random.Generator) -> str:
    if slot == MONTH:
        return MONTHS[int(generator.integers(len(MONTHS)))]
    ends = _RANGE.fullmatch(slot)
    assert ends is not None  # the loader refuses other slots
    return _number(ends[1], ends[2], generator)


def _number(low: str, high: str, generator: np.random.Generator) -> str:
    """A number from low to high, with as many decimals as they are written with."""
    decimals = max(len(end.partition(".")[2]) for end in (low, high))
    scale = 10**decimals
    drawn = int(generator.integers(round(float(low) * scale), round(float(high) * scale) + 1))
    return f"{drawn / scale:.{decimals}f}"
