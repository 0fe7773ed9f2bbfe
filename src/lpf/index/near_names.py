"""Find entities whose ID is similar to a mistyped one.

The work does not grow with the store: it looks at a limited number of IDs that follow the given
one in an index, and looks up the IDs that differ from it by one typing error.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from sqlalchemy import bindparam, select
from sqlalchemy.sql.expression import FromClause

from lpf.storage.database import Database
from lpf.storage.statements import KEYS, Prepared, any_of
from lpf.storage.tables import evidence, facts
from lpf.storage.values import text_problem

MOST_NAMES = 3
ROWS_WALKED = 200
LONGEST_TYPED = 40  # characters; longer IDs are copied, not typed
LARGEST_DIFFERENCE = 0.3
# Letters and digits that are easily confused.
CONFUSED = str.maketrans("oilzsb", "011258")


def _with_ids(table: FromClause) -> Prepared:
    return Prepared(select(table.c.entity_id).distinct().where(any_of(table.c.entity_id)), *KEYS)


def _following(table: FromClause) -> Prepared:
    """The limit is on rows, not on distinct IDs: an entity may have very many rows."""
    rows = (
        select(table.c.entity_id)
        .where(table.c.entity_id >= bindparam("start"))
        .order_by(table.c.entity_id)
        .limit(bindparam("limit"))
        .subquery()
    )
    return Prepared(select(rows.c.entity_id).distinct(), "start", "limit")


_WITH_IDS = tuple(map(_with_ids, (evidence, facts)))
_FOLLOWING = tuple(map(_following, (evidence, facts)))


def similar_entities(database: Database, entity_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """For each of the given IDs that no item and no fact is about: existing IDs like it."""
    unknown = unknown_entities(database, entity_ids)
    return {name: tuple(near_names(database, name)) for name in unknown}


def unknown_entities(database: Database, entity_ids: Iterable[str]) -> list[str]:
    """Those of the given IDs that no item and no fact is about, in their order."""
    wanted = list(dict.fromkeys(entity_ids))
    known = _existing(database, wanted)
    return [name for name in wanted if name not in known]


def near_names(database: Database, entity_id: str) -> list[str]:
    """Up to three existing entity IDs that are similar to this one, the most similar first."""
    candidates = _following_ids(database, entity_id)
    letters = {*string.digits, *entity_id, *entity_id.swapcase(), *"".join(candidates)}
    candidates |= _existing(database, _one_edit_away(entity_id, letters))
    candidates.discard(entity_id)
    differences = {name: _differences(entity_id, name) for name in candidates}
    near = [
        name
        for name, difference in differences.items()
        if min(difference) <= LARGEST_DIFFERENCE or name.lower().startswith(entity_id.lower())
    ]
    return sorted(near, key=lambda name: (differences[name], name))[:MOST_NAMES]


def _existing(database: Database, names: Iterable[str]) -> set[str]:
    wanted = list(names)
    return {name for statement in _WITH_IDS for (name,) in database.look_up(statement, wanted)}


def _following_ids(database: Database, entity_id: str) -> set[str]:
    """IDs that follow this one, or its first half, in the index."""
    starts = (entity_id, entity_id[: (len(entity_id) + 1) // 2])
    return {
        name
        for statement in _FOLLOWING
        for start in starts
        for (name,) in database.rows(statement, (start, ROWS_WALKED))
        if isinstance(name, str) and text_problem(name) is None  # not a damaged row
    }


def _one_edit_away(name: str, letters: Iterable[str]) -> Iterator[str]:
    """The name with one character removed, added, replaced or swapped with the next, or with other
    capitalisation."""
    yield from (name.upper(), name.lower(), name.title())
    if len(name) > LONGEST_TYPED:
        return
    for place in range(len(name) + 1):
        before, after = name[:place], name[place:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in letters:
            yield before + letter + after
            yield before + letter + after[1:]


def _differences(first: str, second: str) -> tuple[float, float]:
    """Two numbers from 0 to 1: without and with regard to case and easily confused characters."""
    return 1.0 - _ratio(_simplified(first), _simplified(second)), 1.0 - _ratio(first, second)


def _simplified(name: str) -> str:
    return name.lower().translate(CONFUSED)


def _ratio(first: str, second: str) -> float:
    return SequenceMatcher(None, first, second, autojunk=False).ratio()
