"""Sentences with alternatives, and who may use which of their wordings.

A sentence such as ``{Late|Overdue} returns were {filed|sent in} by [company_name].`` has four
wordings, numbered in mixed radix, so that the k-th is known without listing them. Each wording (or
each sentence) belongs to one split for good: a hash decides, not a seed, so that no two data sets
of a domain mix them.

Open places in sentences: ``[field]``, ``[3..7]``, ``[1.5..3.5]`` and ``[month]``.
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

# A sentence with more wordings is sampled, not listed; that none of them fell to a split, with a
# fifth of them each, is then out of the question.
MOST_LISTED = 4096
_MOST_TRIES = 10_000
_GROUP = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"\[([^\[\]]*)\]")
_FIFTHS: tuple[Split, ...] = ("train", "train", "train", "validation", "test")


@dataclass(frozen=True)
class Sentence:
    """A line of a declaration, in pieces: each is a choice of texts, often of only one."""

    line: str
    pieces: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, line: str) -> Sentence:
        """DatasetError says what is wrong with the line; the caller says where it stands."""
        parts = _GROUP.split(line)
        literal, groups = parts[::2], [tuple(part.split("|")) for part in parts[1::2]]
        for options in groups:
            if len(options) < 2 or len(set(options)) < len(options):
                raise DatasetError(f"{{{'|'.join(options)}}} needs different alternatives: {line}")
        pieces = [(literal[0],)]
        for options, after in zip(groups, literal[1:], strict=True):
            pieces += [options, (after,)]
        for option in (option for piece in pieces for option in piece):
            if re.search(r"[{}\[\]|]", _SLOT.sub("", option)):
                raise DatasetError(f"a stray bracket or bar: {line}")
        return cls(line, tuple(piece for piece in pieces if piece != ("",)))

    @property
    def slots(self) -> Iterator[str]:
        return (slot for slot in _SLOT.findall(self.line))

    @cached_property
    def count(self) -> int:
        """How many wordings it has."""
        return math.prod(map(len, self.pieces))

    def wording(self, number: int) -> str:
        """The wording of that number, with its slots still open and blanks collapsed."""
        chosen = []
        for piece in reversed(self.pieces):
            number, place = divmod(number, len(piece))
            chosen.append(piece[place])
        return " ".join("".join(reversed(chosen)).split())


@dataclass(frozen=True)
class SentencePool:
    """A sentence as one split may use it. ``numbers`` are its wordings there; None for all of them,
    or, where ``own`` is given, for too many to list: then each drawn one is asked about."""

    sentence: Sentence
    numbers: tuple[int, ...] | None = None
    own: Callable[[str], bool] | None = None

    def draw(self, generator: np.random.Generator) -> str:
        """One of its wordings, each as likely as the others."""
        if self.numbers is not None:
            return self.sentence.wording(self.numbers[int(generator.integers(len(self.numbers)))])
        for _ in range(_MOST_TRIES):
            wording = self.sentence.wording(int(generator.integers(self.sentence.count)))
            if self.own is None or self.own(wording):
                return wording
        raise DatasetError(f"none of {_MOST_TRIES} wordings may be used: {self.sentence.line}")


@dataclass(frozen=True)
class WordingCell:
    """All sentences of one aspect that show one symbol. ``place`` is domain/aspect/symbol."""

    place: str
    sentences: tuple[Sentence, ...]

    @property
    def wordings(self) -> int:
        return sum(sentence.count for sentence in self.sentences)

    def pool(self, split: Split, unseen: Unseen) -> tuple[SentencePool, ...]:
        """What a split draws from: every sentence with something in the split."""
        by_split = self._by_wording if unseen == "wordings" else self._by_sentence
        if not by_split[split]:
            raise DatasetError(
                f"{self.place}: too few {unseen} for a part of their own in the split {split!r}. "
                "Nothing was generated; add sentences or alternatives."
            )
        return by_split[split]

    def wording_split(self, wording: str) -> Split:
        """Whose a wording is where wordings are kept apart."""
        return _split_of(self.place, wording)

    def draw(
        self, split: Split, unseen: Unseen, generator: np.random.Generator
    ) -> tuple[SentencePool, str]:
        """A wording of the split: a sentence uniformly, then uniformly one of its wordings."""
        pools = self.pool(split, unseen)
        chosen = pools[int(generator.integers(len(pools)))]
        return chosen, chosen.draw(generator)

    @cached_property
    def _by_wording(self) -> Mapping[Split, tuple[SentencePool, ...]]:
        return {
            split: tuple(pool for pool in pools if pool.numbers != ())
            for split, pools in zip(
                SPLITS, zip(*map(self._apart, self.sentences), strict=True), strict=True
            )
        }

    def _apart(self, sentence: Sentence) -> list[SentencePool]:
        """The sentence as each split may use it, in the order of the splits."""
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
        """By rank of the hash, so that each split has its share of every cell."""
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
