"""Whom a store knows by a name, or by one near it: for somebody who may have mistyped it.

The work is bounded whatever the size of the store: names that follow the given one in the order of
an index, a few at a time, and look-ups of what one slip would have made of it.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from sqlalchemy import bindparam, select
from sqlalchemy.sql.expression import FromClause

from lpf.storage.connections import Prepared
from lpf.storage.database import Database
from lpf.storage.lookups import KEYS, any_of, look_up
from lpf.storage.tables import evidence, facts

MOST_NAMES = 3
ROWS_WALKED = 200
LONGEST_MENDED = 40  # letters; who gives longer names copies them
MOST_UNLIKE = 0.3
# Letters and digits that are taken for each other.
ALIKE = str.maketrans("oilzsb", "011258")


def _named(table: FromClause) -> Prepared:
    return Prepared(select(table.c.entity_id).distinct().where(any_of(table.c.entity_id)), *KEYS)


def _following(table: FromClause) -> Prepared:
    """An entity may have very many rows: these are counted, not the names among them."""
    rows = (
        select(table.c.entity_id)
        .where(table.c.entity_id >= bindparam("start"))
        .order_by(table.c.entity_id)
        .limit(bindparam("limit"))
        .subquery()
    )
    return Prepared(select(rows.c.entity_id).distinct(), "start", "limit")


_NAMED = tuple(map(_named, (evidence, facts)))
_FOLLOWING = tuple(map(_following, (evidence, facts)))


def is_known(database: Database, entity_id: str) -> bool:
    """Whether some item or some fact, counting or not, is about the entity."""
    return bool(_known(database, [entity_id]))


def near_names(database: Database, entity_id: str) -> list[str]:
    """Up to three entities that the store knows by a name near this one, the nearest first."""
    found = _walked(database, entity_id)
    letters = {*string.digits, *entity_id, *entity_id.swapcase(), *"".join(found)}
    found |= _known(database, _slips(entity_id, letters))
    found.discard(entity_id)
    unlikeness = {name: _unlikeness(entity_id, name) for name in found}
    near = [
        name
        for name, shares in unlikeness.items()
        if min(shares) <= MOST_UNLIKE or name.lower().startswith(entity_id.lower())
    ]
    return sorted(near, key=lambda name: (unlikeness[name], name))[:MOST_NAMES]


def _known(database: Database, names: Iterable[str]) -> set[str]:
    wanted = list(names)
    return {name for made in _NAMED for (name,) in look_up(database, made, wanted)}


def _walked(database: Database, entity_id: str) -> set[str]:
    """Names that follow this one, and its first half."""
    starts = (entity_id, entity_id[: (len(entity_id) + 1) // 2])
    return {
        name
        for made in _FOLLOWING
        for start in starts
        for (name,) in database.rows(made, (start, ROWS_WALKED))
    }


def _slips(name: str, letters: Iterable[str]) -> Iterator[str]:
    """What the name may have been before one letter was left out, put in, changed or swapped with
    the next, or capitals were not minded."""
    yield from (name.upper(), name.lower(), name.title())
    if len(name) > LONGEST_MENDED:
        return
    for place in range(len(name) + 1):
        before, after = name[:place], name[place:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in letters:
            yield before + letter + after
            yield before + letter + after[1:]


def _unlikeness(first: str, second: str) -> tuple[float, float]:
    """0 to 1: as the eye takes them, and by their very letters."""
    return 1.0 - _ratio(_seen(first), _seen(second)), 1.0 - _ratio(first, second)


def _seen(name: str) -> str:
    return name.lower().translate(ALIKE)


def _ratio(first: str, second: str) -> float:
    return SequenceMatcher(None, first, second, autojunk=False).ratio()
