"""A reader for people: its name and the start of its hash; what sets it apart, where that is not
the usual. The whole id stands in every JSON document."""

from __future__ import annotations

import re

ID = re.compile(
    r"(?P<pair>pair\()?(?P<name>[^\s();]+)@(?P<hash>[0-9a-f]{8,})(?P<rest>(;[^\s();]+)*)"
)
USUAL = frozenset({"precision=float32", "max_length=256", "graph=1"})


def short_reader(reader_id: str) -> str:
    """``all-MiniLM-L6-v2 (53aa5117)``; an id of another form stays as it is."""
    found = ID.fullmatch(reader_id.removesuffix(")"))
    return reader_id if found is None else _shown(found)


def with_short_readers(text: str) -> str:
    """A text in which ids of readers may stand."""
    return re.sub(rf"{ID.pattern}\)?", _shown, text)


def _shown(found: re.Match[str]) -> str:
    settings = [one for one in found["rest"].split(";") if one and one not in USUAL]
    inside = ", ".join([found["hash"][:8], *settings])
    claims = ", with claims" if found["pair"] else ""
    return f"{found['name']} ({inside}){claims}"
