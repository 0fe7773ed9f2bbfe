"""Networks that train side by side: their tensors, their optimiser, and leaving early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lpf.model.networks import to_torch
from lpf.types import Float32Array

Tensors = dict[str, Tensor]
MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass
class Members:
    """``parameters`` have the leading axis S; only those of ``trained`` change."""

    parameters: Tensors
    trained: tuple[str, ...]
    optimiser: torch.optim.AdamW

    @classmethod
    def of(
        cls,
        tensors: Mapping[str, Float32Array],
        trained: Sequence[str],
        learning_rate: float,
        weight_decay: float,
    ) -> Members:
        parameters = to_torch(tensors)
        for name, tensor in parameters.items():
            tensor.requires_grad_(name in trained)
        names = tuple(trained)
        return cls(parameters, names, _adam(parameters, names, learning_rate, weight_decay))

    def step(self, loss: Tensor) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()

    def keep(self, places: Sequence[int]) -> Members:
        """The members at ``places``, with the memory of their optimiser."""
        group = self.optimiser.param_groups[0]
        chosen = list(places)
        parameters = {name: _cut(tensor, chosen) for name, tensor in self.parameters.items()}
        optimiser = _adam(parameters, self.trained, group["lr"], group["weight_decay"])
        kept = Members(parameters, self.trained, optimiser)
        moments = {name: tensor[chosen] for name, tensor in self.moments().items()}
        kept.set_moments(moments, self.steps)
        return kept

    @property
    def steps(self) -> int:
        state = self.optimiser.state.get(self.parameters[self.trained[0]], {})
        return int(state["step"]) if state else 0

    def moments(self) -> Tensors:
        """What the optimiser remembers, by ``<moment>/<parameter>``; empty before the first
        step."""
        return {
            f"{moment}/{name}": self.optimiser.state[self.parameters[name]][moment]
            for name in self.trained
            for moment in MOMENTS
            if self.optimiser.state.get(self.parameters[name])
        }

    def set_moments(self, moments: Mapping[str, Tensor], steps: int) -> None:
        if not moments:
            return
        for name in self.trained:
            self.optimiser.state[self.parameters[name]] = {
                "step": torch.tensor(float(steps)),
                **{moment: moments[f"{moment}/{name}"].clone() for moment in MOMENTS},
            }


def _adam(
    parameters: Tensors, trained: Sequence[str], learning_rate: float, weight_decay: float
) -> torch.optim.AdamW:
    chosen = [parameters[name] for name in trained]
    return torch.optim.AdamW(chosen, lr=learning_rate, weight_decay=weight_decay, fused=True)


def _cut(tensor: Tensor, places: list[int]) -> Tensor:
    return tensor.detach()[places].clone().requires_grad_(tensor.requires_grad)
