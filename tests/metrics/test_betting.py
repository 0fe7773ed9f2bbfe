"""The bet against a promise: worked by hand, and its false alarms and its power by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from lpf.metrics.betting import (
    LEVEL,
    POWERS,
    SHARES,
    against_held_out,
    against_probabilities,
    alarm_at,
    conformal_p_values,
    how_far_off,
    tolerated_share,
)
from lpf.metrics.prediction_sets import surprise


def test_the_first_outcomes_by_hand() -> None:
    rows, labels = np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([1, 0])
    paid = [np.mean([(1 - s) + s / (2 * p) for s in SHARES]) for p in (0.1, 0.8)]
    both = np.mean([((1 - s) + s / 0.2) * ((1 - s) + s / 1.6) for s in SHARES])
    # Half of the capital bets from the first outcome on, a sixth from the second, the rest waits.
    expected = [paid[0] / 2 + 1 / 2, both / 2 + paid[1] / 6 + 1 / 3]
    assert np.exp(against_probabilities(rows, labels)) == pytest.approx(expected)


def test_conformal_p_values_by_hand() -> None:
    found = conformal_p_values([2.5, 0.5, 2.5], [1.0, 2.0, 3.0])
    assert found == pytest.approx([2 / 4, 5 / 5, 3 / 6])
    capital = np.exp(against_held_out([2.5], [1.0, 2.0, 3.0]))
    assert capital == pytest.approx([np.mean([k * 0.5 ** (k - 1) for k in POWERS]) / 2 + 1 / 2])


def test_right_answers_are_less_far_off_than_wrong_ones() -> None:
    found = how_far_off([0.1, 0.5, 1.2, 3.0], [0.1, 0.5, 0.8, 0.2])
    assert (np.diff(found) > 0).all()
    assert (found < 0).tolist() == [True, True, False, False]


@pytest.mark.parametrize("tolerated", [0.0, 0.1])
def test_every_bet_is_fair_or_worse_if_the_promise_holds(tolerated: float) -> None:
    """The mean capital after one outcome, over the values it may have."""
    stated = np.array([0.7, 0.25, 0.05])
    for unrelated in (0.0, tolerated / 2, tolerated):
        truth = (1 - unrelated) * stated + unrelated / 3
        rows = np.tile(stated, (1, 1))
        capital = [
            np.exp(against_probabilities(rows, np.array([label]), tolerated))[0]
            for label in range(3)
        ]
        assert truth @ capital <= 1.0 + 1e-12


def test_a_value_that_was_ruled_out_refutes_at_once() -> None:
    capital = against_probabilities(np.array([[1.0, 0.0]]), np.array([1]))
    assert np.isfinite(capital).all()
    assert alarm_at(capital) == 0


def test_more_tests_need_more_evidence() -> None:
    capital = np.log([1.0, 1 / LEVEL, 3 / LEVEL])
    assert (alarm_at(capital), alarm_at(capital, tests=2), alarm_at(capital, tests=4)) == (
        1,
        2,
        None,
    )
    assert alarm_at(np.empty(0)) is None


def test_few_held_out_entities_tolerate_more() -> None:
    few, many = tolerated_share(np.full(20, 0.9), 2), tolerated_share(np.full(500, 0.9), 2)
    assert 0.0 <= many < few < 1.0
    assert tolerated_share(np.tile([0.99, 0.01], 50), 2) > 0.5


def stream(
    random: np.random.Generator, count: int, flipped: float = 0.0, values: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """Answers [N, V] of all degrees of sureness, and true values [N] drawn from them."""
    rows = random.dirichlet(np.full(values, 0.3), size=count)
    labels = (rows.cumsum(axis=1) > random.random(count)[:, None]).argmax(axis=1)
    other = (labels + random.integers(1, values, size=count)) % values
    return rows, np.where(random.random(count) < flipped, other, labels)


def bets(
    random: np.random.Generator, flipped: float, count: int, held_out: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Both bets, with a share tolerated that held-out entities like them do not rule out."""
    rows, labels = stream(random, count, flipped)
    before, truth = stream(random, held_out)
    places, now = np.arange(held_out), np.arange(count)
    tolerated = tolerated_share(before[places, truth], 3)
    old, new = surprise(before), surprise(rows)
    return (
        against_probabilities(rows, labels, tolerated),
        against_held_out(
            how_far_off(new[now, labels], new.min(axis=1)),
            how_far_off(old[places, truth], old.min(axis=1)),
        ),
    )


def test_flips_are_detected() -> None:
    stated, _ = bets(np.random.default_rng(1), 0.2, 400)
    assert alarm_at(stated) is not None


@pytest.mark.slow
def test_false_alarms_are_at_most_as_frequent_as_promised() -> None:
    """A look after each of 500 outcomes, in 1,000 streams; without any tolerance too."""
    random = np.random.default_rng(2)
    runs, alarms = 1000, np.zeros(3)
    for _ in range(runs):
        stated, before = bets(random, 0.0, 500)
        strict = against_probabilities(*stream(random, 500))
        alarms += [alarm_at(one) is not None for one in (stated, before, strict)]
    print("false alarms", alarms / runs)
    assert (alarms / runs <= LEVEL).all()


@pytest.mark.slow
@pytest.mark.parametrize(("good", "most"), [(0, 60), (500, 150)])
def test_power_against_flips_from_the_beginning_and_later(good: int, most: int) -> None:
    """If a fifth of the outcomes is flipped, half of the alarms come within ``most`` of them, even
    after a long good time."""
    random, delays = np.random.default_rng(3), []
    for _ in range(200):
        before, truth = stream(random, 200)
        tolerated = tolerated_share(before[np.arange(200), truth], 3)
        fine, bad = stream(random, good), stream(random, 1000, 0.2)
        rows, labels = (np.concatenate(pair) for pair in zip(fine, bad, strict=True))
        at = alarm_at(against_probabilities(rows, labels, tolerated))
        delays.append(np.inf if at is None else at + 1 - good)
    print("outcomes until the alarm", np.quantile(delays, [0.1, 0.5, 0.9]))
    assert np.median(delays) <= most
    assert np.isfinite(delays).mean() >= 0.99
