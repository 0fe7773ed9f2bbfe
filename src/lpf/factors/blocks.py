"""Run work on many rows in blocks, one block per core at a time.

NumPy's element-wise operations use one core, and large intermediate arrays do not fit into its
cache. Blocks on threads solve both (NumPy releases the interpreter lock). Meanwhile BLAS is limited
to one thread, since its threads would compete with the blocks for the cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from threadpoolctl import OpenBLASController, ThreadpoolController

BlockWork = Callable[[slice], None]


def for_blocks(work: BlockWork, count: int, block: int) -> None:
    """Call ``work`` on slices that cover range(count). An error in a block is raised here."""
    slices = [slice(start, min(start + block, count)) for start in range(0, count, block)]
    if len(slices) <= 1:
        for one in slices:
            work(one)
        return
    with ONE_BLAS_THREAD.held():
        for _ in _workers(os.getpid()).map(work, slices):
            pass


@lru_cache(maxsize=1)
def _workers(process: int) -> ThreadPoolExecutor:
    """Return the thread pool. It is reused, and with it the scratch arrays of its threads. A forked
    process does not inherit threads, hence one pool per process."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="lpf-block")


class BlasThreads:
    """Limits BLAS to one thread. The limit holds for the whole process, so callers share it: the
    first one sets it, the last one restores the original."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limit: object = None

    @contextmanager
    def held(self, *, find_again: bool = False) -> Iterator[None]:
        """``find_again`` also limits a BLAS library that was loaded since the last search for them;
        the search takes milliseconds."""
        self._enter(find_again)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, find_again: bool) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                if find_again:
                    _controller.cache_clear()
                _let_any_thread_set_limits()
                self._limit = _controller().limit(limits=1, user_api="blas")

    def _leave(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                _let_any_thread_set_limits()
                self._limit.restore_original_limits()  # type: ignore[attr-defined]
                _let_any_thread_set_limits()


def _let_any_thread_set_limits() -> None:
    """Since threadpoolctl 3.8, the thread that first limits OpenBLAS owns the limit, and what other
    threads set does nothing. The last holder may be another thread than the first."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """Find the BLAS libraries once; it takes milliseconds."""
    return ThreadpoolController()


ONE_BLAS_THREAD: Final = BlasThreads()
