"""Circuits as JSON: exact round trip, stable hash, any change is refused."""

import hashlib
import json

import pytest
from circuit_strategies import random_circuit
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.circuits import CircuitBuilder, Variable, dump_circuit, load_circuit, prior_circuit
from lpf.circuits.circuit import hash_content
from lpf.errors import CircuitError, CircuitFormatError, NotNormalisedError

SMALL = prior_circuit([Variable("a", ("x", "ÿ"))], {"a": [0.25, 0.75]})


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_round_trip(seed):
    circuit = random_circuit(seed, zeros=0.2)
    text = dump_circuit(circuit)
    assert load_circuit(text) == circuit
    assert load_circuit(text).hash == circuit.hash
    assert dump_circuit(load_circuit(text)) == text


def test_hash_does_not_change():
    # Ledger records contain this hash: another text would break old records.
    text = r'{"nodes":[["leaf","a",[0.25,0.75]]],"root":0,"variables":[["a",["x","\u00ff"]]]}'
    assert SMALL.hash == hashlib.sha256(text.encode()).hexdigest()
    assert SMALL.hash.startswith("3fcf3afcf9c69354")


def test_integers_given_for_floats_do_not_change_the_hash():
    builder = CircuitBuilder([Variable("a", ("x", "y"))])
    first = builder.build(builder.leaf("a", [1, 0]))
    builder = CircuitBuilder([Variable("a", ("x", "y"))])
    assert first.hash == builder.build(builder.leaf("a", [1.0, 0.0])).hash


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"format":"other"}', "[" * 100_000])
def test_other_documents_are_refused(text):
    with pytest.raises(CircuitFormatError):
        load_circuit(text)


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_unknown_versions_are_refused(version):
    document = json.loads(dump_circuit(SMALL)) | {"version": version}
    with pytest.raises(CircuitFormatError, match="version"):
        load_circuit(json.dumps(document))


def changed(**parts):
    document = json.loads(dump_circuit(SMALL))
    document["circuit"].update(parts)
    return document


@pytest.mark.parametrize(
    "parts",
    [
        {"nodes": [["leaf", "a", [0.75, 0.25]]]},
        {"variables": [["a", ["x", "z"]]]},
        {"nodes": [["leaf", "a", ["0.25", 0.75]]]},
        {"nodes": [["gaussian", "a", [0.0, 1.0]]]},
        {"nodes": None},
        {"variables": [["a"]]},
        {"variables": [["a", "xy"]]},
        {"variables": [[1, ["x", "ÿ"]]]},
        {"root": "0"},
        {"root": True},
        {"nodes": [["product", [0.0]]]},
    ],
)
def test_changed_content_is_refused(parts):
    with pytest.raises(CircuitFormatError):
        load_circuit(json.dumps(changed(**parts)))


def test_a_missing_part_is_refused():
    with pytest.raises(CircuitFormatError):
        load_circuit('{"format":"lpf-circuit","version":1}')


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_must_be_finite(constant):
    with pytest.raises(CircuitFormatError, match=constant):
        load_circuit(dump_circuit(SMALL).replace("0.25", constant))


def test_invalid_circuit_with_correct_hash_is_refused():
    document = changed(nodes=[["leaf", "a", [0.5, 0.75]]])
    document["hash"] = hash_content(document["circuit"])
    with pytest.raises(NotNormalisedError):
        load_circuit(json.dumps(document))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.characters(codec="ascii"))
def test_any_changed_character_is_refused(place, character):
    text = dump_circuit(SMALL)
    place %= len(text)
    other = text[:place] + character + text[place + 1 :]
    try:
        loaded = load_circuit(other)
    except CircuitError:
        return
    assert loaded == SMALL
