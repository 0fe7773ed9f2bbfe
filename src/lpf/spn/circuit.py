"""A circuit: variables, nodes and a root. Structure only; `compile_circuit` runs it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from lpf.spn.checks import check_circuit
from lpf.spn.nodes import Leaf, Node, Product, Sum
from lpf.spn.variables import Variable


@dataclass(frozen=True)
class Circuit:
    """A valid circuit; an invalid one cannot be built (raises a CircuitError naming the node)."""

    variables: tuple[Variable, ...]
    nodes: tuple[Node, ...]
    root: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "nodes", tuple(self.nodes))
        check_circuit(self.variables, self.nodes, self.root)

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) of the canonical content. Node order counts: it fixes rounding too."""
        return hash_content(circuit_content(self))


def circuit_content(circuit: Circuit) -> dict[str, object]:
    """The circuit as plain JSON values. Floats keep all their bits (shortest round-trip form)."""
    return {
        "variables": [[variable.name, list(variable.values)] for variable in circuit.variables],
        "nodes": [_node_content(node) for node in circuit.nodes],
        "root": circuit.root,
    }


def hash_content(content: dict[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _node_content(node: Node) -> list[object]:
    match node:
        case Leaf(variable, probabilities):
            return ["leaf", variable, [float(p) for p in probabilities]]
        case Product(children):
            return ["product", list(children)]
        case Sum(children, weights):
            return ["sum", list(children), [float(w) for w in weights]]
