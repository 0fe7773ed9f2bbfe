"""Ways to put a circuit together: by hand, or from independent priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lpf.spn.circuit import Circuit
from lpf.spn.nodes import Leaf, Node, Product, Sum
from lpf.spn.variables import Variable, resolve_priors


class CircuitBuilder:
    """Collects nodes and gives each an index; `build` checks the whole."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = tuple(variables)
        self._nodes: list[Node] = []

    def leaf(self, variable: str, probabilities: Sequence[float]) -> int:
        return self._add(Leaf(variable, tuple(float(p) for p in probabilities)))

    def indicator(self, variable: str, position: int, size: int) -> int:
        """A leaf that is certain of one value."""
        return self.leaf(variable, [float(place == position) for place in range(size)])

    def product(self, children: Sequence[int]) -> int:
        """A product node; a single child is returned as it is."""
        return children[0] if len(children) == 1 else self._add(Product(tuple(children)))

    def sum(self, children: Sequence[int], weights: Sequence[float]) -> int:
        return self._add(Sum(tuple(children), tuple(float(w) for w in weights)))

    def build(self, root: int) -> Circuit:
        """Raises a CircuitError that names the node at fault."""
        return Circuit(self._variables, tuple(self._nodes), root)

    def _add(self, node: Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1


def prior_circuit(
    variables: Sequence[Variable], priors: Mapping[str, Sequence[float]] | None = None
) -> Circuit:
    """All variables independent, each with its prior (uniform where none is given).

    What is left when there is nothing to learn from. Raises as `resolve_priors` does.
    """
    builder = CircuitBuilder(variables)
    resolved = resolve_priors(variables, priors)
    leaves = [builder.leaf(name, prior) for name, prior in resolved.items()]
    return builder.build(builder.product(leaves))
