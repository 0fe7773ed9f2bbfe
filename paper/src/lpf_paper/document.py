"""A whole experiment as one document: what was found, and what made it.

The document is JSON without loss: an infinite number, which JSON does not know, stands there as the
word "inf" or "-inf", and one that is no number at all as null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lpf.errors import ConfigError
from lpf_paper.exhibits import StudyResult

FORMAT = 1
_INFINITE = ("inf", "-inf")
# Where a number is expected, so that "inf" is one there and a name anywhere else.
_NUMBERS = frozenset({"value", "sd", "low", "high", "paper", "y"})


@dataclass(frozen=True)
class Made:
    """What the numbers come from. ``seconds`` is the time of the run, which found ``kept`` of
    ``results`` done by earlier ones; a ``quick`` run has smaller budgets than those the numbers are
    meant to be read with; ``finished`` is in ISO 8601."""

    command: str
    version: str
    machine: str
    python: str
    packages: Mapping[str, str]
    seconds: float
    seeds: tuple[int, ...]
    quick: bool
    finished: str
    results: int = 0
    kept: int = 0


@dataclass(frozen=True)
class Experiment:
    """``summary`` and ``cautions`` are whole sentences; the studies stand in reading order."""

    title: str
    made: Made
    studies: tuple[StudyResult, ...]
    summary: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For ``json.dumps`` as it stands, with ``allow_nan=False`` too."""
        plain: dict[str, Any] = _written(
            {
                "format": FORMAT,
                "title": self.title,
                "made": asdict(self.made),
                "summary": self.summary,
                "cautions": self.cautions,
                "studies": [study.to_dict() for study in self.studies],
            }
        )
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Experiment:
        """ConfigError for another format, or for a field that is missing or unknown."""
        if plain.get("format") != FORMAT:
            raise ConfigError(
                f"experiment: the document has format {plain.get('format')!r}, not {FORMAT}. "
                "Nothing was read; make it with this version of lpf."
            )
        try:
            return cls(
                title=plain["title"],
                made=_made(plain["made"]),
                studies=tuple(StudyResult.from_dict(_read(one)) for one in plain["studies"]),
                summary=tuple(plain["summary"]),
                cautions=tuple(plain["cautions"]),
            )
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"experiment: a field of the document is missing or unknown: {error}. "
                "Nothing was read; write the document with Experiment.to_dict."
            ) from error


def _made(plain: Mapping[str, Any]) -> Made:
    return Made(**{**plain, "seeds": tuple(plain["seeds"]), "packages": dict(plain["packages"])})


def _written(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _written(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_written(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _read(value: Any, name: str = "") -> Any:
    """``name`` is that of the field the value stands in."""
    if isinstance(value, Mapping):
        return {inner: _read(one, inner) for inner, one in value.items()}
    if isinstance(value, list | tuple):
        return [_read(one, name) for one in value]
    return float(value) if name in _NUMBERS and value in _INFINITE else value
