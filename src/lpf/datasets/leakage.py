"""Leakage: content that two splits share, so that a method may have memorised test data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

from lpf.datasets.dataset import SPLITS, Dataset, DatasetEntity, Split

LeakKind = Literal["entity_id", "group_id", "claim", "text", "source", "report_id"]
# A source of many entities (a register, a newspaper) is not specific to any of them.
SPECIFIC_SOURCE = 0.05
EXAMPLES = 3
_LONGEST_EXAMPLE = 60
_NAMES: dict[LeakKind, tuple[str, str]] = {
    "entity_id": ("entity id", "entity ids"),
    "group_id": ("group", "groups"),
    "claim": ("claim", "claims"),
    "text": ("text", "texts"),
    "source": ("source", "sources"),
    "report_id": ("report", "reports"),
}


@dataclass(frozen=True, slots=True)
class Leak:
    """``count`` different things of ``kind`` in the first split are also in the second.

    They occur in ``entities`` of the ``of_entities`` entities of the first split.
    """

    kind: LeakKind
    splits: tuple[Split, Split]
    count: int
    entities: int
    of_entities: int
    examples: tuple[str, ...]

    @property
    def sentence(self) -> str:
        later, earlier = self.splits
        singular, plural = _NAMES[self.kind]
        things = (
            f"1 {singular} of {later!r} is"
            if self.count == 1
            else f"{self.count:,} {plural} of {later!r} are"
        )
        return (
            f"{things} also in {earlier!r}, in {self.entities:,} of its {self.of_entities:,} "
            f"entities (first: {_shortened(self.examples[0])!r})."
        )


def find_leakage(dataset: Dataset) -> tuple[Leak, ...]:
    """Return what any two splits share.

    Texts and claims are compared without case and white space. A source counts only if fewer than
    5 % of all entities have it.
    """
    sides = {split: _Side([e for e in dataset if e.split == split]) for split in SPLITS}
    common = _common_sources(dataset)
    leaks: list[Leak] = []
    for earlier, later in combinations(SPLITS, 2):
        for kind in get_args(LeakKind):
            ignored = common if kind == "source" else frozenset()
            leaks += _leak(kind, (later, earlier), sides[later], sides[earlier], ignored)
    return tuple(leaks)


class _Side:
    """The things in one split, by kind, each with the positions of the entities that have it."""

    def __init__(self, entities: list[DatasetEntity]) -> None:
        self.size = len(entities)
        self.holders: dict[LeakKind, dict[str, set[int]]] = {kind: {} for kind in _THINGS}
        for kind, things in _THINGS.items():
            for position, entity in enumerate(entities):
                for thing in things(entity):
                    self.holders[kind].setdefault(thing, set()).add(position)


def _leak(
    kind: LeakKind,
    splits: tuple[Split, Split],
    later: _Side,
    earlier: _Side,
    ignored: Iterable[str],
) -> Iterator[Leak]:
    known = earlier.holders[kind].keys() - set(ignored)
    shared = {thing: who for thing, who in later.holders[kind].items() if thing in known}
    if shared:
        affected = set().union(*shared.values())
        examples = tuple(shared)[:EXAMPLES]
        yield Leak(kind, splits, len(shared), len(affected), later.size, examples)


def _common_sources(dataset: Dataset) -> frozenset[str]:
    counts: dict[str, int] = {}
    for entity in dataset:
        for source in set(_sources(entity)):
            counts[source] = counts.get(source, 0) + 1
    limit = SPECIFIC_SOURCE * len(dataset)
    return frozenset(source for source, count in counts.items() if count >= limit)


def _sources(entity: DatasetEntity) -> Iterator[str]:
    return (item.source for item in entity.evidence if item.source is not None)


def _reports(entity: DatasetEntity) -> Iterator[str]:
    return (item.report_id for item in entity.evidence if item.report_id is not None)


def _given(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_EXAMPLE else text[:_LONGEST_EXAMPLE] + "..."


_THINGS: dict[LeakKind, Callable[[DatasetEntity], Iterable[str]]] = {
    "entity_id": lambda entity: (entity.entity_id,),
    "group_id": lambda entity: _given(entity.group_id),
    "claim": lambda entity: map(_plain, _given(entity.claim)),
    "text": lambda entity: (_plain(item.text) for item in entity.evidence),
    "source": _sources,
    "report_id": _reports,
}
