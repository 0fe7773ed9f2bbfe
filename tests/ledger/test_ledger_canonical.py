"""The fast writer of canonical JSON, with the package rfc8785 as referee."""

from __future__ import annotations

import enum
import json
import math
import struct
from typing import Any

import numpy as np
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.errors import LedgerError
from lpf.ledger.canonical import LARGEST_INTEGER, canonical, canonical_around

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@given(VALUES)
@settings(max_examples=150)
def test_canonical_json_agrees_with_rfc8785(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=1000)
def test_every_double_is_written_as_rfc8785_does(bits: int) -> None:
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    if math.isfinite(number):
        assert canonical(number) == rfc8785.dumps(number)
        assert float(canonical(number)) == number


@pytest.mark.parametrize(
    ("number", "text"),
    # Appendix B of RFC 8785.
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e21, "1e+21"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (333333333.33333325, "333333333.33333325"),
        (1424953923781206.2, "1424953923781206.2"),
    ],
)
def test_numbers_of_the_standard(number: float, text: str) -> None:
    assert canonical(number) == text.encode()


def test_keys_are_sorted_by_utf16_code_units() -> None:
    """Section 3.2.3: a character beyond the basic plane comes before U+FB33."""
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(canonical(value)).values()) == [2, 4, 6, 7, 1, 5, 3]


@given(st.dictionaries(TEXTS, ATOMS), TEXTS)
def test_a_missing_value_fits_between_before_and_after(fields: dict[str, Any], name: str) -> None:
    others = {other: value for other, value in fields.items() if other != name}
    before, after = canonical_around(others, name)
    assert before + b"0.5" + after == rfc8785.dumps({**others, name: 0.5})


class Colour(enum.StrEnum):
    RED = "red"


def test_subclasses_are_written_as_their_bases() -> None:
    value = {"a": np.float64(0.5), "b": Colour.RED, "c": enum.IntEnum("N", ["ONE"]).ONE, "d": (1,)}
    assert canonical(value) == b'{"a":0.5,"b":"red","c":1,"d":[1]}'


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        2**53,
        -(2**53),
        "\ud800",
        {"\udfff": 1},
        {1: 2},
        {None: 2},
        {"a": b"bytes"},
        {"a": {1, 2}},
        np.float32(1.0),
    ],
)
def test_values_without_a_json_form_are_refused(value: Any) -> None:
    with pytest.raises(LedgerError, match="nothing was written"):
        canonical([value])


def test_a_circular_value_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(LedgerError, match="nested"):
        canonical(value)
