"""How many threads BLAS and torch may use, seen from the calling thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import scipy.linalg  # noqa: F401  loads the BLAS library of SciPy
import torch
from threadpoolctl import threadpool_info, threadpool_limits


def threads() -> set[int]:
    """The numbers of threads of the BLAS libraries of NumPy and SciPy, and of torch. Other ones,
    such as that of faiss, count per calling thread if they are built with OpenMP."""
    blas = {
        one["num_threads"]
        for one in threadpool_info()
        if one["user_api"] == "blas" and one["threading_layer"] == "pthreads"
    }
    assert blas
    return blas | {torch.get_num_threads()}


@contextmanager
def two_threads() -> Iterator[None]:
    """Two of each, also where the environment or a single core allows one."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        yield
    torch.set_num_threads(before)
