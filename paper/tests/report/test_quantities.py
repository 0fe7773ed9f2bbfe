from __future__ import annotations

import math

import pytest

from lpf.report.page import decimals, points
from lpf_paper.exhibits import Column, Kind
from lpf_paper.report.quantities import (
    alike,
    difference,
    duration,
    is_seen,
    quantity,
    rounded,
    two_digits,
)


def column(kind: Kind) -> Column:
    return Column("a", "A", kind, decimals=3)


@pytest.mark.parametrize(
    ("kind", "number", "words"),
    [
        ("share", 0.97849, "0.978"),
        ("share", 0.0001, "< 0.001"),
        ("number", -0.0001, "0.000"),
        ("number", -0.0, "0.000"),
        ("number", -0.0006, "−0.001"),
        ("number", -12345.6, "−12,345.600"),
        ("number", math.inf, "∞"),
        ("number", -math.inf, "−∞"),
        ("number", math.nan, "—"),
        ("count", 12345.0, "12,345"),
        ("count", 2.5, "2.5"),
        ("count", 0.01, "< 0.1"),
        ("seconds", 0.0123, "12.3 ms"),
        ("seconds", 1e-9, "< 0.001 ms"),
        ("seconds", -1e-9, "0 ms"),
        ("seconds", 59.99, "60.0 s"),
        ("seconds", 245.0, "4 min 05 s"),
        ("seconds", math.inf, "∞"),
        ("milliseconds", 14.8, "14.8 ms"),
        ("milliseconds", 1240.0, "1.24 s"),
        ("bytes", 0.0, "0 B"),
        ("bytes", 999.0, "999 B"),
        ("bytes", 1000.0, "1.00 kB"),
        ("bytes", 1234567.0, "1.23 MB"),
        ("bytes", math.inf, "∞"),
    ],
)
def test_numbers_as_a_reader_meets_them(kind: Kind, number: float, words: str) -> None:
    assert quantity(column(kind), number) == words


def test_beside_others_tiny_numbers_round_to_0() -> None:
    found = [rounded(column("number"), one) for one in (0.0001, -0.0001, 0.001, -0.001, None)]
    assert found == ["0.000", "0.000", "0.001", "−0.001", "—"]


@pytest.mark.parametrize(
    ("kind", "number", "spread", "seen"),
    [
        ("share", 0.5, 0.0, False),
        ("share", 0.5, 0.0004, False),
        ("share", 0.5, 0.0006, True),
        ("seconds", 179.0, 0.000499, False),  # 2 min 59 s
        ("seconds", 179.0, 0.6, True),
        ("seconds", 7512.0, 20.0, False),  # 2 h 05 min
        ("seconds", 7512.0, 40.0, True),
        ("seconds", 53.4, 0.04, False),  # 53.4 s
        ("seconds", 53.4, 0.06, True),
        ("seconds", 0.0123, 0.00004, False),  # 12.3 ms
        ("milliseconds", 12.3, 0.06, True),
        ("milliseconds", 12.3, 0.04, False),
        ("bytes", 3_210_000.0, 0.0, False),  # 3.21 MB
        ("bytes", 3_210_000.0, 4_000.0, False),
        ("bytes", 3_210_000.0, 6_000.0, True),
        ("bytes", 0.0, 0.0, False),
        ("count", 12.0, 0.04, False),
        ("count", 12.0, 0.4, True),
    ],
)
def test_a_spread_is_seen_from_half_a_last_digit_on(
    kind: Kind, number: float, spread: float, seen: bool
) -> None:
    assert is_seen(column(kind), number, spread) is seen


def test_the_spread_of_what_is_no_number_is_seen() -> None:
    assert is_seen(column("share"), None, 0.0001)


def test_differences_have_signs() -> None:
    found = [difference(column("share"), one) for one in (0.012, -0.012, 0.0, 1e-5, -1e-5)]
    assert found == ["+0.012", "−0.012", "0.000", "0.000", "0.000"]
    assert difference(column("seconds"), -0.0123) == "−12.3 ms"


def test_durations() -> None:
    assert duration(7512) == "2 h 05 min"


def test_two_digits_that_count() -> None:
    numbers = (0.0618, 0.1715, 5.7, 9.96, 40.3, 912.0, 5712.0, 0.0, 1e-5, 3.2e8, -0.034, math.nan)
    assert [two_digits(one) for one in numbers] == [
        *("0.062", "0.17", "5.7", "10", "40", "910", "5,700", "0"),
        *("1.0e−05", "3.2e+08", "−0.034", "—"),
    ]


def test_zero_has_no_minus_sign() -> None:
    assert alike([0.5, -0.0001]) == ["0.500", "0.000"]
    assert decimals(-0.0001) == "0.000"
    assert points(-0.0003) == "+0.0"
