from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lpf.combine import RobustParameters, Segments
from lpf.combine.calibration import (
    MAX_SIZES,
    LabelledFactors,
    choose_threshold,
    draw_subsets,
    fit_robust,
    fit_temperature,
    mean_nll,
    robust_answers,
)
from lpf.combine.robust import CREDIBILITY_BOUNDS, combine_robust
from lpf.errors import EvidenceError
from lpf.factors import tempered

VALUES = 3
SHARES = np.full(VALUES, 1 / VALUES)


def simulated(
    entities: int,
    items: int,
    *,
    overconfidence: float = 1.0,
    shared_error: float = 0.0,
    useless_below: float | None = None,
    seed: int = 0,
) -> LabelledFactors:
    """Entities with items drawn from known likelihoods; Φ is the exact posterior to the power
    ``overconfidence``. With probability ``shared_error`` all items of an entity show a random
    value."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, VALUES, entities)
    shown = np.where(
        generator.random(entities) < shared_error, generator.integers(0, VALUES, entities), labels
    )
    accuracy = 0.7
    table = np.full((VALUES, VALUES), (1 - accuracy) / (VALUES - 1))
    np.fill_diagonal(table, accuracy)
    truth = np.repeat(shown, items)
    symbols = np.array([generator.choice(VALUES, p=table[value]) for value in truth])
    credibility = generator.uniform(0.2, 1.0, len(truth))
    if useless_below is not None:
        noise = credibility < useless_below
        symbols[noise] = generator.integers(0, VALUES, noise.sum())
    phi = table[:, symbols].T ** overconfidence
    phi /= phi.sum(axis=1, keepdims=True)
    segments = Segments.of_counts([items] * entities)
    return LabelledFactors(phi, credibility, segments, labels, SHARES, np.log(SHARES))


def fit(data: LabelledFactors, seed: int = 0):
    return fit_robust(data, generator=np.random.default_rng(seed))


@pytest.mark.parametrize("overconfidence", [0.6, 1.0, 2.0, 3.0])
def test_fit_corrects_overconfident_items(overconfidence: float) -> None:
    """T and ε can compensate for each other, so this checks the answers, not the parameters."""
    found = fit(simulated(800, 5, overconfidence=overconfidence))
    perfect = mean_nll(simulated(800, 5), RobustParameters(1.0, 0.0, 0.0, fitted=True))
    assert found.nll_after < perfect + 0.005
    assert found.nll_after < found.nll_before - 0.03


def test_temperature_increases_with_overconfidence() -> None:
    found = [
        fit(simulated(300, 4, overconfidence=power)).parameters.temperature
        for power in (0.6, 1.0, 2.0)
    ]
    assert found[0] < found[1] < found[2]


def test_shared_errors_increase_rho() -> None:
    alone, together = fit(simulated(600, 6)), fit(simulated(600, 6, shared_error=0.3))
    assert together.parameters.rho > 2 * alone.parameters.rho
    assert together.nll_after < together.nll_before - 0.02


def test_slope_is_large_only_if_credibility_is_informative() -> None:
    useful, useless = fit(simulated(800, 5, useless_below=0.6)), fit(simulated(800, 5))
    assert useful.parameters.slope > 0.3
    low, high = useful.parameters.item_epsilon(np.array([0.3, 0.95]))
    assert low > 2 * high
    assert useless.parameters.slope < 0.5 * useful.parameters.slope


def test_fit_stores_the_highest_credibility() -> None:
    data = simulated(60, 3)
    known = data.credibility
    found = fit(data).parameters
    assert found.highest == min(known.max(), CREDIBILITY_BOUNDS[1])
    none = fit(replace(data, credibility=np.full(len(known), np.nan))).parameters
    assert none.highest == CREDIBILITY_BOUNDS[1]


def test_fit_is_calibrated_for_single_items() -> None:
    """Unlike a single exponent fitted on whole entities, which is too weak for single items."""
    data, test = simulated(600, 6, shared_error=0.3), simulated(1500, 6, shared_error=0.3, seed=9)
    fitted = fit(data).parameters
    first = test.segments.offsets[:-1]
    single = LabelledFactors(
        test.potential[first],
        test.credibility[first],
        Segments.of_counts([1] * len(first)),
        test.labels,
        SHARES,
        np.log(SHARES),
    )
    from scipy.optimize import minimize_scalar

    def global_exponent(power: float, data: LabelledFactors) -> float:
        scores = data.segments.sum(power * np.log(data.potential))
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return float(-scores[np.arange(len(data.labels)), data.labels].mean())

    power = minimize_scalar(
        lambda p: global_exponent(p, data), bounds=(0.01, 3), method="bounded"
    ).x
    assert mean_nll(single, fitted) < global_exponent(power, single) - 0.01
    assert mean_nll(test, fitted) < global_exponent(power, test) + 0.02


def test_fit_stays_finite_with_perfect_items() -> None:
    """All items are right and certain: without priors the parameters would diverge."""
    labels = np.arange(60) % VALUES
    phi = np.full((120, VALUES), 1e-6)
    phi[np.arange(120), np.repeat(labels, 2)] = 1 - 2e-6
    data = LabelledFactors(
        phi, np.full(120, np.nan), Segments.of_counts([2] * 60), labels, SHARES, np.log(SHARES)
    )
    found = fit(data).parameters
    assert 0.2 < found.temperature < 5
    assert 0 < found.rho < 0.5
    assert 1e-4 < found.epsilon < 0.5


def test_few_entities_are_cross_fitted() -> None:
    few, many = fit(simulated(12, 3)), fit(simulated(520, 2))
    assert few.nll_cross_fitted is not None
    assert np.isfinite(few.nll_cross_fitted)
    assert many.nll_cross_fitted is None
    assert fit(simulated(1, 1)).nll_cross_fitted is None


def test_same_seed_gives_the_same_fit() -> None:
    data = simulated(60, 4)
    assert fit(data, 3).parameters == fit(data, 3).parameters


def test_zero_potential_on_the_label_is_allowed() -> None:
    data = simulated(50, 3)
    data.potential[0] = [1.0, 0.0, 0.0]
    data.labels[0] = 2
    assert np.isfinite(fit(data).nll_after)


@pytest.mark.parametrize(
    ("counts", "labels", "named"),
    [([2, 0], [0, 1], r"positions \[1\] have no evidence"), ([2], [0, 1], "2 labels for 1")],
)
def test_missing_evidence_or_labels_are_refused(counts: list, labels: list, named: str) -> None:
    with pytest.raises(EvidenceError, match=named):
        LabelledFactors(
            np.full((2, 3), 1 / 3), np.full(2, np.nan), Segments.of_counts(counts),
            np.array(labels), SHARES, np.log(SHARES),
        )  # fmt: skip


def test_invalid_or_impossible_labels_are_refused() -> None:
    data = simulated(6, 2)
    with pytest.raises(EvidenceError, match="labels must be 0 to 2"):
        LabelledFactors(
            data.potential, data.credibility, data.segments, data.labels - 3, SHARES, np.log(SHARES)
        )
    with np.errstate(divide="ignore"):
        prior = np.log(np.array([0.0, 0.5, 0.5]))
    data.labels[:] = 0
    impossible = LabelledFactors(
        data.potential, data.credibility, data.segments, data.labels, SHARES, prior
    )
    with pytest.raises(EvidenceError, match=r"prior gives the labels at positions \[0, 1"):
        fit(impossible)


def test_prior_may_differ_by_entity() -> None:
    data = simulated(40, 3)
    each = LabelledFactors(
        data.potential, data.credibility, data.segments, data.labels, SHARES,
        np.tile(np.log(SHARES), (40, 1)),
    )  # fmt: skip
    assert fit(each).parameters == fit(data).parameters
    assert fit(each).converged


def test_subsets_have_every_size() -> None:
    segments = Segments.of_counts([3, 1, 50])
    rows, parts, owners = draw_subsets(segments, np.random.default_rng(0))
    assert sorted(parts.counts[owners == 0]) == [1, 2, 3]
    assert parts.counts[owners == 1].tolist() == [1]
    sizes = parts.counts[owners == 2]
    assert len(sizes) == MAX_SIZES
    assert (sizes.min(), sizes.max()) == (1, 50)
    for subset, owner in enumerate(owners):
        chosen = rows[parts.offsets[subset] : parts.offsets[subset + 1]]
        assert len(set(chosen)) == len(chosen)
        assert (chosen >= segments.offsets[owner]).all()
        assert (chosen < segments.offsets[owner + 1]).all()


def test_fit_temperature_recovers_the_true_temperature() -> None:
    generator = np.random.default_rng(0)
    true = generator.dirichlet(np.ones(3) * 2, 4000)
    labels = np.array([generator.choice(3, p=row) for row in true])
    sharp = true**2 / (true**2).sum(axis=1, keepdims=True)
    assert fit_temperature(sharp, labels) == pytest.approx(2.0, rel=0.1)
    certain = np.array([[0.999, 0.001]])
    assert 0.5 < fit_temperature(certain, np.array([0])) < 1.0


def test_fit_temperature_refuses_impossible_labels() -> None:
    with pytest.raises(EvidenceError, match=r"positions \[1\]"):
        fit_temperature(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 1]))
    with pytest.raises(EvidenceError, match="labels"):
        fit_temperature(np.empty((0, 2)), np.array([], dtype=int))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shared_error", "allowed"),
    [
        (0.0, 0.015),
        # One exponent cannot express "all items are wrong together, three times in ten"; the
        # fitted answers are less confident than they could be, but never overconfident.
        (0.3, 0.06),
    ],
)
def test_calibrated_confidence_matches_accuracy(shared_error: float, allowed: float) -> None:
    """Compare mean confidence with accuracy on 20,000 new entities, for small and large K."""
    fitted = fit(simulated(1500, 6, overconfidence=1.7, shared_error=shared_error)).parameters
    for items in (1, 3, 6):
        test = simulated(20_000, items, overconfidence=1.7, shared_error=shared_error, seed=5)
        combined = combine_robust(
            tempered(test.potential, fitted.temperature),
            test.credibility, SHARES, np.log(SHARES), test.segments, fitted,
        )  # fmt: skip
        confidence = combined.distribution.max(axis=1).mean()
        accuracy = (combined.distribution.argmax(axis=1) == test.labels).mean()
        assert -allowed < confidence - accuracy < 0.015, (items, confidence, accuracy)


def lying_below(threshold: float, entities: int = 300) -> LabelledFactors:
    """Items below the threshold show another value than the true one, every time."""
    data = simulated(entities, 5)
    lies = data.credibility < threshold
    truth = np.repeat(data.labels, 5)
    potential = data.potential.copy()
    potential[lies] = 0.04
    potential[np.flatnonzero(lies), (truth[lies] + 1) % VALUES] = 0.92
    return replace(data, potential=potential)


def threshold_of(data: LabelledFactors, **changes: float) -> float:
    parameters = replace(fit(data).parameters, **changes)
    return choose_threshold(data, parameters, np.random.default_rng(0))


def test_no_threshold_if_credibility_says_nothing() -> None:
    assert threshold_of(simulated(300, 5)) == 0.0
    assert threshold_of(lying_below(0.4), slope=0.0) == 0.0
    unknown = simulated(300, 5)
    unknown = replace(unknown, credibility=np.full(len(unknown.credibility), np.nan))
    assert threshold_of(unknown) == 0.0


def test_no_threshold_for_items_that_count_less_already() -> None:
    """Useless items get a high ε; leaving them out on top of it changes nothing beyond chance."""
    assert threshold_of(simulated(300, 5, useless_below=0.4)) == 0.0


def test_a_threshold_is_chosen_if_it_makes_answers_better() -> None:
    assert threshold_of(lying_below(0.4), slope=0.5) == 0.4


def test_a_few_lies_choose_no_threshold() -> None:
    """Leaving them out helps their entities only, which proves nothing about others."""
    data, lies = simulated(300, 5), lying_below(0.4)
    few = np.arange(len(data.potential)) < 5 * 5  # of five entities
    data = replace(
        data,
        potential=np.where(few[:, None], lies.potential, data.potential),
        credibility=np.where(few, data.credibility, np.maximum(data.credibility, 0.5)),
    )
    assert threshold_of(data, slope=0.5) == 0.0


def test_few_entities_choose_no_threshold() -> None:
    assert threshold_of(lying_below(0.4, entities=39), slope=0.5) == 0.0


def few_and_well_calibrated(count: int, seed: int) -> LabelledFactors:
    """Factors that are right as they are: whatever is fitted to few of them is noise."""
    drawn = np.random.default_rng(seed)
    phi = drawn.dirichlet((1.2, 1.2, 1.2), count)
    labels = np.array([drawn.choice(3, p=row) for row in phi])
    uniform = np.full(3, 1 / 3)
    return LabelledFactors(
        phi,
        np.full(count, np.nan),
        Segments.of_counts([1] * count),
        labels,
        uniform,
        np.log(uniform),
        trained_rho=1.0,
    )


def test_with_few_entities_a_fit_that_hurts_on_held_out_folds_is_not_kept() -> None:
    kept = set()
    for seed in range(30):
        data = few_and_well_calibrated(24, seed)
        fit = fit_robust(data, generator=np.random.default_rng(0))
        kept.add(fit.fitted)
        if fit.fitted == "nothing":
            assert (fit.parameters.temperature, fit.nll_after) == (1.0, fit.nll_before)
        if fit.fitted == "temperature":
            assert fit.parameters.rho == pytest.approx(0.95)
    assert kept > {"everything"}


def test_an_overconfident_model_is_still_corrected_with_few_entities() -> None:
    data = few_and_well_calibrated(60, 3)
    sharp = data.potential**6
    data = replace(data, potential=sharp / sharp.sum(axis=1, keepdims=True))
    fit = fit_robust(data, generator=np.random.default_rng(0))
    assert fit.fitted != "nothing"
    assert fit.parameters.temperature > 1.5
    assert fit.nll_after < fit.nll_before


def in_groups(data: LabelledFactors, count: int, misled: int = 0) -> LabelledFactors:
    """The same in ``count`` groups of about the same size; in ``misled`` of them, evidence points
    to the next value."""
    groups = np.arange(len(data.labels)) % count
    labels = np.where(groups < misled, (data.labels + 1) % VALUES, data.labels)
    return replace(data, labels=labels, entity_groups=groups.astype(np.intp))


def test_evidence_that_holds_in_every_group_is_trusted() -> None:
    found = fit(in_groups(simulated(200, 3), 8))
    assert found.groups == 8
    assert found.parameters.trust >= 0.9
    assert found.held_out is not None


def test_evidence_that_misleads_in_half_of_the_groups_is_not_trusted() -> None:
    data = in_groups(simulated(200, 3), 8, misled=4)
    found, independent = fit(data), fit(replace(data, entity_groups=None))
    assert found.parameters.trust < 0.5
    assert independent.parameters.trust == 1.0
    assert independent.groups is None
    answers = robust_answers(data, found.parameters)
    assert np.abs(answers - SHARES).max() < 0.25
    assert found.nll_cross_fitted is not None
    assert found.nll_cross_fitted < np.log(VALUES) + 0.05


def test_one_group_says_nothing_about_trust() -> None:
    found = fit(in_groups(simulated(100, 3), 1))
    assert (found.groups, found.parameters.trust, found.held_out) == (1, 1.0, None)


def test_trust_multiplies_what_evidence_contributes() -> None:
    data = simulated(40, 3)
    full = RobustParameters(1.0, 0.2, 0.1, fitted=True)
    whole = robust_answers(data, full)
    assert robust_answers(data, replace(full, trust=0.0)) == pytest.approx(np.tile(SHARES, (40, 1)))
    half = np.sqrt(whole) / np.sqrt(whole).sum(axis=1, keepdims=True)  # the prior is uniform
    assert robust_answers(data, replace(full, trust=0.5)) == pytest.approx(half)


def test_a_large_group_does_not_decide_the_fit() -> None:
    """150 entities of one value in one group count like one; the others say items are right."""
    small = simulated(60, 3, seed=1)
    groups = np.arange(60) % 6
    large = simulated(150, 3, seed=2)
    wrong = replace(large, labels=np.zeros(150, np.intp))
    joined = LabelledFactors(
        np.concatenate([small.potential, wrong.potential]),
        np.concatenate([small.credibility, wrong.credibility]),
        Segments.of_counts([3] * 210),
        np.concatenate([small.labels, wrong.labels]),
        SHARES,
        np.log(SHARES),
        entity_groups=np.concatenate([groups, np.full(150, 6)]).astype(np.intp),
    )
    by_group, by_entity = fit(joined), fit(replace(joined, entity_groups=None))
    assert by_group.parameters.temperature < 0.8 * by_entity.parameters.temperature
