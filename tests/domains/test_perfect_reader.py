"""The perfect reader, compared with enumeration and with simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import beta

from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.domains import GeneratorParameters, load_domain, perfect_answers, posteriors
from lpf.domains.evidence_model import EvidenceModel
from lpf.domains.perfect_reader import with_fact
from lpf.domains.records import borderline_towards, labels_by_rank
from lpf.domains.symbols import Symbols, draw_symbols, draws_needed
from lpf.errors import DatasetError
from lpf.types import FloatArray

SHARES = (0.2, 0.45, 0.35)
VALUES = range(len(SHARES))
HARD = GeneratorParameters(
    contradiction=0.1,
    ambiguity=0.2,
    borderline=0.3,
    pull=0.6,
    copies=0.15,
    missing=0.1,
    drift=0.3,
)
SETTINGS = [
    pytest.param(HARD, id="hard"),
    pytest.param(GeneratorParameters(), id="paper"),
    pytest.param(replace(HARD, credibility_correlation=0.0), id="uncorrelated"),
    pytest.param(replace(HARD, contradiction=0.0), id="truthful"),
    pytest.param(replace(HARD, items=9, items_min=1, copies=0.5, missing=0.4), id="ragged"),
]


@cache
def offset_by_hand(parameters: GeneratorParameters) -> tuple[float, float, float]:
    """The offset of η from a sum over many credibilities, and their mean and deviation."""
    low, high = parameters.credibility_range
    law = beta(*parameters.credibility_beta, loc=low, scale=high - low)
    standing = (law.ppf((np.arange(100_000) + 0.5) / 100_000) - law.mean()) / law.std()
    kappa, wanted = parameters.credibility_correlation, parameters.contradiction
    offset = brentq(lambda a: expit(a - kappa * standing).mean() - wanted, -20, 20)
    return offset, law.mean(), law.std()


def noise_by_hand(parameters: GeneratorParameters, credible: float, days: int) -> float:
    offset, mean, spread = offset_by_hand(parameters)
    standing = (credible - mean) / spread
    fresh = float(expit(offset - parameters.credibility_correlation * standing))
    return 1 - (1 - fresh) * 0.5 ** (parameters.drift * days / 365.25)


def chance_of_world(
    parameters: GeneratorParameters, y: int, b: int, v: int, g: int, shown: set[int], noise: float
) -> float:
    """P(v|y,b)·P(g|v)·P(symbol|g) of one item; ``b`` is y itself where y is not borderline."""
    pull = 0.0 if b == y else parameters.pull
    apparent = (1 - pull) * (v == y) + pull * (v == b)
    weights = {other: 2.0 ** -(abs(other - v) - 1) for other in VALUES if other != v}
    grade = 1 - noise if g == v else noise * weights[g] / sum(weights.values())
    neighbours = [other for other in VALUES if abs(other - g) == 1]
    if shown == {g}:
        symbol = 1 - parameters.ambiguity
    else:
        options = [{g, neighbour} for neighbour in neighbours]
        symbol = parameters.ambiguity / len(options) if shown in options else 0.0
    return apparent * grade * symbol


def enumerated(
    parameters: GeneratorParameters, shown: Sequence[set[int]], noises: Sequence[float]
) -> list[float]:
    """The posterior by enumeration: all v and g of all items, and all b."""
    delta = parameters.borderline / (2 * (len(SHARES) - 1))
    joint = [0.0 for _ in VALUES]
    for y in VALUES:
        beside = [other for other in VALUES if abs(other - y) == 1]
        states = dict.fromkeys(beside, delta / SHARES[y])
        states[y] = 1 - sum(states.values())
        for b, chance in states.items():
            for vs in itertools.product(VALUES, repeat=len(shown)):
                for gs in itertools.product(VALUES, repeat=len(shown)):
                    parts = zip(vs, gs, shown, noises, strict=True)
                    world = (chance_of_world(parameters, y, b, *part) for part in parts)
                    joint[y] += SHARES[y] * chance * math.prod(world)
    return [part / sum(joint) for part in joint]


@pytest.mark.parametrize("parameters", SETTINGS[:3])
@pytest.mark.parametrize(
    "symbols", [(0, 2, 1), (3, 4, 1), (2, 2, 2), (0, 0, 4)], ids=lambda symbols: str(symbols)
)
def test_posterior_agrees_with_enumeration(
    parameters: GeneratorParameters, symbols: tuple[int, ...]
) -> None:
    credible, days = (0.95, 0.8, 0.9), (10, 400, 700)
    model = EvidenceModel(parameters, SHARES)
    given = posteriors(
        model,
        np.array([symbols]),
        np.array([credible]),
        np.array([days]),
        np.ones((1, 3), dtype=np.bool_),
    )
    shown = [{s} if s < 3 else {s - 3, s - 2} for s in symbols]
    noises = [noise_by_hand(parameters, c, d) for c, d in zip(credible, days, strict=True)]
    assert given[0] == pytest.approx(enumerated(parameters, shown, noises), rel=1e-4)


def simulated(
    parameters: GeneratorParameters, count: int = 20_000, shares: tuple[float, ...] = SHARES
) -> tuple[EvidenceModel, np.ndarray, Symbols]:
    model = EvidenceModel(parameters, shares)
    random = np.random.default_rng(5)
    values, ranks = labels_by_rank(random.random(count), shares)
    towards = borderline_towards(values, ranks, model)
    uniform = random.random((count, draws_needed(parameters, 6)))
    return model, values, draw_symbols(model, values, towards, (3, 4, 3, 3, 3, 3), uniform)


def answers(model: EvidenceModel, drawn: Symbols) -> FloatArray:
    return posteriors(model, drawn.symbols, drawn.credibility, drawn.age_days, drawn.original)


def surprise(posterior: FloatArray, values: np.ndarray) -> float:
    """Difference of log loss and mean entropy of the answers, in standard errors."""
    with np.errstate(divide="ignore"):
        logs = np.log(posterior)
    entropy = -np.where(posterior > 0, posterior * np.where(posterior > 0, logs, 0), 0).sum(axis=1)
    excess = -logs[np.arange(len(values)), values] - entropy
    return float(abs(excess.mean()) / max(excess.std() / np.sqrt(len(values)), 1e-12))


@pytest.mark.parametrize("parameters", SETTINGS)
def test_posterior_is_calibrated(parameters: GeneratorParameters) -> None:
    model, values, drawn = simulated(parameters)
    posterior = answers(model, drawn)
    assert surprise(posterior, values) < 3.5
    for value in VALUES:
        hits = values == value
        assert posterior[:, value].mean() == pytest.approx(hits.mean(), abs=0.01)
        bins = np.minimum((posterior[:, value] * 10).astype(int), 9)
        for one in np.unique(bins):
            inside = bins == one
            claimed, error = posterior[inside, value], hits[inside]
            spread = np.sqrt((claimed * (1 - claimed)).sum())
            assert abs((claimed - error).sum()) < 4 * spread + 1e-6, (value, one)


@pytest.mark.parametrize("shares", [(0.4, 0.6), (0.1, 0.2, 0.3, 0.4), (0.2,) * 5], ids=len)
def test_posterior_is_calibrated_for_any_number_of_values(shares: tuple[float, ...]) -> None:
    model, values, drawn = simulated(HARD, shares=shares)
    posterior = answers(model, drawn)
    assert surprise(posterior, values) < 3.5
    assert posterior.mean(axis=0) == pytest.approx(np.array(shares), abs=0.01)


@pytest.mark.parametrize(
    "wrong",
    [{"pull": 0.0}, {"drift": 0.0}, {"credibility_correlation": 0.0}, {"contradiction": 0.14}],
    ids=str,
)
def test_slightly_wrong_model_is_not_calibrated(wrong: dict[str, float]) -> None:
    """Shows that the test above can fail."""
    _, values, drawn = simulated(HARD)
    mistaken = EvidenceModel(replace(HARD, **wrong), SHARES)
    posterior = answers(mistaken, drawn)
    right = answers(EvidenceModel(HARD, SHARES), drawn)
    rows = np.arange(len(values))
    gain = np.log(right[rows, values]) - np.log(posterior[rows, values])
    assert gain.mean() > 2 * gain.std() / np.sqrt(len(values))


def test_copies_and_padding_are_ignored() -> None:
    model, _, drawn = simulated(replace(HARD, copies=0.5, missing=0.3), 500)
    original = drawn.original
    nonsense = replace(
        drawn,
        symbols=np.where(original, drawn.symbols, 0),
        credibility=np.where(original, drawn.credibility, 0.7),
        age_days=np.where(original, drawn.age_days, 0),
    )
    assert 500 < original.sum() < 0.6 * original.size
    assert (answers(model, drawn) == answers(model, nonsense)).all()


def test_counting_copies_would_be_overconfident() -> None:
    model, values, drawn = simulated(replace(HARD, copies=0.5))
    counted = replace(drawn, origins=np.broadcast_to(np.arange(5), drawn.origins.shape))
    assert (
        surprise(answers(model, drawn), values)
        < 3.5
        < 10
        < surprise(answers(model, counted), values)
    )


def test_many_items_do_not_underflow() -> None:
    model = EvidenceModel(HARD, SHARES)
    shape = (1, 3000)
    given = posteriors(
        model,
        np.tile([0, 2], 1500)[None],
        np.full(shape, 0.9),
        np.zeros(shape, dtype=np.int64),
        np.ones(shape, dtype=np.bool_),
    )
    assert given.sum() == pytest.approx(1)


def test_known_fact_multiplies_the_posterior() -> None:
    posterior = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    table = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    updated = with_fact(posterior, table, np.array([1, 1]), np.array([True, False]))
    joint = np.array([0.05, 0.15, 0.18])
    assert updated == pytest.approx(np.array([joint / joint.sum(), posterior[1]]))


def test_data_without_truth_have_no_perfect_answers() -> None:
    schema = load_domain("compliance").schema()
    item = DatasetItem("E1", "Text.")
    bare = Dataset("bare", schema, (DatasetEntity("C1", {"compliance_level": "low"}, (item,)),))
    with pytest.raises(DatasetError, match=r"entity 'C1': truth\.posterior: is missing"):
        perfect_answers(bare)
