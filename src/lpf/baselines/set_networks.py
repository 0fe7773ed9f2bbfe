"""Networks over sets of items: Deep Sets, gated attention and evidential deep learning.

Deep Sets (Zaheer et al. 2017) pool encoded items; gated attention (Ilse, Tomczak and Welling 2018)
weighs them. Evidential deep learning (Sensoy, Kaplan and Kandemir 2018) has

    α = 1 + e,  e = softplus(network)     p = α/S,  S = Σ α
    L = Σ_v (y_v - p_v)² + p_v(1-p_v)/(S+1)  +  λ_t·KL(Dir(α̃) ‖ Dir(1)),  λ_t = min(1, t/10)

with α̃ = y + (1-y)·α, the evidence for wrong values. EDL-Aggregated reads the mean of an entity's
features; EDL-Individual reads every item separately and adds up their evidence.

The paper's EDL-Individual gives every entity the same answer. ``faulty`` is one way to get a
constant in most runs, found by trial; the paper's code is not known, and its constant is another
one (top probability .468, here 1/V). It is not meant as a competitor.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lpf.baselines.interface import FittedMethod
from lpf.baselines.networks import (
    HIDDEN,
    Bags,
    SoftmaxNetwork,
    head_outputs,
    head_shapes,
    item_codes,
    item_shapes,
    train_on_entities,
    train_on_items,
)
from lpf.model.layout import Shapes, stack_shapes
from lpf.model.networks import Dropout, Parameters, linear
from lpf.training.examples import Examples

CODE = HIDDEN[-1]


class DeepSetsNetwork(SoftmaxNetwork):
    """ρ([mean φ(xᵢ), Σ φ(xᵢ), log K]): the mean is what items say, sum and count how much of it."""

    def shapes(self, width: int, values: int) -> Shapes:
        return item_shapes(width) | head_shapes(2 * CODE + 1, values, (CODE,))

    def outputs(self, parameters: Parameters, bags: Bags, dropout: Dropout) -> Tensor:
        codes = item_codes(parameters, bags.features, dropout)
        total = bags.sum(codes)
        mean = total / bags.counts[None, :, None]
        return head_outputs(parameters, torch.cat([mean, total, bags.log_counts], dim=2), dropout)


@dataclass(frozen=True)
class DeepSets:
    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        return train_on_entities(DeepSetsNetwork(), train, validation, predicate, seed)


ATTENTION = 64


class AttentionNetwork(SoftmaxNetwork):
    """aᵢ = softmaxᵢ(wᵀ(tanh(V hᵢ) ⊙ sigmoid(U hᵢ))), h = φ(x); the head gets Σ aᵢ hᵢ."""

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
        return head_outputs(parameters, bags.sum(weights * codes), dropout)


@dataclass(frozen=True)
class AttentionPooling:
    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        return train_on_entities(AttentionNetwork(), train, validation, predicate, seed)


ANNEALED_OVER = 10  # epochs
# With the ReLU, on the tests' data: 10 on α collapses; 1 on α or on α̃, and 10 on α̃, do not.
FAULTY_WEIGHT = 10.0


@dataclass(frozen=True)
class EvidentialNetwork:
    """Outputs are evidence, 0 or above. ``individual`` reads items separately.

    ``faulty`` reproduces a fault: e = ReLU(network), and λ = 10 from the start on the KL of all
    evidence, α instead of α̃. In most runs no item then gives any evidence, and every answer is
    uniform. Two of three runs on compliance ended this way; the third never gave the middle value,
    with an accuracy of .59.
    """

    individual: bool
    faulty: bool = False

    def shapes(self, width: int, values: int) -> Shapes:
        return item_shapes(width) | head_shapes(HIDDEN[-1], values)

    def outputs(self, parameters: Parameters, bags: Bags, dropout: Dropout) -> Tensor:
        rows = bags.features if self.individual else bags.mean(bags.features)
        codes = item_codes(parameters, rows, dropout)
        positive = torch.relu if self.faulty else torch.nn.functional.softplus
        evidence = positive(head_outputs(parameters, codes, dropout))
        return bags.sum(evidence) if self.individual else evidence

    def probabilities(self, outputs: Tensor) -> Tensor:
        alpha = 1.0 + outputs
        return alpha / alpha.sum(dim=2, keepdim=True)

    def losses(self, outputs: Tensor, labels: Tensor, epoch: int) -> Tensor:
        alpha = 1.0 + outputs[0]
        truth = torch.nn.functional.one_hot(labels, alpha.shape[1]).to(alpha.dtype)
        if self.faulty:
            return _squares(alpha, truth) + FAULTY_WEIGHT * _divergence(alpha)
        annealed = min(1.0, epoch / ANNEALED_OVER)
        return _squares(alpha, truth) + annealed * _divergence(truth + (1.0 - truth) * alpha)


def _squares(alpha: Tensor, truth: Tensor) -> Tensor:
    """The expected squared error under Dir(α), [E]."""
    total = alpha.sum(dim=1, keepdim=True)
    p = alpha / total
    return ((truth - p) ** 2 + p * (1.0 - p) / (total + 1.0)).sum(dim=1)


def _divergence(alpha: Tensor) -> Tensor:
    """KL(Dir(α) ‖ Dir(1)), [E]."""
    uniform = torch.distributions.Dirichlet(torch.ones_like(alpha), validate_args=False)
    given = torch.distributions.Dirichlet(alpha, validate_args=False)
    return torch.distributions.kl_divergence(given, uniform)


@dataclass(frozen=True)
class Evidential:
    """``individual`` trains on single items with their labels, otherwise on entities. ``faulty``
    reproduces a fault, see ``EvidentialNetwork``."""

    name: str
    individual: bool
    faulty: bool = False
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        trained = train_on_items if self.individual else train_on_entities
        network = EvidentialNetwork(self.individual, self.faulty)
        return trained(network, train, validation, predicate, seed)
