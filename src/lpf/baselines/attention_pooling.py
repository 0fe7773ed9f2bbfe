"""Gated attention over items (Ilse, Tomczak and Welling 2018)."""

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
from lpf.model.layout import Shapes, stack_shapes
from lpf.model.networks import Dropout, Parameters, linear
from lpf.training.examples import Examples

CODE = HIDDEN[-1]
ATTENTION = 64


class AttentionNetwork(SoftmaxNetwork):
    """aᵢ = softmaxᵢ(wᵀ(tanh(V hᵢ) ⊙ sigmoid(U hᵢ))), h = φ(x); answered from Σ aᵢ hᵢ."""

    def shapes(self, width: int, values: int) -> Shapes:
        attention = {
            **stack_shapes("content", 1, (CODE, ATTENTION)),
            **stack_shapes("gate", 1, (CODE, ATTENTION)),
            **stack_shapes("score", 1, (ATTENTION, 1)),
        }
        return item_shapes(width) | attention | head_shapes(CODE, values)

    def outputs(self, parameters: Parameters, bags: Bags, dropout: Dropout) -> Tensor:
        codes = item_codes(parameters, bags.features, dropout)
        content = torch.tanh(linear(parameters, "content.0", codes))
        gate = torch.sigmoid(linear(parameters, "gate.0", codes))
        weights = bags.softmax(linear(parameters, "score.0", content * gate))
        return answered(parameters, bags.sum(weights * codes), dropout)


@dataclass(frozen=True)
class AttentionPooling:
    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        return train_on_entities(AttentionNetwork(), train, validation, predicate, seed)
