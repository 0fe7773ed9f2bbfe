"""T2, T3, T5, T7 and P1 to P5: closed forms and cases worked out by hand."""

from __future__ import annotations

from itertools import pairwise, product
from math import isnan, log, pi, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lpf.combine import Segments, combine_paper
from lpf.engine import Items
from lpf_paper.studies.theorems.aggregator_gradients import (
    answer_logits,
    effective_parameters,
    fisher_eigenvalues,
    softmax_information,
)
from lpf_paper.studies.theorems.consistency import (
    FADING_LIMIT,
    by_hand,
    consistency_statement,
    equal_support,
    fading_support,
    in_a_circuit,
    published,
    robust,
    robust_limit,
)
from lpf_paper.studies.theorems.corrupted_items import (
    corrected_bound,
    corrupt,
    one_flipped,
    range_of_change,
)
from lpf_paper.studies.theorems.corrupted_items import stated_bound as corruption_bound
from lpf_paper.studies.theorems.generalisation import (
    LookupTable,
    corrected_term,
    held_out_bound,
    stated_term,
)
from lpf_paper.studies.theorems.learned_weights import (
    TwoItemWorld,
    circularity,
    gradient_ratio,
    rank_correlation,
)
from lpf_paper.studies.theorems.sampling import SampledFactors, hoeffding, power_law
from lpf_paper.studies.theorems.statement import CheckedStatement, printed, verdict_of
from lpf_paper.studies.theorems.uncertainty_parts import own_variance, unbiased

# Verdicts


@pytest.mark.parametrize(
    ("stated", "corrected", "verdict"),
    [
        (True, None, "holds"),
        (True, False, "holds"),
        (False, True, "holds with this correction"),
        (False, False, "does not hold"),
        (False, None, "does not hold"),
    ],
)
def test_verdicts(stated: bool, corrected: bool | None, verdict: str) -> None:
    assert verdict_of(stated=stated, corrected=corrected) == verdict


def test_a_sentence_leads_with_the_verdict_and_ends_with_the_correction() -> None:
    one = CheckedStatement(
        "T9", "T9, a bound", "x < 1.", "x < 2.", "x was 3.", "Often.", "does not hold"
    )
    assert one.sentence == "T9, a bound: does not hold. x was 3. What holds instead: x < 2."
    plain = CheckedStatement("T9", "T9, a bound", "x < 1.", "", "x was 0.", "Often.", "holds")
    assert plain.sentence == "T9, a bound: holds. x was 0."


# T2, P1 and P5: sampling


@pytest.mark.parametrize("samples", [4, 16, 32, 64])
def test_the_sampling_bound_is_the_printed_one(samples: int) -> None:
    beside = printed("monte_carlo_error", str(samples), "bound")
    assert hoeffding(samples, 3) == pytest.approx(beside.value, abs=beside.half_step)


@pytest.mark.parametrize("samples", [4, 16, 32, 64, 128])
def test_the_largest_standard_error_is_the_printed_one(samples: int) -> None:
    beside = printed("monte_carlo_standard_error", str(samples), "standard_error")
    assert sqrt(0.25 / samples) == pytest.approx(beside.value, abs=beside.half_step + 1e-9)


def coin(share: float, samples: int, repetitions: int) -> SampledFactors:
    """A factor of two values whose samples are 0 or 1: its mean has the variance p(1-p)/M."""
    hits = np.random.default_rng(3).binomial(samples, share, size=repetitions) / samples
    drawn = np.stack([hits, 1.0 - hits], axis=1)[:, None]
    truth = np.array([[share, 1.0 - share]])
    return SampledFactors({samples: drawn}, truth, np.full((1, 2), share * (1.0 - share)))


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_variance_of_a_coin_is_the_closed_form(share: float) -> None:
    found = coin(share, 16, 40_000)
    assert found.largest_variance(16) == pytest.approx(share * (1 - share) / 16, rel=0.03)
    assert found.variance_ratio(16) == pytest.approx(1.0, rel=0.03)
    assert found.exceeded(16) <= 0.05


def test_coverage_of_a_coin_is_that_of_a_normal_error() -> None:
    assert coin(0.5, 1024, 20_000).coverage(1024) == pytest.approx(0.95, abs=0.015)


def test_exceeding_errors_are_counted() -> None:
    far = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    found = SampledFactors({64: far}, np.array([[0.5, 0.5]]), np.full((1, 2), 0.25))
    assert found.exceeded(64) == 0.5
    assert found.mean_error(64) == pytest.approx(0.25)


def test_a_power_law_is_found() -> None:
    slope, fit = power_law([1, 4, 16], [3.0, 1.5, 0.75])
    assert (slope, fit) == pytest.approx((-0.5, 1.0))


# T3: generalisation


def test_the_printed_bound_is_the_second_term_alone() -> None:
    term = stated_term(0.0379, 4200, 1335)
    assert term == pytest.approx(
        printed("bounds", "T3 generalisation gap", "bound").value, abs=5e-4
    )


def test_a_look_up_table_breaks_the_stated_bound_and_keeps_the_corrected_one() -> None:
    for entities in (1335, 2670, 4200):
        table = LookupTable(1335, entities)
        assert table.test_error > table.stated
        assert table.test_error <= corrected_term(0.0, entities, 1335)
        simulated = [table.simulated_error(seed) for seed in range(100)]
        assert np.mean(simulated) == pytest.approx(table.test_error, rel=0.05)
        assert np.mean([error > table.stated for error in simulated]) > 0.5


def test_a_look_up_table_by_hand() -> None:
    """Two cells, one entity: the other cell is asked half of the time and guessed half right."""
    assert LookupTable(2, 1).test_error == 0.25
    assert LookupTable(2, 1).simulated_error(0) == 0.25


def test_bounds_at_their_edges() -> None:
    assert isnan(stated_term(0.1, 100, 1000.0))
    assert held_out_bound(0.1, 135) == pytest.approx(0.1 + sqrt(log(20) / 270))
    assert corrected_term(0.0, 10, 1000.0) > 1.0
    terms = [corrected_term(0.05, entities, 20.0) for entities in (100, 1000, 10_000)]
    assert all(first > second for first, second in pairwise(terms))


def test_effective_parameters_by_hand() -> None:
    eigenvalues = np.array([0.0, 1e-4, 1.0])
    assert effective_parameters(eigenvalues, 1e-4) == pytest.approx(0.5 + 1.0 / 1.0001)
    assert effective_parameters(eigenvalues, 1e-12) == pytest.approx(2.0, abs=1e-6)


def test_information_of_a_softmax_by_hand() -> None:
    found = softmax_information(torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.float64))
    np.testing.assert_allclose(found[0], [[0.16, -0.06], [-0.06, 0.21]], atol=1e-12)


def small_tensors() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(7)
    shapes = {
        "aggregator.quality.0": (4, 3),
        "aggregator.quality.1": (3, 1),
        "aggregator.consistency.0": (4, 3),
        "aggregator.consistency.1": (3, 1),
        "aggregator.weight.0": (2, 3),
        "aggregator.weight.1": (3, 1),
        "decoder.trunk.0": (4, 5),
        "decoder.head.level": (5, 3),
    }
    tensors = {"decoder.embedding.level": generator.normal(size=(1, 2))}
    for name, (inputs, outputs) in shapes.items():
        tensors[f"{name}.weight"] = generator.normal(size=(1, inputs, outputs))
        tensors[f"{name}.bias"] = generator.normal(size=(1, outputs))
    return {name: one.astype(np.float32) for name, one in tensors.items()}


def test_fisher_eigenvalues_are_those_of_the_full_matrix() -> None:
    """Another way: one backward pass per entity and value, and the matrix over parameters."""
    tensors = small_tensors()
    generator = np.random.default_rng(8)
    mu = (3.0 * generator.normal(size=(6, 3, 2))).astype(np.float32)
    sigma = generator.uniform(0.5, 1.0, size=(6, 3, 2)).astype(np.float32)
    found, answers = fisher_eigenvalues(tensors, "level", mu, sigma)
    parameters = {name: torch.from_numpy(one[0].copy()) for name, one in tensors.items()}
    trained = [parameters[name] for name in parameters if name.startswith("aggregator.")]
    for one in trained:
        one.requires_grad_(True)
    rows = []
    for place in range(6):
        logits = answer_logits(
            parameters, "level", torch.from_numpy(mu[place]), torch.from_numpy(sigma[place])
        )
        p = torch.softmax(logits, 0)
        shares = p.detach().double()
        np.testing.assert_allclose(answers[place], shares.numpy(), atol=1e-6)
        for value in range(3):
            parts = torch.autograd.grad(torch.log(p[value]), trained, retain_graph=True)
            row = torch.cat([part.flatten() for part in parts]).double()
            rows.append(row * (shares[value] / 6).sqrt())
    stacked = torch.stack(rows)
    matrix = stacked.T @ stacked
    expected = torch.linalg.eigvalsh(matrix).numpy()[::-1][: len(found)]
    np.testing.assert_allclose(found[::-1], expected, rtol=1e-3, atol=1e-7)  # float32
    assert found.max() > 1e-4


# T5: corruption


def test_one_flipped_item_by_hand() -> None:
    found = one_flipped(items=99, sure=0.99)
    assert found.distance == pytest.approx(2 * 0.98, abs=1e-9)
    assert found.perturbation == pytest.approx(1.96)
    assert found.stated == pytest.approx(2 * 1.96 / sqrt(99))
    assert found.distance > found.stated


def test_the_printed_bound_is_that_of_ten_items() -> None:
    beside = printed("bounds", "T5 robustness, half corrupted", "bound")
    assert corruption_bound(0.5, 10) == pytest.approx(beside.value, abs=beside.half_step)


def test_the_corrected_bound_is_reached_by_a_symmetric_change() -> None:
    clean, moved = (
        combine_paper(np.array([[p, 1 - p]]), np.ones(1), np.log([0.5, 0.5]), Segments.one(1))
        for p in (0.3, 0.7)
    )
    distance = np.abs(clean.distribution - moved.distribution).sum()
    assert distance == pytest.approx(0.8)
    assert corrected_bound(range_of_change(clean, moved))[0] == pytest.approx(0.8)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 4))
def test_no_corruption_moves_an_answer_beyond_the_corrected_bound(
    seed: int, items: int, values: int
) -> None:
    generator = np.random.default_rng(seed)
    weight, prior = generator.uniform(0, 2, items), np.log(generator.dirichlet(np.ones(values)))
    clean, moved = (
        combine_paper(
            generator.dirichlet(np.ones(values), size=items), weight, prior, Segments.one(items)
        )
        for _ in range(2)
    )
    distance = np.abs(clean.distribution - moved.distribution).sum()
    assert distance <= corrected_bound(range_of_change(clean, moved))[0] + 1e-9


def test_corruption_replaces_the_stated_share_by_items_of_other_values() -> None:
    labels = np.array([0, 1, 2, 1])
    features = np.repeat(np.arange(4.0), 10)[:, None].astype(np.float32)
    items = Items(features, segments=Segments.of_counts([10] * 4))
    before: np.ndarray = np.zeros(40, bool)
    for level in (0.0, 0.1, 0.5):
        moved = corrupt(items, labels, level, seed=1)
        changed = (moved.features != features)[:, 0]
        assert changed.reshape(4, 10).sum(axis=1).tolist() == [round(10 * level)] * 4
        assert (changed | ~before).all()
        owners = moved.features[changed, 0].astype(int)
        assert (labels[owners] != labels[np.repeat(np.arange(4), 10)[changed]]).all()
        before = changed


# T7: parts of the uncertainty


@pytest.mark.parametrize("draws", [2, 3, 4])
def test_few_draws_understate_the_epistemic_variance_by_enumeration(draws: int) -> None:
    """An answer of .2 or .6, each in half of the draws: its variance is .04."""
    plain = np.mean([np.var(drawn) for drawn in product([0.2, 0.6], repeat=draws)])
    assert plain == pytest.approx(0.04 * (1 - 1 / draws))
    assert unbiased(float(plain), draws) == pytest.approx(0.04)


def test_variance_of_an_answer_by_hand() -> None:
    found = own_variance(np.array([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]]))
    np.testing.assert_allclose(found, [0.5, 0.0, 0.32])


# P2: consistency


def test_three_items_in_a_circuit_of_two_values_by_hand() -> None:
    expected = 0.6**3 / (0.6**3 + 0.4**3)
    for answer in (in_a_circuit, published):
        assert answer(equal_support(3)) == pytest.approx(expected)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30))
def test_circuit_product_and_hand_calculation_agree(ratios: list[float]) -> None:
    total = np.array(ratios)
    assert in_a_circuit(total) == pytest.approx(by_hand(float(total.sum())), abs=1e-9)
    assert published(total) == pytest.approx(by_hand(float(total.sum())), abs=1e-9)


def test_support_that_fades_has_a_limit_below_one() -> None:
    assert pytest.approx(1 / (1 + np.exp(-(pi**2) / 6))) == FADING_LIMIT
    assert published(fading_support(5000)) == pytest.approx(FADING_LIMIT, abs=1e-4)


def test_robust_mode_stops_at_its_limit() -> None:
    limit = robust_limit(float(equal_support(1)[0]), 0.05)
    assert limit == pytest.approx(1 / (1 + (0.4 / 0.6) ** 20))
    assert robust(equal_support(5000), 0.05) == pytest.approx(limit, abs=1e-5)


def test_consistency_needs_a_correction() -> None:
    found = consistency_statement()
    assert found.verdict == "holds with this correction"
    assert "1,000 items of 0.6 give 1.0000" in found.deciding


# P3: learned weights


def test_the_best_weight_reaches_the_conditional_entropy() -> None:
    world = TwoItemWorld()
    entropy = 0.0
    for first, second in product((0.9, 0.1), (0.7, 0.3)):
        yes, no = first * second / 2, (1 - first) * (1 - second) / 2
        entropy -= yes * log(yes / (yes + no)) + no * log(no / (yes + no))
    weight = np.array([world.proportional_weight])
    assert world.loss(weight, world.free_scale)[0] == pytest.approx(entropy)
    assert world.best_weight(world.free_scale) == pytest.approx(world.proportional_weight, abs=1e-3)
    assert world.best_weight(world.single_scale) > world.proportional_weight + 0.1


@given(st.floats(0.55, 0.95), st.floats(0.55, 0.95))
def test_no_weight_is_better_than_the_proportional_one(first: float, second: float) -> None:
    world = TwoItemWorld((first, second))
    best = world.loss(np.array([world.proportional_weight]), world.free_scale)[0]
    for scale in (0.5, 1.0, world.single_scale, world.free_scale, 6.0):
        assert (world.loss(np.linspace(0, 1, 101), scale) >= best - 1e-12).all()


def test_equally_good_items_get_equal_weights() -> None:
    assert TwoItemWorld((0.8, 0.8)).best_weight(1.0) == pytest.approx(0.5, abs=1e-3)


def test_any_weights_meet_the_printed_condition() -> None:
    ratios = gradient_ratio(np.array([0.2, 0.8]), np.array([1.0, -2.0]))
    np.testing.assert_allclose(ratios[0], ratios[1], rtol=1e-6)
    np.testing.assert_allclose(ratios[0, 1] / ratios[0, 0], -2.0, rtol=1e-6)
    assert circularity() < 1e-5


def test_rank_correlation_is_within_rows() -> None:
    first = np.array([[1.0, 2.0, 3.0], [30.0, 20.0, 10.0]])
    assert rank_correlation(first, first) == pytest.approx(1.0)
    assert rank_correlation(first, -first) == pytest.approx(-1.0)
