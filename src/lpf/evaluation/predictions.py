"""What a method said about a set of entities, with what it cost: all that a study keeps of a run.

Every measure of a report is computed from these, so a new measure costs no run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lpf.errors import EvidenceError
from lpf.types import FloatArray

FORMAT = 1
_ARRAYS = ("raw", "tempered", "labels", "counts", "credibility")


@dataclass(frozen=True)
class Costs:
    """``fit_seconds`` is learning (what several methods share is charged to each), ``query_ms`` the
    median over single entities asked alone, ``per_second`` entities asked all at once,
    ``stored_bytes`` what must be kept to answer, ``peak_bytes`` how much Python's own memory grew
    while answering. None where it was not measured."""

    fit_seconds: float | None = None
    query_ms: float | None = None
    per_second: float | None = None
    stored_bytes: int | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True)
class Predictions:
    """``raw`` and ``tempered`` [E, V] are the answers as they came and at the fitted temperature
    (the same where none was fitted); ``labels`` [E] the truth; ``counts`` [E] how many items each
    entity has; ``credibility`` [E] their mean (NaN unknown); ``groups`` the value of a field that
    is declared protected, where one is. ``error`` is what ended the run; there are no answers
    then. ``note`` is what else must be said of it."""

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
        """[E, V] at the fitted temperature; EvidenceError where the method crashed."""
        if self.tempered is None:
            raise EvidenceError(f"there are no answers to judge: {self.error}")
        return self.tempered

    def write(self, file: BinaryIO) -> None:
        arrays: dict[str, NDArray[Any]] = {
            name: value for name in _ARRAYS if (value := getattr(self, name)) is not None
        }
        about = json.dumps(self._about(), allow_nan=False).encode()
        arrays["about"] = np.frombuffer(about, np.uint8)
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def read(cls, file: BinaryIO) -> Predictions:
        with np.load(file, allow_pickle=False) as kept:
            about: Mapping[str, Any] = json.loads(kept["about"].tobytes())
            arrays: dict[str, Any] = {name: kept.get(name) for name in _ARRAYS}
        if about["format"] != FORMAT:
            raise ValueError(f"answers of format {about['format']}, not {FORMAT}")
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
