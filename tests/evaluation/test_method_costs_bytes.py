"""Bytes that a method must keep: every array it holds, each once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from lpf.evaluation.method_costs import stored_bytes
from small_specs import bench


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


def test_a_view_weighs_what_it_shows() -> None:
    array = np.zeros(10)
    assert stored_bytes(array[:2]) == 16
    assert stored_bytes(Held(array[:2], array[5:])) == 16 + 40
    assert stored_bytes(array.reshape(2, 5)[:, 1:3]) == 32
    assert stored_bytes(array[:4].view(np.uint8)[3:6]) == 3


def test_bytes_that_several_views_show_weigh_once() -> None:
    array = np.zeros(10)
    assert stored_bytes([array[:6], array[4:]]) == 80
    assert stored_bytes([array[:6], array[2:4], array[5:8]]) == 64
    assert stored_bytes([array, array[:2], array.reshape(5, 2)]) == 80


def test_views_that_skip_and_turn_round() -> None:
    array = np.arange(10.0)
    assert stored_bytes(array[::2]) == 40
    assert stored_bytes([array[::2], array[1::2]]) == 80
    assert stored_bytes([array[::2], array[::4]]) == 40
    assert stored_bytes(array[::-1]) == 80
    assert stored_bytes([array[::-2], array[::-1][:3], array.reshape(2, 5).T[1:2]]) == 56
    assert stored_bytes(np.broadcast_to(np.float64(1.0), (1000,))) == 8


def test_nothing_weighs_nothing() -> None:
    array = np.zeros((3, 4))
    assert stored_bytes([np.zeros(0), array[:0], array[:, 4:]]) == 0
    assert stored_bytes(np.array(5.0)) == 8


def test_arrays_side_by_side_in_memory_are_both_weighed() -> None:
    array = np.zeros(10, np.float32)
    assert stored_bytes([array[5:], array[:5]]) == 40


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


@pytest.mark.parametrize("method", ["lpf_robust_single", "lpf_paper_best", "vae_only"])
def test_one_network_of_many_weighs_as_one(method: str) -> None:
    """Its tensors are views of those of all the search's."""
    whole = stored_bytes(bench().model.runtime)
    assert stored_bytes(bench().fitted(method, (("member", 1),))) < 0.4 * whole
