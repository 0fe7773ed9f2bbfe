"""The memory of a fitted method: every array it holds, counted once."""

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


def test_arrays_are_found_in_any_object() -> None:
    array = np.zeros(10)
    assert stored_bytes(array) == 80
    assert stored_bytes(Held({"a": [array, "text"]}, (np.zeros(3, np.float32), None))) == 92
    assert stored_bytes(Slotted(Held(array))) == 80
    assert stored_bytes(Held("nothing", 3)) == 0


def test_an_array_held_twice_counts_once() -> None:
    array = np.zeros(10)
    assert stored_bytes(Held(array, {"again": array})) == 80


def test_a_view_counts_its_own_bytes() -> None:
    array = np.zeros(10)
    assert stored_bytes(array[:2]) == 16
    assert stored_bytes(Held(array[:2], array[5:])) == 16 + 40
    assert stored_bytes(array.reshape(2, 5)[:, 1:3]) == 32
    assert stored_bytes(array[:4].view(np.uint8)[3:6]) == 3


def test_bytes_shared_by_views_count_once() -> None:
    array = np.zeros(10)
    assert stored_bytes([array[:6], array[4:]]) == 80
    assert stored_bytes([array[:6], array[2:4], array[5:8]]) == 64
    assert stored_bytes([array, array[:2], array.reshape(5, 2)]) == 80


def test_strided_and_reversed_views_are_measured() -> None:
    array = np.arange(10.0)
    assert stored_bytes(array[::2]) == 40
    assert stored_bytes([array[::2], array[1::2]]) == 80
    assert stored_bytes([array[::2], array[::4]]) == 40
    assert stored_bytes(array[::-1]) == 80
    assert stored_bytes([array[::-2], array[::-1][:3], array.reshape(2, 5).T[1:2]]) == 56
    assert stored_bytes(np.broadcast_to(np.float64(1.0), (1000,))) == 8


def test_an_object_without_arrays_has_size_zero() -> None:
    array = np.zeros((3, 4))
    assert stored_bytes([np.zeros(0), array[:0], array[:, 4:]]) == 0
    assert stored_bytes(np.array(5.0)) == 8


def test_adjacent_arrays_are_both_counted() -> None:
    array = np.zeros(10, np.float32)
    assert stored_bytes([array[5:], array[:5]]) == 40


def test_circular_references_are_handled() -> None:
    inner: list[object] = [np.zeros(10)]
    inner.append(inner)
    assert stored_bytes(inner) == 80


def test_all_networks_of_an_ensemble_are_counted() -> None:
    """Temporary tensors created while measuring must not be mistaken for ones seen before."""
    networks = [torch.nn.Linear(3, 2) for _ in range(50)]
    assert stored_bytes(networks) == 50 * 4 * (3 * 2 + 2)
    assert stored_bytes([*networks, networks[0]]) == 50 * 4 * (3 * 2 + 2)


def test_tied_weights_count_once_and_buffers_count() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    network[1].weight = network[0].weight
    assert stored_bytes(network) == 4 * (9 + 3 + 3)
    normal = torch.nn.BatchNorm1d(4)
    assert stored_bytes(normal) == 4 * (4 + 4 + 4 + 4) + 8


def test_an_ensemble_has_the_size_of_its_members() -> None:
    three, one = (
        stored_bytes(bench().fitted("lpf_robust", (("ensemble", size),))) for size in (3, 1)
    )
    assert three == pytest.approx(3 * one, rel=0.01)


@pytest.mark.parametrize("method", ["lpf_robust_single", "lpf_paper_best", "vae_only"])
def test_one_network_of_an_ensemble_counts_as_one(method: str) -> None:
    """Its tensors are views of those of all the search's."""
    whole = stored_bytes(bench().model.runtime)
    assert stored_bytes(bench().fitted(method, (("member", 1),))) < 0.4 * whole
