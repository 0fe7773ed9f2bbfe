"""Known facts with gaps: one row for each entity, one column for each variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpf.errors import EvidenceError, UnknownPredicateError, UnknownValueError
from lpf.spn.layers import FloatArray, IntArray
from lpf.spn.layout import variable_slots
from lpf.spn.variables import Variable

MISSING = -1


@dataclass(frozen=True)
class Table:
    """``codes`` [N, X] holds places in the variables' domains, -1 where nothing is known.

    Raises EvidenceError for a wrong shape or type, UnknownValueError for a place out of range.
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
                f"A table has shape {codes.shape} and type {codes.dtype}; "
                f"need integers [N, {len(self.variables)}]."
            )
        sizes = np.array([len(variable.values) for variable in self.variables])
        wrong = np.argwhere((codes < MISSING) | (codes >= sizes))
        if wrong.size:
            row, column = wrong[0].tolist()
            raise UnknownValueError(
                f"Row {row} of the table holds place {codes[row, column]} for "
                f"{self.variables[column].name!r}, which has {sizes[column]} values."
            )
        object.__setattr__(self, "codes", codes.astype(np.int64))
        self.codes.flags.writeable = False

    @classmethod
    def from_rows(
        cls, variables: Sequence[Variable], rows: Sequence[Mapping[str, str | None]]
    ) -> Table:
        """A table from mappings; a variable that is absent or None is missing.

        Raises UnknownPredicateError or UnknownValueError naming the row.
        """
        places = {v.name: {value: i for i, value in enumerate(v.values)} for v in variables}
        column = {variable.name: index for index, variable in enumerate(variables)}
        codes = np.full((len(rows), len(variables)), MISSING, dtype=np.int64)
        for number, row in enumerate(rows):
            for name, value in row.items():
                if name not in column:
                    raise UnknownPredicateError(f"Row {number}: there is no variable {name!r}.")
                if value is not None and value not in places[name]:
                    raise UnknownValueError(f"Row {number}: {value!r} is not a value of {name!r}.")
                if value is not None:
                    codes[number, column[name]] = places[name][value]
        return cls(tuple(variables), codes)

    @property
    def informative_rows(self) -> int:
        """Rows in which something is known."""
        return int((self.codes != MISSING).any(axis=1).sum())

    def one_hot(self) -> FloatArray:
        """[N, S], 1 at each known value; all zeros where a variable is missing."""
        sizes = [len(variable.values) for variable in self.variables]
        result = np.zeros((len(self.codes), sum(sizes)))
        starts = np.cumsum([0, *sizes[:-1]])
        row, column = np.nonzero(self.codes != MISSING)
        result[row, starts[column] + self.codes[row, column]] = 1.0
        return result

    def log_inputs(self) -> FloatArray:
        """The rows as hard evidence, [N, S] log-likelihoods, for the batched evaluator."""
        hot = self.one_hot()
        result = np.zeros(hot.shape)
        for index, slot in enumerate(variable_slots(self.variables).values()):
            known = self.codes[:, index] != MISSING
            result[np.ix_(known, np.arange(slot.start, slot.stop))] = np.where(
                hot[known, slot] > 0.0, 0.0, -np.inf
            )
        return result


def smoothed(counts: npt.ArrayLike, prior: npt.ArrayLike, smoothing: float) -> FloatArray:
    """Counts [V] to probabilities, with ``smoothing`` x V imagined rows that follow the prior.

    A uniform prior makes this Laplace smoothing. Without any counts the result is the prior.
    """
    counts, prior = np.asarray(counts, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    weighted = counts + smoothing * len(prior) * prior
    total = weighted.sum()
    if total <= 0.0:
        weighted, total = prior, prior.sum()
    result: FloatArray = weighted / total
    return result
