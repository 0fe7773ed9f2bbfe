"""The learned aggregator's effective number of parameters, from its gradients.

    d(λ) = Σ h / (h + λ)        h: eigenvalues of the Fisher information of the mean training loss

A parameter counts as 1 if the data decide it, and as 0 if the L2 penalty λ does. lpf evaluates the
aggregator without gradients, so it is written again here, for automatic differentiation; callers
compare its answers with lpf's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lpf.types import Float32Array, FloatArray

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 32  # entities whose gradients are computed at once


def fisher_eigenvalues(
    tensors: Mapping[str, Float32Array], predicate: str, mu: Float32Array, sigma: Float32Array
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues [N·(V-1)] of the Fisher information in the aggregator's parameters, and answers
    [N, V], of one member for codes [N, K, d]."""
    import torch
    from torch.func import jacrev, vmap

    frozen = {name: torch.from_numpy(np.array(one[0])) for name, one in tensors.items()}
    trained = {name: one for name, one in frozen.items() if name.startswith("aggregator.")}

    def contrasts(parameters: dict[str, Tensor], code: Tensor, spread: Tensor) -> Tensor:
        logits = answer_logits({**frozen, **parameters}, predicate, code, spread)
        return logits[:-1] - logits[-1]

    codes, spreads = torch.from_numpy(mu), torch.from_numpy(sigma)
    gradients = vmap(jacrev(contrasts), in_dims=(None, 0, 0))
    rows, answers = [], []
    for begin in range(0, len(mu), BLOCK):
        part = slice(begin, begin + BLOCK)
        by_name = gradients(trained, codes[part], spreads[part])
        jacobian = torch.cat([one.flatten(2) for one in by_name.values()], dim=2)  # [n, V-1, P]
        values = vmap(lambda c, s: answer_logits(frozen, predicate, c, s))(
            codes[part], spreads[part]
        )
        p = torch.softmax(values.double(), dim=1)
        root = torch.linalg.cholesky(softmax_information(p))
        rows.append(torch.einsum("nvw,nvp->nwp", root.float(), jacobian).flatten(0, 1))
        answers.append(p.numpy())
    scaled = torch.cat(rows) / len(mu) ** 0.5
    kernel = (scaled @ scaled.T).double()
    eigenvalues = torch.linalg.eigvalsh(kernel).clamp_min(0.0).numpy()
    return eigenvalues, np.concatenate(answers)


def softmax_information(p: Tensor) -> Tensor:
    """diag(p) - p pᵀ without the last value, [N, V] -> [N, V-1, V-1]: the Fisher information of the
    log-odds against the last value. A little is added where p is 0 or 1 to the last digit."""
    import torch

    first = p[:, :-1].clamp(1e-12, 1.0)
    information = torch.diag_embed(first) - first[:, :, None] * first[:, None, :]
    return information + 1e-15 * torch.eye(first.shape[1], dtype=p.dtype)


def effective_parameters(eigenvalues: FloatArray, penalty: float) -> float:
    """d(λ); between 0 and the number of eigenvalues."""
    return float((eigenvalues / (eigenvalues + penalty)).sum())


def answer_logits(
    parameters: Mapping[str, Tensor], predicate: str, mu: Tensor, sigma: Tensor
) -> Tensor:
    """Logits [V] of one entity with codes [K, d], by the published aggregator (Algorithm 3)."""
    import torch

    logvar = 2.0 * torch.log(sigma)
    quality = torch.sigmoid(_score(parameters, "quality", torch.cat([mu, logvar], dim=1)))
    pairs = torch.cat([mu[:, None] - mu[None], (logvar[:, None] - logvar[None]).abs()], dim=2)
    agreement = torch.sigmoid(_score(parameters, "consistency", pairs))
    count = len(mu)
    others = 1.0 - torch.eye(count)
    consistency = (agreement * others).sum(dim=1) / (count - 1)
    raw = torch.nn.functional.softplus(
        _score(parameters, "weight", torch.stack([quality, consistency], dim=1))
    )
    z = torch.softmax(raw, dim=0) @ mu
    activation = torch.cat([z, parameters[f"decoder.embedding.{predicate}"]])
    for layer in range(_depth(parameters, "decoder.trunk")):
        activation = torch.relu(_linear(parameters, f"decoder.trunk.{layer}", activation))
    return _linear(parameters, f"decoder.head.{predicate}", activation)


def _score(parameters: Mapping[str, Tensor], network: str, inputs: Tensor) -> Tensor:
    import torch

    prefix = f"aggregator.{network}"
    last = _depth(parameters, prefix) - 1
    for layer in range(last):
        inputs = torch.relu(_linear(parameters, f"{prefix}.{layer}", inputs))
    return _linear(parameters, f"{prefix}.{last}", inputs)[..., 0]


def _linear(parameters: Mapping[str, Tensor], name: str, inputs: Tensor) -> Tensor:
    return inputs @ parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def _depth(parameters: Mapping[str, Tensor], prefix: str) -> int:
    return sum(name.startswith(f"{prefix}.") and name.endswith(".weight") for name in parameters)
