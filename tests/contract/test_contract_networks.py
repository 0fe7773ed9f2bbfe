"""torch (training) and NumPy (answering) are two implementations of the same networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from builders import deterministic_encoder, features, runtime
from lpf.combine.learned import Aggregator
from lpf.factors.distributions import softmax
from lpf.model import networks
from lpf.model.config import AggregatorConfig, DecoderConfig, EncoderConfig
from lpf.model.runtime import Runtime

TOLERANCE = 1e-5
SHAPES = {
    "paper": {},
    "deterministic": {"encoder": deterministic_encoder()},
    "one hidden layer": {"encoder": EncoderConfig(hidden=(32,)), "decoder": DecoderConfig((16,))},
    "three layers": {"decoder": DecoderConfig(hidden=(96, 64, 48), predicate_width=8)},
}
AGGREGATORS = {
    "default": AggregatorConfig(),
    "section 4": AggregatorConfig.section_4(),
    "worked example": AggregatorConfig.worked_example(),
    "implementation details": AggregatorConfig.implementation_details(),
    "symmetric concatenation": AggregatorConfig(pair_input="concatenation"),
}


def torch_encode(model: Runtime, inputs: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    stacked = torch.tensor(inputs).expand(model.members, -1, -1)
    return networks.encode(networks.to_torch(model.tensors), model.config, stacked)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_encoder_and_decoder_agree(shape: str, members: int) -> None:
    model = runtime(members, **SHAPES[shape])
    inputs = features(37)
    mu, sigma = torch_encode(model, inputs)
    posteriors = model.encode(inputs)
    np.testing.assert_allclose(posteriors.mu, mu.detach(), atol=TOLERANCE, rtol=TOLERANCE)
    np.testing.assert_allclose(posteriors.sigma, sigma.detach(), atol=TOLERANCE, rtol=TOLERANCE)
    for predicate in ("level", "outcome"):
        parameters = networks.to_torch(model.tensors)
        logits = networks.decode(parameters, model.config, mu, predicate)
        expected = torch.softmax(logits, dim=2).detach().numpy()
        found = softmax(model.decoder(predicate).logits(posteriors.mu))
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("name", AGGREGATORS)
def test_aggregators_agree_with_padding_and_masks(name: str, members: int) -> None:
    """torch pads entities of 1 to 6 items to one size and masks; NumPy needs no padding."""
    model = runtime(members, aggregator=AGGREGATORS[name])
    counts = [1, 2, 6, 3]
    posteriors = model.encode(features(sum(counts)))
    width, longest = posteriors.mu.shape[2], max(counts)
    mu = np.full((members, len(counts), longest, width), 9.0, np.float32)
    sigma, mask = np.ones_like(mu), np.zeros((members, len(counts), longest), bool)
    starts = np.cumsum([0, *counts])
    for entity, count in enumerate(counts):
        rows = slice(starts[entity], starts[entity] + count)
        mu[:, entity, :count], sigma[:, entity, :count] = (
            posteriors.mu[:, rows],
            posteriors.sigma[:, rows],
        )
        mask[:, entity, :count] = True
    parameters = networks.to_torch(model.tensors)
    z, weights = networks.aggregate(
        parameters, model.config, torch.tensor(mu), torch.tensor(sigma), torch.tensor(mask)
    )
    aggregator = Aggregator(model)
    for entity, count in enumerate(counts):
        one = slice(entity, entity + 1)
        found = aggregator.weigh(mu[:, one, :count], sigma[:, one, :count])
        expected = weights[:, one, :count].detach().numpy()
        np.testing.assert_allclose(found.weight, expected, atol=TOLERANCE)
        mean = np.einsum("sek,sekd->sed", found.weight, mu[:, one, :count])
        np.testing.assert_allclose(mean, z[:, one].detach(), atol=1e-4, rtol=TOLERANCE)
    assert (weights.detach().numpy()[~mask] == 0).all()
    np.testing.assert_allclose(weights.detach().numpy()[:, 0, 0], 1.0)


def test_gradients_reach_every_tensor() -> None:
    model = runtime(2)
    parameters = networks.to_torch(model.tensors)
    inputs = torch.tensor(features(6)).expand(2, -1, -1)
    mu, sigma = networks.encode(parameters, model.config, inputs)
    mask = torch.ones((2, 2, 3), dtype=torch.bool)
    shaped = [tensor.reshape(2, 2, 3, -1) for tensor in (mu, sigma)]
    z, _ = networks.aggregate(parameters, model.config, *shaped, mask)
    total = sum(networks.decode(parameters, model.config, z, p).sum() for p in ("level", "outcome"))
    total.backward()
    silent = [name for name, tensor in parameters.items() if tensor.grad is None]
    assert not silent


def test_tensors_survive_the_conversion_to_torch_and_back() -> None:
    tensors = runtime(2).tensors
    back = networks.to_numpy(networks.to_torch(tensors))
    assert all((back[name] == tensors[name]).all() for name in tensors)
