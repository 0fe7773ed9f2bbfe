"""The two kinds of layer a graph is built from: float32, and int8 with one scale a token.

int8 quantises weights once (one scale an output) and activations as they pass, each token with
its own scale. ONNX Runtime's usual dynamic quantisation takes one scale for the whole batch, so a
text's features would depend on its neighbours; measured, it is also slower here and loses more.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MICROSOFT = "com.microsoft"
UINT8_MIDDLE = 128
INT8_LARGEST = 127


class Graph:
    """Nodes and constants of an ONNX graph while it is being built; names are ours to choose."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def constant(self, name: str, value: Array | np.generic) -> str:
        """Add a constant, or find the one of that name."""
        from onnx import numpy_helper

        if name not in self.constants:
            content = np.asarray(value, order="C")
            self.constants[name] = numpy_helper.from_array(content, name)
        return name

    def node(
        self, operator: str, inputs: list[str], output: str, domain: str = "", **attributes: Any
    ) -> str:
        """Add an operator with one output; gives the output's name."""
        from onnx import helper

        made = helper.make_node(
            operator, inputs, [output], name=output, domain=domain, **attributes
        )
        self.nodes.append(made)
        return output


class Layers(Protocol):
    """How a look-up table and a linear layer are put into the graph."""

    def table(self, graph: Graph, ids: str, table: Array, name: str) -> str:
        """Rows of ``table`` [V, H] chosen by ``ids``."""

    def linear(self, graph: Graph, source: str, weight: Array, bias: Array, name: str) -> str:
        """source [T, I] @ weight [I, O] + bias [O]."""


class Float32Layers:
    """Layers that keep the published weights as they are."""

    def table(self, graph: Graph, ids: str, table: Array, name: str) -> str:
        return graph.node("Gather", [graph.constant(f"{name}.table", table), ids], name)

    def linear(self, graph: Graph, source: str, weight: Array, bias: Array, name: str) -> str:
        weights = graph.constant(f"{name}.weight", weight)
        return graph.node("Gemm", [source, weights, graph.constant(f"{name}.bias", bias)], name)


class Int8Layers:
    """Layers with weights in int8 and activations in uint8, summed exactly in int32."""

    def __init__(self) -> None:
        self._quantised: dict[str, tuple[str, str]] = {}

    def table(self, graph: Graph, ids: str, table: Array, name: str) -> str:
        rows, scales = _quantise(table, axis=1)
        graph.node("Gather", [graph.constant(f"{name}.table", rows), ids], f"{name}.int8")
        graph.node("Cast", [f"{name}.int8"], f"{name}.unscaled", to=1)
        graph.node("Gather", [graph.constant(f"{name}.scales", scales), ids], f"{name}.scale")
        return graph.node("Mul", [f"{name}.unscaled", f"{name}.scale"], name)

    def linear(self, graph: Graph, source: str, weight: Array, bias: Array, name: str) -> str:
        columns, scales = _quantise(weight, axis=0)
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

    def _quantise_tokens(self, graph: Graph, source: str) -> tuple[str, str]:
        """``source`` in uint8 and the scale of each token; done once for query, key and value."""
        if source not in self._quantised:
            self._quantised[source] = _quantise_activations(graph, source)
        return self._quantised[source]


def _quantise_activations(graph: Graph, source: str) -> tuple[str, str]:
    last = graph.constant("last_axis", np.array([-1], dtype=np.int64))
    step = graph.constant("int8_step", np.float32(1.0 / INT8_LARGEST))
    # A token of nothing but zeros would divide by zero.
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


def _quantise(weight: Array, axis: int) -> tuple[Array, Array]:
    """int8 weights and the float32 scales that undo them, largest weight along ``axis`` = 127."""
    scales = np.abs(weight).max(axis=axis, keepdims=True) / INT8_LARGEST
    scales = np.maximum(scales, np.float32(1e-30)).astype(np.float32)
    return np.round(weight / scales).astype(np.int8), scales
