"""Kinds of items: what is known of an item before it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from lpf.explain.recombination import Places
from lpf.explain.weight_reasons import joined
from lpf.types import FloatArray

ANY: Final = "any"
FEWEST: Final = 8  # items of a kind, below which nothing is said about it
ENOUGH: Final = 40  # items of a source or type, to say what another one of it may be like
MOST_KINDS: Final = 12  # besides any, the most frequent ones
BANDS: Final = 4  # of credibility, with about as many items each


@dataclass(frozen=True, eq=False)
class Kinds:
    """Positions of items by kind: ``any``, ``source:NAME``, ``type:NAME`` and
    ``credibility:LOW-HIGH``. ``left_out`` says which kinds have too few items, and which are too
    many."""

    places: Mapping[str, Places]
    left_out: tuple[str, ...]

    @classmethod
    def of(
        cls,
        sources: Sequence[str | None],
        types: Sequence[str],
        credibility: Sequence[float | None],
    ) -> Kinds:
        """A type is a kind if there are several, and so is a band of credibility."""
        known = np.array([np.nan if one is None else one for one in credibility], np.float64)
        edges = _edges(known)
        names = _band_names(known, edges)
        of_item = [None if place < 0 else names[place] for place in _band_of(known, edges)]
        by_type, bands = _places("type", types), _places("credibility", of_item)
        kinds = _places("source", sources)
        for several in (by_type, bands):
            kinds |= several if len(several) > 1 else {}
        enough = {name: rows for name, rows in kinds.items() if len(rows) >= FEWEST}
        often = sorted(enough, key=lambda name: (-len(enough[name]), name))
        found = {ANY: np.arange(len(types))} if types else {}
        found |= {name: enough[name] for name in sorted(often[:MOST_KINDS])}
        left_out = []
        if few := sorted(kinds.keys() - enough.keys()):
            left_out.append(
                f"fewer than {FEWEST} items about other entities are stored of {listed(few)}"
            )
        if rest := often[MOST_KINDS:]:
            left_out.append(
                f"only the {MOST_KINDS} kinds with the most items are compared, not {listed(rest)}"
            )
        return cls(found, tuple(left_out))

    def like(self, source: str | None, type_: str) -> str:
        """The kind that is most like an unread item: its source if enough of its items are there,
        else its type, or any."""
        for name in (f"source:{source}", f"type:{type_}"):
            if len(self.places.get(name, ())) >= ENOUGH:
                return name
        return ANY


def _edges(known: FloatArray) -> FloatArray:
    """Ends of bands, all different; none if no credibility is known."""
    given = known[~np.isnan(known)]
    if not len(given):
        return np.empty(0)
    shares = np.arange(1, BANDS) / BANDS
    inner = np.unique(np.quantile(given, shares, method="higher"))
    return np.asarray(inner[inner < given.max()])


def _band_of(credibility: FloatArray, edges: FloatArray) -> Places:
    """-1 if it is not known."""
    bands = np.searchsorted(edges, credibility, side="left")
    return np.where(np.isnan(credibility), -1, bands).astype(np.intp)


def _band_names(known: FloatArray, edges: FloatArray) -> list[str]:
    """The lowest and the highest credibility in each band."""
    given = known[~np.isnan(known)]
    if not len(given):
        return []
    bands = _band_of(given, edges)
    ends = [(given[bands == band].min(), given[bands == band].max()) for band in np.unique(bands)]
    return [f"{low:.3g}" if low == high else f"{low:.3g}-{high:.3g}" for low, high in ends]


def _places(what: str, names: Sequence[str | None]) -> dict[str, Places]:
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if name is not None:
            found.setdefault(f"{what}:{name}", []).append(place)
    return {name: np.array(places, np.intp) for name, places in found.items()}


def listed(names: Sequence[str]) -> str:
    """The first three, and how many more."""
    return joined(names, 3)
