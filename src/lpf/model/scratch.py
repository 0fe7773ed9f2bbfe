"""Arrays kept between calls, one set a thread.

Blocks need a few arrays of about a megabyte. Asking the system for them anew each time costs as
much as the arithmetic done in them, because every page is first handed out and zeroed.
"""

from __future__ import annotations

import math
import threading

import numpy as np

from lpf.types import Float32Array


class Scratch(threading.local):
    """Named float32 arrays. What ``array`` returns is valid until the same thread asks for the
    same name again."""

    def __init__(self) -> None:
        self._held: dict[str, Float32Array] = {}
        self._last: dict[str, Float32Array] = {}

    def array(self, name: str, shape: tuple[int, ...]) -> Float32Array:
        last = self._last.get(name)
        if last is not None and last.shape == shape:
            return last
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size, np.float32)
        view = self._last[name] = held[:size].reshape(shape)
        return view
