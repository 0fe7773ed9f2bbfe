"""Encoder and decoder in NumPy, for answering without torch.

All members of an ensemble run together: every array has a leading axis S. Everything is float32, as
in training. There is no dropout, so answers are deterministic.

``Scratch`` reuses arrays of about a megabyte between calls, one set per thread: allocating them
each time would take as long as the arithmetic, because the system zeroes every page.

``Decoder.around`` decodes samples relative to their item's mean. With z = μ + s, an activation is
stored as u + c, where c belongs to the item and not to the sample. The next pre-activation is
uW + e with e = cW + b, and relu(uW + e) = max(uW, -e) + e. So a layer costs one product and one
pass over the samples, and nothing is added to them. For the mirror image z = μ - s, c - v takes the
place of u + c and min(vW, e) that of the maximum; both share the first product sW.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lpf.errors import ArtefactTensorError, EvidenceError, NonFiniteError
from lpf.model.claim_alone import ClaimAlone
from lpf.model.config import ModelConfig
from lpf.model.familiarity import Familiarity
from lpf.model.held_out import HeldOutAnswers
from lpf.model.layout import WORDS, of_members, stack_depth, tensor_shapes
from lpf.reading.fitted_words import LEXICAL_TENSORS, FittedWords, LexicalModel
from lpf.reading.stance import relevance, stances_of
from lpf.types import SIGMA_FLOOR, Float32Array, FloatArray, Posteriors

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
    """A hidden layer that saves one pass over memory: relu(x + b) = max(x, -b) + b, and the b after
    the maximum is a constant that is added to the next layer's bias."""

    weight: Float32Array
    floor: Float32Array  # -b, [S, 1, out]

    def __call__(self, inputs: Float32Array) -> Float32Array:
        output: Float32Array = np.matmul(inputs, self.weight)
        np.maximum(output, self.floor, out=output)
        return output


def rectify(layers: Sequence[Layer], last: Layer) -> tuple[tuple[Rectified, ...], Layer]:
    """Hidden layers and the layer after them, with every bias moved to the next layer."""
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


class Scratch(threading.local):
    """Named float32 arrays. The array of a name is valid until the same thread asks for that name
    again."""

    def __init__(self) -> None:
        self._held: dict[str, Float32Array] = {}
        self._last: dict[str, Float32Array] = {}

    def array(self, name: str, shape: tuple[int, ...]) -> Float32Array:
        last = self._last.get(name)
        if last is not None and last.shape == shape:
            return last
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size, np.float32)
        view = self._last[name] = held[:size].reshape(shape)
        return view


RELATIVE_ROWS = 512  # with fewer samples, the number of calls costs more than memory


@dataclass(frozen=True, slots=True)
class Decoder:
    """The decoder of one predicate. The predicate's embedding is part of the first bias, so it is
    multiplied only once and not for every sample."""

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
        """Every sample through all layers: fewer calls, which is faster for few samples."""
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
        """Head and softmax of samples that are relative to ``centre``."""
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


def fitted_words(config: ModelConfig, tensors: Tensors) -> FittedWords | None:
    """The regressions on words that are part of a model; None if it has none."""
    if not config.words:
        return None
    return FittedWords(
        {
            name: LexicalModel(*(tensors[f"{WORDS}{name}.{one}"] for one in LEXICAL_TENSORS))
            for name in config.words
        }
    )


class Runtime:
    """A loaded model: ``encode`` features, get the ``decoder`` of a predicate. ``familiarity``
    gives the weight of each item, None in models from before it existed; ``familiarity_of`` that
    of one head, which may have its own. ``claim_alone`` are regressions on the claim and
    ``held_out`` the answers about held-out entities, by predicate."""

    def __init__(self, config: ModelConfig, tensors: Tensors, version: str = "unsaved") -> None:
        check_tensors(config, tensors)
        self.config = config
        self.version = version
        self.tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        self.scratch = Scratch()
        known = config.familiarity
        self.familiarity = None if known is None else Familiarity.of(known, self.tensors)
        self._head_familiarity = {
            name: None if one is None else Familiarity.of(one, self.tensors, name)
            for name, one in config.head_familiarity.items()
        }
        self.words = fitted_words(config, self.tensors)
        self.claim_alone = {name: ClaimAlone.of(self.tensors, name) for name in config.claim_alone}
        self.held_out = {
            name: HeldOutAnswers.of(one.kind, len(config.head(name).values), self.tensors, name)
            for name, one in config.held_out.items()
        }
        trunk = stack(self.tensors, "encoder.trunk")
        self._trunk, self._output = rectify(trunk, self._output_layer())
        self.decoder = lru_cache(maxsize=None)(self._decoder)

    def __reduce__(self) -> tuple[type[Runtime], tuple[ModelConfig, Tensors, str]]:
        """Without its caches, which cannot be pickled."""
        return Runtime, (self.config, self.tensors, self.version)

    def familiarity_of(self, predicate: str) -> Familiarity | None:
        """What tells how like the training texts of this predicate an item is."""
        return self._head_familiarity.get(predicate, self.familiarity)

    def relevance(self, predicate: str, features: Float32Array) -> FloatArray | None:
        """How much each item [N] says about its claim; None if the head does not weigh items by
        it."""
        start = self.config.head(predicate).relevance_start
        return None if start is None else relevance(features, start)

    def stances(self, predicate: str, features: Float32Array) -> FloatArray | None:
        """The chances of each item's stances towards its claim [N, 3]; None if the head does not
        ask which of them occur."""
        head = self.config.head(predicate)
        if not head.occurrence_ratios or head.relevance_start is None:
            return None
        return stances_of(features, head.relevance_start)

    @property
    def members(self) -> int:
        return self.config.members

    @property
    def sampling_key(self) -> str:
        """Seeds random draws. Models from before it was stored are seeded by their version."""
        return self.config.sampling_key or self.version

    def member(self, position: int) -> Runtime:
        """One member alone, as a model of its own."""
        if self.members == 1 and position == 0:
            return self
        document = self.config.to_dict() | {
            "members": 1,
            "seeds": self.config.seeds[position : position + 1],
            "sampling_key": self.config.sampling_key and f"{self.config.sampling_key}/{position}",
        }
        version = f"{self.version}/{position}"
        tensors = of_members(self.tensors, slice(position, position + 1))
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
    """EvidenceError for features of another width than the model's, or a wrong number of ids."""
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
    """Return True if every number is finite. Faster than `ndarray.all`, whose wrapper is slow."""
    return bool(np.logical_and.reduce(np.isfinite(array), axis=None))


def refuse_overflow(ids: Sequence[str], *results: Float32Array | FloatArray) -> None:
    """NonFiniteError with the ids of the items whose results [N, ...] are not finite."""
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
    """ArtefactTensorError unless the tensors are finite and have the names, shapes and type that
    the config needs."""
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
                f"the config needs float32 {shape}."
            )
        if not np.isfinite(array).all():
            raise ArtefactTensorError(f"tensor {name!r} holds NaN or infinity.")


def range_ids(count: int) -> tuple[str, ...]:
    """IDs for items that have none: their positions."""
    return tuple(map(str, range(count)))
