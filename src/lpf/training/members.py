"""Networks that train side by side: their tensors, their optimiser, and their random numbers.

Each seed has its own generator in each epoch, seeded by seed and epoch, so that an interrupted run
continues exactly as it would have without the interruption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from lpf.model.networks import to_torch
from lpf.types import Float32Array

Tensors = dict[str, Tensor]
MOMENTS = ("exp_avg", "exp_avg_sq")
BETAS, EPSILON = (0.9, 0.999), 1e-8


@dataclass
class Members:
    """Networks with AdamW. ``parameters`` have a leading axis S of members; only those named in
    ``trained`` change. ``moments`` are the optimiser's, by ``<moment>/<parameter>``.

    The optimiser's own class in torch would import torch's compiler, which takes as long as torch
    itself, though nothing is compiled. This calls the same function.
    """

    parameters: Tensors
    trained: tuple[str, ...]
    learning_rate: float
    weight_decay: float
    steps: int = 0
    moments: Tensors = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, tensor in self.parameters.items():
            tensor.requires_grad_(name in self.trained)

    @classmethod
    def of(
        cls,
        tensors: Mapping[str, Float32Array],
        trained: Sequence[str],
        learning_rate: float,
        weight_decay: float,
    ) -> Members:
        """Before the first step."""
        return cls(to_torch(tensors), tuple(trained), learning_rate, weight_decay)

    def step(self, loss: Tensor) -> None:
        chosen = [self.parameters[name] for name in self.trained]
        gradients = list(torch.autograd.grad(loss, chosen))
        if not self.moments:
            self.moments = {
                f"{moment}/{name}": torch.zeros_like(self.parameters[name])
                for name in self.trained
                for moment in MOMENTS
            }
        self.steps += 1
        first, second = (
            [self.moments[f"{one}/{name}"] for name in self.trained] for one in MOMENTS
        )
        with torch.no_grad():
            torch._fused_adamw_(
                chosen,
                gradients,
                first,
                second,
                [],
                [torch.tensor(float(self.steps))] * len(chosen),
                lr=self.learning_rate,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=self.weight_decay,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def keep(self, places: Sequence[int]) -> Members:
        """The members at ``places``, with the state of their optimiser."""
        chosen = list(places)
        return replace(
            self,
            parameters={name: _cut(tensor, chosen) for name, tensor in self.parameters.items()},
            moments={name: tensor[chosen] for name, tensor in self.moments.items()},
        )

    def set_moments(self, moments: Mapping[str, Tensor], steps: int) -> None:
        """Continue from a stored state."""
        self.moments = {name: tensor.clone() for name, tensor in moments.items()}
        self.steps = steps


def _cut(tensor: Tensor, places: list[int]) -> Tensor:
    return tensor.detach()[places].clone()


CHUNK_ROWS = 1024  # drawn at once: large enough for few calls, small enough for memory


def generators(seeds: Sequence[int], *purpose: int) -> list[torch.Generator]:
    """One generator per seed; ``purpose`` (a stage, an epoch) gives each use its own numbers."""
    seeded = []
    for seed in seeds:
        state = np.random.SeedSequence([seed, *purpose]).generate_state(2, np.uint32)
        seeded.append(torch.Generator().manual_seed(int(state[0]) << 32 | int(state[1])))
    return seeded


def shuffled(rows: Tensor, drawn_by: Sequence[torch.Generator], shares: Tensor | None) -> Tensor:
    """``rows`` [S, n] in a random order per seed. With ``shares`` [S, n], as many rows are drawn
    with replacement in these proportions instead."""
    count = rows.shape[1]
    orders = [
        torch.randperm(count, generator=generator)
        if shares is None
        else torch.multinomial(shares[place], count, replacement=True, generator=generator)
        for place, generator in enumerate(drawn_by)
    ]
    return torch.gather(rows, 1, torch.stack(orders))


class Masks:
    """Dropout masks and standard normal noise for some rows, for all seeds at once.

    ``sites`` are (width, rate) of each dropout in the order in which the networks apply them.
    ``batch`` moves to the next rows; after it, ``dropout`` is called once per site. One random byte
    decides per number, so rates are rounded to 1/256: this takes a sixth of the time of uniform
    floats.
    """

    def __init__(
        self,
        drawn_by: Sequence[torch.Generator],
        rows: int,
        sites: Sequence[tuple[int, float]],
        latent_width: int,
    ) -> None:
        numbers = sum(rows * width for width, _ in sites)
        drawn = torch.empty(len(drawn_by), -(-numbers // 8), dtype=torch.int64)
        self._normal = torch.empty(len(drawn_by), rows, latent_width)
        for place, generator in enumerate(drawn_by):
            drawn[place].random_(-(2**63), None, generator=generator)
            self._normal[place].normal_(generator=generator)
        self._masks = _masks(drawn.view(torch.uint8), rows, sites)
        self._rows = slice(0, 0)
        self._site = 0

    def batch(self, start: int, stop: int) -> Tensor:
        """Move to rows ``start`` to ``stop`` and return their noise."""
        self._rows, self._site = slice(start, stop), 0
        return self._normal[:, self._rows]

    def dropout(self, activation: Tensor, rate: float) -> Tensor:
        mask = self._masks[self._site][:, self._rows]
        self._site += 1
        return activation * mask


def _masks(drawn: Tensor, rows: int, sites: Sequence[tuple[int, float]]) -> list[Tensor]:
    """For each site [S, rows, width]: 0 for a dropped number, else the factor that keeps the
    mean."""
    masks, start = [], 0
    for width, rate in sites:
        part = drawn[:, start : start + rows * width].view(-1, rows, width)
        dropped = round(256 * rate)
        mask = torch.ge(part, dropped, out=torch.empty(part.shape))
        masks.append(mask.mul_(256 / (256 - dropped)))
        start += rows * width
    return masks
