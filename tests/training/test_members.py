"""The optimiser of networks that train side by side."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from lpf.training.members import MOMENTS, Members

SHAPES = {"weight": (3, 4, 2), "bias": (3, 2), "fixed": (3, 2)}
TRAINED = ("weight", "bias")
INPUT = torch.linspace(-1.0, 1.0, 3 * 5 * 4).view(3, 5, 4)


def tensors() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def loss_of(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
    out = INPUT @ parameters["weight"] + parameters["bias"][:, None] + parameters["fixed"][:, None]
    return (out**2).mean()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_steps_are_those_of_adamw(weight_decay: float) -> None:
    members = Members.of(tensors(), TRAINED, 0.01, weight_decay)
    own = {
        name: torch.tensor(array, requires_grad=name in TRAINED)
        for name, array in tensors().items()
    }
    adam = torch.optim.AdamW(
        [own[name] for name in TRAINED], 0.01, weight_decay=weight_decay, fused=True
    )
    for _ in range(5):
        members.step(loss_of(members.parameters))
        adam.zero_grad()
        loss_of(own).backward()
        adam.step()
    assert members.steps == 5
    for name in SHAPES:
        assert torch.equal(members.parameters[name], own[name])
    for name in TRAINED:
        for moment in MOMENTS:
            assert torch.equal(members.moments[f"{moment}/{name}"], adam.state[own[name]][moment])
    assert torch.equal(own["fixed"], torch.tensor(tensors()["fixed"]))


def test_kept_members_continue_as_they_would_have() -> None:
    members = Members.of(tensors(), TRAINED, 0.01, 0.0)
    members.step(loss_of(members.parameters))
    kept = members.keep([2, 0])
    again = Members.of(tensors(), TRAINED, 0.01, 0.0)
    again.parameters = {
        n: t.detach().clone().requires_grad_(n in TRAINED) for n, t in kept.parameters.items()
    }
    again.set_moments(kept.moments, kept.steps)
    for each in (kept, again):
        each.step((each.parameters["weight"] ** 2).sum() + (each.parameters["bias"] ** 2).sum())
        assert each.steps == 2
    for name in TRAINED:
        assert kept.parameters[name].shape[0] == 2
        assert torch.equal(kept.parameters[name], again.parameters[name])


def test_training_does_not_import_the_compiler_of_torch() -> None:
    program = (
        "import sys, numpy as np\n"
        "from lpf.training.members import Members\n"
        "members = Members.of({'w': np.ones((2, 3), np.float32)}, ['w'], 0.1, 0.0)\n"
        "members.step(members.parameters['w'].sum())\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
