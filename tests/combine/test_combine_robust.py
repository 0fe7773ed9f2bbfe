from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.combine import (
    PaperParameters,
    RobustParameters,
    Segments,
    combine_average,
    combine_paper,
    combine_robust,
    credibility_weight,
)
from lpf.combine.robust import CREDIBILITY_BOUNDS, copy_discount, exponents
from lpf.errors import ConfigError, EvidenceError, ImpossibleEvidenceError

SHARES = np.array([0.3, 0.4, 0.3])
UNIFORM = np.log(np.full(3, 1 / 3))
UNKNOWN = np.nan


def robust(potential: np.ndarray, credibility: object = None, **more: object):
    rows = len(potential)
    known = np.full(rows, UNKNOWN) if credibility is None else np.asarray(credibility, float)
    settings = {
        "shares": SHARES,
        "log_prior": UNIFORM,
        "segments": Segments.one(rows),
        "parameters": RobustParameters(rho=0.0, epsilon=0.0),
        **more,
    }
    return combine_robust(potential, known, **settings)


def distributions(count: int, values: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(values), count)


def test_one_item_by_hand() -> None:
    """ε = .1: Φ' = .9·Φ + .1·π; λ = Φ'/π; answer ∝ prior·λ."""
    phi = np.array([0.7, 0.2, 0.1])
    ratio = (0.9 * phi + 0.1 * SHARES) / SHARES
    expected = ratio / ratio.sum()
    found = robust(phi[None], [0.9], parameters=RobustParameters(rho=0.05))
    np.testing.assert_allclose(found.distribution[0], expected, atol=1e-12)


def test_relevance_by_hand() -> None:
    """Items 0 and 1 are copies: d = 1·.25/2, .5·1/2 and 1·1/1, so K_eff = 1.375."""
    phi = np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    found = robust(
        phi,
        parameters=RobustParameters(rho=0.2, epsilon=0.0, fitted=True),
        groups=np.array([0, 0, -1]),
        familiarity=np.array([1.0, 0.5, 1.0]),
        relevance=np.array([0.25, 1.0, 1.0]),
    )
    discount = np.array([0.125, 0.25, 1.0])
    exponent = discount / (1.0 + 0.375 * 0.2)
    np.testing.assert_allclose(found.parts["discount"], discount, atol=1e-12)
    np.testing.assert_allclose(found.parts["exponent"], exponent, atol=1e-12)
    product = np.prod((phi / SHARES) ** exponent[:, None], axis=0)
    np.testing.assert_allclose(found.distribution[0], product / product.sum(), atol=1e-12)


def test_an_irrelevant_item_cannot_rule_a_value_out() -> None:
    phi = np.array([[1.0, 0.0, 0.0], [0.2, 0.5, 0.3]])
    certain = RobustParameters(rho=0.0, epsilon=0.0, fitted=True)
    found = robust(phi, parameters=certain, relevance=np.array([0.0, 1.0]))
    alone = robust(phi[1:], parameters=certain)
    np.testing.assert_allclose(found.distribution, alone.distribution, atol=1e-12)


def test_item_equal_to_class_shares_changes_nothing() -> None:
    prior = np.log([0.1, 0.2, 0.7])
    found = robust(np.tile(SHARES, (4, 1)), log_prior=prior)
    np.testing.assert_allclose(found.distribution[0], np.exp(prior), atol=1e-12)


def test_independent_items_with_exponent_one_give_bayes_rule() -> None:
    """If each Φ is an exact posterior, the answer is the exact posterior of all items."""
    generator = np.random.default_rng(1)
    likelihood = generator.uniform(0.05, 1.0, (5, 3))
    phi = likelihood * SHARES / (likelihood * SHARES).sum(axis=1, keepdims=True)
    expected = SHARES * likelihood.prod(axis=0)
    found = robust(phi, log_prior=np.log(SHARES))
    np.testing.assert_allclose(found.distribution[0], expected / expected.sum(), atol=1e-12)


def test_epsilon_is_a_sum_node_in_the_circuit() -> None:
    from lpf.circuits import Variable, compile_circuit, prior_circuit

    phi, epsilon = distributions(4), np.array([0.1, 0.3, 0.0, 1.0])
    circuit = compile_circuit(prior_circuit([Variable("y", ("a", "b", "c"))], None))
    likelihood = ((1 - epsilon)[:, None] * phi / SHARES + epsilon[:, None]).prod(axis=0)
    found = robust(phi, 1 - epsilon)
    np.testing.assert_allclose(
        found.distribution[0], circuit.marginals(soft={"y": likelihood})["y"], atol=1e-12
    )


def test_item_with_zero_credibility_is_ignored() -> None:
    phi = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    trusted = robust(phi, [1.0, 0.2]).distribution[0]
    reversed_ = robust(phi, [0.2, 1.0]).distribution[0]
    assert trusted[0] > 0.5 > reversed_[0]
    silent = robust(phi, [0.0, 0.0]).distribution[0]
    np.testing.assert_allclose(silent, 1 / 3, atol=1e-12)


def test_exponents_by_hand() -> None:
    segments = Segments.of_counts([5, 1, 2])
    discount = copy_discount(np.array([0, 0, -1, 1, 1, -1, 7, 7]), segments, 8)
    np.testing.assert_allclose(discount, [0.5, 0.5, 1, 0.5, 0.5, 1, 0.5, 0.5])
    # K_eff is 3, 1 and 1
    found = exponents(discount, 0.1, segments)
    np.testing.assert_allclose(found, [*(discount[:5] / 1.2), 1.0, 0.5, 0.5])


def test_groups_of_different_entities_are_separate() -> None:
    discount = copy_discount(np.array([0, 0]), Segments.of_counts([1, 1]), 2)
    np.testing.assert_allclose(discount, [1.0, 1.0])


def test_copies_count_as_one_item() -> None:
    phi = np.array([[0.7, 0.2, 0.1]])
    once = robust(phi, parameters=RobustParameters())
    copied = robust(np.repeat(phi, 5, axis=0), groups=np.zeros(5, np.int64),
                    parameters=RobustParameters())  # fmt: skip
    np.testing.assert_allclose(copied.distribution, once.distribution, atol=1e-12)


def test_source_epsilon_by_hand() -> None:
    phi = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    ratio = phi / SHARES
    one_source = 0.8 * ratio[0] * ratio[1] + 0.2
    expected = one_source * ratio[2]
    parameters = RobustParameters(rho=0.0, epsilon=0.0, source_epsilon=0.2)
    found = robust(phi, parameters=parameters, sources=np.array([0, 0, -1]))
    np.testing.assert_allclose(found.distribution[0], expected / expected.sum(), atol=1e-12)
    assert_adds_up(found)


def test_source_that_rules_out_a_value_leaves_source_epsilon() -> None:
    phi = np.array([[0.0, 0.5, 0.5], [0.3, 0.4, 0.3]])
    parameters = RobustParameters(rho=0.0, epsilon=0.0, source_epsilon=0.25)
    found = robust(phi, parameters=parameters, sources=np.array([0, 0]))
    ratio = (phi / SHARES).prod(axis=0)
    expected = 0.75 * ratio + 0.25
    np.testing.assert_allclose(found.distribution[0], expected / expected.sum(), atol=1e-12)


def assert_adds_up(combined) -> None:
    total = combined.base + combined.segments.sum(combined.contributions)
    rebuilt = np.exp(total - combined.log_evidence[:, None])
    np.testing.assert_allclose(rebuilt, combined.distribution, atol=1e-12)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_contributions_add_up_and_entities_are_independent(counts: list, seed: int) -> None:
    """Entities in a batch, some without items, get the same answer as alone."""
    generator = np.random.default_rng(seed)
    segments = Segments.of_counts(counts)
    total = sum(counts)
    phi = generator.dirichlet(np.ones(3), total)
    credibility = np.where(generator.random(total) < 0.3, np.nan, generator.random(total))
    groups = generator.integers(-1, 3, total)
    sources = generator.integers(-1, 2, total)
    parameters = RobustParameters(rho=0.2, source_epsilon=0.1)
    many = combine_robust(phi, credibility, SHARES, UNIFORM, segments, parameters, groups, sources)
    assert_adds_up(many)
    for entity, (start, stop) in enumerate(
        zip(segments.offsets, segments.offsets[1:], strict=False)
    ):
        rows = slice(start, stop)
        one = combine_robust(
            phi[rows], credibility[rows], SHARES, UNIFORM, Segments.one(stop - start), parameters,
            groups[rows], sources[rows],
        )  # fmt: skip
        np.testing.assert_allclose(one.distribution[0], many.distribution[entity], atol=1e-12)


def test_paper_contributions_add_up_in_batches() -> None:
    segments = Segments.of_counts([3, 0, 2])
    weight = credibility_weight(np.linspace(0.1, 1.0, 5), PaperParameters())
    combined = combine_paper(distributions(5), weight, UNIFORM, segments)
    assert_adds_up(combined)
    np.testing.assert_allclose(combined.distribution[1], 1 / 3)


def test_a_thousand_items_neither_underflow_nor_overflow() -> None:
    phi = np.tile([1e-200, 0.5, 0.5 - 1e-200], (1000, 1))
    combined = robust(phi)
    assert np.isfinite(combined.distribution).all()
    np.testing.assert_allclose(combined.distribution.sum(), 1.0)
    assert combined.distribution[0, 0] == 0.0
    paper = combine_paper(phi, np.full(1000, 0.4), UNIFORM, Segments.one(1000))
    assert np.isfinite(paper.distribution).all()


def test_contradicting_zeros_raise_impossible_evidence() -> None:
    one = robust(np.array([[0.0, 0.5, 0.5]]))
    assert one.distribution[0, 0] == 0.0
    with pytest.raises(ImpossibleEvidenceError, match="rule out every value"):
        robust(np.array([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]))


def test_impossible_evidence_names_the_entity() -> None:
    phi = np.array([[0.4, 0.3, 0.3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    with pytest.raises(ImpossibleEvidenceError, match=r"positions \[1\]"):
        robust(phi, segments=Segments.of_counts([1, 2]))


def test_class_share_near_zero_gives_a_distribution() -> None:
    """With π near 0 the ratios are extreme, but the answer is a distribution."""
    shares = np.array([1e-9, 0.5, 0.5 - 1e-9])
    for first in (1e-9, 1e-3, 0.0):
        phi = np.array([[first, 0.5, 0.5 - first]])
        found = robust(phi, [0.9], shares=shares).distribution
        assert np.isfinite(found).all()


def test_single_value_has_probability_one() -> None:
    one = np.ones((3, 1))
    assert robust(one, shares=np.ones(1), log_prior=np.zeros(1)).distribution.tolist() == [[1.0]]
    assert combine_paper(one, np.ones(3), np.zeros(1), Segments.one(3)).distribution == [[1.0]]


def test_entity_without_items_keeps_its_prior() -> None:
    nothing = np.empty((0, 3))
    np.testing.assert_allclose(robust(nothing).distribution[0], 1 / 3)
    with pytest.raises(EvidenceError, match="no item to average"):
        combine_average(nothing, Segments.one(0))


def test_credibility_weight_is_below_one_half() -> None:
    sigma = np.array([0.0, 0.1, 1.0, 10.0, 1e6])
    for form in ("product", "sigmoid"):
        weight = credibility_weight(sigma, PaperParameters(2.0, form))
        assert (weight <= 0.5).all()
        assert (np.diff(weight) <= 0).all()
        assert np.isfinite(weight).all()


def test_fitted_epsilon_by_hand() -> None:
    parameters = RobustParameters(epsilon=0.2, slope=2.0, centre=0.0, fitted=True)
    found = parameters.item_epsilon(np.array([0.5, np.nan, 0.9, 1.0]))
    odds = 0.25 * np.array([1, 1, (1 / 9) ** 2, (0.001 / 0.999) ** 2])
    np.testing.assert_allclose(found, odds / (1 + odds), rtol=1e-9)
    flat = RobustParameters(epsilon=0.2, slope=0.0, fitted=True)
    np.testing.assert_allclose(flat.item_epsilon(np.array([0.0, 1.0])), 0.2)


def test_credibility_is_capped_at_the_highest_fitted() -> None:
    """A credibility above the fitted range counts as the highest; credibility 0 as the lowest."""
    parameters = RobustParameters(epsilon=0.2, slope=2.0, fitted=True, highest=0.9)
    plain = RobustParameters(epsilon=0.2, slope=2.0, fitted=True)
    found = parameters.item_epsilon(np.array([0.0, 0.6, 0.9, 1.0]))
    np.testing.assert_array_equal(plain.item_epsilon(np.array([0.0, 0.6, 0.9])), found[:3])
    assert found[3] == found[2]
    assert found[0] > 0.999


def test_old_parameters_without_highest_still_load() -> None:
    old = {"temperature": 1.1, "slope": 0.5, "fitted": 1.0}
    found = RobustParameters.from_dict(old)
    assert found.highest == CREDIBILITY_BOUNDS[1]


def test_invalid_segments_are_refused() -> None:
    for offsets in ([0, 5, 3, 4], [2, 4]):
        with pytest.raises(EvidenceError, match="must not decrease"):
            robust(distributions(4), segments=Segments(np.array(offsets)))


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(ConfigError, match="gamma"):
        RobustParameters.from_dict({"gamma": 1.0})


def test_parameters_round_trip_through_dict() -> None:
    parameters = RobustParameters(1.3, 0.2, 0.05, 0.7, 1.1, True)
    assert RobustParameters.from_dict(parameters.to_dict()) == parameters


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: RobustParameters(temperature=0.0), "temperature"),
        (lambda: RobustParameters(rho=1.5), "rho"),
        (lambda: RobustParameters(epsilon=-0.1), "epsilon"),
        (lambda: RobustParameters(slope=-1.0), "slope"),
        (lambda: RobustParameters(source_epsilon=1.0), "source_epsilon"),
        (lambda: RobustParameters(rho=float("nan")), "rho"),
        (lambda: RobustParameters(centre=float("nan")), "centre"),
        (lambda: RobustParameters(epsilon=-1e-13), "epsilon"),
        (lambda: RobustParameters(highest=0.0), "highest"),
        (lambda: RobustParameters(highest=1.0), "highest"),
        (lambda: RobustParameters(trust=1.1), "trust"),
        (lambda: RobustParameters(trust=-0.1), "trust"),
        (lambda: PaperParameters(alpha=-1.0), "alpha"),
        (lambda: PaperParameters(weight_form="w"), "weight_form"),
    ],
)
def test_invalid_parameter_is_named(build: object, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        build()


def test_what_silent_texts_leave_unused_goes_to_the_answer_for_silence() -> None:
    """Two texts with relevance 0.5 and 0.2 leave 0.3 of the exponent, by hand."""
    potential = np.array([[0.7, 0.3], [0.4, 0.6]])
    shares, silent = np.array([0.5, 0.5]), np.array([0.1, 0.9])
    parameters = RobustParameters(rho=1.0, epsilon=0.0, fitted=True)
    found = combine_robust(
        potential,
        np.full(2, np.nan),
        shares,
        np.log(shares),
        Segments.one(2),
        parameters,
        relevance=np.array([0.5, 0.2]),
        silent=silent,
    )
    expected = potential[0] ** 0.5 * potential[1] ** 0.2 * silent**0.3
    np.testing.assert_allclose(found.distribution[0], expected / expected.sum(), rtol=1e-12)
    # 0.3 is divided by silence, 0.5 to 0.8.
    unused = 0.3 * np.array([0.5, 0.8]) / 1.3
    np.testing.assert_allclose(
        found.contributions,
        np.array([[0.5], [0.2]]) * np.log(potential / shares)
        + unused[:, None] * np.log(silent / shares),
        rtol=1e-12,
    )


def test_texts_that_say_enough_leave_nothing_to_silence() -> None:
    potential, shares = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([0.5, 0.5])
    parameters = RobustParameters(rho=1.0, epsilon=0.0, fitted=True)
    given = (potential, np.full(2, np.nan), shares, np.log(shares), Segments.one(2), parameters)
    speaking = np.array([1.0, 0.4])
    plain, silent = (
        combine_robust(*given, relevance=speaking, silent=one)
        for one in (None, np.array([0.1, 0.9]))
    )
    np.testing.assert_array_equal(plain.distribution, silent.distribution)


def test_trust_scales_every_contribution() -> None:
    phi = distributions(3)
    full = robust(phi, parameters=RobustParameters(1.0, 0.1, 0.2, fitted=True))
    part = robust(phi, parameters=RobustParameters(1.0, 0.1, 0.2, fitted=True, trust=0.4))
    np.testing.assert_allclose(part.contributions, 0.4 * full.contributions, atol=1e-12)
    np.testing.assert_allclose(part.parts["exponent"], 0.4 * full.parts["exponent"], atol=1e-12)
    scores = part.base[0] + part.contributions.sum(axis=0)
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(part.distribution[0], expected, atol=1e-12)


def test_evidence_without_trust_cannot_rule_a_value_out() -> None:
    certain = RobustParameters(rho=0.0, epsilon=0.0, fitted=True, trust=0.0)
    found = robust(np.array([[1.0, 0.0, 0.0]]), parameters=certain)
    np.testing.assert_allclose(found.distribution[0], np.full(3, 1 / 3), atol=1e-12)
