"""Encoder and decoder in plain NumPy, for answering without torch.

All members of an ensemble run together: every array has a leading axis S. float32 throughout, as
trained. Dropout is absent: answers are deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lpf.errors import ArtefactTensorError, EvidenceError, NonFiniteError
from lpf.model.config import ModelConfig
from lpf.model.layout import stack_depth, tensor_shapes
from lpf.model.scratch import Scratch
from lpf.types import SIGMA_FLOOR, Float32Array, Posteriors

# Activations of one layer and the next; networks take turns in them, so the cache holds less.
SPACES = ("hidden.0", "hidden.1")

Tensors = Mapping[str, Float32Array]


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
        np.maximum(output, np.float32(0), out=output)
        return output

    def after(self, shift: Float32Array) -> Layer:
        """The layer for inputs that lack ``shift`` [S, 1, in]."""
        missing = np.matmul(shift.astype(np.float64), self.weight.astype(np.float64))
        return Layer(self.weight, (self.bias + missing).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Rectified:
    """A hidden layer in one pass over memory less.

    relu(x + b) = max(x, -b) + b, and the b behind the maximum is a constant that the next layer's
    bias takes up. So each hidden layer is one product and one maximum.
    """

    weight: Float32Array
    floor: Float32Array  # -b, [S, 1, out]

    def __call__(self, inputs: Float32Array, scratch: Scratch, name: str) -> Float32Array:
        members, _, width = self.weight.shape
        output = scratch.array(name, (members, inputs.shape[1], width))
        np.matmul(inputs, self.weight, out=output)
        np.maximum(output, self.floor, out=output)
        return output


def stack(tensors: Tensors, prefix: str) -> tuple[Layer, ...]:
    """The layers of one perceptron, in order."""
    return tuple(Layer.named(tensors, f"{prefix}.{i}") for i in range(stack_depth(prefix, tensors)))


def rectify(layers: Sequence[Layer], last: Layer) -> tuple[tuple[Rectified, ...], Layer]:
    """Hidden layers and the layer that follows them, with every bias moved one layer on."""
    hidden: list[Rectified] = []
    shift: Float32Array | None = None
    for layer in layers:
        moved = layer if shift is None else layer.after(shift)
        hidden.append(Rectified(moved.weight, -moved.bias))
        shift = moved.bias
    return tuple(hidden), last if shift is None else last.after(shift)


@dataclass(frozen=True, slots=True)
class Decoder:
    """p(y|z) for one predicate. The predicate's embedding is folded into the first bias, so it is
    multiplied once and not for every sample."""

    layers: tuple[Layer, ...]  # the hidden ones as trained
    head: Layer
    hidden: tuple[Rectified, ...]  # and as evaluated
    moved_head: Layer
    scratch: Scratch

    @classmethod
    def of(cls, layers: tuple[Layer, ...], head: Layer, scratch: Scratch) -> Decoder:
        hidden, moved = rectify(layers, head)
        turned = Layer(moved.weight, np.ascontiguousarray(moved.bias.swapaxes(1, 2)))
        return cls(layers, head, hidden, turned, scratch)

    def logits(self, z: Float32Array) -> Float32Array:
        """[S, N, d] -> [S, V, N]. With V outermost, a softmax runs along contiguous memory."""
        return self._logits_from(z, 0)

    def probabilities(self, z: Float32Array) -> Float32Array:
        """[S, N, d] -> [S, V, N], normalised over V."""
        return softmax_values(self.logits(z))

    def pair_probabilities(self, mu: Float32Array, swing: Float32Array) -> Float32Array:
        """p(y|z) at z = μ ± swing: [S, N, d] and [S, H, N, d] -> [S, V, 2H, N], all plus before
        all minus.

        The first layer is linear, so a mirror pair shares its product: W(μ ± s) = Wμ ± Ws.
        """
        first = self.hidden[0]
        members, half, count, width = swing.shape
        units = first.weight.shape[2]
        moved = self.scratch.array(SPACES[1], (members, half * count, units))
        np.matmul(swing.reshape(members, half * count, width), first.weight, out=moved)
        moved = moved.reshape(members, half, count, units)
        centre = np.matmul(mu, first.weight)[:, None]
        both = self.scratch.array(SPACES[0], (members, 2, half, count, units))
        np.add(centre, moved, out=both[:, 0])
        np.subtract(centre, moved, out=both[:, 1])
        activation = both.reshape(members, 2 * half * count, units)
        np.maximum(activation, first.floor, out=activation)
        logits = softmax_values(self._logits_from(activation, 1))
        return logits.reshape(members, -1, 2 * half, count)

    def _logits_from(self, activation: Float32Array, depth: int) -> Float32Array:
        """The layers from ``depth`` on and the head, [S, N, ...] -> [S, V, N]."""
        for level in range(depth, len(self.hidden)):
            activation = self.hidden[level](activation, self.scratch, SPACES[level % 2])
        # A narrow product is faster this way round, and a copy of N x V costs next to nothing.
        logits = np.ascontiguousarray(np.matmul(activation, self.moved_head.weight).swapaxes(1, 2))
        logits += self.moved_head.bias
        return logits


def softmax_values(logits: Float32Array) -> Float32Array:
    """In place over axis 1 of [S, V, N]."""
    logits -= np.maximum.reduce(logits, axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= np.add.reduce(logits, axis=1, keepdims=True)
    return logits


class Runtime:
    """A loaded model: ``encode`` features, get the ``decoder`` of a predicate."""

    def __init__(self, config: ModelConfig, tensors: Tensors, version: str = "unsaved") -> None:
        check_tensors(config, tensors)
        self.config = config
        self.version = version
        self.tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        self.scratch = Scratch()
        trunk = stack(self.tensors, "encoder.trunk")
        self._trunk, self._output = rectify(trunk, self._output_layer())
        self.decoder = lru_cache(maxsize=None)(self._decoder)

    @property
    def members(self) -> int:
        return self.config.members

    def member(self, position: int) -> Runtime:
        """One member alone, as a model of its own."""
        if self.members == 1 and position == 0:
            return self
        document = self.config.to_dict() | {
            "members": 1,
            "seeds": self.config.seeds[position : position + 1],
        }
        tensors = {name: array[position : position + 1] for name, array in self.tensors.items()}
        version = f"{self.version}/{position}"
        return Runtime(ModelConfig.from_dict(document), tensors, version)

    def encode(self, features: Float32Array, evidence_ids: Sequence[str] = ()) -> Posteriors:
        """Algorithm 2 on [N, width] features. NonFiniteError names the items that hold NaN."""
        ids = evidence_ids if len(evidence_ids) else range_ids(len(features))
        check_features(features, ids, self.config.encoder.input_width)
        mu, sigma = self.encode_arrays(features)
        return Posteriors(ids, mu, sigma)

    def encode_arrays(self, features: Float32Array) -> tuple[Float32Array, Float32Array]:
        """μ and σ, each [S, N, d], of features already checked."""
        activation = features[None]
        for depth, layer in enumerate(self._trunk):
            activation = layer(activation, self.scratch, SPACES[depth % 2])
        output = self._output(activation)
        if self.config.encoder.deterministic:
            return output, np.zeros_like(output)
        width = self.config.encoder.latent_width
        sigma = np.exp(output[..., width:])
        np.maximum(sigma, np.float32(SIGMA_FLOOR), out=sigma)
        return np.ascontiguousarray(output[..., :width]), sigma

    def _output_layer(self) -> Layer:
        """μ and log σ side by side: one product in place of two."""
        mu = Layer.named(self.tensors, "encoder.mu")
        if self.config.encoder.deterministic:
            return mu
        log_sigma = Layer.named(self.tensors, "encoder.log_sigma")
        return Layer(
            np.concatenate([mu.weight, log_sigma.weight], axis=2),
            np.concatenate([mu.bias, log_sigma.bias], axis=2),
        )

    def _decoder(self, predicate: str) -> Decoder:
        self.config.head(predicate)
        first, *rest = stack(self.tensors, "decoder.trunk")
        width = self.config.encoder.latent_width
        embedding = self.tensors[f"decoder.embedding.{predicate}"][:, None, :]
        folded = Layer(
            np.ascontiguousarray(first.weight[:, :width]),
            first.bias + np.matmul(embedding, first.weight[:, width:]),
        )
        head = Layer.named(self.tensors, f"decoder.head.{predicate}")
        return Decoder.of((folded, *rest), head, self.scratch)


def check_features(features: Float32Array, ids: Sequence[str], width: int) -> None:
    """Refuses features of the wrong width, and NaN or infinity with the items' ids."""
    if features.ndim != 2 or features.shape[1] != width:
        raise EvidenceError(
            f"features have shape {features.shape}, the model reads [N, {width}]. They probably "
            "come from another reader; read the texts again with the model's own."
        )
    if len(ids) != len(features):
        raise EvidenceError(f"{len(ids)} evidence ids for {len(features)} rows of features.")
    if not np.isfinite(features).all():
        bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
        named = ", ".join(str(ids[position]) for position in bad[:10])
        raise NonFiniteError(
            f"features of {len(bad)} item(s) hold NaN or infinity: {named}. Nothing was answered; "
            "read these texts again."
        )


def check_tensors(config: ModelConfig, tensors: Tensors) -> None:
    """Every tensor the config asks for, no other, each of the right shape, type and finite."""
    shapes = tensor_shapes(config)
    missing, surplus = (
        sorted(shapes.keys() - tensors.keys()),
        sorted(tensors.keys() - shapes.keys()),
    )
    if missing or surplus:
        raise ArtefactTensorError(f"tensors missing: {missing}; not expected: {surplus}.")
    for name, shape in shapes.items():
        array = tensors[name]
        if tuple(array.shape) != shape or array.dtype != np.float32:
            raise ArtefactTensorError(
                f"tensor {name!r} is {array.dtype} {tuple(array.shape)}, "
                f"the config asks for float32 {shape}."
            )
        if not np.isfinite(array).all():
            raise ArtefactTensorError(f"tensor {name!r} holds NaN or infinity.")


def range_ids(count: int) -> tuple[str, ...]:
    """Names for items that came without: their positions."""
    return tuple(map(str, range(count)))
