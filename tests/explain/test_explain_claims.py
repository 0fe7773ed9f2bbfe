"""What is shown of every answer, on random cases in every mode: contributions sum to the log odds,
and leave-one-out is asking again. A few cases here, a thousand of each mode in the slow tier."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from builders import LEVELS, features, model_config, runtime, schema, sharp_tensors
from lpf.circuits import Variable, compile_circuit, prior_circuit
from lpf.combine import RobustParameters
from lpf.engine import Engine, Items
from lpf.explain import explain_result
from lpf.items import Segments
from lpf.model.config import PredicateHead
from lpf.model.linear_shape import LinearHead, linear_config, linear_tensors
from lpf.model.runtime import Runtime
from lpf.results import QueryResult
from lpf.types import Factors, Posteriors, QueryOptions

MODES = {
    "robust": QueryOptions(),
    "paper": QueryOptions.paper(),
    "average": QueryOptions(),
    "learned": QueryOptions(variant="learned"),
    "linear": QueryOptions(),
}
ENGINES = 5  # of each mode, with parameters of their own
MOST_ITEMS = 6


@cache
def engine_of(mode: str, seed: int) -> Engine:
    drawn = np.random.default_rng(seed)
    fitted = RobustParameters(
        float(drawn.uniform(0.5, 2.0)),
        float(drawn.uniform(0.0, 1.0)),
        float(drawn.uniform(0.0, 0.3)),
        float(drawn.random()),
        fitted=True,
        source_epsilon=float(drawn.choice([0.0, 0.2])),
        trust=float(drawn.uniform(0.3, 1.0)),
    )
    calibration = {"calibration": {"level": dict(fitted.to_dict())}}
    if mode == "average":  # the circuit does not have the predicate
        outcome = schema()["outcome"]
        known = prior_circuit([Variable(outcome.name, outcome.values)], {"outcome": outcome.prior})
        return Engine(runtime(2, seed), schema(), compile_circuit(known))
    if mode == "linear":
        heads = (PredicateHead("level", LEVELS, (0.3, 0.4, 0.3)),)
        config = linear_config(heads, (0, 1), "", 384)
        members = [
            {"level": LinearHead(drawn.normal(0.0, 20.0, (384, 3)), drawn.normal(size=3))}
            for _ in range(2)
        ]
        return Engine(Runtime(config, linear_tensors(config, members), f"linear-{seed}"), schema())
    config = model_config(2, **calibration)
    return Engine(Runtime(config, sharp_tensors(config, seed, 3.0), f"{mode}-{seed}"), schema())


def random_items(seed: int) -> Items:
    """With copies, shared sources and unknown credibility."""
    drawn = np.random.default_rng(seed)
    count = int(drawn.integers(1, MOST_ITEMS + 1))
    return Items(
        features(count, seed),
        tuple(f"E{place}" for place in range(count)),
        drawn.integers(0, 2**63, count).astype(np.uint64),
        np.where(drawn.random(count) < 0.3, np.nan, drawn.random(count)),
        drawn.integers(-1, 2, count),
        drawn.integers(-1, 2, count),
        Segments.one(count),
    )


def asked_without(
    engine: Engine, items: Items, place: int, options: QueryOptions, known: Factors | Posteriors
) -> np.ndarray:
    """The engine's answer from the other items: their factors are those that they had."""
    rows = np.delete(np.arange(len(items)), place)
    some = items.select(rows)
    ids = [items.ids[row] for row in rows]
    if isinstance(known, Posteriors):
        left = Posteriors(ids, known.mu[:, rows], known.sigma[:, rows])
        return engine.answer(some, "level", options, posteriors=left).distribution[0]
    left = engine.factors(some, "level", options)
    # Networks run in float32, and in blocks of other sizes for fewer items.
    np.testing.assert_allclose(left.potential, known.potential[rows], rtol=0, atol=1e-5)
    left.potential[:], left.mean_sigma[:] = known.potential[rows], known.mean_sigma[rows]
    return engine.answer(some, "level", options, factors=left).distribution[0]


def check(mode: str, seed: int) -> None:
    engine, options = engine_of(mode, seed % ENGINES), MODES[mode]
    items = random_items(seed)
    known: Factors | Posteriors
    if mode == "learned":
        known = engine.posteriors(items, options)
        answers = engine.answer(items, "level", options, posteriors=known)
    else:
        known = engine.factors(items, "level", options)
        answers = engine.answer(items, "level", options, factors=known)
    answers.fill(items, 0)
    log_prior = engine.background.log_prior("level")
    result = QueryResult(
        *("C1", "level", LEVELS, answers.distribution[0].tolist(), "inference", answers.method),
        *(options, 0, 0, log_prior, items),
    )
    found = explain_result(result, engine, engine.background)
    assert answers.method == {"average": "average", "learned": "learned"}.get(mode, "spn")
    for value in LEVELS:
        for against in LEVELS:
            total = sum(bits for _, bits in found.between(value, against))
            assert total == pytest.approx(found.log_odds(value, against), abs=1e-9)
    # LPF-Learned runs its networks in float32.
    tolerance = 1e-5 if mode == "learned" else 1e-9
    for place, item in enumerate(found.items):
        assert item.without is not None
        if len(items) == 1:
            prior = np.exp(log_prior - np.logaddexp.reduce(log_prior))
            np.testing.assert_allclose(item.without, prior, rtol=0, atol=1e-9)
        else:
            again = asked_without(engine, items, place, options, known)
            np.testing.assert_allclose(item.without, again, rtol=0, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
def test_parts_add_up_and_leave_one_out_is_asking_again(mode: str) -> None:
    for seed in range(2 * ENGINES):
        check(mode, seed)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_thousand_random_cases(mode: str) -> None:
    for seed in range(1000):
        check(mode, seed)
