"""The predictions of one method for a set of test entities, with their costs.

This is all that is stored of a run. Every measure is computed from it, so a new measure needs no
new run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lpf.errors import EvidenceError
from lpf.types import FloatArray

FORMAT = 1
_ARRAYS = ("raw", "tempered", "labels", "counts", "credibility")


@dataclass(frozen=True)
class Costs:
    """The costs of one run; a field is None if it was not measured.

    ``fit_seconds``: training; what several methods share is charged to each. ``query_ms``: median
    over single entities. ``per_second``: entities per second, all at once. ``stored_bytes``: arrays
    that a fitted method holds. ``peak_bytes``: growth of Python's own memory while answering.
    """

    fit_seconds: float | None = None
    query_ms: float | None = None
    per_second: float | None = None
    stored_bytes: int | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True)
class Predictions:
    """``raw`` and ``tempered`` [E, V] are probabilities before and after the fitted temperature
    (equal if none was fitted). ``labels`` [E] are the true values, ``counts`` [E] the number of
    items per entity, ``credibility`` [E] their mean (NaN if unknown), ``groups`` the values of the
    protected field, if there is one. ``error`` says why the run failed; there are no probabilities
    then. ``note`` is a remark for the report."""

    raw: FloatArray | None
    tempered: FloatArray | None
    labels: NDArray[np.intp]
    counts: NDArray[np.intp]
    credibility: FloatArray
    entity_ids: tuple[str, ...]
    values: tuple[str, ...]
    groups: tuple[str | None, ...] = ()
    temperature: tuple[float, float] | None = None
    costs: Costs = field(default_factory=Costs)
    error: str | None = None
    note: str | None = None

    @property
    def answers(self) -> FloatArray:
        """[E, V] at the fitted temperature; EvidenceError if the method failed."""
        if self.tempered is None:
            raise EvidenceError(f"there are no predictions to score: {self.error}")
        return self.tempered

    def select(self, entity_ids: frozenset[str]) -> Predictions:
        """The predictions for these entities."""
        mask = np.array([name in entity_ids for name in self.entity_ids])
        groups = zip(self.groups, mask, strict=True) if self.groups else ()
        return replace(
            self,
            raw=None if self.raw is None else self.raw[mask],
            tempered=None if self.tempered is None else self.tempered[mask],
            labels=self.labels[mask],
            counts=self.counts[mask],
            credibility=self.credibility[mask],
            entity_ids=tuple(name for name in self.entity_ids if name in entity_ids),
            groups=tuple(group for group, chosen in groups if chosen),
        )

    def write(self, file: BinaryIO) -> None:
        arrays: dict[str, NDArray[Any]] = {
            name: value for name in _ARRAYS if (value := getattr(self, name)) is not None
        }
        about = json.dumps(self._about(), allow_nan=False).encode()
        arrays["about"] = np.frombuffer(about, np.uint8)
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def read(cls, file: BinaryIO) -> Predictions:
        with np.load(file, allow_pickle=False) as stored:
            about: Mapping[str, Any] = json.loads(stored["about"].tobytes())
            arrays: dict[str, Any] = {name: stored.get(name) for name in _ARRAYS}
        if about["format"] != FORMAT:
            raise ValueError(f"predictions of format {about['format']}, not {FORMAT}")
        temperature = about["temperature"]
        return cls(
            **arrays,
            entity_ids=tuple(about["entity_ids"]),
            values=tuple(about["values"]),
            groups=tuple(about["groups"]),
            temperature=None if temperature is None else (temperature[0], temperature[1]),
            costs=Costs(**about["costs"]),
            error=about["error"],
            note=about.get("note"),
        )

    def _about(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "entity_ids": list(self.entity_ids),
            "values": list(self.values),
            "groups": list(self.groups),
            "temperature": self.temperature,
            "costs": vars(self.costs),
            "error": self.error,
            "note": self.note,
        }
