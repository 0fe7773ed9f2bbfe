"""What a method costs: learning, single questions, many at once, memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from time import perf_counter

import numpy as np

from lpf.baselines import FittedMethod
from lpf.experiments.answered import Costs
from lpf.experiments.cells import Cell, Settings
from lpf.experiments.workbench.fitted_methods import NOT_THE_METHODS, Fit, told
from lpf.experiments.workbench.footprint import stored_bytes
from lpf.experiments.workbench.own import is_own
from lpf.training import Examples

FIRST_NETWORK: Settings = (("member", 0),)
ASKED_SINGLY = 15


def method_costs(cell: Cell, fit: Fit, asked: Examples, rate: float) -> tuple[Costs, str | None]:
    """Single questions and memory are measured where nothing was done to the evidence, and of
    networks that stand for each other once. The text says why they could not be."""
    changed = cell.settings not in ((), FIRST_NETWORK) and not is_own(cell.method)
    if cell.exam.perturbation is not None or changed:
        return Costs(fit_seconds=fit.seconds, per_second=rate), None
    costs = Costs(fit.seconds, None, rate, stored_bytes(fit.method))
    try:
        single, peak = _median_ms(fit.method, asked), _peak_bytes(fit.method, asked)
    except NOT_THE_METHODS:
        raise
    except Exception as error:  # it has answered all; its answers stand
        return costs, f"cannot be asked about one entity alone: {told(error)}"
    return replace(costs, query_ms=single, peak_bytes=peak), None


def _median_ms(method: FittedMethod, asked: Examples) -> float:
    times = []
    for place in range(min(ASKED_SINGLY, len(asked.dataset))):
        one = asked.select(np.array([place]))
        begin = perf_counter()
        method.predict_proba(one)
        times.append(perf_counter() - begin)
    return float(np.median(times)) * 1e3


def _peak_bytes(method: FittedMethod, asked: Examples) -> int:
    """Of Python and NumPy; what torch holds outside is not seen."""
    tracemalloc.start()
    try:
        method.predict_proba(asked)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
