"""Learning from tables with gaps: Chow-Liu, LearnSPN and EM."""

from math import log

import numpy as np
import pytest
from circuit_strategies import mixture
from scipy.stats import chi2_contingency

from lpf.circuits import (
    ChowLiuConfig,
    CircuitBuilder,
    DataTable,
    LearnSPNConfig,
    RefineConfig,
    Variable,
    compile_circuit,
    learn_chow_liu,
    learn_spn,
    mutual_information,
    prior_circuit,
    refine,
    sample,
)
from lpf.circuits.chow_liu import maximum_spanning_tree
from lpf.circuits.data_table import smoothed
from lpf.circuits.learn_spn import dependent_groups, independence_p_value
from lpf.errors import (
    ConfigError,
    EvidenceError,
    ImpossibleEvidenceError,
    UnknownPredicateError,
    UnknownValueError,
)

A = Variable("a", ("x", "y"))
B = Variable("b", ("x", "y"))
C = Variable("c", ("x", "y", "z"))


def rng(seed=0):
    return np.random.default_rng(seed)


def dependent_table(rows=400, gaps=0.2, seed=0):
    """b equals a nine times in ten; c is independent of both."""
    generator = rng(seed)
    a = generator.integers(2, size=rows)
    b = np.where(generator.random(rows) < 0.9, a, 1 - a)
    codes = np.stack([a, b, generator.integers(3, size=rows)], axis=1)
    codes[generator.random(codes.shape) < gaps] = -1
    return DataTable((A, B, C), codes)


LEARNERS = {
    "learnspn": lambda table, **options: learn_spn(table, generator=rng(), **options),
    "chow-liu": learn_chow_liu,
}


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]


def test_learned_dependence_changes_marginals(learner):
    compiled = compile_circuit(learner(dependent_table()))
    given_x = compiled.marginals({"b": "x"})["a"]
    given_y = compiled.marginals({"b": "y"})["a"]
    assert given_x[0] == pytest.approx(0.9, abs=0.06)
    assert given_y[0] == pytest.approx(0.1, abs=0.06)


def test_independent_variables_stay_independent(learner):
    compiled = compile_circuit(learner(dependent_table(rows=2000)))
    # 2 x 1600 pairs x information is chi-square with 2 degrees of freedom: its mean is 0.0006
    assert mutual_information(compiled, "a", "c") < 0.003
    assert mutual_information(compiled, "a", "b") == pytest.approx(0.368, abs=0.05)


def test_learning_is_reproducible(learner):
    table = dependent_table()
    assert learner(table).hash == learner(table).hash


@pytest.mark.parametrize("codes", [np.empty((0, 3), dtype=int), [[-1, -1, -1]] * 100, [[0, 0, 0]]])
def test_too_few_rows_give_the_prior(learner, codes):
    priors = {"a": [0.9, 0.1]}
    table = DataTable((A, B, C), np.array(codes))
    assert learner(table, priors=priors) == prior_circuit((A, B, C), priors)


def test_variable_without_data_keeps_its_prior(learner):
    codes = dependent_table().codes.copy()
    codes[:, 2] = -1
    circuit = learner(DataTable((A, B, C), codes), priors={"c": [0.7, 0.2, 0.1]})
    marginals = compile_circuit(circuit).marginals({"a": "x"})
    assert marginals["c"] == pytest.approx([0.7, 0.2, 0.1], abs=1e-9)


def test_empty_rows_are_ignored():
    full = dependent_table(gaps=0.0)
    empty = np.full((2000, 3), -1)
    padded = DataTable(full.variables, np.concatenate([full.codes, empty]))
    config = LearnSPNConfig(refinements=0)
    share = [
        compile_circuit(learn_spn(table, config, generator=rng())).marginals()["a"][0]
        for table in (full, padded)
    ]
    assert share[1] == pytest.approx(share[0], abs=0.02)


def test_learned_circuits_explain_new_rows_better_than_independence(learner):
    truth = compile_circuit(mixture(seed=5, variables=6, components=3))
    variables = truth.circuit.variables
    train = DataTable(variables, sample(truth, 3000, generator=rng(1)))
    test = DataTable(variables, sample(truth, 2000, generator=rng(2))).log_inputs()
    learned = compile_circuit(learner(train)).log_likelihood_batch(test).mean()
    counts = train.one_hot().sum(axis=0).reshape(6, 3)
    names = [variable.name for variable in variables]
    priors = {name: smoothed(counts[i], [1 / 3] * 3, 1.0) for i, name in enumerate(names)}
    independent = prior_circuit(variables, priors)
    alone = compile_circuit(independent).log_likelihood_batch(test).mean()
    best = truth.log_likelihood_batch(test).mean()
    assert alone + 0.2 * (best - alone) < learned <= best + 0.02


def test_chow_liu_by_hand():
    # Counts of (a, b): xx 3, xy 1, yy 4; no smoothing. P(a)=(.5,.5), P(b|x)=(.75,.25), P(b|y)=(0,1)
    codes = [[0, 0]] * 3 + [[0, 1]] + [[1, 1]] * 4
    config = ChowLiuConfig(min_rows=1, smoothing=0.0)
    compiled = compile_circuit(learn_chow_liu(DataTable((A, B), np.array(codes)), config))
    assert compiled.log_likelihood({"a": "x", "b": "y"}) == pytest.approx(log(0.125))
    assert compiled.marginals({"b": "y"})["a"] == pytest.approx([0.2, 0.8])


def test_groups_are_learned_apart():
    table = dependent_table()
    apart = compile_circuit(learn_chow_liu(table, groups=[["c", "a"]]))
    assert mutual_information(apart, "a", "b") == pytest.approx(0.0, abs=1e-12)
    assert mutual_information(apart, "a", "c") > 0.0
    whole = learn_chow_liu(table)
    assert learn_chow_liu(table, groups=[["a", "b", "c"]]) == whole
    # Marginals do not depend on the grouping: the same counts, with the same smoothing.
    for name, numbers in compile_circuit(whole).marginals().items():
        np.testing.assert_allclose(apart.marginals()[name], numbers, atol=0.02)
    alone = learn_chow_liu(table, groups=[])
    assert [type(node).__name__ for node in alone.nodes] == ["Leaf", "Leaf", "Leaf", "Product"]
    with pytest.raises(UnknownPredicateError):
        learn_chow_liu(table, groups=[["a", "d"]])
    with pytest.raises(ConfigError):
        learn_chow_liu(table, groups=[["a", "b"], ["b", "c"]])


def test_chow_liu_recovers_a_chain():
    generator = rng(4)
    columns = [generator.integers(3, size=2000)]
    for _ in range(4):
        noise = generator.random(2000) < 0.3
        columns.append(np.where(noise, generator.integers(3, size=2000), columns[-1]))
    variables = tuple(Variable(f"v{i}", ("x", "y", "z")) for i in range(5))
    compiled = compile_circuit(learn_chow_liu(DataTable(variables, np.stack(columns, axis=1))))
    information = [mutual_information(compiled, "v0", f"v{i}") for i in range(1, 5)]
    assert information == sorted(information, reverse=True)
    # In a chain, v0 and v2 are independent given v1.
    assert mutual_information(compiled, "v0", "v2", {"v1": "x"}) == pytest.approx(0.0, abs=1e-12)


def test_maximum_spanning_tree_by_hand():
    weights = np.array([[0, 1, 5, 0], [1, 0, 4, 0], [5, 4, 0, 0], [0, 0, 0, 0]], dtype=float)
    assert maximum_spanning_tree(weights) == [[2, 3], [], [1], []]
    assert maximum_spanning_tree(np.zeros((1, 1))) == [[]]


def test_g_test_agrees_with_scipy():
    counts = np.array([[30.0, 14.0, 6.0], [22.0, 25.0, 9.0]])
    expected = chi2_contingency(counts, correction=False, lambda_="log-likelihood").pvalue
    assert independence_p_value(counts) == pytest.approx(expected, rel=1e-12)


def test_g_test_ignores_unused_values():
    counts = np.array([[30.0, 14.0], [22.0, 25.0]])
    padded = np.array([[30.0, 0.0, 14.0], [0.0, 0.0, 0.0], [22.0, 0.0, 25.0]])
    assert independence_p_value(padded) == independence_p_value(counts)


@pytest.mark.parametrize("counts", [np.zeros((2, 2)), [[5.0, 3.0], [0.0, 0.0]], [[7.0]]])
def test_g_test_without_degrees_of_freedom_gives_one(counts):
    assert independence_p_value(np.array(counts)) == 1.0


def test_g_test_has_the_stated_significance():
    generator = rng(7)
    slots = [slice(0, 3), slice(3, 6)]
    wrong = 0
    for _ in range(400):
        one_hot = np.hstack([np.eye(3)[generator.integers(3, size=300)] for _ in slots])
        wrong += len(dependent_groups(one_hot, slots, 0.05)) == 1
    assert 6 <= wrong <= 36  # expected: 20 +- 3.7 standard deviations


def test_refine_never_lowers_the_likelihood():
    truth = compile_circuit(mixture(seed=2, variables=5, components=3))
    codes = sample(truth, 500, generator=rng(1))
    codes[rng(2).random(codes.shape) < 0.3] = -1
    table = DataTable(truth.circuit.variables, codes)
    start = mixture(seed=9, variables=5, components=3)
    result = refine(start, table, RefineConfig(iterations=40, tolerance=0.0))
    history = np.array(result.log_likelihoods)
    assert (np.diff(history) >= -1e-9).all()
    assert history[-1] > history[0] + 50.0
    compiled = compile_circuit(result.circuit)
    assert history[-1] == pytest.approx(compiled.log_likelihood_batch(table.log_inputs()).sum())


def test_refine_by_hand():
    # With one leaf EM is counting. A gap counts as the leaf's current distribution.
    table = DataTable((A,), np.array([[0], [0], [0], [1]]))
    result = refine(prior_circuit([A]), table)
    assert result.circuit.nodes[0].probabilities == (0.75, 0.25)
    gap = DataTable((A,), np.array([[0], [0], [0], [1], [-1]]))
    one_step = refine(prior_circuit([A]), gap, RefineConfig(iterations=1))
    assert one_step.circuit.nodes[0].probabilities == pytest.approx((0.7, 0.3))
    smooth = refine(prior_circuit([A]), table, RefineConfig(iterations=1, smoothing=1.0))
    assert smooth.circuit.nodes[0].probabilities == pytest.approx((4 / 6, 2 / 6))


def test_refine_with_underflow():
    # 1200 binary variables: a row's probability 2**-1200 underflows.
    variables = [Variable(f"v{i}", ("x", "y")) for i in range(1200)]
    table = DataTable(tuple(variables), np.zeros((4, 1200), dtype=int))
    result = refine(prior_circuit(variables), table, RefineConfig(iterations=2))
    assert result.log_likelihoods[0] == pytest.approx(4 * 1200 * log(0.5))
    assert result.log_likelihoods[-1] == pytest.approx(0.0, abs=1e-9)


def test_refine_keeps_zeros_and_unused_nodes():
    builder = CircuitBuilder([A])
    leaves = [builder.indicator("a", 0, 2), builder.leaf("a", [0.4, 0.6])]
    circuit = builder.build(builder.sum(leaves, [1.0, 0.0]))
    result = refine(circuit, DataTable((A,), np.array([[0], [0]])), RefineConfig(smoothing=1.0))
    assert result.circuit.nodes[0] == circuit.nodes[0]
    assert result.circuit.nodes[1].probabilities == pytest.approx((0.4, 0.6))
    assert result.circuit.nodes[2].weights == (1.0, 0.0)
    unused = refine(circuit, DataTable((A,), np.array([[0], [0]])))
    assert unused.circuit == circuit
    with pytest.raises(ImpossibleEvidenceError, match=r"rows \[1\]"):
        refine(circuit, DataTable((A,), np.array([[0], [1]])))


def test_refine_checks_the_variables():
    circuit = prior_circuit([A])
    assert refine(circuit, DataTable((A,), np.empty((0, 1), dtype=int))).circuit == circuit
    with pytest.raises(EvidenceError):
        refine(circuit, DataTable((B,), np.array([[0]])))


def test_table_from_rows_with_gaps():
    table = DataTable.from_rows([A, C], [{"a": "y"}, {"a": None, "c": "z"}, {}])
    assert table.codes.tolist() == [[1, -1], [-1, 2], [-1, -1]]
    assert table.informative_rows == 2
    assert table.one_hot().tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0] * 5]
    assert table.log_inputs()[0].tolist() == [-np.inf, 0, 0, 0, 0]


def test_invalid_rows_are_refused():
    with pytest.raises(UnknownPredicateError, match=r"Row 1.*'d'"):
        DataTable.from_rows([A], [{}, {"d": "x"}])
    with pytest.raises(UnknownValueError, match=r"Row 0.*'q'"):
        DataTable.from_rows([A], [{"a": "q"}])
    with pytest.raises(UnknownValueError, match="Row 1"):
        DataTable((A,), np.array([[0], [2]]))
    for codes in ([[0, 0]], [0, 1], [[0.0]]):
        with pytest.raises(EvidenceError):
            DataTable((A,), np.array(codes))


@pytest.mark.parametrize(
    ("config", "field", "value"),
    [
        (LearnSPNConfig, "min_rows", 0),
        (LearnSPNConfig, "significance", 0.0),
        (LearnSPNConfig, "significance", 1.0),
        (LearnSPNConfig, "smoothing", -1.0),
        (LearnSPNConfig, "smoothing", float("nan")),
        (LearnSPNConfig, "clusters", 1),
        (LearnSPNConfig, "iterations", 0),
        (LearnSPNConfig, "restarts", 0),
        (LearnSPNConfig, "max_depth", -1),
        (LearnSPNConfig, "refinements", -1),
        (ChowLiuConfig, "min_rows", 0),
        (ChowLiuConfig, "smoothing", float("inf")),
        (RefineConfig, "iterations", 0),
        (RefineConfig, "tolerance", -1e-9),
        (RefineConfig, "smoothing", -0.1),
    ],
)
def test_invalid_config_names_the_field(config, field, value):
    with pytest.raises(ConfigError, match=f"{field}.*{value}"):
        config(**{field: value})
