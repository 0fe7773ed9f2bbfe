"""Draws what each item shows, before it is put into words.

Everything about the items of an entity follows from one row of uniform numbers and the
probabilities of ``EvidenceModel``; many entities are drawn at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.domains.evidence_model import DAYS_PER_YEAR, EvidenceModel
from lpf.domains.parameters import GeneratorParameters
from lpf.domains.records import NOT_BORDERLINE
from lpf.types import FloatArray

COPY_DELAY_DAYS = 30
_PER_ITEM = (
    *("missing", "copy", "original", "credibility", "age", "source"),
    *("pull", "noise", "grade", "ambiguity", "neighbour"),
)
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Symbols:
    """Items of E entities, arrays [E, K]. Row e has ``counts[e]`` items, the rest is padding.
    ``origins`` is the item's own position, or for a copy the position of its original."""

    counts: IntArray
    origins: IntArray
    aspects: IntArray
    sources: IntArray
    credibility: FloatArray
    age_days: IntArray
    symbols: IntArray

    @property
    def original(self) -> NDArray[np.bool_]:
        """True for items that exist and are not copies, [E, K]."""
        places = np.arange(self.origins.shape[1])
        return np.asarray((places < self.counts[:, None]) & (self.origins == places))


def draws_needed(parameters: GeneratorParameters, aspects: int) -> int:
    """Return the number of uniform numbers needed per entity."""
    return parameters.items * len(_PER_ITEM) + 1 + _rounds(parameters, aspects) * aspects


def draw_symbols(
    model: EvidenceModel,
    values: IntArray,
    towards: IntArray,
    source_counts: Sequence[int],
    uniform: FloatArray,
) -> Symbols:
    """Draw the items of entities with these values [E], borderline ``towards`` others [E] or -1.

    ``source_counts`` is the number of sources per aspect; ``uniform`` is [E, draws_needed].
    """
    parameters = model.parameters
    of_items = uniform[:, : parameters.items * len(_PER_ITEM)]
    by_name = of_items.reshape(len(values), parameters.items, len(_PER_ITEM)).transpose(2, 0, 1)
    drawn = dict(zip(_PER_ITEM, by_name, strict=True))
    counts = _counts(parameters, uniform[:, of_items.shape[1]], drawn["missing"])
    origins = _origins(parameters, drawn["copy"], drawn["original"])
    aspects = _aspects(uniform[:, of_items.shape[1] + 1 :], origins, len(source_counts))
    credibility = model.credibility(drawn["credibility"])
    first_age = _below(round(parameters.max_age_years * DAYS_PER_YEAR) + 1, drawn["age"])
    apparent = _apparent(parameters.pull, values, towards, drawn["pull"])
    grades = _grades(model, apparent, model.noise(credibility, first_age), drawn)
    symbols = _shown(model, grades, drawn)
    sources = _below(np.array(source_counts)[aspects], drawn["source"])
    return Symbols(
        counts,
        origins,
        _copied(aspects, origins),
        _copied(sources, origins),
        credibility,
        _ages(first_age, origins, drawn["age"]),
        _copied(symbols, origins),
    )


def _rounds(parameters: GeneratorParameters, aspects: int) -> int:
    return -(-parameters.items // aspects)


def _below(limit: int | IntArray, uniform: FloatArray) -> IntArray:
    """Convert uniform numbers to integers from 0 to ``limit`` - 1."""
    return np.floor(uniform * limit).astype(np.int64)


def _copied(content: IntArray, origins: IntArray) -> IntArray:
    """Replace the content of copies by that of their originals."""
    return np.take_along_axis(content, origins, axis=1)


def _counts(parameters: GeneratorParameters, uniform: FloatArray, missing: FloatArray) -> IntArray:
    """Return the number of items. Only the number is reduced, so a copy always has its original."""
    least = parameters.items if parameters.items_min is None else parameters.items_min
    planned = least + _below(parameters.items - least + 1, uniform)
    stays = (missing >= parameters.missing) & (np.arange(parameters.items) < planned[:, None])
    return np.asarray(np.maximum(stays.sum(axis=1), 1))


def _origins(parameters: GeneratorParameters, copy: FloatArray, which: FloatArray) -> IntArray:
    is_copy = copy < parameters.copies
    is_copy[:, 0] = False
    is_original = (~is_copy).astype(np.int64)
    originals_before = np.cumsum(is_original, axis=1) - is_original
    originals_first = np.argsort(is_copy, axis=1, kind="stable")
    repeated = np.take_along_axis(originals_first, _below(originals_before, which), axis=1)
    return np.where(is_copy, repeated, np.arange(is_copy.shape[1]))


def _aspects(uniform: FloatArray, origins: IntArray, aspects: int) -> IntArray:
    """Assign aspects to originals: all aspects in random order before one is repeated."""
    order = np.argsort(uniform.reshape(len(origins), -1, aspects), axis=2).reshape(len(origins), -1)
    is_original = origins == np.arange(origins.shape[1])
    number = np.cumsum(is_original, axis=1) - 1
    return np.take_along_axis(order, number, axis=1)


def _ages(first: IntArray, origins: IntArray, uniform: FloatArray) -> IntArray:
    """Return ages in days. A copy appears up to 30 days after its original."""
    younger = np.maximum(_copied(first, origins) - _below(COPY_DELAY_DAYS + 1, uniform), 0)
    return np.where(origins == np.arange(origins.shape[1]), first, younger)


def _apparent(pull: float, values: IntArray, towards: IntArray, uniform: FloatArray) -> IntArray:
    pulled = (towards[:, None] != NOT_BORDERLINE) & (uniform < pull)
    return np.where(pulled, towards[:, None], values[:, None])


def _grades(
    model: EvidenceModel, apparent: IntArray, noise: FloatArray, drawn: dict[str, FloatArray]
) -> IntArray:
    steps = np.cumsum(model.other_grades, axis=1)[apparent, :-1]
    other = (drawn["grade"][..., None] >= steps).sum(axis=-1)
    return np.where(drawn["noise"] < noise, other, apparent)


def _shown(model: EvidenceModel, grades: IntArray, drawn: dict[str, FloatArray]) -> IntArray:
    """Return the symbols: the grade, or a pair of the grade and an adjacent value."""
    lower = np.where(drawn["neighbour"] < 0.5, grades - 1, grades)
    pair = model.size + np.clip(lower, 0, model.size - 2)
    return np.where(drawn["ambiguity"] < model.parameters.ambiguity, pair, grades)
