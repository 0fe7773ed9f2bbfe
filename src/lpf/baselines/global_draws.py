"""Libraries that draw from PyTorch's global generator, held to a seed of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from lpf.training.members import generators


@contextlib.contextmanager
def seeded(seed: int, *purpose: int) -> Iterator[None]:
    """Inside, the global generator of the processor draws as ``seed`` and ``purpose`` have it;
    afterwards it is as it was found."""
    (drawn_by,) = generators([seed], *purpose)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(drawn_by.initial_seed())
        yield
