"""p(y|z) in plain NumPy: at an item's mean, and at samples around it.

Samples are decoded relative to their item's mean. With z = μ + s, an activation is kept as u + c,
where c belongs to the item and not to the sample. The next pre-activation is uW + e with
e = cW + b, and relu(uW + e) = max(uW, -e) + e. So a layer costs one product and one pass over the
samples, and nothing is added to them. For the mirror image z = μ - s, c - v takes the place of
u + c and min(vW, e) that of the maximum; both share the first product sW.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.model.linear import Layer, Rectified, rectify
from lpf.model.scratch import Scratch
from lpf.types import Float32Array

RELATIVE_ROWS = 512  # below this many samples, steps cost more than passes over memory


@dataclass(frozen=True, slots=True)
class Decoder:
    """The decoder of one predicate. The predicate's embedding is folded into the first bias, so it
    is multiplied once and not for every sample."""

    hidden: tuple[Layer, ...]
    head: Layer
    rectified: tuple[Rectified, ...]  # the same layers with their biases moved on
    moved_head: Layer
    scratch: Scratch

    @classmethod
    def of(cls, hidden: tuple[Layer, ...], head: Layer, scratch: Scratch) -> Decoder:
        return cls(hidden, head, *rectify(hidden, head), scratch)

    def logits(self, z: Float32Array) -> Float32Array:
        """[S, N, d] -> [S, N, V]."""
        activation = z
        for layer in self.hidden:
            activation = layer.relu(activation)
        return self.head(activation)

    def around(self, mu: Float32Array, swing: Float32Array, *, mirrored: bool) -> Float32Array:
        """p(y|z) at z = μ + swing and, when ``mirrored``, at z = μ - swing.

        μ [S, N, d] and swing [S, H, N, d] -> [S, V, M, N], M = 2H when mirrored, else H.
        """
        sides, rows = (2 if mirrored else 1), swing.shape[1] * swing.shape[2]
        if rows < RELATIVE_ROWS:
            return self._one_by_one(mu, swing, sides)
        first, *rest = self.hidden
        centre = first(mu)
        samples = self._first_layer(first, swing, centre, sides)
        for depth, layer in enumerate(rest, start=1):
            centre = layer(centre)
            samples = self._next_layer(layer, samples, centre, depth)
        return self._relative_softmax(samples, self.head(centre))

    def _one_by_one(self, mu: Float32Array, swing: Float32Array, sides: int) -> Float32Array:
        """Every sample through all layers: fewer steps, which is what counts for few samples."""
        members, half, count, width = swing.shape
        z = np.empty((members, sides * half, count, width), np.float32)
        np.add(mu[:, None], swing, out=z[:, :half])
        if sides == 2:
            np.subtract(mu[:, None], swing, out=z[:, half:])
        activation = z.reshape(members, sides * half * count, width)
        for layer in self.rectified:
            activation = layer(activation)
        products = np.matmul(activation, self.moved_head.weight)
        logits = products.swapaxes(1, 2) + self.moved_head.bias.swapaxes(1, 2)
        return _softmax(logits.reshape(members, logits.shape[1], sides * half, count))

    def _first_layer(
        self, layer: Layer, swing: Float32Array, centre: Float32Array, sides: int
    ) -> Float32Array:
        """[S, H, N, d] -> [P, S, H, N, units]."""
        members, half, count, width = swing.shape
        units = layer.weight.shape[2]
        output = self.scratch.array("samples.0", (sides, members, half, count, units))
        flat = output[0].reshape(members, half * count, units)
        np.matmul(swing.reshape(members, half * count, width), layer.weight, out=flat)
        if sides == 2:
            np.minimum(output[0], centre[:, None], out=output[1])
        np.maximum(output[0], -centre[:, None], out=output[0])
        return output

    def _next_layer(
        self, layer: Layer, samples: Float32Array, centre: Float32Array, depth: int
    ) -> Float32Array:
        sides, members, half, count, width = samples.shape
        units = layer.weight.shape[2]
        output = self.scratch.array(f"samples.{depth % 2}", (sides, members, half, count, units))
        flat = output.reshape(sides, members, half * count, units)
        np.matmul(samples.reshape(sides, members, half * count, width), layer.weight, out=flat)
        np.maximum(output[0], -centre[:, None], out=output[0])
        if sides == 2:
            np.minimum(output[1], centre[:, None], out=output[1])
        return output

    def _relative_softmax(self, samples: Float32Array, centre: Float32Array) -> Float32Array:
        """Head and softmax of samples kept relative to ``centre``."""
        sides, members, half, count, width = samples.shape
        flat = samples.reshape(sides, members, half * count, width)
        products = np.matmul(flat, self.head.weight).reshape(sides, members, half, count, -1)
        turned, centre = products.transpose(0, 1, 4, 2, 3), centre.swapaxes(1, 2)[:, :, None]
        logits = np.empty((members, turned.shape[2], sides * half, count), np.float32)
        np.add(centre, turned[0], out=logits[:, :, :half])
        if sides == 2:
            np.subtract(centre, turned[1], out=logits[:, :, half:])
        return _softmax(logits)


def _softmax(logits: Float32Array) -> Float32Array:
    """In place over V of [S, V, M, N]: with samples inside, it runs along contiguous memory."""
    logits -= np.maximum.reduce(logits, axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= np.add.reduce(logits, axis=1, keepdims=True)
    return logits
