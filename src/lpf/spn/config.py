"""Settings of the learners. A value out of range fails when the config is built."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lpf.errors import ConfigError


@dataclass(frozen=True)
class LearnSPNConfig:
    """LearnSPN.

    ``min_rows``: below this a part of the table is taken as independent, and a whole table gives
    the prior circuit. ``significance``: level of the independence test. ``smoothing``: imagined
    rows per value. ``clusters``: rows are split into so many, fitted in ``iterations`` of EM from
    ``restarts`` starts. ``max_depth``: of row splits. ``refinements``: steps of EM on the numbers
    at the end; clusters are hard, which misplaces rows with gaps, and this mends it.
    """

    min_rows: int = 30
    significance: float = 0.01
    smoothing: float = 1.0
    clusters: int = 2
    iterations: int = 100
    restarts: int = 3
    max_depth: int = 16
    refinements: int = 20

    def __post_init__(self) -> None:
        _at_least("min_rows", self.min_rows, 1)
        _inside("significance", self.significance, 0.0, 1.0)
        _at_least("smoothing", self.smoothing, 0.0)
        _at_least("clusters", self.clusters, 2)
        _at_least("iterations", self.iterations, 1)
        _at_least("restarts", self.restarts, 1)
        _at_least("max_depth", self.max_depth, 0)
        _at_least("refinements", self.refinements, 0)


@dataclass(frozen=True)
class ChowLiuConfig:
    """Chow-Liu tree. ``min_rows`` and ``smoothing`` as in LearnSPNConfig."""

    min_rows: int = 10
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        _at_least("min_rows", self.min_rows, 1)
        _at_least("smoothing", self.smoothing, 0.0)


@dataclass(frozen=True)
class RefineConfig:
    """EM on the numbers of a fixed structure.

    Stops after ``iterations`` or when the mean log-likelihood of a row changes by at most
    ``tolerance``. ``smoothing``: imagined uses per edge that follow the circuit given; with 0 the
    likelihood never falls, with more the penalised likelihood never does.
    """

    iterations: int = 100
    tolerance: float = 1e-6
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        _at_least("iterations", self.iterations, 1)
        _at_least("tolerance", self.tolerance, 0.0)
        _at_least("smoothing", self.smoothing, 0.0)


def _at_least(field: str, value: float, lowest: float) -> None:
    if not lowest <= value < inf:
        raise ConfigError(f"{field}: must be a finite number >= {lowest}, is {value!r}.")


def _inside(field: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise ConfigError(f"{field}: must lie between {low} and {high}, is {value!r}.")
