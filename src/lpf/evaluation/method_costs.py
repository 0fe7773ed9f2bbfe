"""What a method costs: training time, time per question, throughput and memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from lpf.baselines import FittedMethod
from lpf.evaluation.fitted_methods import MACHINE_ERRORS, Fit, error_text
from lpf.evaluation.predictions import Costs
from lpf.evaluation.specs import Cell, Settings
from lpf.model.runtime import Runtime
from lpf.training import Examples

Array = np.ndarray[Any, Any]


def stored_bytes(method: object) -> int:
    """Bytes of all arrays and tensors that can be reached from the method, each byte once. A view
    counts its own bytes, not those of its base array."""
    # All in one list: the id or address of a freed object could be reused.
    reached = list(_reached(method, {}))
    arrays = [one for one in reached if isinstance(one, np.ndarray)]
    tensors = [one for one in reached if not isinstance(one, np.ndarray)]
    return _occupied_bytes(arrays) + sum(
        int(one.element_size() * one.nelement()) for one in tensors
    )


def _reached(thing: Any, seen: dict[int, object]) -> Iterator[Any]:
    """Arrays and tensors. ``seen`` keeps references, so that ids stay unique."""
    if thing is None or id(thing) in seen or isinstance(thing, type | FunctionType | ModuleType):
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray) or _is_tensor(thing):
        yield thing
        return
    for inner in _parts(thing):
        yield from _reached(inner, seen)


def _is_tensor(thing: Any) -> bool:
    return hasattr(thing, "element_size") and hasattr(thing, "nelement")


def _occupied_bytes(arrays: Iterable[Array]) -> int:
    """Bytes of memory that the arrays occupy."""
    total, end = 0, 0
    touching: list[Array] = []
    for array in sorted((one for one in arrays if one.nbytes), key=lambda one: _ends(one)[0]):
        low, high = _ends(array)
        if low >= end:
            total += _distinct(touching)
            touching = []
        touching.append(array)
        end = max(end, high)
    return total + _distinct(touching)


def _distinct(arrays: Sequence[Array]) -> int:
    """Bytes occupied by arrays that may overlap in any pattern: each byte is marked once."""
    if len(arrays) == 1 and arrays[0].flags.forc:
        return arrays[0].nbytes
    begin = min((_ends(one)[0] for one in arrays), default=0)
    marks = np.zeros(max((_ends(one)[1] for one in arrays), default=0) - begin, np.bool_)
    for one in arrays:
        shape, strides = (*one.shape, one.itemsize), (*one.strides, 1)
        as_strided(marks[_address(one) - begin :], shape, strides)[...] = True
    return int(np.count_nonzero(marks))


def _ends(array: Array) -> tuple[int, int]:
    """Addresses of the first byte and of the one after the last."""
    reach = [(size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)]
    first = _address(array)
    return (
        first + sum(step for step in reach if step < 0),
        first + sum(step for step in reach if step > 0) + array.itemsize,
    )


def _address(array: Array) -> int:
    """Address of element 0, which is not the lowest if a stride is negative."""
    return int(array.__array_interface__["data"][0])


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, str | bytes | int | float | bool):
        return []
    if isinstance(thing, Mapping):
        return list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, Runtime):  # the rest is derived from these
        return list(thing.tensors.values())
    parameters = getattr(thing, "parameters", None)
    if callable(parameters) and hasattr(thing, "state_dict"):  # a torch module
        return [*thing.parameters(), *thing.buffers()]
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    slot_values = [getattr(thing, name, None) for name in slots]
    return [*slot_values, *vars(thing).values()] if hasattr(thing, "__dict__") else slot_values


BUDGET = "budget"
FIRST_NETWORK: Settings = (("member", 0),)
SINGLE_QUESTIONS = 15


def method_costs(cell: Cell, fit: Fit, test: Examples, rate: float) -> tuple[Costs, str | None]:
    """Costs, and a note if single questions failed. Single questions and memory are measured only
    for unchanged evidence and the default settings of a method, or its first network."""
    is_own = "source" in dict(cell.settings)
    # How long training may take changes nothing about what is measured here.
    settings = tuple(one for one in cell.settings if one[0] != BUDGET)
    changed = settings not in ((), FIRST_NETWORK) and not is_own
    if cell.eval_spec.change is not None or changed:
        return Costs(fit_seconds=fit.seconds, per_second=rate), None
    costs = Costs(fit.seconds, None, rate, stored_bytes(fit.method))
    try:
        single, peak = _median_ms(fit.method, test), _peak_bytes(fit.method, test)
    except MACHINE_ERRORS:
        raise
    except Exception as error:  # the predictions for all entities are still valid
        return costs, f"cannot answer a single entity: {error_text(error)}"
    return replace(costs, query_ms=single, peak_bytes=peak), None


def _median_ms(method: FittedMethod, test: Examples) -> float:
    times = []
    for place in range(min(SINGLE_QUESTIONS, len(test.dataset))):
        one = test.select(np.array([place]))
        begin = perf_counter()
        method.predict_proba(one)
        times.append(perf_counter() - begin)
    return float(np.median(times)) * 1e3


def _peak_bytes(method: FittedMethod, test: Examples) -> int:
    """Memory of Python and NumPy; tensors of torch are not counted."""
    tracemalloc.start()
    try:
        method.predict_proba(test)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
