"""Data to learn circuits from: rows of discrete values, with gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np
import numpy.typing as npt

from lpf.circuits.circuit import Variable
from lpf.circuits.layout import FloatArray, IntArray, variable_slots
from lpf.errors import ConfigError, EvidenceError, UnknownPredicateError, UnknownValueError

MISSING = -1


@dataclass(frozen=True)
class DataTable:
    """Rows of values: ``codes`` [N, X] holds positions of values, -1 for a missing value.

    Raises EvidenceError for a wrong shape or type, UnknownValueError for a code out of range.
    """

    variables: tuple[Variable, ...]
    codes: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        codes = np.array(self.codes)
        if codes.size == 0:
            codes = np.empty((0, len(self.variables)), dtype=np.int64)
        if codes.ndim != 2 or codes.shape[1] != len(self.variables) or codes.dtype.kind not in "iu":
            raise EvidenceError(
                f"must be integers [N, {len(self.variables)}], got shape {codes.shape} and type "
                f"{codes.dtype}.",
                field="codes",
            )
        sizes = np.array([len(variable.values) for variable in self.variables])
        wrong = np.argwhere((codes < MISSING) | (codes >= sizes))
        if wrong.size:
            row, column = wrong[0].tolist()
            raise UnknownValueError(
                f"Row {row} has code {codes[row, column]} for {self.variables[column].name!r}, "
                f"which has {sizes[column]} values."
            )
        object.__setattr__(self, "codes", codes.astype(np.int64))
        self.codes.flags.writeable = False

    @classmethod
    def from_rows(
        cls, variables: Sequence[Variable], rows: Sequence[Mapping[str, str | None]]
    ) -> DataTable:
        """Build a table from mappings; a variable that is absent or None is missing.

        Raises UnknownPredicateError or UnknownValueError, which name the row.
        """
        positions = {v.name: {value: i for i, value in enumerate(v.values)} for v in variables}
        column = {variable.name: index for index, variable in enumerate(variables)}
        codes = np.full((len(rows), len(variables)), MISSING, dtype=np.int64)
        for number, row in enumerate(rows):
            for name, value in row.items():
                if name not in column:
                    raise UnknownPredicateError(f"Row {number}: unknown variable {name!r}.")
                if value is not None and value not in positions[name]:
                    raise UnknownValueError(f"Row {number}: {value!r} is not a value of {name!r}.")
                if value is not None:
                    codes[number, column[name]] = positions[name][value]
        return cls(tuple(variables), codes)

    @property
    def informative_rows(self) -> int:
        """Number of rows with at least one known value."""
        return int((self.codes != MISSING).any(axis=1).sum())

    def counts(self, *columns: int) -> IntArray:
        """How often each combination of values occurs in the rows where all of these variables are
        known, one axis per variable."""
        codes = self.codes[:, list(columns)]
        shape = tuple(len(self.variables[column].values) for column in columns)
        known = codes[(codes != MISSING).all(axis=1)]
        places = np.ravel_multi_index(tuple(known.T), shape)
        return np.bincount(places, minlength=prod(shape)).reshape(shape)

    def one_hot(self) -> FloatArray:
        """Return [N, S], 1 at each known value; all zeros for a missing value."""
        sizes = [len(variable.values) for variable in self.variables]
        result = np.zeros((len(self.codes), sum(sizes)))
        starts = np.cumsum([0, *sizes[:-1]])
        row, column = np.nonzero(self.codes != MISSING)
        result[row, starts[column] + self.codes[row, column]] = 1.0
        return result

    def log_inputs(self) -> FloatArray:
        """Return the rows as hard evidence: log-likelihoods [N, S] for batched queries."""
        hot = self.one_hot()
        result = np.zeros(hot.shape)
        for index, slot in enumerate(variable_slots(self.variables).values()):
            known = self.codes[:, index] != MISSING
            result[np.ix_(known, np.arange(slot.start, slot.stop))] = np.where(
                hot[known, slot] > 0.0, 0.0, -np.inf
            )
        return result


def smoothed(counts: npt.ArrayLike, prior: npt.ArrayLike, smoothing: float) -> FloatArray:
    """Convert counts [V] to probabilities, with ``smoothing`` x V pseudo counts from the prior.

    With a uniform prior this is Laplace smoothing. Without counts the result is the prior.
    """
    counts, prior = np.asarray(counts, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    weighted = counts + smoothing * len(prior) * prior
    total = weighted.sum()
    if total <= 0.0:
        weighted, total = prior, prior.sum()
    result: FloatArray = weighted / total
    return result


def check_at_least(field: str, value: float, lowest: float) -> None:
    """Raise ConfigError unless ``lowest <= value < infinity``."""
    if not lowest <= value < inf:
        raise ConfigError(f"must be a finite number >= {lowest}, got {value!r}.", field=field)
