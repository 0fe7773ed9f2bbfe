"""Circuits as JSON with a hash. Loading checks everything and never runs code."""

from __future__ import annotations

import json
from typing import Any

from lpf.circuits.circuit import Circuit, Leaf, Node, Product, Sum, Variable, circuit_content
from lpf.errors import CircuitFormatError

FORMAT = "lpf-circuit"
VERSION = 1


def dump_circuit(circuit: Circuit) -> str:
    """Return the circuit as JSON. The same circuit always gives the same text."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "hash": circuit.hash,
        "circuit": circuit_content(circuit),
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def load_circuit(text: str) -> Circuit:
    """Read a circuit written by `dump_circuit`.

    Raises CircuitFormatError if the text is not a circuit document, has an unknown version or was
    changed, and another CircuitError if the circuit is not valid.
    """
    document = _parse(text)
    try:
        circuit = _circuit(document["circuit"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, CircuitFormatError) or not _is_plain(error):
            raise
        raise CircuitFormatError(f"The circuit document is corrupted: {error!r}.") from error
    if circuit.hash != document.get("hash"):
        raise CircuitFormatError(
            f"The circuit was changed: its content hashes to {circuit.hash}, "
            f"the document says {document.get('hash')!r}. It was not loaded."
        )
    return circuit


def _parse(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CircuitFormatError(f"Not a JSON document: {error}.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CircuitFormatError(f"Not a circuit document: its format is not {FORMAT!r}.")
    if document.get("version") != VERSION:
        raise CircuitFormatError(
            f"Unknown circuit format version {document.get('version')!r}; "
            f"this version of lpf reads version {VERSION}."
        )
    return document


def _refuse_constant(name: str) -> float:
    raise CircuitFormatError(f"The circuit document contains {name}; numbers must be finite.")


def _is_plain(error: Exception) -> bool:
    # Errors of this package already name the node.
    return not type(error).__module__.startswith("lpf.")


def _circuit(content: Any) -> Circuit:
    variables = tuple(
        Variable(_text(name), _texts(values)) for name, values in content["variables"]
    )
    nodes = tuple(_node(entry) for entry in content["nodes"])
    return Circuit(variables, nodes, _index(content["root"]))


def _node(entry: Any) -> Node:
    match entry:
        case ["leaf", str(variable), list(probabilities)]:
            return Leaf(variable, tuple(_number(p) for p in probabilities))
        case ["product", list(children)]:
            return Product(tuple(_index(child) for child in children))
        case ["sum", list(children), list(weights)]:
            return Sum(
                tuple(_index(child) for child in children), tuple(_number(w) for w in weights)
            )
    raise CircuitFormatError(f"Not a node: {entry!r}.")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise CircuitFormatError(f"Expected a string, found {value!r}.")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise CircuitFormatError(f"Expected a list of strings, found {values!r}.")
    return tuple(_text(value) for value in values)


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise CircuitFormatError(f"Expected a node index, found {value!r}.")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, float):
        raise CircuitFormatError(f"Expected a decimal number, found {value!r}.")
    return value
