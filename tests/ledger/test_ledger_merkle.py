"""The trees of the writer and the verifier, compared with the definition in RFC 6962."""

from __future__ import annotations

import ast
from hashlib import sha256
from pathlib import Path

import pytest

import lpf.ledger
from lpf.ledger import check_bundle
from lpf.ledger.merkle import Frontier, consistency_path, fold, inclusion_path, leaf_hash, root_of
from lpf.ledger.verifier.tree import CountingTree, leaf_of

SIZES = range(71)
BODIES = [f"record {number}".encode() for number in SIZES]
LEAVES = [leaf_hash(body) for body in BODIES]
# Inputs and roots from the tests of the Certificate Transparency project.
VECTOR_BODIES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
VECTOR_ROOTS = {
    0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


def naive_root(bodies: list[bytes]) -> bytes:
    """MTH of RFC 6962, 2.1, as written there."""
    if not bodies:
        return sha256(b"").digest()
    if len(bodies) == 1:
        return sha256(b"\x00" + bodies[0]).digest()
    split = 1
    while split * 2 < len(bodies):
        split *= 2
    halves = naive_root(bodies[:split]) + naive_root(bodies[split:])
    return sha256(b"\x01" + halves).digest()


class InMemory:
    def subtree(self, height: int, index: int) -> bytes:
        return fold(LEAVES[index << height : (index + 1) << height])


def both_roots(bodies: list[bytes]) -> tuple[bytes, bytes]:
    frontier, tree = Frontier(), CountingTree()
    for body in bodies:
        frontier.append(leaf_hash(body))
        tree.add(leaf_of(body))
    return frontier.root(), tree.root()


@pytest.mark.parametrize("size", VECTOR_ROOTS)
def test_roots_of_known_vectors(size: int) -> None:
    expected = bytes.fromhex(VECTOR_ROOTS[size])
    assert both_roots(VECTOR_BODIES[:size]) == (expected, expected)


@pytest.mark.parametrize("size", SIZES)
def test_roots_of_every_size(size: int) -> None:
    expected = naive_root(BODIES[:size])
    assert both_roots(BODIES[:size]) == (expected, expected)
    assert root_of(InMemory(), 0, size) == expected
    assert Frontier.of(InMemory(), size).root() == expected


@pytest.mark.parametrize("size", SIZES[1:])
def test_every_inclusion_path_leads_to_the_root(size: int) -> None:
    root = naive_root(BODIES[:size])
    for index in range(size):
        path = [node.hex() for node in inclusion_path(InMemory(), index, size)]
        assert check_bundle.climb(index, size - 1, LEAVES[index], path)[1] == root.hex()
        if size > 1:
            other = LEAVES[(index + 1) % size]
            assert check_bundle.climb(index, size - 1, other, path)[1] != root.hex()


@pytest.mark.parametrize("second", SIZES[2:])
def test_every_consistency_path_leads_to_both_roots(second: int) -> None:
    for first in range(1, second):
        facts = {"key": "k", "origin": "o"}
        old = {**facts, "size": first, "root": naive_root(BODIES[:first]).hex()}
        new = {**facts, "size": second, "root": naive_root(BODIES[:second]).hex()}
        path = [node.hex() for node in consistency_path(InMemory(), first, second)]
        assert check_bundle.consistent({"path": path}, old, new)
        for forged in ({**old, "root": "00" * 32}, {**old, "size": first + 1}):
            with pytest.raises(check_bundle.InvalidBundleError):
                check_bundle.consistent({"path": path}, forged, new)


def test_tile_entries_are_roots_of_the_level_below() -> None:
    tree = CountingTree()
    leaves = [leaf_hash(str(number).encode()) for number in range(1024)]
    above = [entry for leaf in leaves for entry in tree.add(leaf) if entry[0]]
    assert above == [(1, n, fold(leaves[256 * n : 256 * n + 256])) for n in range(4)]


def test_the_verifier_shares_only_formats_with_the_writer() -> None:
    folder = Path(lpf.ledger.__file__).parent
    for path in (folder / "verifier").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = node.module if isinstance(node, ast.ImportFrom) else None
            if name and name.startswith("lpf.ledger"):
                assert name == "lpf.ledger.formats" or name.startswith("lpf.ledger.verifier.")
    assert "lpf." not in (folder / "check_bundle.py").read_text()
    assert "import rfc8785" not in (folder / "canonical.py").read_text()
