"""E[softmax(decoder(z))] for z ~ N(μ, diag σ²) without sampling (moment matching).

Gaussian moments are propagated through every ReLU layer: each unit has a mean, a part that is
linear in z (which keeps correlations) and an uncorrelated remainder. The logits are then nearly
Gaussian, and the softmax is integrated over their V-1 contrasts by Gauss-Hermite quadrature.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np

from lpf.model.runtime import Decoder, Layer
from lpf.types import Float32Array, FloatArray

# Quadrature nodes per contrast; their product must stay small. With more than five contrasts (six
# values), cubature of degree 3 with 2(V-1) nodes is used instead.
NODES_BY_CONTRASTS = {1: 7, 2: 5, 3: 5, 4: 3, 5: 3}
Remainder = tuple[Float32Array, Float32Array]

_TINY = np.float32(1e-12)
_ROOT_TWO_PI = np.float32(np.sqrt(2.0 * np.pi))


def integrate(decoder: Decoder, mu: Float32Array, sigma: Float32Array) -> FloatArray:
    """Return Φ [S, N, V] for posteriors [S, N, d]."""
    members = [_one_member(decoder, s, mu[s], sigma[s]) for s in range(mu.shape[0])]
    return np.stack(members)


def _one_member(decoder: Decoder, member: int, mu: Float32Array, sigma: Float32Array) -> FloatArray:
    mean: Float32Array = mu
    linear: Float32Array | None = None
    remainders: list[Remainder] = []
    for layer in decoder.hidden:
        mean, linear, remainders = _relu_layer(layer, member, mean, sigma, linear, remainders)
    head = decoder.head.weight[member].T  # [V, h]
    logits = mean @ head.T + decoder.head.bias[member, 0]
    covariance = _head_covariance(head, linear, remainders)
    return _softmax_expectation(logits.astype(np.float64), covariance)


def _relu_layer(
    layer: Layer,
    member: int,
    mean: Float32Array,
    sigma: Float32Array,
    linear: Float32Array | None,
    remainders: list[Remainder],
) -> tuple[Float32Array, Float32Array, list[Remainder]]:
    """One affine map and ReLU. ``linear`` [N, units, d] is the part linear in z, scaled by σ; a
    remainder (map [N or 1, units, u], variance [N, u]) is noise added at an earlier layer."""
    weight, bias = layer.weight[member], layer.bias[member, 0]
    if linear is None:
        along = weight.T[None] * sigma[:, None, :]
    else:
        along = np.matmul(weight.T[None], linear)
    carried = [(np.matmul(weight.T[None], mapping), noise) for mapping, noise in remainders]
    centre = mean @ weight + bias
    variance = np.einsum("nud,nud->nu", along, along)
    for mapping, noise in carried:
        variance = variance + np.einsum("nuk,nk->nu", mapping * mapping, noise)
    rectified, gain, spread = _relu_moments(centre, variance)
    # The variance that the linear part does not explain is independent noise of the unit.
    own = np.maximum(spread - gain * gain * variance, np.float32(0))
    identity = np.eye(own.shape[1], dtype=np.float32)[None]
    passed = [(mapping * gain[:, :, None], noise) for mapping, noise in carried]
    return rectified, along * gain[:, :, None], [*passed, (identity, own)]


def _relu_moments(
    centre: Float32Array, variance: Float32Array
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Return mean, mean slope and variance of max(x, 0) for x ~ N(centre, variance)."""
    from scipy.special import ndtr  # scipy is slow to import and only needed here

    deviation = np.sqrt(variance)
    ratio = centre / np.maximum(deviation, _TINY)  # ±huge at σ = 0: the slope is then 0 or 1
    slope = ndtr(ratio)
    density = np.exp(np.float32(-0.5) * ratio * ratio) / _ROOT_TWO_PI
    mean = centre * slope + deviation * density
    square = (centre * centre + variance) * slope + centre * deviation * density
    return mean, slope, np.maximum(square - mean * mean, np.float32(0))


def _head_covariance(
    head: Float32Array, linear: Float32Array | None, remainders: list[Remainder]
) -> FloatArray:
    """Return the covariance of the logits, [N, V, V]."""
    assert linear is not None  # a decoder has at least one hidden layer
    along = np.matmul(head[None], linear).astype(np.float64)
    covariance = np.matmul(along, along.swapaxes(1, 2))
    for mapping, noise in remainders:
        carried = np.matmul(head[None], mapping).astype(np.float64)
        covariance = covariance + np.matmul(carried * noise[:, None, :], carried.swapaxes(1, 2))
    return np.asarray(covariance)


def _softmax_expectation(logits: FloatArray, covariance: FloatArray) -> FloatArray:
    """E softmax(l), l ~ N(logits, covariance): [N, V] and [N, V, V] -> [N, V]."""
    contrasts = logits.shape[1] - 1
    if contrasts == 0:
        return np.ones_like(logits)
    nodes, weights = _nodes(contrasts)
    factor = _cholesky(_contrast_covariance(covariance))
    shifted = (logits[:, None, :-1] - logits[:, None, -1:]) + nodes @ factor.swapaxes(1, 2)
    full = np.concatenate([shifted, np.zeros((*shifted.shape[:2], 1))], axis=2)
    full -= full.max(axis=2, keepdims=True)
    np.exp(full, out=full)
    full /= full.sum(axis=2, keepdims=True)
    return np.asarray(np.einsum("q,nqv->nv", weights, full))


def _contrast_covariance(covariance: FloatArray) -> FloatArray:
    """Covariance of l_k - l_V for k < V."""
    last = covariance[:, :-1, -1:]
    return covariance[:, :-1, :-1] - last - last.swapaxes(1, 2) + covariance[:, -1:, -1:]


def _cholesky(matrices: FloatArray) -> FloatArray:
    """Return lower Cholesky factors of [N, n, n] that may be singular (σ = 0), unlike LAPACK's.

    A column without variance is zero, so the factor is continuous in the input.
    """
    factor = np.zeros_like(matrices)
    for column in range(matrices.shape[1]):
        rest = matrices[:, column:, column] - np.einsum(
            "nik,nk->ni", factor[:, column:, :column], factor[:, column, :column]
        )
        pivot = np.sqrt(np.maximum(rest[:, 0], 0.0))
        factor[:, column:, column] = np.divide(
            rest, pivot[:, None], out=np.zeros_like(rest), where=pivot[:, None] > 0
        )
    return factor


@lru_cache(maxsize=8)
def _nodes(contrasts: int) -> tuple[FloatArray, FloatArray]:
    """Nodes [Q, n] and weights [Q] for the standard normal in n dimensions."""
    if contrasts not in NODES_BY_CONTRASTS:
        axis = np.sqrt(contrasts) * np.eye(contrasts)
        return np.concatenate([axis, -axis]), np.full(2 * contrasts, 0.5 / contrasts)
    line, mass = np.polynomial.hermite_e.hermegauss(NODES_BY_CONTRASTS[contrasts])
    nodes = np.array(list(product(line, repeat=contrasts)))
    weights = np.array([np.prod(combination) for combination in product(mass, repeat=contrasts)])
    return nodes, weights / weights.sum()
