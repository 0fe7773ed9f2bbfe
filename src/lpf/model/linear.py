"""One linear layer of all members of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpf.model.layout import stack_depth
from lpf.types import Float32Array

Tensors = Mapping[str, Float32Array]
_ZERO = np.float32(0)


@dataclass(frozen=True, slots=True)
class Layer:
    """x W + b for every member: ``weight`` [S, in, out], ``bias`` [S, 1, out]."""

    weight: Float32Array
    bias: Float32Array

    @classmethod
    def named(cls, tensors: Tensors, name: str) -> Layer:
        return cls(tensors[f"{name}.weight"], tensors[f"{name}.bias"][:, None, :])

    def __call__(self, inputs: Float32Array) -> Float32Array:
        output: Float32Array = np.matmul(inputs, self.weight)
        output += self.bias
        return output

    def relu(self, inputs: Float32Array) -> Float32Array:
        output = self(inputs)
        np.maximum(output, _ZERO, out=output)
        return output

    def after(self, shift: Float32Array) -> Layer:
        """The layer for inputs that lack ``shift`` [S, 1, in]."""
        missing = np.matmul(shift.astype(np.float64), self.weight.astype(np.float64))
        return Layer(self.weight, (self.bias + missing).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Rectified:
    """A hidden layer in one pass over memory less: relu(x + b) = max(x, -b) + b, and the b behind
    the maximum is a constant that the next layer's bias takes up."""

    weight: Float32Array
    floor: Float32Array  # -b, [S, 1, out]

    def __call__(self, inputs: Float32Array) -> Float32Array:
        output: Float32Array = np.matmul(inputs, self.weight)
        np.maximum(output, self.floor, out=output)
        return output


def rectify(layers: Sequence[Layer], last: Layer) -> tuple[tuple[Rectified, ...], Layer]:
    """Hidden layers and the layer that follows them, with every bias moved one layer on."""
    hidden: list[Rectified] = []
    shift: Float32Array | None = None
    for layer in layers:
        moved = layer if shift is None else layer.after(shift)
        hidden.append(Rectified(moved.weight, -moved.bias))
        shift = moved.bias
    return tuple(hidden), last if shift is None else last.after(shift)


def stack(tensors: Tensors, prefix: str) -> tuple[Layer, ...]:
    """The layers of one perceptron, in order."""
    return tuple(Layer.named(tensors, f"{prefix}.{i}") for i in range(stack_depth(prefix, tensors)))
