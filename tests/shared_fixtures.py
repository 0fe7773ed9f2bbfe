"""Fixtures of both packages' tests; each conftest.py imports them."""

from collections.abc import Iterator
from functools import cache

import pytest


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads of networks that are very small only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """``lpf`` builds its commands once per process. The runner of tests would do so for each call,
    which takes longer than most calls."""
    from typer import testing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", cache(testing._get_command))
        yield
