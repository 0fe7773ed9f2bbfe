"""A whole experiment as one JSON document: the results of all studies, and how they were computed.

Nothing is lost on the way to JSON and back: an infinite number is written as "inf" or "-inf", NaN
as null.
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
# Fields that hold numbers: "inf" is a number there and a name anywhere else.
_NUMBERS = frozenset({"value", "sd", "low", "high", "paper", "y"})


@dataclass(frozen=True)
class RunInfo:
    """How the numbers were computed. ``seconds`` is the time of this run; ``kept`` of all
    ``results`` were stored by earlier runs. A ``quick`` run has smaller budgets than the numbers
    need to be reliable. ``finished`` is in ISO 8601."""

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
    """``summary`` and ``warnings`` are whole sentences; the studies are in reading order."""

    title: str
    run: RunInfo
    studies: tuple[StudyResult, ...]
    summary: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Ready for ``json.dumps(..., allow_nan=False)``."""
        plain: dict[str, Any] = _written(
            {
                "format": FORMAT,
                "title": self.title,
                "made": asdict(self.run),
                "summary": self.summary,
                "cautions": self.warnings,
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
                "Nothing was read; write it again with this version of lpf-paper."
            )
        try:
            return cls(
                title=plain["title"],
                run=_run_info(plain["made"]),
                studies=tuple(StudyResult.from_dict(_read(one)) for one in plain["studies"]),
                summary=tuple(plain["summary"]),
                warnings=tuple(plain["cautions"]),
            )
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"experiment: a field of the document is missing or unknown: {error}. "
                "Nothing was read; write the document with Experiment.to_dict."
            ) from error


def _run_info(plain: Mapping[str, Any]) -> RunInfo:
    return RunInfo(**{**plain, "seeds": tuple(plain["seeds"]), "packages": dict(plain["packages"])})


def _written(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _written(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_written(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _read(value: Any, name: str = "") -> Any:
    """``name`` is the field that holds the value."""
    if isinstance(value, Mapping):
        return {inner: _read(one, inner) for inner, one in value.items()}
    if isinstance(value, list | tuple):
        return [_read(one, name) for one in value]
    return float(value) if name in _NUMBERS and value in _INFINITE else value
