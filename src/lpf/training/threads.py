"""One thread for networks and regressions, whose matrices are small.

A product of small matrices takes microseconds, and the threads of OpenBLAS and torch meet after
each one. If another process has one of the cores, they wait there for a turn of the scheduler, many
thousand times. Texts are still read on all cores: readers have threads of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lpf.factors.blocks import ONE_BLAS_THREAD


class _TorchThreads:
    """Limits torch to one thread. torch counts per calling thread, and a thread that is new takes
    over the last number set: each caller sets its own, and gets back what the first one had."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before = 1
        self._own = threading.local()

    @contextmanager
    def held(self) -> Iterator[None]:
        import torch

        depth = getattr(self._own, "depth", 0)
        if depth == 0:
            with self._lock:
                now = torch.get_num_threads()  # in a new thread, it also ends the taking over
                if self._holders == 0:
                    self._before = now
                self._holders += 1
                torch.set_num_threads(1)
        self._own.depth = depth + 1
        try:
            yield
        finally:
            self._own.depth = depth
            if depth == 0:
                with self._lock:
                    self._holders -= 1
                    torch.set_num_threads(self._before)


_ONE_TORCH_THREAD = _TorchThreads()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and torch use one thread inside this context, and as many as before after it. Also a
    decorator. May be nested and used by several threads."""
    # SciPy brings a BLAS library of its own, which can be limited once it is loaded.
    import scipy.linalg  # noqa: F401

    with ONE_BLAS_THREAD.held(find_again=True), _ONE_TORCH_THREAD.held():
        yield
