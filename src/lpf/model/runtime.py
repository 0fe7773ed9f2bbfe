"""Encoder and decoder in plain NumPy, for answering without torch.

All members of an ensemble run together: every array has a leading axis S. float32 throughout, as
trained. Dropout is absent: answers are deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lpf.errors import ArtefactTensorError, EvidenceError, NonFiniteError
from lpf.model.config import ModelConfig
from lpf.model.decoder import Decoder
from lpf.model.layout import tensor_shapes
from lpf.model.linear import Layer, Tensors, rectify, stack
from lpf.model.scratch import Scratch
from lpf.types import SIGMA_FLOOR, Float32Array, FloatArray, Posteriors


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

    def __reduce__(self) -> tuple[type[Runtime], tuple[ModelConfig, Tensors, str]]:
        """Without its caches, which cannot be pickled."""
        return Runtime, (self.config, self.tensors, self.version)

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
        check_shape(features, ids, self.config.encoder.input_width)
        refuse_non_finite(features, ids)
        with np.errstate(over="ignore", invalid="ignore"):
            mu, sigma = self.encode_arrays(features)
        refuse_overflow(ids, mu.swapaxes(0, 1), sigma.swapaxes(0, 1))
        return Posteriors(ids, mu, sigma)

    def encode_arrays(self, features: Float32Array) -> tuple[Float32Array, Float32Array]:
        """μ and σ, each [S, N, d], of features already checked."""
        activation = features[None]
        for layer in self._trunk:
            activation = layer(activation)
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


def check_shape(features: Float32Array, ids: Sequence[str], width: int) -> None:
    """Refuses features that are not the model's, and ids that do not match them."""
    if features.ndim != 2 or features.shape[1] != width:
        raise EvidenceError(
            f"features have shape {features.shape}, the model reads [N, {width}]. They probably "
            "come from another reader; read the texts again with the model's own."
        )
    if len(ids) != len(features):
        raise EvidenceError(f"{len(ids)} evidence ids for {len(features)} rows of features.")


def refuse_non_finite(features: Float32Array, ids: Sequence[str]) -> None:
    """NonFiniteError with the ids of the items whose features hold NaN or infinity."""
    if not all_finite(features):
        bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
        named = ", ".join(str(ids[position]) for position in bad[:10])
        raise NonFiniteError(
            f"features of {len(bad)} item(s) hold NaN or infinity: {named}. Nothing was answered; "
            "read these texts again."
        )


def all_finite(array: Float32Array | FloatArray) -> bool:
    """Whether every number is; `ndarray.all` spends as much again on its wrapper."""
    return bool(np.logical_and.reduce(np.isfinite(array), axis=None))


def refuse_overflow(ids: Sequence[str], *results: Float32Array | FloatArray) -> None:
    """NonFiniteError with the ids of the items [N, ...] that left the finite numbers."""
    if all(all_finite(result) for result in results):
        return
    flat = [np.isfinite(result).reshape(len(ids), -1).all(axis=1) for result in results]
    bad = np.flatnonzero(~np.logical_and.reduce(flat))
    named = ", ".join(str(ids[int(position)]) for position in bad[:10])
    raise NonFiniteError(
        f"the model overflows on {len(bad)} item(s): {named}. Nothing was answered; its "
        "weights or these features are far outside what it was trained on."
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
