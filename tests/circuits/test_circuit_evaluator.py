"""Inference compared with results worked out by hand and with enumeration."""

from math import inf, log

import numpy as np
import pytest
from circuit_strategies import (
    Case,
    cases,
    enumerated_log_joint,
    enumerated_marginals,
    mixture,
    random_case,
    with_evidence,
)
from hypothesis import given, settings
from scipy.special import logsumexp

from lpf.circuits import CircuitBuilder, Variable, compile_circuit, prior_circuit
from lpf.errors import (
    EvidenceError,
    ImpossibleEvidenceError,
    NonFiniteError,
    UnknownPredicateError,
    UnknownValueError,
)

RAIN = Variable("rain", ("yes", "no"))
LAWN = Variable("lawn", ("wet", "dry"))


@pytest.fixture
def weather():
    """0.3 x (rain .9, wet .8) + 0.7 x (rain .1, wet .2)."""
    builder = CircuitBuilder([RAIN, LAWN])
    bad = builder.product([builder.leaf("rain", [0.9, 0.1]), builder.leaf("lawn", [0.8, 0.2])])
    good = builder.product([builder.leaf("rain", [0.1, 0.9]), builder.leaf("lawn", [0.2, 0.8])])
    return compile_circuit(builder.build(builder.sum([bad, good], [0.3, 0.7])))


@pytest.fixture
def certain():
    """rain = lawn: half (yes, wet), half (no, dry)."""
    builder = CircuitBuilder([RAIN, LAWN])
    pairs = [
        builder.product([builder.indicator("rain", i, 2), builder.indicator("lawn", i, 2)])
        for i in range(2)
    ]
    return compile_circuit(builder.build(builder.sum(pairs, [0.5, 0.5])))


def test_marginals_without_evidence(weather):
    # P(yes) = .3*.9 + .7*.1 = .34; P(wet) = .3*.8 + .7*.2 = .38
    marginals = weather.marginals()
    assert marginals["rain"] == pytest.approx([0.34, 0.66], abs=1e-15)
    assert marginals["lawn"] == pytest.approx([0.38, 0.62], abs=1e-15)
    assert weather.log_likelihood() == pytest.approx(0.0, abs=1e-15)


def test_marginals_with_hard_evidence(weather):
    # P(yes, wet) = .3*.72 + .7*.02 = .23; P(yes | wet) = .23 / .38
    assert weather.log_likelihood({"rain": "yes", "lawn": "wet"}) == pytest.approx(log(0.23))
    assert weather.marginals({"lawn": "wet"})["rain"][0] == pytest.approx(0.23 / 0.38, abs=1e-15)


def test_log_joint_with_soft_evidence(weather):
    # likelihood (2, 1) on lawn: yes: .3*.9*1.8 + .7*.1*1.2 = .57; no: .3*.1*1.8 + .7*.9*1.2 = .81
    joint = weather.log_joint("rain", soft={"lawn": np.array([2.0, 1.0])})
    assert np.exp(joint) == pytest.approx([0.57, 0.81], abs=1e-15)
    assert weather.log_likelihood(soft={"lawn": [2.0, 1.0]}) == pytest.approx(log(1.38))
    logs = weather.log_joint("rain", log_soft={"lawn": np.log([2.0, 1.0])})
    assert logs == pytest.approx(joint, abs=1e-15)


def test_hard_and_soft_about_one_variable_multiply(weather):
    both = weather.log_joint("rain", {"lawn": "wet"}, {"lawn": [0.5, 9.0]})
    assert np.exp(both) == pytest.approx([0.5 * 0.23, 0.5 * 0.15], abs=1e-15)


def test_log_joint_includes_evidence_about_its_variable(weather):
    joint = weather.log_joint("rain", {"lawn": "wet"}, {"rain": [0.0, 3.0]})
    assert joint[0] == -inf
    assert joint[1] == pytest.approx(log(3.0 * 0.15))
    assert weather.log_joint("rain", {"rain": "yes"}).tolist() == [pytest.approx(log(0.34)), -inf]


def test_evidence_changes_other_variables(weather):
    assert weather.log_joint("rain", {"lawn": "wet"})[0] - weather.log_joint("rain")[0] != 0.0
    wet, dry = (weather.marginals({"lawn": value})["rain"][0] for value in ("wet", "dry"))
    assert wet > 0.6
    assert dry < 0.2


def test_scale_of_soft_evidence_does_not_matter(weather):
    small = weather.marginals(soft={"lawn": [2e-200, 1e-200]})["rain"]
    assert small == pytest.approx(weather.marginals(soft={"lawn": [2.0, 1.0]})["rain"], abs=1e-15)


def test_covers_known_variables(weather):
    assert weather.covers("rain")
    assert not weather.covers("snow")


def compare(case: Case, tolerance: float = 1e-12) -> None:
    compiled = compile_circuit(case.circuit)
    expected = logsumexp(with_evidence(case.circuit, case.log_inputs))
    found = compiled.log_likelihood(case.hard, log_soft=case.soft)
    assert found == pytest.approx(expected, rel=tolerance, abs=tolerance)
    if expected == -inf:
        with pytest.raises(ImpossibleEvidenceError):
            compiled.marginals(case.hard, log_soft=case.soft)
        return
    marginals = compiled.marginals(case.hard, log_soft=case.soft)
    for name, numbers in enumerated_marginals(case.circuit, case.log_inputs).items():
        np.testing.assert_allclose(marginals[name], numbers, rtol=0.0, atol=tolerance)
        joint = compiled.log_joint(name, case.hard, log_soft=case.soft)
        wanted = enumerated_log_joint(case.circuit, case.log_inputs, name)
        np.testing.assert_allclose(joint, wanted, rtol=tolerance, atol=tolerance)
        (batched,) = compiled.log_joint_batch(name, case.log_inputs[None])
        np.testing.assert_allclose(batched, wanted, rtol=tolerance, atol=tolerance)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_inference_agrees_with_enumeration(case):
    compare(case)


@settings(max_examples=150, deadline=None)
@given(cases(zeros=0.3))
def test_inference_agrees_with_enumeration_with_zeros(case):
    compare(case)


@settings(max_examples=100, deadline=None)
@given(cases(zeros=0.2, scale=400.0))
def test_inference_agrees_with_enumeration_under_underflow(case):
    # Log-likelihoods in the thousands: their sum has a rounding error of about 1e-12 of itself.
    compare(case, tolerance=1e-11)


def test_joints_of_many_queries(weather, certain):
    # likelihoods (2, 1) and (1, 0) on lawn, as above; the third row says nothing
    logs = np.log([[2.0, 1.0], [1.0, 1e-300], [1.0, 1.0]])
    joints = np.exp(weather.log_joint_batch("rain", {"lawn": logs}))
    assert joints == pytest.approx(np.array([[0.57, 0.81], [0.23, 0.15], [0.34, 0.66]]), abs=1e-12)
    # In a circuit with zeros, only what is impossible is -inf, however improbable the rest is.
    far = {"lawn": np.array([[-2000.0, 0.0], [-inf, 0.0], [-inf, -inf]])}
    joints = certain.log_joint_batch("rain", far)
    expected = np.array([[log(0.5) - 2000.0, log(0.5)], [-inf, log(0.5)], [-inf, -inf]])
    np.testing.assert_allclose(joints, expected, rtol=1e-12)


def test_many_values_cost_no_more_queries():
    """With more values than queries in one pass, the joint comes from one upward and one downward
    pass; it must be the same."""
    size = 200
    values = tuple(f"a{place}" for place in range(size))
    rng = np.random.default_rng(4)
    builder = CircuitBuilder([Variable("wide", values), LAWN])
    leaves = [builder.leaf("wide", rng.dirichlet(np.ones(size))) for _ in range(2)]
    parts = [
        builder.product([leaf, builder.leaf("lawn", [p, 1.0 - p])])
        for leaf, p in zip(leaves, (0.8, 0.0), strict=True)
    ]
    circuit = builder.build(builder.sum(parts, [0.3, 0.7]))
    compiled = compile_circuit(circuit)
    own = np.zeros(size)
    own[3] = -inf
    evidence = np.concatenate([own, [0.0, -inf]])
    expected = enumerated_log_joint(circuit, evidence, "wide")
    found = compiled.log_joint("wide", {"lawn": "wet"}, log_soft={"wide": own})
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ImpossibleEvidenceError):
        compiled.log_joint("wide", soft={"lawn": [0.0, 0.0]})


@settings(max_examples=60, deadline=None)
@given(cases(zeros=0.2))
def test_soft_and_log_soft_evidence_agree(case):
    compiled = compile_circuit(case.circuit)
    linear = {name: np.exp(vector) for name, vector in case.soft.items()}
    found = compiled.log_likelihood(case.hard, linear)
    assert found == pytest.approx(compiled.log_likelihood(case.hard, log_soft=case.soft), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(cases(zeros=0.2, scale=100.0))
def test_batch_agrees_with_single_queries(case):
    compiled = compile_circuit(case.circuit)
    rows = np.stack([case.log_inputs, np.zeros_like(case.log_inputs), case.log_inputs])
    logs = compiled.log_likelihood_batch(rows)
    single = compiled.log_likelihood(case.hard, log_soft=case.soft)
    assert logs == pytest.approx([single, 0.0, single], rel=1e-12, abs=1e-12)
    if single == -inf:
        with pytest.raises(ImpossibleEvidenceError, match=r"rows \[0, 2\]"):
            compiled.marginals_batch(rows)
        return
    batch = compiled.marginals_batch(rows)
    for name, numbers in compiled.marginals(case.hard, log_soft=case.soft).items():
        np.testing.assert_allclose(batch[name][2], numbers, rtol=0.0, atol=1e-12)


def test_large_batch_with_underflow_in_every_chunk():
    circuit = mixture()
    compiled = compile_circuit(circuit)
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(2000, 24))
    rows[::7] *= 1000.0
    batch = compiled.marginals_batch(rows)
    for row in (0, 1, 7, 1000, 1999):
        expected = enumerated_marginals(circuit, rows[row])
        for name, numbers in expected.items():
            np.testing.assert_allclose(batch[name][row], numbers, rtol=0.0, atol=1e-11)


def test_batch_evidence_for_some_variables(weather):
    found = weather.marginals_batch({"lawn": [[0.0, -inf], [-inf, 0.0], [0.0, 0.0]]})
    assert found["rain"][:, 0] == pytest.approx([0.23 / 0.38, 0.11 / 0.62, 0.34], abs=1e-15)
    expected = [[1.0, 0.0], [0.0, 1.0], [0.38, 0.62]]
    np.testing.assert_allclose(found["lawn"], expected, rtol=0.0, atol=1e-15)


def test_empty_batch(weather):
    assert weather.log_likelihood_batch(np.empty((0, 4))).shape == (0,)
    assert weather.marginals_batch(np.empty((0, 4)))["rain"].shape == (0, 2)


def test_log_joint_keeps_tiny_values():
    builder = CircuitBuilder([RAIN, LAWN])
    leaves = [builder.leaf("rain", [1e-300, 1.0 - 1e-300]), builder.leaf("lawn", [1e-300, 1.0])]
    compiled = compile_circuit(builder.build(builder.product(leaves)))
    joint = compiled.log_joint("rain", {"lawn": "wet"})
    assert joint[0] == pytest.approx(2.0 * log(1e-300), rel=1e-14)


@pytest.mark.parametrize("exponent", range(120, 200, 5))
def test_no_precision_is_lost_near_underflow(exponent):
    # Two components, (p, p) and (3p, 3p) for (yes, wet): the posterior is 1 to 9 whatever p is.
    # From p = 1e-154 on, p * p is a subnormal float64 or zero.
    p = 10.0**-exponent
    builder = CircuitBuilder([RAIN, LAWN])
    parts = [
        builder.product([builder.leaf(name, [q, 1.0 - q]) for name in ("rain", "lawn")])
        for q in (p, 3.0 * p)
    ]
    compiled = compile_circuit(builder.build(builder.sum(parts, [0.5, 0.5])))
    evidence = {"rain": "yes", "lawn": "wet"}
    expected = log(5.0) - 2.0 * exponent * log(10.0)
    rows = np.array([[0.0, -inf, 0.0, -inf]])
    assert compiled.log_likelihood(evidence) == pytest.approx(expected, rel=1e-13)
    assert compiled.log_likelihood_batch(rows) == pytest.approx([expected], rel=1e-13)
    assert compiled.log_joint("rain", {"lawn": "wet"})[0] <= log(2.0 * p)
    for found in (compiled.marginals(evidence), compiled.marginals_batch(rows)):
        assert found["rain"].ravel() == pytest.approx([1.0, 0.0], abs=1e-13)
    third = compile_circuit(_with_cause(p))
    assert third.marginals(evidence)["cause"] == pytest.approx([0.1, 0.9], abs=1e-12)


def _with_cause(p):
    """The same two components, with a third variable that identifies the component."""
    builder = CircuitBuilder([RAIN, LAWN, Variable("cause", ("first", "second"))])
    parts = [
        builder.product(
            [
                *(builder.leaf(name, [q, 1.0 - q]) for name in ("rain", "lawn")),
                builder.indicator("cause", place, 2),
            ]
        )
        for place, q in enumerate((p, 3.0 * p))
    ]
    return builder.build(builder.sum(parts, [0.5, 0.5]))


def test_tiny_likelihoods_still_count(certain):
    # rain = yes has likelihood 1e-400, but lawn = wet allows nothing else.
    logs = {"rain": [-921.0, 0.0]}
    assert certain.log_likelihood({"lawn": "wet"}, log_soft=logs) == pytest.approx(log(0.5) - 921.0)
    assert certain.marginals({"lawn": "wet"}, log_soft=logs)["rain"].tolist() == [1.0, 0.0]
    assert certain.log_joint("rain", log_soft=logs) == pytest.approx([log(0.5) - 921.0, log(0.5)])


def test_impossible_evidence_names_the_variables(certain):
    evidence = {"rain": "yes", "lawn": "dry"}
    assert certain.log_likelihood(evidence) == -inf
    with pytest.raises(ImpossibleEvidenceError, match="'lawn', 'rain'"):
        certain.marginals(evidence)
    with pytest.raises(ImpossibleEvidenceError, match="'lawn', 'rain'"):
        certain.log_joint("rain", evidence)
    with pytest.raises(ImpossibleEvidenceError, match="rain"):
        certain.marginals(soft={"rain": [0.0, 0.0]})


def test_impossible_evidence_in_a_batch_names_the_rows(certain):
    rows = np.zeros((30, 4))
    rows[5:25] = [0.0, -inf, -inf, 0.0]
    with pytest.raises(ImpossibleEvidenceError, match=r"\['rain', 'lawn'\].*\[5, 6, .* and more"):
        certain.marginals_batch(rows)
    assert np.isneginf(certain.log_likelihood_batch(rows)).sum() == 20


def test_unknown_variables_and_values_are_refused(weather):
    with pytest.raises(UnknownPredicateError, match="snow"):
        weather.log_joint("snow")
    with pytest.raises(UnknownPredicateError, match="snow"):
        weather.marginals({"snow": "yes"})
    with pytest.raises(UnknownPredicateError, match="snow"):
        weather.marginals(soft={"snow": [1.0, 1.0]})
    with pytest.raises(UnknownValueError, match="maybe"):
        weather.marginals({"rain": "maybe"})


@pytest.mark.parametrize(
    ("vector", "error"),
    [
        ([1.0], EvidenceError),
        ([[1.0, 1.0]], EvidenceError),
        ([-1.0, 1.0], EvidenceError),
        ([float("nan"), 1.0], NonFiniteError),
        ([inf, 1.0], NonFiniteError),
    ],
)
def test_invalid_soft_evidence_is_refused(weather, vector, error):
    with pytest.raises(error, match="rain"):
        weather.marginals(soft={"rain": vector})


@pytest.mark.parametrize("number", [float("nan"), inf])
def test_invalid_log_soft_evidence_is_refused(weather, number):
    with pytest.raises(NonFiniteError, match="rain"):
        weather.marginals(log_soft={"rain": [number, 0.0]})
    with pytest.raises(NonFiniteError, match=r"rows \[1\]"):
        weather.marginals_batch([[0.0] * 4, [0.0, number, 0.0, 0.0]])


@pytest.mark.parametrize(
    "evidence", [np.zeros(4), np.zeros((2, 3)), {}, {"rain": np.zeros((2, 3))}]
)
def test_batch_of_the_wrong_shape_is_refused(weather, evidence):
    with pytest.raises(EvidenceError):
        weather.marginals_batch(evidence)


def test_many_variables_do_not_underflow():
    variables = [Variable(f"v{i}", ("a", "b")) for i in range(1500)]
    compiled = compile_circuit(prior_circuit(variables))
    evidence = {variable.name: "a" for variable in variables}
    assert compiled.log_likelihood(evidence) == pytest.approx(1500 * log(0.5), rel=1e-12)
    assert compiled.marginals(evidence)["v7"].tolist() == [1.0, 0.0]


def test_sparse_layers_agree_with_dense_ones(monkeypatch):
    dense = [compile_circuit(random_case(seed).circuit) for seed in range(20)]
    monkeypatch.setattr("lpf.circuits.layout._DENSE_LIMIT", 0)
    for seed, compiled in enumerate(dense):
        case = random_case(seed)
        sparse = compile_circuit(case.circuit)
        expected = compiled.marginals(case.hard, log_soft=case.soft)
        for name, numbers in sparse.marginals(case.hard, log_soft=case.soft).items():
            np.testing.assert_allclose(numbers, expected[name], rtol=0.0, atol=1e-14)
