"""Unread items: which one to read next, by what is known of it before.

Its source, its type and its credibility are known, its text is not. What it may say is what items
of its source (or of its type, or any) said about other entities; how much it would count follows
from its own credibility.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lpf.explain.information import outlook_of_items
from lpf.explain.kinds import Kinds
from lpf.explain.recombination import Places
from lpf.items import Items
from lpf.types import FloatArray

LEVELS: Final = 8  # of credibility, with about as many unread items each


@dataclass(frozen=True, eq=False)
class Metadata:
    """What is known of N items without reading them; an unknown credibility is None."""

    sources: Sequence[str | None]
    types: Sequence[str]
    credibility: Sequence[float | None]


@dataclass(frozen=True, eq=False)
class UnreadItems:
    """``group`` [N] is the number of each unread item's group: those that may say the same with the
    same credibility. ``stand_ins`` are items in no group of copies, of which those at ``pools[g]``
    say what an item of group g may say."""

    group: NDArray[np.intp]
    stand_ins: Items
    pools: tuple[Places, ...]

    @classmethod
    def of(
        cls,
        unread: Metadata,
        read: Metadata,
        read_items: Items,
        most: int,
        generator: np.random.Generator,
    ) -> UnreadItems:
        """``read_items`` are about other entities, ``read`` is what was known of them before. At
        most ``most`` stand in for an unread item, the same ones for all of its source."""
        kinds = Kinds.of(read.sources, read.types, read.credibility)
        like = map(kinds.like, unread.sources, unread.types)
        level = _levels(np.array([_number(one) for one in unread.credibility]))
        groups: dict[tuple[str, float], int] = {}
        group = [groups.setdefault(key, len(groups)) for key in zip(like, level, strict=True)]
        drawn: dict[str, Places] = {}
        for name, _ in groups:
            if name not in drawn:
                places = kinds.places[name]
                count = min(most, len(places))
                drawn[name] = np.sort(generator.choice(places, count, replace=False))
        rows = np.concatenate([drawn[name] for name, _ in groups])
        counts = [len(drawn[name]) for name, _ in groups]
        credibility = np.repeat([share for _, share in groups], counts)
        ends = np.cumsum([0, *counts])
        return cls(
            np.array(group, np.intp),
            Items(
                read_items.features[rows],
                [f"{read_items.ids[row]} at {place}" for place, row in enumerate(rows)],
                credibility=np.where(credibility < 0.0, np.nan, credibility),
                wordless=None if read_items.wordless is None else read_items.wordless[rows],
            ),
            tuple(np.arange(*ends[place : place + 2]) for place in range(len(groups))),
        )

    def expected_bits(
        self,
        answers: Callable[[Sequence[Places]], FloatArray],
        own: Sequence[Places],
        first: int,
    ) -> FloatArray:
        """What reading one more item of each group would tell about each of E entities, [G, E].
        ``own`` are the items read so far; ``answers`` has the stand-ins from row ``first`` on."""
        return np.stack(
            [outlook_of_items(answers, own, first + places).gain for places in self.pools]
        )


def _number(credibility: float | None) -> float:
    return np.nan if credibility is None else credibility


def _levels(credibility: FloatArray) -> list[float]:
    """The mean credibility of each item's level; -1 if it is unknown."""
    known = np.flatnonzero(~np.isnan(credibility))
    level = np.full(len(credibility), -1.0)
    if len(known):
        given = credibility[known]
        edges = np.unique(np.quantile(given, np.arange(1, LEVELS) / LEVELS))
        places = np.searchsorted(edges, given, side="left")
        sums = np.bincount(places, given, minlength=len(edges) + 1)
        counts = np.bincount(places, minlength=len(edges) + 1)
        level[known] = (sums / np.maximum(counts, 1))[places]
    return [float(one) for one in level]
