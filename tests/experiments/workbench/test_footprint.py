"""Bytes that a method must keep: every array it holds, each once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from lpf.experiments.workbench.footprint import stored_bytes
from small_lessons import bench


@dataclass(frozen=True)
class Held:
    first: object
    second: object = None


class Slotted:
    __slots__ = ("weights",)

    def __init__(self, weights: object) -> None:
        self.weights = weights


def test_arrays_are_found_wherever_they_are() -> None:
    array = np.zeros(10)
    assert stored_bytes(array) == 80
    assert stored_bytes(Held({"a": [array, "text"]}, (np.zeros(3, np.float32), None))) == 92
    assert stored_bytes(Slotted(Held(array))) == 80
    assert stored_bytes(Held("nothing", 3)) == 0


def test_what_is_held_twice_weighs_once() -> None:
    array = np.zeros(10)
    assert stored_bytes(Held(array, {"again": array})) == 80


def test_a_view_weighs_what_it_looks_at() -> None:
    array = np.zeros(10)
    assert stored_bytes(array[:2]) == 80
    assert stored_bytes(Held(array[:2], array[5:])) == 80


def test_circles_come_to_an_end() -> None:
    inner: list[object] = [np.zeros(10)]
    inner.append(inner)
    assert stored_bytes(inner) == 80


def test_every_network_of_many_is_weighed() -> None:
    """Tensors that are made for the weighing alone must not be taken for ones seen before."""
    networks = [torch.nn.Linear(3, 2) for _ in range(50)]
    assert stored_bytes(networks) == 50 * 4 * (3 * 2 + 2)
    assert stored_bytes([*networks, networks[0]]) == 50 * 4 * (3 * 2 + 2)


def test_tied_weights_and_buffers() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    network[1].weight = network[0].weight
    assert stored_bytes(network) == 4 * (9 + 3 + 3)
    normal = torch.nn.BatchNorm1d(4)
    assert stored_bytes(normal) == 4 * (4 + 4 + 4 + 4) + 8


def test_an_ensemble_weighs_as_much_as_its_members() -> None:
    three, one = (
        stored_bytes(bench().fitted("lpf_robust", (("ensemble", size),))) for size in (3, 1)
    )
    assert three == pytest.approx(3 * one, rel=0.01)
