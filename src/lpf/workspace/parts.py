"""Parts that are made when first used, once, whatever the number of threads that ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, overload

from lpf.errors import WorkspaceError

Made = TypeVar("Made")


class HasParts(Protocol):
    """``making`` is held while a part is made; parts are made of parts, so it is re-entrant."""

    making: threading.RLock
    is_closed: bool


class part(Generic[Made]):  # noqa: N801  (used as a decorator, like property)
    """``functools.cached_property`` without the race that it has from Python 3.12 on: two ledgers
    in one process would not share their commits, and closing would miss one of them."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> part[Made]: ...

    @overload
    def __get__(self, instance: HasParts, owner: type) -> Made: ...

    def __get__(self, instance: HasParts | None, owner: type) -> part[Made] | Made:
        if instance is None:
            return self
        with instance.making:
            known = vars(instance)
            if self._name not in known:
                _require_open(instance)
                known[self._name] = self._make(instance)
            made: Made = known[self._name]
            return made


def _require_open(instance: HasParts) -> None:
    if instance.is_closed:
        raise WorkspaceError("this workspace was closed. Nothing was done; open it again.")
