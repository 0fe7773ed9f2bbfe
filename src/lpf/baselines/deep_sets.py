"""Deep Sets (Zaheer et al. 2017): items encoded one by one, pooled, and answered from the pool."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lpf.baselines.bags import Bags
from lpf.baselines.interface import FittedMethod
from lpf.baselines.networks import (
    HIDDEN,
    SoftmaxNetwork,
    answered,
    head_shapes,
    item_codes,
    item_shapes,
    train_on_entities,
)
from lpf.model.layout import Shapes
from lpf.model.networks import Dropout, Parameters
from lpf.training.examples import Examples

CODE = HIDDEN[-1]


class DeepSetsNetwork(SoftmaxNetwork):
    """ρ([mean φ(xᵢ), Σ φ(xᵢ), log K]): the mean says what, sum and count say how much of it."""

    def shapes(self, width: int, values: int) -> Shapes:
        return item_shapes(width) | head_shapes(2 * CODE + 1, values, (CODE,))

    def outputs(self, parameters: Parameters, bags: Bags, dropout: Dropout) -> Tensor:
        codes = item_codes(parameters, bags.features, dropout)
        total = bags.sum(codes)
        mean = total / bags.counts[None, :, None]
        return answered(parameters, torch.cat([mean, total, bags.log_counts], dim=2), dropout)


@dataclass(frozen=True)
class DeepSets:
    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        return train_on_entities(DeepSetsNetwork(), train, validation, predicate, seed)
