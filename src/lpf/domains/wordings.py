"""Sentences with alternatives and slots, and which split may use which wording.

A sentence such as ``{Late|Overdue} returns were {filed|sent in} by [company_name].`` has four
wordings, numbered in mixed radix, so that the k-th is computed without listing them. Each wording
(or each sentence) belongs to one split. A hash decides which one, not a seed, so that the splits of
all data sets of a domain use different wordings.

Slots are ``[field]``, ``[3..7]``, ``[1.5..3.5]`` and ``[month]``.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from lpf.datasets.dataset import SPLITS, Split
from lpf.domains.parameters import Unseen
from lpf.errors import DatasetError

# A sentence with more wordings is sampled, not listed; it certainly has wordings in every split.
MOST_LISTED = 4096
_MOST_TRIES = 10_000
_GROUP = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"\[([^\[\]]*)\]")
_FIFTHS: tuple[Split, ...] = ("train", "train", "train", "validation", "test")


@dataclass(frozen=True)
class Sentence:
    """A line of a declaration, split into pieces: each is a tuple of alternative texts."""

    line: str
    pieces: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, line: str) -> Sentence:
        """Parse a line. The caller adds file and key to the DatasetError."""
        parts = _GROUP.split(line)
        literal, groups = parts[::2], [tuple(part.split("|")) for part in parts[1::2]]
        for options in groups:
            if len(options) < 2 or len(set(options)) < len(options):
                raise DatasetError(
                    f"{{{'|'.join(options)}}} needs two or more different alternatives: {line}"
                )
        pieces = [(literal[0],)]
        for options, after in zip(groups, literal[1:], strict=True):
            pieces += [options, (after,)]
        for option in (option for piece in pieces for option in piece):
            if re.search(r"[{}\[\]|]", _SLOT.sub("", option)):
                raise DatasetError(f"unmatched bracket or bar: {line}")
        return cls(line, tuple(piece for piece in pieces if piece != ("",)))

    @property
    def slots(self) -> Iterator[str]:
        return (slot for slot in _SLOT.findall(self.line))

    @cached_property
    def count(self) -> int:
        """Number of wordings."""
        return math.prod(map(len, self.pieces))

    def wording(self, number: int) -> str:
        """Return the wording with this number, with unfilled slots and single blanks."""
        chosen = []
        for piece in reversed(self.pieces):
            number, place = divmod(number, len(piece))
            chosen.append(piece[place])
        return " ".join("".join(reversed(chosen)).split())


@dataclass(frozen=True)
class SentencePool:
    """The wordings of a sentence that one split may use.

    ``numbers`` lists them; None means all wordings or, if there are too many to list, those for
    which ``own`` returns True.
    """

    sentence: Sentence
    numbers: tuple[int, ...] | None = None
    own: Callable[[str], bool] | None = None

    def draw(self, generator: np.random.Generator) -> str:
        """Draw one of the wordings, all equally likely."""
        if self.numbers is not None:
            return self.sentence.wording(self.numbers[int(generator.integers(len(self.numbers)))])
        for _ in range(_MOST_TRIES):
            wording = self.sentence.wording(int(generator.integers(self.sentence.count)))
            if self.own is None or self.own(wording):
                return wording
        raise DatasetError(
            f"none of {_MOST_TRIES} drawn wordings belongs to the split: {self.sentence.line}"
        )


@dataclass(frozen=True)
class WordingCell:
    """The sentences of one aspect that show one symbol. ``place`` is domain/aspect/symbol."""

    place: str
    sentences: tuple[Sentence, ...]

    @property
    def wordings(self) -> int:
        return sum(sentence.count for sentence in self.sentences)

    def pool(self, split: Split, unseen: Unseen) -> tuple[SentencePool, ...]:
        """Return the sentences of a split, each with its wordings there."""
        by_split = self._by_wording if unseen == "wordings" else self._by_sentence
        if not by_split[split]:
            raise DatasetError(
                f"too few {unseen} for the split {split!r}. Nothing was generated.",
                field=self.place,
                hint="Add sentences or alternatives.",
            )
        return by_split[split]

    def wording_split(self, wording: str) -> Split:
        """Return the split of a wording (with ``unseen="wordings"``)."""
        return _split_of(self.place, wording)

    def draw(
        self, split: Split, unseen: Unseen, generator: np.random.Generator
    ) -> tuple[SentencePool, str]:
        """Draw a sentence of the split, then one of its wordings, both uniformly."""
        pools = self.pool(split, unseen)
        chosen = pools[int(generator.integers(len(pools)))]
        return chosen, chosen.draw(generator)

    @cached_property
    def _by_wording(self) -> Mapping[Split, tuple[SentencePool, ...]]:
        return {
            split: tuple(pool for pool in pools if pool.numbers != ())
            for split, pools in zip(
                SPLITS, zip(*map(self._wordings_by_split, self.sentences), strict=True), strict=True
            )
        }

    def _wordings_by_split(self, sentence: Sentence) -> list[SentencePool]:
        """Return the wordings of a sentence for each split, in the order of SPLITS."""
        if sentence.count > MOST_LISTED:
            return [
                SentencePool(sentence, own=partial(_is_of, self.place, split)) for split in SPLITS
            ]
        owners = [self.wording_split(sentence.wording(k)) for k in range(sentence.count)]
        return [
            SentencePool(sentence, tuple(k for k, owner in enumerate(owners) if owner == split))
            for split in SPLITS
        ]

    @cached_property
    def _by_sentence(self) -> Mapping[Split, tuple[SentencePool, ...]]:
        """Split sentences by the rank of their hash, so that shares are exact in every cell."""
        ranked = sorted(self.sentences, key=lambda sentence: _hashed(self.place, sentence.line))
        validation, test = max(1, len(ranked) // 5), max(1, -(-len(ranked) // 5))
        train = max(0, len(ranked) - validation - test)
        parts = (ranked[:train], ranked[train:-test], ranked[-test:])
        return {
            split: tuple(map(SentencePool, part)) for split, part in zip(SPLITS, parts, strict=True)
        }


def _is_of(place: str, split: Split, wording: str) -> bool:
    return _split_of(place, wording) == split


def _split_of(place: str, wording: str) -> Split:
    return _FIFTHS[_hashed(place, wording) % len(_FIFTHS)]


def _hashed(place: str, text: str) -> int:
    digest = hashlib.blake2b(f"{place}\n{text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
MONTH = "month"
_SLOT_AND_ARTICLE = re.compile(r"(\b[Aa] )?\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)")
# Not "u": it is "an umpire" but "a union".
_VOWELS = tuple("aeioAEIO")


def check_slots(sentence: Sentence, names: Sequence[str]) -> None:
    """Raise DatasetError for a slot that is not a field in ``names``, a month or a range."""
    for slot in sentence.slots:
        ends = _RANGE.fullmatch(slot)
        if ends and not float(ends[1]) < float(ends[2]):
            raise DatasetError(f"[{slot}] is not an increasing range: {sentence.line}")
        if not ends and slot != MONTH and slot not in names:
            raise DatasetError(
                f"unknown slot [{slot}]; use a range such as [3..7], [{MONTH}] or one of "
                f"{sorted(names)}: {sentence.line}"
            )


class Filling:
    """Fills slots with the entity's fields and with random numbers and months.

    These are drawn once, so that a text and its copies contain the same ones.
    """

    def __init__(self, fields: Mapping[str, str], generator: np.random.Generator) -> None:
        self._fields = fields
        self._generator = generator
        self._drawn: dict[tuple[str, int], str] = {}

    def text(self, wording: str) -> str:
        """Return the wording with filled slots and a capital first letter."""
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
    """Draw a number from low to high, with as many decimals as these have."""
    decimals = max(len(end.partition(".")[2]) for end in (low, high))
    scale = 10**decimals
    drawn = int(generator.integers(round(float(low) * scale), round(float(high) * scale) + 1))
    return f"{drawn / scale:.{decimals}f}"
