from __future__ import annotations

import math
from statistics import mean, stdev

import numpy as np
import pytest
from answered_runs import a_crash, a_run, calibrated_run

from lpf import metrics
from lpf.evaluation.measures import measure
from lpf.evaluation.predictions import Costs, Predictions
from lpf.evaluation.summaries import entity_keys, summarise

BOUNDED = {"accuracy", "nll", "brier", "mean_confidence", "ece"}


def test_means_and_spread_over_seeds() -> None:
    runs = [calibrated_run(80, seed, costs=Costs(fit_seconds=seed)) for seed in range(4)]
    found = summarise(runs, draws=200)
    assert (found.runs, found.all_runs, found.notes, found.draws, found.seed) == (4, 4, (), 200, 0)
    each = [measure(run) for run in runs]
    assert set(found.spreads) == set(each[0])
    for name, spread in found.spreads.items():
        values = [one[name] for one in each]
        assert spread.mean == pytest.approx(mean(values), rel=0, abs=1e-12)
        assert spread.sd == pytest.approx(stdev(values), rel=0, abs=1e-12)
        assert (spread.low is None) == (name not in BOUNDED)
        if spread.low is not None and spread.high is not None:
            assert spread.low <= spread.mean <= spread.high
    assert summarise(runs, draws=200) == found
    assert summarise(runs, draws=200, seed=1) != found


def test_one_run_has_an_interval_but_no_spread() -> None:
    spread = summarise([calibrated_run(80, 0)], draws=200).spreads["accuracy"]
    assert (spread.sd, spread.runs) == (None, 1)
    assert spread.low is not None
    assert spread.high is not None
    assert spread.low < spread.mean < spread.high


def test_an_interval_of_one_run_is_that_of_its_entities() -> None:
    """Under exponential weights a share of 60 in 200 is Beta(60, 140)."""
    from scipy.stats import beta

    right = np.arange(200) < 60
    run = a_run(np.tile([0.6, 0.4], (200, 1)), (~right).astype(int).tolist())
    spread = summarise([run], draws=20_000).spreads["accuracy"]
    assert (spread.low, spread.high) == pytest.approx(beta.ppf([0.025, 0.975], 60, 140), abs=0.003)


def test_the_same_entities_in_every_run_add_no_certainty() -> None:
    """Five copies of one run know what one knows; five runs of other entities know more."""
    one = calibrated_run(150, 0)
    others = [
        calibrated_run(
            150, 0, data=data, entity_ids=tuple(f"{data}-{place}" for place in range(150))
        )
        for data in range(5)
    ]
    alone, copies, fresh = (_width([*runs]) for runs in ([one], [one] * 5, others))
    assert copies == pytest.approx(alone, rel=0.1)
    assert fresh < 0.75 * alone


def test_the_order_of_entities_within_a_run_does_not_matter() -> None:
    one = calibrated_run(150, 0)
    order = np.random.default_rng(0).permutation(150)
    shuffled = a_run(
        one.answers[order],
        one.labels[order].tolist(),
        entity_ids=tuple(one.entity_ids[place] for place in order),
    )
    assert _width([one, shuffled]) == pytest.approx(_width([one, one]), rel=1e-9)


def test_repeated_entities_of_a_group_count_as_one() -> None:
    """Each entity four times over: by group the interval is that of the quarter."""
    quarter = calibrated_run(100, 0)
    whole = a_run(np.repeat(quarter.answers, 4, axis=0), np.repeat(quarter.labels, 4).tolist())
    groups = {f"e{place}": f"g{place // 4}" for place in range(400)}
    assert _width([whole], groups) == pytest.approx(_width([quarter]), rel=1e-9)
    assert _width([whole]) < 0.6 * _width([quarter])


def test_groups_are_the_same_in_every_run_and_the_others_alone() -> None:
    run = a_run(np.eye(3), [0, 1, 2])
    groups = {"e0": "g", "e2": "g"}
    first, middle, last = entity_keys(run, groups)
    assert first == last != middle
    assert entity_keys(run) == [("e0", 0), ("e1", 1), ("e2", 2)] == entity_keys(run, {})


@pytest.mark.parametrize(("number", "bounded"), [(5, False), (6, True)])
def test_few_groups_have_no_intervals(number: int, bounded: bool) -> None:
    groups = {f"e{place}": f"g{place % number}" for place in range(60)}
    spread = summarise([calibrated_run(60, 0)], groups=groups, draws=50).spreads["nll"]
    assert (spread.low is not None) == bounded


def _width(runs: list[Predictions], groups: dict[str, str] | None = None) -> float:
    spread = summarise(runs, groups=groups, draws=2000).spreads["accuracy"]
    assert spread.low is not None
    assert spread.high is not None
    return spread.high - spread.low


def test_a_draw_of_an_ece_is_that_of_weighted_bins() -> None:
    """One run: its ECE under given weights, bin by bin, then moved to the measured one."""
    run = calibrated_run(120, 0, sharpness=2.0)
    confidence, right = metrics.confidence_and_hits(run.answers, run.labels)
    place = np.minimum((confidence * 10).astype(int), 9)
    weights = np.random.default_rng(0).standard_exponential((300, 120))
    errors = [
        sum(abs(row[place == b] @ (right - confidence)[place == b]) for b in range(10)) / row.sum()
        for row in weights
    ]
    measured = metrics.ece(run.answers, run.labels)
    low, high = np.quantile(np.array(errors) - np.mean(errors) + measured, [0.025, 0.975])
    spread = summarise([run], draws=300).spreads["ece"]
    assert (spread.low, spread.high) == pytest.approx((low, high), rel=0, abs=1e-12)


def test_intervals_hold_what_they_promise() -> None:
    """Accuracy against the chance of being right; the ECE against what 100 entities show on
    average. Three standard errors of 300 repetitions at .95 are .038; the ECE's may hold more."""
    generator, repetitions = np.random.default_rng(0), 300
    spreads = []
    for _ in range(repetitions):
        confidence = generator.uniform(0.5, 1.0, size=100)
        labels = (generator.random(100) > confidence - 0.1).astype(int)
        rows = np.column_stack([confidence, 1.0 - confidence])
        spreads.append(summarise([a_run(rows, labels.tolist())], draws=200).spreads)
    assert _held(spreads, "accuracy", 0.65) == pytest.approx(0.95, abs=0.04)
    expected = float(np.mean([one["ece"].mean for one in spreads]))
    assert _held(spreads, "ece", expected) >= 0.91


def _held(spreads, name: str, truth: float) -> float:
    return float(np.mean([one[name].low <= truth <= one[name].high for one in spreads]))


def test_an_ece_interval_ends_at_zero() -> None:
    rows = np.tile([0.75, 0.25], (8, 1))
    spread = summarise([a_run(rows, [0] * 6 + [1] * 2)], draws=500).spreads["ece"]
    assert (spread.mean, spread.low) == (0.0, 0.0)
    assert spread.high is not None
    assert spread.high > 0.0


def test_infinite_losses_are_reported_and_have_no_interval() -> None:
    sure = a_run(np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 1])
    found = summarise([sure, calibrated_run(4, 0)], draws=100)
    assert found.spreads["nll"].mean == math.inf
    assert (found.spreads["nll"].sd, found.spreads["nll"].low) == (None, None)
    assert found.spreads["brier"].low is not None
    assert found.notes == (
        "nll is infinite in 1 of 2 runs: labels got probability 0",
        "raw_nll is infinite in 1 of 2 runs: labels got probability 0",
    )


def test_crashed_runs_are_left_out_and_reported() -> None:
    runs = [calibrated_run(50, 0), a_crash([0, 1]), calibrated_run(50, 1), a_crash([0])]
    found = summarise(runs, draws=100)
    assert (found.runs, found.all_runs) == (2, 4)
    assert found.notes == ("2 of 4 runs have no answers: TrainingError: it broke",)
    without = summarise([runs[0], runs[2]], draws=100)
    assert found.spreads == without.spreads
    nothing = summarise([a_crash([0], error="no memory")], draws=100)
    assert (nothing.runs, nothing.spreads) == (0, {})
    assert nothing.notes == ("1 of 1 runs have no answers: no memory",)


def test_notes_of_runs_are_reported() -> None:
    runs = [calibrated_run(30, seed, note=note) for seed, note in enumerate(("hot", None, "hot"))]
    assert summarise(runs, draws=50).notes == ("2 of 3 runs: hot",)


def test_costs_are_averaged_over_runs_that_measured_them() -> None:
    runs = [calibrated_run(30, 0, costs=Costs(query_ms=2.0)), calibrated_run(30, 1)]
    spread = summarise(runs, draws=50).spreads["runtime_ms"]
    assert (spread.mean, spread.sd, spread.low, spread.runs) == (2.0, None, None, 1)
