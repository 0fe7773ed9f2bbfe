"""The measured costs of a method, and when they are measured."""

from __future__ import annotations

from bench_answers import answered

from lpf.evaluation.specs import EvalSpec
from small_specs import Reworded, bench


def test_costs_are_measured_and_shared_training_counts_for_every_method() -> None:
    robust, single, cheap = (
        answered(name).costs for name in ("lpf_robust", "lpf_robust_single", "prior")
    )
    for costs in (robust, single, cheap):
        assert all(value is not None and value >= 0 for value in vars(costs).values())
    trained = bench().model.seconds
    assert trained > 0.1
    assert min(robust.fit_seconds, single.fit_seconds) >= trained > cheap.fit_seconds
    assert robust.stored_bytes > 2.5 * single.stored_bytes > cheap.stored_bytes > 0


def test_only_the_rate_is_measured_on_changed_evidence() -> None:
    for found in (
        answered("lpf_robust", EvalSpec(change=Reworded(1))),
        answered("lpf_robust", rho=0.5),
    ):
        assert found.costs.per_second > 0
        assert (found.costs.query_ms, found.costs.stored_bytes) == (None, None)
