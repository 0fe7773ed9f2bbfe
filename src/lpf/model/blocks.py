"""Work on many rows in blocks that stay in a core's cache, one block a core at a time.

NumPy's element-wise work uses one core and large intermediates fall out of cache; blocks on
threads cure both (NumPy releases the interpreter's lock). While blocks run, BLAS itself is held to
one thread, or the threads would fight over the cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

BlockWork = Callable[[slice], None]


def for_blocks(work: BlockWork, count: int, block: int) -> None:
    """Calls ``work`` on slices that cover range(count). Errors of a block are raised here."""
    slices = [slice(start, min(start + block, count)) for start in range(0, count, block)]
    if len(slices) <= 1:
        for one in slices:
            work(one)
        return
    with _SINGLE_THREADED_BLAS.held():
        for _ in _workers(os.getpid()).map(work, slices):
            pass


@lru_cache(maxsize=1)
def _workers(process: int) -> ThreadPoolExecutor:
    """Kept between calls, so that the threads' scratch arrays are. A forked child has none of its
    parent's threads, hence one pool a process."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="lpf-block")


class _BlasThreads:
    """BLAS keeps its number of threads for the whole process, so overlapping callers must share
    one change: the first sets it, the last one puts it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limit: object = None

    @contextmanager
    def held(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._limit = _controller().limit(limits=1, user_api="blas")

    def _leave(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limit.restore_original_limits()  # type: ignore[attr-defined]


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """Looks for the BLAS libraries once; it takes milliseconds."""
    return ThreadpoolController()


_SINGLE_THREADED_BLAS = _BlasThreads()
