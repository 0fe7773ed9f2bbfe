"""Inference compared with SPFlow (circuits) and pyAgrum (Bayesian networks)."""

import warnings

import numpy as np
import pytest
from circuit_strategies import mixture

from lpf.circuits import DataTable, Variable, compile_circuit, learn_chow_liu, mutual_information
from lpf.circuits.chow_liu import maximum_spanning_tree
from lpf.circuits.circuit import Leaf

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of their imports
        import torch
    return torch


def spflow_model(torch, circuit, variables, size, components):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from spflow.meta.data import Scope
        from spflow.modules.leaves import Categorical
        from spflow.modules.products import Product
        from spflow.modules.sums import Sum
    numbers = [node.probabilities for node in circuit.nodes if isinstance(node, Leaf)]
    shaped = torch.tensor(numbers, dtype=torch.float64).reshape(components, variables, 1, size)
    layer = Categorical(
        Scope(list(range(variables))), components, probs=shaped.transpose(0, 1).contiguous()
    )
    weights = torch.tensor(circuit.nodes[circuit.root].weights, dtype=torch.float64)
    return Sum(Product(layer), weights=weights[:, None]).double()


@pytest.mark.parametrize(("variables", "size", "components"), [(8, 3, 5), (3, 2, 2), (12, 4, 7)])
def test_spflow_agrees(torch, variables, size, components):
    circuit = mixture(variables, variables, size, components)
    compiled = compile_circuit(circuit)
    model = spflow_model(torch, circuit, variables, size, components)
    rng = np.random.default_rng(0)
    codes = rng.integers(size, size=(300, variables))
    codes[rng.random(codes.shape) < 0.5] = -1
    inputs = DataTable(circuit.variables, codes).log_inputs()

    def theirs(table):
        data = torch.from_numpy(np.where(table < 0, np.nan, table.astype(float)))
        with torch.no_grad():
            return model.log_likelihood(data).numpy().ravel()

    evidence = theirs(codes)
    found = compiled.log_likelihood_batch(inputs)
    np.testing.assert_allclose(found, evidence, rtol=1e-12, atol=1e-12)
    ours = compiled.marginals_batch(inputs)
    for index, variable in enumerate(circuit.variables):
        free = codes[:, index] < 0
        for place in range(size):
            asked = codes[free].copy()
            asked[:, index] = place
            expected = np.exp(theirs(asked) - evidence[free])
            np.testing.assert_allclose(ours[variable.name][free, place], expected, atol=1e-12)


def chow_liu_rows(seed):
    """Five variables of different sizes, each a noisy function of an earlier one."""
    rng = np.random.default_rng(seed)
    sizes = [3, 2, 4, 3, 2]
    columns = [rng.integers(3, size=800)]
    for index, size in enumerate(sizes[1:], start=1):
        parent = columns[rng.integers(index)]
        noise = rng.random(800) < 0.25
        columns.append(np.where(noise, rng.integers(size, size=800), (parent + index) % size))
    variables = tuple(
        Variable(f"v{i}", tuple(f"a{k}" for k in range(n))) for i, n in enumerate(sizes)
    )
    return DataTable(variables, np.stack(columns, axis=1))


def agrum_network(gum, compiled, children):
    """The tree as a Bayesian network with tables from the circuit's pairwise joints."""
    variables = compiled.circuit.variables
    network = gum.BayesNet()
    for variable in variables:
        network.add(gum.LabelizedVariable(variable.name, "", list(variable.values)))
    network.cpt(variables[0].name)[:] = compiled.marginals()[variables[0].name]
    for parent, below in enumerate(children):
        for child in below:
            above, name = variables[parent], variables[child].name
            network.addArc(above.name, name)
            for value in above.values:
                network.cpt(name)[{above.name: value}] = compiled.marginals({above.name: value})[
                    name
                ]
    return network


@pytest.mark.parametrize("seed", range(5))
def test_pyagrum_agrees_on_a_chow_liu_tree_with_soft_evidence(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyagrum as gum
    compiled = compile_circuit(learn_chow_liu(chow_liu_rows(seed)))
    sizes = {variable.name: len(variable.values) for variable in compiled.circuit.variables}
    names = list(sizes)
    information = np.array(
        [[0.0 if a == b else mutual_information(compiled, a, b) for b in names] for a in names]
    )
    network = agrum_network(gum, compiled, maximum_spanning_tree(information))
    rng = np.random.default_rng(seed)
    for _ in range(30):
        soft = {name: rng.random(sizes[name]) for name in rng.choice(names, 2, replace=False)}
        hard = {name: "a1" for name in rng.choice(names, 1) if name not in soft}
        engine = gum.LazyPropagation(network)
        engine.setEvidence({**{n: v.tolist() for n, v in soft.items()}, **hard})
        engine.makeInference()
        for name, numbers in compiled.marginals(hard, soft).items():
            np.testing.assert_allclose(numbers, engine.posterior(name).toarray(), atol=1e-12)
