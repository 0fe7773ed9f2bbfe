"""Numbers of an evaluation as values of a table."""

from __future__ import annotations

import math

from lpf.evaluation.summaries import Spread
from lpf_paper.exhibits import Value


def test_a_spread_becomes_the_value_of_a_table() -> None:
    spread = Spread(0.5, 0.1, 0.3, 0.7, runs=2)
    assert Value.of(spread, 0.2, "too good") == Value(0.5, 0.1, 0.3, 0.7, 0.2, "too good")


def test_an_infinite_mean_is_left_out() -> None:
    assert Value.of(Spread(math.inf, None, None, None, runs=2), paper=0.1) == Value(None, paper=0.1)
