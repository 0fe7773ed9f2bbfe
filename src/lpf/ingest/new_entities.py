"""Notice new entities whose ID looks like a mistyped one: S9O where there is S90.

Nothing is refused. IDs that are spelled alike are found in one pass; only the first new ones are
also compared with the store letter by letter, so that the cost grows with the file alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import islice

from lpf.index.near_names import near_names, unknown_entities
from lpf.storage.database import Database

MOST_COMPARED = 100  # each takes some milliseconds
MOST_REMEMBERED = 100_000
SHOWN = 5
SHORTEST_WORD = 4  # letters; shorter parts of IDs tell series apart, as in A12 and B12
# Letters that are easily typed for digits, after another digit. In hexadecimal numbers, b and 8 are
# different.
_IN_NUMBER = re.compile(r"(?<=\d)[oilzs]+")
_CONFUSED = str.maketrans("oilzs", "01125")
_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_SIGN = re.compile(r"(?<!\d)[\W_]+|[\W_]+(?!\d)")  # but not the one in 1.2
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")


class NewEntities:
    """Collects new entities in ``similar``, with the ID that each of them may have meant."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_spelling: dict[str, str] = {}
        self._known: set[str] = set()
        self._compared = 0
        self.similar: dict[str, str] = {}

    def look_at(self, entity_ids: Iterable[str]) -> None:
        """Call it before items or facts about these entities are added."""
        names = [name for name in dict.fromkeys(entity_ids) if name not in self._known]
        if len(self._known) > MOST_REMEMBERED or not names:
            return
        self._known.update(names)
        firsts = {name: self._by_spelling.setdefault(spelling(name), name) for name in names}
        for name in unknown_entities(self._database, names):
            meant = self._stored(name) or firsts[name]
            if meant != name:
                self.similar[name] = meant

    def _stored(self, name: str) -> str | None:
        """An ID of the store that may have been meant; looked up for the first new entities."""
        self._compared += 1
        if self._compared > MOST_COMPARED:
            return None
        near = near_names(self._database, name)
        return next((one for one in near if is_likely_typo(name, one)), None)

    def notes(self) -> list[str]:
        """In one line, or nothing."""
        count = len(self.similar)
        if count < 2:
            return [f"new entity {name}; did you mean {one}?" for name, one in self.similar.items()]
        shown = [f"{name} (or {one}?)" for name, one in islice(self.similar.items(), SHOWN)]
        more = ", ..." if count > SHOWN else ""
        return [f"{count:,} new entities have IDs like others: {', '.join(shown)}{more}"]


def spelling(name: str) -> str:
    """What remains of an ID without capitals, signs and leading zeros, and with letters in numbers
    as the digits they look like."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    plain = _IN_NUMBER.sub(lambda found: found[0].translate(_CONFUSED), plain)
    return _SIGN.sub("", _LEADING_ZEROS.sub("", plain)) or name


def is_likely_typo(name: str, known: str) -> bool:
    """Return True if the two are spelled alike, or differ by one letter of one word. Other numbers
    are other entities: S91 is not S90."""
    if spelling(name) == spelling(known):
        return True
    if _DIGITS.findall(name) != _DIGITS.findall(known):
        return False
    words, others = (_LETTERS.findall(one.casefold()) for one in (name, known))
    if len(words) != len(others):
        return False
    pairs = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return (
        len(pairs) == 1
        and min(map(len, pairs[0])) >= SHORTEST_WORD
        and _one_edit_apart(*sorted(pairs[0], key=len))
    )


def _one_edit_apart(short: str, long: str) -> bool:
    """One letter added or replaced, or two neighbours exchanged."""
    start = 0
    while start < len(short) and short[start] == long[start]:
        start += 1
    rest, other = short[start:], long[start:]
    if len(short) < len(long):
        return rest == other[1:]
    exchanged = other[1:2] + other[:1] + other[2:]
    return rest[1:] == other[1:] or rest == exchanged
