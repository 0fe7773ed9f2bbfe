"""Names of columns. Those that mean a field are known however they are written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from lpf.types import Evidence

TEXT_NAMES = ("text", "text_content")
EVIDENCE_COLUMNS = frozenset(Evidence.__slots__) - {"embedding_id"} | {*TEXT_NAMES}
FACT_COLUMNS = frozenset({"entity_id", "predicate", "value", "timestamp", "confidence", "source"})
FIELDS = EVIDENCE_COLUMNS | FACT_COLUMNS
LEAST_ALIKE = 0.75


def plain_names(header: Sequence[str]) -> tuple[str, ...]:
    """Without blanks around them, and those of fields as this package writes them."""
    return tuple(_plain(name.strip()) for name in header)


def fields_in(header: Sequence[str]) -> int:
    """How many of the columns are fields."""
    return sum(name in FIELDS for name in plain_names(header))


def doubled(columns: Sequence[str]) -> list[str]:
    """Names that stand more than once."""
    return sorted({name for name in columns if columns.count(name) > 1})


def meant(ignored: Iterable[str], fields: Collection[str]) -> dict[str, str]:
    """Of the names of columns that are not used, those near one of ``fields``, and which."""
    found = {name: get_close_matches(_as_field(name), fields, 1, LEAST_ALIKE) for name in ignored}
    return {name: near[0] for name, near in found.items() if near}


def _as_field(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _plain(name: str) -> str:
    return name.lower() if name.lower() in FIELDS else name
