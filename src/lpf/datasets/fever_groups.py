"""Claims that must not be split: those that share a page, directly or over other claims."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set


def page_groups(pages: Sequence[Set[str]]) -> list[str]:
    """The group of each claim, for the pages it cites (at least one): the page where its group has
    no other, else a hash of all pages of the group, whatever their order."""
    first: dict[str, str] = {}
    for cited in pages:
        _join(first, sorted(cited))
    members: dict[str, list[str]] = {}
    for page in sorted(first):
        members.setdefault(_root(first, page), []).append(page)
    names = {root: _name(together) for root, together in members.items()}
    return [names[_root(first, min(cited))] for cited in pages]


def _join(first: dict[str, str], pages: Sequence[str]) -> None:
    root = _root(first, pages[0])
    for page in pages[1:]:
        first[_root(first, page)] = root


def _root(first: dict[str, str], page: str) -> str:
    """The page that stands for all it was joined with; the way there is halved for the next."""
    first.setdefault(page, page)
    while first[page] != page:
        first[page] = first[first[page]]
        page = first[page]
    return page


def _name(pages: Sequence[str]) -> str:
    if len(pages) == 1:
        return pages[0]
    return hashlib.blake2b("\n".join(pages).encode(), digest_size=8).hexdigest()
