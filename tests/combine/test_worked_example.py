"""The paper's worked example (company C0001), step by step, with its arithmetic put right.

Beside each value that comes out differently stands what the paper prints. What was only
illustrated there (factors, qualities) is taken as given; what follows from it is computed.
"""

from __future__ import annotations

import numpy as np
import pytest

from lpf.circuits import Variable, compile_circuit, prior_circuit
from lpf.combine import (
    PaperParameters,
    Segments,
    combine_average,
    combine_paper,
    credibility_weight,
)
from lpf.combine.learned import normalised_weights
from lpf.factors import tempered
from lpf.model.config import AggregatorConfig

VALUES = ("low", "medium", "high")
PHI_E1 = np.array([0.048, 0.155, 0.797])
MEAN_SIGMA_E1 = np.array([0.105])
PRINTED_FACTORS = np.array(
    [
        [0.100, 0.223, 0.677],
        [0.092, 0.211, 0.697],
        [0.112, 0.238, 0.650],
        [0.125, 0.251, 0.624],
        [0.085, 0.198, 0.717],
    ]
)
PRINTED_WEIGHTS = np.array([0.70, 0.73, 0.68, 0.66, 0.75])
UNIFORM = np.log(np.full(3, 1 / 3))


def test_confidence_of_e1() -> None:
    assert 1 / (1 + MEAN_SIGMA_E1[0]) == pytest.approx(0.905, abs=5e-4)  # printed: 0.89


def test_penalty_of_e1() -> None:
    penalty = credibility_weight(MEAN_SIGMA_E1, PaperParameters(2.0, "sigmoid"))
    assert penalty[0] == pytest.approx(0.448, abs=5e-4)  # printed: 0.79


def test_weight_of_e1() -> None:
    weight = credibility_weight(MEAN_SIGMA_E1, PaperParameters(2.0))
    assert weight[0] == pytest.approx(0.405, abs=5e-4)  # printed: 0.70


def test_temperature_one_changes_nothing() -> None:
    assert (tempered(PHI_E1, 1.0) == PHI_E1).all()


def test_power_transform_of_e1_with_the_printed_weight() -> None:
    powers = PHI_E1**0.70
    np.testing.assert_allclose(powers, [0.119, 0.271, 0.853], atol=5e-4)  # .127, .285, .863
    assert powers.sum() == pytest.approx(1.244, abs=5e-4)  # printed: 1.275
    np.testing.assert_allclose(powers / powers.sum(), [0.096, 0.218, 0.686], atol=5e-4)


def test_power_transform_of_e1_with_the_corrected_weight() -> None:
    weight = credibility_weight(MEAN_SIGMA_E1, PaperParameters(2.0))[0]
    powers = PHI_E1**weight
    np.testing.assert_allclose(powers / powers.sum(), [0.1745, 0.2806, 0.5448], atol=5e-5)
    assert (powers / powers.sum()).max() < PHI_E1.max(), "w < 1 flattens; it cannot sharpen"


def test_weighted_log_factors_add_up() -> None:
    """Σ of w·log Φ is the logarithm of the product of powers, whatever is normalised between."""
    one = combine_paper(PHI_E1[None], np.array([0.7]), UNIFORM, Segments.one(1))
    np.testing.assert_allclose(one.distribution[0], PHI_E1**0.7 / (PHI_E1**0.7).sum(), atol=1e-9)


def test_products_of_the_printed_factors() -> None:
    low, medium, high = PRINTED_FACTORS.prod(axis=0)
    assert low == pytest.approx(1.095e-5, rel=2e-3)  # printed: 1.09e-5
    assert medium == pytest.approx(5.57e-4, rel=2e-3)  # printed: 6.23e-4
    assert high == pytest.approx(0.137, abs=5e-4)  # printed: 0.1312


def test_answer_from_the_printed_factors() -> None:
    """The printed factors carry their weights already, so they enter with weight 1."""
    combined = combine_paper(PRINTED_FACTORS, np.ones(5), UNIFORM, Segments.one(5))
    expected = PRINTED_FACTORS.prod(axis=0) / PRINTED_FACTORS.prod(axis=0).sum()
    np.testing.assert_allclose(combined.distribution[0], expected, atol=1e-9)
    # printed: .0001, .0047, .9952; elsewhere .952 and .930 for the same question
    np.testing.assert_allclose(combined.distribution[0], [0.0001, 0.0040, 0.9959], atol=5e-5)


def test_circuit_gives_the_same_answer() -> None:
    """Algorithm 4: the prior's leaf with the product of the factors as its likelihood."""
    circuit = compile_circuit(prior_circuit([Variable("level", VALUES)], None))
    combined = combine_paper(PRINTED_FACTORS, np.ones(5), UNIFORM, Segments.one(5))
    marginal = circuit.marginals(soft={"level": PRINTED_FACTORS.prod(axis=0)})["level"]
    np.testing.assert_allclose(combined.distribution[0], marginal, atol=1e-9)


def test_answer_with_corrected_weights() -> None:
    """All five items with Φ of e1 and weights below .5, as mean σ of about .1 gives them."""
    sigma = np.array([0.105, 0.095, 0.13, 0.15, 0.085])
    weight = credibility_weight(sigma, PaperParameters(2.0))
    assert (weight < 0.5).all()
    combined = combine_paper(np.tile(PHI_E1, (5, 1)), weight, UNIFORM, Segments.one(5))
    powers = PHI_E1 ** weight.sum()
    np.testing.assert_allclose(combined.distribution[0], powers / powers.sum(), atol=1e-9)


def test_mean_consistency() -> None:
    matrix = np.array(
        [
            [1.00, 0.87, 0.82, 0.79, 0.91],
            [0.87, 1.00, 0.85, 0.76, 0.89],
            [0.82, 0.85, 1.00, 0.88, 0.84],
            [0.79, 0.76, 0.88, 1.00, 0.81],
            [0.91, 0.89, 0.84, 0.81, 1.00],
        ]
    )
    others = (matrix.sum(axis=1) - 1) / 4
    np.testing.assert_allclose(others, [0.8475, 0.8425, 0.8475, 0.81, 0.8625], atol=1e-9)


def test_softmax_weights_sum_to_one() -> None:
    raw = np.array([0.88, 0.85, 0.82, 0.75, 0.90])
    weights = normalised_weights(raw, AggregatorConfig())
    # printed: .217 .209 .203 .185 .223, which sum to 1.037
    np.testing.assert_allclose(weights, [0.208, 0.202, 0.196, 0.183, 0.212], atol=5e-4)
    assert weights.sum() == pytest.approx(1.0)


def test_aggregated_mean_with_corrected_weights() -> None:
    raw = np.exp([0.88, 0.85, 0.82, 0.75, 0.90])
    mu = np.array([[0.82, -0.34, 1.21], [0.78, -0.29, 1.18], [0.75, -0.31, 1.15],
                   [0.71, -0.28, 1.12], [0.85, -0.36, 1.24]])  # fmt: skip
    found = raw / raw.sum() @ mu
    np.testing.assert_allclose(found, [0.7845, -0.3173, 1.1821], atol=5e-5)  # .814, -.330, 1.227


def test_average_of_the_printed_factors() -> None:
    combined = combine_average(PRINTED_FACTORS, Segments.one(5))
    np.testing.assert_allclose(combined.distribution[0], [0.1028, 0.2242, 0.673], atol=1e-9)
    np.testing.assert_allclose(combined.contributions.sum(axis=0), combined.distribution[0])


def test_printed_weights_are_impossible() -> None:
    """Every weight the paper prints exceeds what its own formula can give."""
    assert (PRINTED_WEIGHTS > 0.5).all()
    assert credibility_weight(np.array([0.0]), PaperParameters(2.0))[0] == 0.5
