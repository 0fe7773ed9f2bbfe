"""How many bytes a fitted method must keep to answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from lpf.model.runtime import Runtime


def stored_bytes(method: object) -> int:
    """All arrays and tensors that can be reached from it, each once."""
    return _weighed(method, {})


def _weighed(thing: Any, seen: dict[int, object]) -> int:
    """``seen`` holds on to what it names: an id that is free again would be given to another."""
    if thing is None or id(thing) in seen or isinstance(thing, type | FunctionType | ModuleType):
        return 0
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        return _own(thing, seen)
    if hasattr(thing, "element_size") and hasattr(thing, "nelement"):  # a tensor of torch
        return int(thing.element_size() * thing.nelement())
    return sum(_weighed(inner, seen) for inner in _parts(thing))


def _own(array: np.ndarray[Any, Any], seen: dict[int, object]) -> int:
    """A view weighs what it looks at."""
    base = array.base
    if isinstance(base, np.ndarray):
        return _weighed(base, seen)
    return array.nbytes


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, str | bytes | int | float | bool):
        return []
    if isinstance(thing, Mapping):
        return list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, Runtime):  # the rest of it is made from these, or scratch
        return list(thing.tensors.values())
    parameters = getattr(thing, "parameters", None)
    if callable(parameters) and hasattr(thing, "state_dict"):  # a module of torch
        return [*thing.parameters(), *thing.buffers()]
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    held = [getattr(thing, name, None) for name in slots]
    return [*held, *vars(thing).values()] if hasattr(thing, "__dict__") else held
