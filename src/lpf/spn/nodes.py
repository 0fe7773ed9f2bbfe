"""The three kinds of node. Children are indexes into the circuit's tuple of nodes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leaf:
    """A categorical distribution over one variable; one probability for each of its values."""

    variable: str
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """Independent parts: the children's scopes are disjoint."""

    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """A mixture: all children have the same scope; one weight for each child."""

    children: tuple[int, ...]
    weights: tuple[float, ...]


Node = Leaf | Product | Sum


def children_of(node: Node) -> tuple[int, ...]:
    return () if isinstance(node, Leaf) else node.children


def describe(index: int, node: Node) -> str:
    """How an error names a node."""
    if isinstance(node, Leaf):
        return f"Node {index} (leaf of {node.variable!r})"
    return f"Node {index} ({type(node).__name__.lower()})"
