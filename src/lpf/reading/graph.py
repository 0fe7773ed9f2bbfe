"""Build ONNX graphs of BERT encoders from their weights, in float32 or int8.

Post-norm BERT layers, 12 heads, exact (erf) GELU. A sentence encoder ends in the mean of the tokens
scaled to length 1; a pair encoder ends in a head on the means of claim and text. The graph uses
standard operators with biases inside ``Gemm``: measured on CPU, ONNX Runtime optimises these to
something faster than its fused attention operators.

int8 quantises weights once, with one scale per output, and activations at run time, with one scale
per token. The usual dynamic quantisation of ONNX Runtime has one scale for the whole batch, so a
text's features would depend on the other texts; it was also slower and less precise here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MICROSOFT = "com.microsoft"
UINT8_MIDDLE = 128
INT8_LARGEST = 127


class OnnxGraph:
    """Nodes and constants of an ONNX graph while it is being built."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def constant(self, name: str, value: Array | np.generic) -> str:
        """Add a constant unless there is one with this name; return the name."""
        from onnx import numpy_helper

        if name not in self.constants:
            content = np.asarray(value, order="C")
            self.constants[name] = numpy_helper.from_array(content, name)
        return name

    def node(
        self, operator: str, inputs: list[str], output: str, domain: str = "", **attributes: Any
    ) -> str:
        """Add an operator with one output; return the output's name."""
        from onnx import helper

        node = helper.make_node(
            operator, inputs, [output], name=output, domain=domain, **attributes
        )
        self.nodes.append(node)
        return output


class GraphLayers(Protocol):
    """Adds embedding tables and linear layers to a graph."""

    def table(self, graph: OnnxGraph, ids: str, table: Array, name: str) -> str:
        """Rows of ``table`` [V, H] selected by ``ids``."""

    def linear(self, graph: OnnxGraph, source: str, weight: Array, bias: Array, name: str) -> str:
        """source [T, I] @ weight [I, O] + bias [O]."""


class Float32Layers:
    """GraphLayers with the published float32 weights."""

    def table(self, graph: OnnxGraph, ids: str, table: Array, name: str) -> str:
        return graph.node("Gather", [graph.constant(f"{name}.table", table), ids], name)

    def linear(self, graph: OnnxGraph, source: str, weight: Array, bias: Array, name: str) -> str:
        weights = graph.constant(f"{name}.weight", weight)
        return graph.node("Gemm", [source, weights, graph.constant(f"{name}.bias", bias)], name)


class Int8Layers:
    """GraphLayers with weights in int8 and activations in uint8, summed exactly in int32."""

    def __init__(self) -> None:
        self._quantised: dict[str, tuple[str, str]] = {}

    def table(self, graph: OnnxGraph, ids: str, table: Array, name: str) -> str:
        rows, scales = quantise(table, axis=1)
        graph.node("Gather", [graph.constant(f"{name}.table", rows), ids], f"{name}.int8")
        graph.node("Cast", [f"{name}.int8"], f"{name}.unscaled", to=1)
        graph.node("Gather", [graph.constant(f"{name}.scales", scales), ids], f"{name}.scale")
        return graph.node("Mul", [f"{name}.unscaled", f"{name}.scale"], name)

    def linear(self, graph: OnnxGraph, source: str, weight: Array, bias: Array, name: str) -> str:
        columns, scales = quantise(weight, axis=0)
        quantised, source_scale = self._quantise_tokens(graph, source)
        inputs = [
            quantised,
            graph.constant(f"{name}.weight", columns),
            graph.constant("one", np.float32(1.0)),
            graph.constant(f"{name}.scales", scales.ravel()),
            graph.constant("middle", np.uint8(UINT8_MIDDLE)),
        ]
        graph.node("MatMulIntegerToFloat", inputs, f"{name}.unscaled", MICROSOFT)
        graph.node("Mul", [f"{name}.unscaled", source_scale], f"{name}.unbiased")
        return graph.node("Add", [f"{name}.unbiased", graph.constant(f"{name}.bias", bias)], name)

    def _quantise_tokens(self, graph: OnnxGraph, source: str) -> tuple[str, str]:
        """``source`` in uint8 and the scale of each token; shared by query, key and value."""
        if source not in self._quantised:
            self._quantised[source] = _quantise_activations(graph, source)
        return self._quantised[source]


def _quantise_activations(graph: OnnxGraph, source: str) -> tuple[str, str]:
    last = graph.constant("last_axis", np.array([-1], dtype=np.int64))
    step = graph.constant("int8_step", np.float32(1.0 / INT8_LARGEST))
    # Avoids division by zero for a token that is all zeros.
    smallest = graph.constant("smallest_scale", np.float32(1e-30))
    graph.node("Abs", [source], f"{source}.abs")
    graph.node("ReduceMax", [f"{source}.abs", last], f"{source}.largest", keepdims=1)
    graph.node("Mul", [f"{source}.largest", step], f"{source}.step")
    scale = graph.node("Max", [f"{source}.step", smallest], f"{source}.scale")
    graph.node("Squeeze", [scale, last], f"{source}.scale_row")
    graph.node("Shape", [f"{source}.scale_row"], f"{source}.count")
    # uint8 around 128: ONNX Runtime multiplies int8 by int8 15 times slower than uint8 by int8.
    middle = graph.constant("middle", np.uint8(UINT8_MIDDLE))
    graph.node("Expand", [middle, f"{source}.count"], f"{source}.zero")
    inputs = [source, f"{source}.scale_row", f"{source}.zero"]
    return graph.node("QuantizeLinear", inputs, f"{source}.uint8", axis=0), scale


def quantise(weight: Array, axis: int) -> tuple[Array, Array]:
    """int8 weights and their float32 scales; the largest weight along ``axis`` becomes 127."""
    scales = np.abs(weight).max(axis=axis, keepdims=True) / INT8_LARGEST
    scales = np.maximum(scales, np.float32(1e-30)).astype(np.float32)
    return np.round(weight / scales).astype(np.int8), scales


Precision = Literal["float32", "int8"]
# Part of the export's name and of the reader ID: increase it when the features change.
GRAPH_VERSION: Final = 1
HEADS: Final = 12
EPSILON: Final = 1e-12
MASKED_SCORE: Final = -1e9
FLOAT, INT32, INT64 = 1, 6, 7
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")


def build_sentence_model(weights: Mapping[str, Array], precision: Precision) -> bytes:
    """The serialised ONNX model: ids [B, S] int32, lengths [B] int64 -> features [B, H]."""
    bert = _Bert(weights, _layers(precision))
    bert.pool_sentence(bert.encode())
    return _serialised(bert, "sentence encoder", ["lengths"], bert.width)


def build_pair_model(weights: Mapping[str, Array], precision: Precision) -> bytes:
    """The serialised ONNX model: ids [B, S] int32, starts [B] int64 (the position of the text's
    first token), lengths [B] int64 -> features [B, H + 3], the head's hidden vector and the logits
    of the stances. See ``training/pair_encoder.py`` for the same network in torch."""
    bert = _Bert(weights, _layers(precision), paired=True)
    bert.pool_pair(bert.encode())
    width = bert.width + weights["stance.bias"].shape[0]
    return _serialised(bert, "pair encoder", ["starts", "lengths"], width)


def _layers(precision: Precision) -> GraphLayers:
    return Float32Layers() if precision == "float32" else Int8Layers()


def _serialised(bert: _Bert, name: str, rows: list[str], width: int) -> bytes:
    """``rows`` are the inputs with one number per item."""
    from onnx import helper

    graph = helper.make_graph(
        bert.graph.nodes,
        name,
        [
            helper.make_tensor_value_info("ids", INT32, ["batch", "tokens"]),
            *(helper.make_tensor_value_info(row, INT64, ["batch"]) for row in rows),
        ],
        [helper.make_tensor_value_info("features", FLOAT, ["batch", width])],
        list(bert.graph.constants.values()),
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)]
    # The IR version is fixed, so that an older runtime can read what a newer onnx writes.
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="lpf")
    content: bytes = model.SerializeToString(deterministic=True)
    return content


class _Bert:
    """Builds the network layer by layer. Activations are [T, H] with T = batch x tokens."""

    def __init__(
        self, weights: Mapping[str, Array], layers: GraphLayers, *, paired: bool = False
    ) -> None:
        self.graph = OnnxGraph()
        self.weights = weights
        self.layers = layers
        self.paired = paired
        self.width = weights["embeddings.LayerNorm.weight"].shape[0]

    def encode(self) -> str:
        """All layers; returns the name of their output."""
        self._shapes_and_mask()
        stream = self._embed()
        found = [match for name in self.weights if (match := _LAYER.match(name))]
        for index in range(1 + max(int(match[1]) for match in found)):
            stream = self._attention(stream, f"encoder.layer.{index}.attention")
            stream = self._feed_forward(stream, f"encoder.layer.{index}")
        return stream

    def _integers(self, *values: int) -> str:
        name = "integers_" + "_".join(map(str, values))
        return self.graph.constant(name, np.array(values, dtype=np.int64))

    def _shapes_and_mask(self) -> None:
        node, constant = self.graph.node, self.graph.constant
        node("Shape", ["ids"], "shape")
        zero, one = constant("zero", np.int64(0)), constant("first", np.int64(1))
        node("Gather", ["shape", one], "tokens")
        node("Range", [zero, "tokens", one], "positions")
        node("Unsqueeze", ["lengths", self._integers(1)], "lengths_column")
        node("Less", ["positions", "lengths_column"], "mask")
        node("Unsqueeze", ["mask", self._integers(1, 2)], "mask_scores")
        keep, drop = (
            constant("keep", np.float32(0)),
            constant("drop", np.float32(MASKED_SCORE)),
        )
        node("Where", ["mask_scores", keep, drop], "score_bias")
        head_sizes = self._integers(HEADS, self.width // HEADS)
        node("Concat", ["shape", head_sizes], "shape_heads", axis=0)
        node("Concat", ["shape", self._integers(self.width)], "shape_stream", axis=0)

    def _embed(self) -> str:
        weights, node = self.weights, self.graph.node
        words = weights["embeddings.word_embeddings.weight"]
        places = weights["embeddings.position_embeddings.weight"]
        segments = weights["embeddings.token_type_embeddings.weight"]
        # The first segment's embedding is added to the positions, the second where a text is.
        self.layers.table(self.graph, "ids", words, "words")
        placed = self.graph.constant("places.table", places + segments[0])
        node("Gather", [placed, "positions"], "places")
        embedded = node("Add", ["words", "places"], "placed" if self.paired else "embedded")
        if self.paired:
            self._text_mask()
            change = self.graph.constant("segments.change", segments[1] - segments[0])
            node("Unsqueeze", ["is_text", self._integers(2)], "is_text_column")
            node("Mul", ["is_text_column", change], "segment_change")
            node("Add", [embedded, "segment_change"], "embedded")
        node("Reshape", ["embedded", self._integers(-1, self.width)], "embedded_flat")
        return self._normalise("embedded_flat", "embeddings.LayerNorm")

    def _attention(self, stream: str, name: str) -> str:
        node = self.graph.node
        query, key, value = (
            self._heads(stream, f"{name}.self.{role}", order)
            for role, order in (("query", "bhtd"), ("key", "bhdt"), ("value", "bhtd"))
        )
        node("MatMul", [query, key], f"{name}.scores")
        node("Add", [f"{name}.scores", "score_bias"], f"{name}.masked")
        node("Softmax", [f"{name}.masked"], f"{name}.probabilities", axis=-1)
        node("MatMul", [f"{name}.probabilities", value], f"{name}.context_heads")
        node("Transpose", [f"{name}.context_heads"], f"{name}.context_rows", perm=[0, 2, 1, 3])
        rows = [f"{name}.context_rows", self._integers(-1, self.width)]
        context = node("Reshape", rows, f"{name}.context")
        return self._add_and_normalise(context, stream, f"{name}.output")

    def _heads(self, stream: str, name: str, order: str) -> str:
        """Project and split into heads; ``order`` is the output layout, a permutation of "bthd"."""
        # Scaling the query weights saves scaling the scores.
        scale = (self.width // HEADS) ** -0.5 if name.endswith("query") else 1.0
        self._linear(stream, name, scale)
        self.graph.node("Reshape", [name, "shape_heads"], f"{name}.split")
        permutation = ["bthd".index(axis) for axis in order]
        return self.graph.node("Transpose", [f"{name}.split"], f"{name}.heads", perm=permutation)

    def _feed_forward(self, stream: str, name: str) -> str:
        wide = self._linear(stream, f"{name}.intermediate.dense")
        active = self.graph.node("Gelu", [wide], f"{name}.active")
        return self._add_and_normalise(active, stream, f"{name}.output")

    def _add_and_normalise(self, source: str, stream: str, name: str) -> str:
        change = self._linear(source, f"{name}.dense")
        added = self.graph.node("Add", [change, stream], f"{name}.sum")
        return self._normalise(added, f"{name}.LayerNorm")

    def _linear(self, source: str, name: str, scale: float = 1.0) -> str:
        factor = np.float32(scale)
        weight = self.weights[f"{name}.weight"].T * factor
        bias = self.weights[f"{name}.bias"] * factor
        return self.layers.linear(self.graph, source, weight, bias, name)

    def _normalise(self, source: str, name: str) -> str:
        parts = [f"{name}.weight", f"{name}.bias"]
        inputs = [source, *(self.graph.constant(part, self.weights[part]) for part in parts)]
        settings: dict[str, Any] = {"axis": -1, "epsilon": EPSILON}
        return self.graph.node("LayerNormalization", inputs, name, **settings)

    def pool_sentence(self, stream: str) -> None:
        """The mean of the tokens, scaled to length 1. Because of the scaling, a sum is enough."""
        node = self.graph.node
        node("Cast", ["mask"], "mask_weights", to=FLOAT)
        node("Reshape", [stream, "shape_stream"], "tokens_out")
        self._sum_over("mask_weights", "summed")
        node("LpNormalization", ["summed"], "features", axis=-1, p=2)

    def _text_mask(self) -> None:
        """Where tokens belong to the text [B, S], as float; positions from ``starts`` on."""
        node = self.graph.node
        node("Unsqueeze", ["starts", self._integers(1)], "starts_column")
        node("GreaterOrEqual", ["positions", "starts_column"], "after_claim")
        node("And", ["after_claim", "mask"], "in_text")
        node("Cast", ["in_text"], "is_text", to=FLOAT)

    def pool_pair(self, stream: str) -> None:
        """The head on [class token, claim, text, |claim - text|, claim * text]."""
        node = self.graph.node
        node("Reshape", [stream, "shape_stream"], "tokens_out")
        first = self.graph.constant("class_position", np.int64(0))
        node("Gather", ["tokens_out", first], "class_token", axis=1)
        node("Cast", ["mask"], "mask_weights", to=FLOAT)
        node("Sub", ["mask_weights", "is_text"], "is_claim")
        for part in ("claim", "text"):
            self._sum_over(f"is_{part}", f"{part}_sum")
            node("ReduceSum", [f"is_{part}", self._integers(1)], f"{part}_count", keepdims=1)
            node("Div", [f"{part}_sum", f"{part}_count"], part)
        node("Sub", ["claim", "text"], "difference")
        node("Abs", ["difference"], "distance")
        node("Mul", ["claim", "text"], "product")
        pooled = ["class_token", "claim", "text", "distance", "product"]
        node("Concat", pooled, "pooled", axis=1)
        self._linear("pooled", "hidden")
        node("Gelu", ["hidden"], "hidden_vector")
        self._linear("hidden_vector", "stance")
        node("Concat", ["hidden_vector", "stance"], "features", axis=1)

    def _sum_over(self, weights: str, name: str) -> str:
        """The weighted sum of the tokens' states, [B, H]."""
        node = self.graph.node
        node("Unsqueeze", [weights, self._integers(1)], f"{name}_weights")
        node("MatMul", [f"{name}_weights", "tokens_out"], f"{name}_row")
        return node("Squeeze", [f"{name}_row", self._integers(1)], name)
