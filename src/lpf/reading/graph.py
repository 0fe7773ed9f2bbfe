"""all-MiniLM-L6-v2 as an ONNX graph, written straight from its weights.

Six post-norm BERT layers, 12 heads, exact (erf) GELU, then the mean of the tokens scaled to
length 1. Standard operators with biases inside ``Gemm``: measured on CPU, ONNX Runtime's fused
attention and skip-layer-norm operators are slower than its optimiser makes of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from lpf.reading.layers import MICROSOFT, Array, Float32Layers, Graph, Int8Layers, Layers

Precision = Literal["float32", "int8"]
# Part of every export's name and of the reader's id: raise it when a change moves the features.
GRAPH_VERSION: Final = 1
HEADS: Final = 12
LAYERS: Final = 6
EPSILON: Final = 1e-12
MASKED_SCORE: Final = -1e9
FLOAT, INT32, INT64 = 1, 6, 7


def build_model(weights: Mapping[str, Array], precision: Precision) -> bytes:
    """The serialised ONNX model: ids [B, S] int32, lengths [B] int64 -> features [B, 384]."""
    from onnx import helper

    bert = _Bert(weights, Float32Layers() if precision == "float32" else Int8Layers())
    bert.build()
    width = weights["embeddings.LayerNorm.weight"].shape[0]
    graph = helper.make_graph(
        bert.graph.nodes,
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info("ids", INT32, ["batch", "tokens"]),
            helper.make_tensor_value_info("lengths", INT64, ["batch"]),
        ],
        [helper.make_tensor_value_info("features", FLOAT, ["batch", width])],
        list(bert.graph.constants.values()),
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)]
    # The IR version is fixed so that a newer onnx still writes what an older runtime reads.
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="lpf")
    content: bytes = made.SerializeToString(deterministic=True)
    return content


class _Bert:
    """Writes the network, top to bottom. Activations are [T, H] with T = batch x tokens."""

    def __init__(self, weights: Mapping[str, Array], layers: Layers) -> None:
        self.graph = Graph()
        self.weights = weights
        self.layers = layers
        self.width = weights["embeddings.LayerNorm.weight"].shape[0]

    def build(self) -> None:
        self._shapes_and_mask()
        stream = self._embed()
        for index in range(LAYERS):
            stream = self._attention(stream, f"encoder.layer.{index}.attention")
            stream = self._feed_forward(stream, f"encoder.layer.{index}")
        self._pool(stream)

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
        # Every text is one segment, so the segment's row can be part of each position's.
        places = weights["embeddings.position_embeddings.weight"]
        places = places + weights["embeddings.token_type_embeddings.weight"][0]
        self.layers.table(self.graph, "ids", words, "words")
        node("Gather", [self.graph.constant("places.table", places), "positions"], "places")
        node("Add", ["words", "places"], "embedded")
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
        """Project and split into heads; ``order`` is the layout asked of "bthd"."""
        # The scores' scale goes into the query's weights: one pass over the scores less.
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

    def _pool(self, stream: str) -> None:
        """Mean over the tokens, scaled to length 1; the scaling makes a sum as good as a mean."""
        node = self.graph.node
        node("Cast", ["mask"], "mask_weights", to=FLOAT)
        node("Unsqueeze", ["mask_weights", self._integers(1)], "mask_row")
        node("Reshape", [stream, "shape_stream"], "tokens_out")
        node("MatMul", ["mask_row", "tokens_out"], "summed_row")
        node("Squeeze", ["summed_row", self._integers(1)], "summed")
        node("LpNormalization", ["summed"], "features", axis=-1, p=2)
