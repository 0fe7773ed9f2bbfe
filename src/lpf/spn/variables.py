"""Discrete variables: a name and an ordered domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from lpf.errors import MalformedCircuitError, NotNormalisedError, UnknownPredicateError

# Weights are used as they are given, so the tolerance bounds the error it lets through.
NORMALISATION_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Variable:
    """A discrete variable. The order of ``values`` is the order of every array about it.

    Raises MalformedCircuitError for an empty name, an empty domain or a repeated value.
    """

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.name:
            raise MalformedCircuitError("A variable needs a name that is not empty.")
        if not self.values:
            raise MalformedCircuitError(f"Variable {self.name!r} has no values.")
        if len(set(self.values)) != len(self.values):
            raise MalformedCircuitError(f"Variable {self.name!r} has a value twice: {self.values}.")


def check_distribution(numbers: Sequence[float], where: str) -> None:
    """Raise NotNormalisedError unless the numbers are finite, non-negative and sum to 1."""
    for number in numbers:
        if not (isfinite(number) and number >= 0.0):
            raise NotNormalisedError(f"{where} holds {number!r}; need finite numbers >= 0.")
    total = sum(numbers)
    if abs(total - 1.0) > NORMALISATION_TOLERANCE:
        raise NotNormalisedError(f"{where} sums to {total!r}; it must sum to 1.")


def resolve_priors(
    variables: Sequence[Variable], priors: Mapping[str, Sequence[float]] | None
) -> dict[str, tuple[float, ...]]:
    """One distribution per variable: the given one, or uniform where none is given.

    Raises UnknownPredicateError, MalformedCircuitError (wrong size) or NotNormalisedError.
    """
    given = dict(priors or {})
    unknown = sorted(set(given) - {variable.name for variable in variables})
    if unknown:
        raise UnknownPredicateError(f"Priors for variables that do not exist: {unknown}.")
    resolved = {}
    for variable in variables:
        size = len(variable.values)
        prior = tuple(float(p) for p in given.get(variable.name, [1.0 / size] * size))
        if len(prior) != size:
            raise MalformedCircuitError(
                f"The prior of {variable.name!r} has {len(prior)} numbers for {size} values."
            )
        check_distribution(prior, f"The prior of {variable.name!r}")
        resolved[variable.name] = prior
    return resolved
