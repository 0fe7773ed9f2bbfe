"""The same networks in torch, for training.

Functions of a dictionary of tensors with the names of ``layout``: all members train together, every
tensor has the leading axis S, and finished members are removed by slicing. Only training imports
this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from lpf.model.config import AggregatorConfig, ModelConfig
from lpf.model.layout import stack_depth
from lpf.types import SIGMA_FLOOR, Float32Array

Parameters = Mapping[str, Tensor]
Dropout = Callable[[Tensor, float], Tensor]


def to_torch(
    tensors: Mapping[str, Float32Array], device: str | torch.device = "cpu"
) -> dict[str, Tensor]:
    """Parameters that require gradients, on ``device``; the arrays are copied."""
    return {
        name: torch.tensor(array, device=device).requires_grad_(True)
        for name, array in tensors.items()
    }


def to_numpy(parameters: Parameters) -> dict[str, Float32Array]:
    return {
        name: np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)
        for name, tensor in parameters.items()
    }


def keep_all(activation: Tensor, rate: float) -> Tensor:
    """No dropout, as for answers. Training passes a function that draws from its generators."""
    return activation


def linear(parameters: Parameters, name: str, inputs: Tensor) -> Tensor:
    """[S, N, in] -> [S, N, out]."""
    bias = parameters[f"{name}.bias"][:, None, :]
    return torch.baddbmm(bias, inputs, parameters[f"{name}.weight"])


def perceptron(
    parameters: Parameters, prefix: str, inputs: Tensor, rate: float, dropout: Dropout
) -> Tensor:
    """Every layer of ``prefix`` followed by ReLU and dropout."""
    activation = inputs
    for layer in range(stack_depth(prefix, parameters)):
        activation = dropout(torch.relu(linear(parameters, f"{prefix}.{layer}", activation)), rate)
    return activation


def encode(
    parameters: Parameters, config: ModelConfig, features: Tensor, dropout: Dropout = keep_all
) -> tuple[Tensor, Tensor]:
    """Features [S, N, width] -> μ and σ [S, N, d]."""
    hidden = perceptron(parameters, "encoder.trunk", features, config.encoder.dropout, dropout)
    mu = linear(parameters, "encoder.mu", hidden)
    if config.encoder.deterministic:
        return mu, torch.zeros_like(mu)
    sigma = torch.exp(linear(parameters, "encoder.log_sigma", hidden)).clamp_min(SIGMA_FLOOR)
    return mu, sigma


def decode(
    parameters: Parameters,
    config: ModelConfig,
    z: Tensor,
    predicate: str,
    dropout: Dropout = keep_all,
) -> Tensor:
    """z [S, N, d] -> logits [S, N, V]."""
    config.head(predicate)
    embedding = parameters[f"decoder.embedding.{predicate}"][:, None, :]
    inputs = torch.cat([z, embedding.expand(-1, z.shape[1], -1)], dim=2)
    hidden = perceptron(parameters, "decoder.trunk", inputs, config.decoder.dropout, dropout)
    return linear(parameters, f"decoder.head.{predicate}", hidden)


def aggregate(
    parameters: Parameters,
    config: ModelConfig,
    mu: Tensor,
    sigma: Tensor,
    mask: Tensor,
    dropout: Dropout = keep_all,
) -> tuple[Tensor, Tensor]:
    """Algorithm 3 on padded items: μ and σ [S, E, K, d]; ``mask`` [S, E, K] is True for real items.

    Returns the aggregated mean [S, E, d] and the weights [S, E, K], zero on padding.
    """
    aggregator = config.aggregator
    assert aggregator is not None  # the second stage is trained only with one
    logvar = 2.0 * torch.log(sigma.clamp_min(SIGMA_FLOOR))
    quality = _quality(parameters, aggregator, mu, sigma, logvar, dropout)
    consistency = _consistency(parameters, aggregator, mu, logvar, mask, dropout)
    inputs = torch.stack([quality, consistency], dim=-1)
    raw = torch.nn.functional.softplus(_scores(parameters, "weight", inputs, 0.0, dropout))
    weights = _normalise(aggregator, raw, mask)
    return torch.einsum("sek,sekd->sed", weights, mu), weights


def _quality(
    parameters: Parameters,
    aggregator: AggregatorConfig,
    mu: Tensor,
    sigma: Tensor,
    logvar: Tensor,
    dropout: Dropout,
) -> Tensor:
    parts = [mu, logvar]
    if aggregator.mean_sigma_input:
        parts.append(sigma.mean(dim=-1, keepdim=True))
    inputs = torch.cat(parts, dim=-1)
    return torch.sigmoid(_scores(parameters, "quality", inputs, aggregator.dropout, dropout))


def _consistency(
    parameters: Parameters,
    aggregator: AggregatorConfig,
    mu: Tensor,
    logvar: Tensor,
    mask: Tensor,
    dropout: Dropout,
) -> Tensor:
    """Mean agreement with the other items; 1 for a single item."""
    orders = [(mu[:, :, :, None], logvar[:, :, :, None], mu[:, :, None], logvar[:, :, None])]
    if aggregator.symmetric and aggregator.pair_input == "concatenation":
        left_mu, left_var, right_mu, right_var = orders[0]
        orders.append((right_mu, right_var, left_mu, left_var))
    scores = [
        torch.sigmoid(
            _scores(
                parameters,
                "consistency",
                _pair(aggregator, *order),
                aggregator.dropout,
                dropout,
            )
        )
        for order in orders
    ]
    pair = torch.stack(scores).mean(dim=0)
    others = mask[:, :, None, :] & ~torch.eye(mask.shape[2], dtype=torch.bool, device=mask.device)
    count = others.sum(dim=3)
    mean = (pair * others).sum(dim=3) / count.clamp_min(1)
    return torch.where(count > 0, mean, torch.ones_like(mean))


def _pair(
    aggregator: AggregatorConfig,
    left_mu: Tensor,
    left_var: Tensor,
    right_mu: Tensor,
    right_var: Tensor,
) -> Tensor:
    if aggregator.pair_input == "difference":
        distance = left_mu - right_mu
        if aggregator.symmetric:
            distance = distance.abs()
        return torch.cat([distance, (left_var - right_var).abs()], dim=-1)
    shape = [max(pair) for pair in zip(left_mu.shape, right_mu.shape, strict=True)]
    parts = [part.expand(shape) for part in (left_mu, left_var, right_mu, right_var)]
    return torch.cat(parts, dim=-1)


def _scores(
    parameters: Parameters, network: str, inputs: Tensor, rate: float, dropout: Dropout
) -> Tensor:
    """A perceptron with one output on [S, ..., width] -> [S, ...]; dropout after its first layer,
    as published."""
    prefix = f"aggregator.{network}"
    last = stack_depth(prefix, parameters) - 1
    activation = inputs.reshape(inputs.shape[0], -1, inputs.shape[-1])
    for layer in range(last):
        activation = torch.relu(linear(parameters, f"{prefix}.{layer}", activation))
        if layer == 0 and rate > 0:
            activation = dropout(activation, rate)
    return linear(parameters, f"{prefix}.{last}", activation).reshape(inputs.shape[:-1])


def _normalise(aggregator: AggregatorConfig, raw: Tensor, mask: Tensor) -> Tensor:
    if aggregator.normalisation == "l1":
        masked = raw * mask
        return masked / masked.sum(dim=-1, keepdim=True)
    return torch.softmax(raw.masked_fill(~mask, -torch.inf), dim=-1)
