"""Evidence about variables, encoded as inputs of the evaluator.

Every piece of evidence is a likelihood vector over the values of one variable: a one-hot vector for
hard evidence, any non-negative vector for soft evidence, ones for a variable without evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, inf, log
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from lpf.circuits.circuit import Variable
from lpf.circuits.layout import FloatArray, variable_slots
from lpf.errors import (
    EvidenceError,
    ImpossibleEvidenceError,
    NonFiniteError,
    UnknownPredicateError,
    UnknownValueError,
)

Hard = Mapping[str, str]
Soft = Mapping[str, npt.ArrayLike]
NO_HARD: Mapping[str, str] = MappingProxyType({})
NO_SOFT: Mapping[str, npt.ArrayLike] = MappingProxyType({})


def impossible_evidence(hard: Hard, soft: Soft, log_soft: Soft) -> ImpossibleEvidenceError:
    """Return the error for evidence with probability zero."""
    names = sorted({*hard, *soft, *log_soft})
    return ImpossibleEvidenceError(
        f"The evidence about {names} has probability zero. Nothing was computed."
    )


class EvidenceEncoder:
    """Maps variables and values to positions in the inputs. ``n_slots`` is their number S."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.slots = variable_slots(variables)
        self.n_slots = sum(len(variable.values) for variable in variables)
        self._values = {
            variable.name: {value: position for position, value in enumerate(variable.values)}
            for variable in variables
        }

    def slot(self, name: str) -> slice:
        """Return the inputs of a variable. Raises UnknownPredicateError."""
        slot = self.slots.get(name)
        if slot is None:
            raise UnknownPredicateError(
                f"The circuit has no variable {name!r}; it has {list(self.slots)}."
            )
        return slot

    def position(self, name: str, value: str) -> int:
        """Return the input of one value. Raises UnknownPredicateError or UnknownValueError."""
        slot = self.slot(name)
        position = self._values[name].get(value)
        if position is None:
            raise UnknownValueError(
                f"{value!r} is not a value of {name!r}; choose from {list(self._values[name])}."
            )
        return int(slot.start) + position

    def log_inputs(self, hard: Hard, soft: Soft, log_soft: Soft) -> list[float]:
        """Return the log-likelihood of each value of each variable, [S]."""
        inputs = [0.0] * self.n_slots
        for name, vector in soft.items():
            slot = self.slot(name)
            inputs[slot] = [log(v) if v else -inf for v in self._linear(name, slot, vector)]
        for name, vector in log_soft.items():
            slot = self.slot(name)
            given = self._logarithmic(name, slot, vector)
            inputs[slot] = [a + b for a, b in zip(inputs[slot], given, strict=True)]
        for name, value in hard.items():
            position, slot = self.position(name, value), self.slots[name]
            observed = inputs[position]
            inputs[slot] = [-inf] * (slot.stop - slot.start)
            inputs[position] = observed
        return inputs

    def scale(self, log_inputs: list[float], names: Iterable[str]) -> tuple[list[float], float]:
        """Scale inputs to a maximum of 1 per variable; return them and the log of the factor.

        ``names`` are the variables with evidence. If all inputs of a variable are zero, they stay
        zero.
        """
        scaled, shift = [1.0] * self.n_slots, 0.0
        for name in names:
            slot = self.slots[name]
            vector = log_inputs[slot]
            peak = max(vector)
            anchor = peak if peak > -inf else 0.0
            scaled[slot] = [exp(number - anchor) for number in vector]
            shift += anchor
        return scaled, shift

    def batch(self, evidence: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> FloatArray:
        """Return log-likelihoods [B, S], given as such or as arrays [B, V] for some variables.

        Raises EvidenceError (wrong shape) or NonFiniteError (NaN or +infinity).
        """
        dense = self._join(evidence) if isinstance(evidence, Mapping) else evidence
        inputs = np.asarray(dense, dtype=np.float64)
        if inputs.ndim != 2 or inputs.shape[1] != self.n_slots:
            raise EvidenceError(
                f"Batched evidence has shape {inputs.shape}; need [B, {self.n_slots}]."
            )
        # A single comparison catches NaN and +inf; NaN compares as false.
        if inputs.size and not inputs.max() < inf:
            rows = np.unique(np.nonzero(~(inputs < inf))[0])[:10].tolist()
            raise NonFiniteError(f"Log-likelihoods hold NaN or +infinity in rows {rows}.")
        return inputs

    def _join(self, evidence: Mapping[str, npt.ArrayLike]) -> FloatArray:
        if not evidence:
            raise EvidenceError(
                "Batched evidence needs at least one array, which gives the batch size."
            )
        arrays = {name: np.asarray(array, dtype=np.float64) for name, array in evidence.items()}
        rows = next(iter(arrays.values())).shape[0]
        dense = np.zeros((rows, self.n_slots))
        for name, array in arrays.items():
            slot = self.slot(name)
            if array.shape != (rows, slot.stop - slot.start):
                raise EvidenceError(
                    f"Evidence about {name!r} has shape {array.shape}; "
                    f"need {(rows, slot.stop - slot.start)}."
                )
            dense[:, slot] = array
        return dense

    def _linear(self, name: str, slot: slice, vector: npt.ArrayLike) -> list[float]:
        numbers = _numbers(name, slot, vector)
        if not all(0.0 <= number < inf for number in numbers):
            error = EvidenceError if all(abs(n) < inf for n in numbers) else NonFiniteError
            raise error(f"Soft evidence about {name!r} is {numbers}; need finite likelihoods >= 0.")
        return numbers

    def _logarithmic(self, name: str, slot: slice, vector: npt.ArrayLike) -> list[float]:
        numbers = _numbers(name, slot, vector)
        if not all(number < inf for number in numbers):
            raise NonFiniteError(
                f"Log-likelihoods about {name!r} are {numbers}; need numbers below +infinity."
            )
        return numbers


def _numbers(name: str, slot: slice, vector: npt.ArrayLike) -> list[float]:
    # Vectors are short: a list is faster to check than an array.
    array = np.asarray(vector, dtype=np.float64)
    if array.shape != (slot.stop - slot.start,):
        raise EvidenceError(
            f"Soft evidence about {name!r} has shape {array.shape}; "
            f"need ({slot.stop - slot.start},)."
        )
    numbers: list[float] = array.tolist()
    return numbers
