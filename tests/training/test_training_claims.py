"""Quality of trained models on unseen entities of a domain, with the real encoder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lpf import metrics
from lpf.baselines import Shared, make_methods
from lpf.circuits import Variable, compile_circuit, prior_circuit
from lpf.domains import generate, generate_test, load_domain, preset
from lpf.reading import open_reader
from lpf.schema import Predicate, Schema
from lpf.training import (
    SEVEN_SEEDS,
    Trainer,
    TrainingConfig,
    make_examples,
    read_features,
    train_small,
)
from lpf.training.fitting import evaluate
from method_runs import run_methods

pytestmark = pytest.mark.slow

LEVEL = "compliance_level"


def test_robust_mode_is_calibrated_and_no_rival_is_better() -> None:
    """Compared with averaging and paper mode, with temperatures fitted on the same entities."""
    domain, parameters, reader = load_domain("compliance"), preset("paper"), open_reader()
    made = generate(domain, parameters, seed=1)
    examples = make_examples(made, read_features(made, reader))
    judged = generate_test(domain, parameters, seed=1000, entities=1500)
    test = make_examples(judged, read_features(judged, reader))
    config = TrainingConfig(aggregator=None)
    trained = Trainer(examples, reader.reader_id, (LEVEL,), config, SEVEN_SEEDS).run()
    shared = Shared(model=trained.runtime())
    methods = make_methods(
        shared, ["lpf_robust", "vae_only", "vae_only_ensemble", "prior", "perfect_reader"]
    )
    methods += make_methods(replace(shared, circuit=_uniform(made.schema)), ["lpf_paper"])
    train, validation = examples.split("train"), examples.split("validation")
    found = run_methods(methods, train, validation, test, LEVEL, 1)
    labels = judged.labels(LEVEL)
    robust = found["lpf_robust"].raw
    losses = {name: metrics.nll(one.tempered, labels) for name, one in found.items()}
    losses["lpf_robust"] = metrics.nll(robust, labels)

    assert metrics.accuracy(robust, labels) >= 0.978
    null = metrics.ece_null(robust, np.random.default_rng(0))
    assert null.p_value(metrics.ece(robust, labels)) > 0.01
    rivals = [name for name in losses if name not in ("lpf_robust", "perfect_reader")]
    assert losses["lpf_robust"] < min(losses[name] for name in rivals)
    gap = losses["lpf_paper"] - losses["perfect_reader"]
    assert (losses["lpf_paper"] - losses["lpf_robust"]) / gap >= 0.45


def test_with_forty_entities_training_leaves_more_than_networks() -> None:
    """The model is chosen in folds of the forty entities and scored on unseen ones."""
    domain, parameters, reader = load_domain("compliance"), preset("paper"), open_reader()
    made = generate(domain, parameters, seed=1)
    learned = make_examples(made, read_features(made, reader)).split("train")
    judged = generate_test(domain, parameters, seed=1000, entities=500)
    test = make_examples(judged, read_features(judged, reader))
    losses = []
    for seed in range(3):
        drawn = np.random.default_rng(seed).choice(len(learned.dataset), 40, replace=False)
        few = learned.select(np.sort(drawn))
        found = []
        for kind in ("best", "networks"):
            config = TrainingConfig(model=kind)
            model = train_small(few, reader.reader_id, (LEVEL,), config, SEVEN_SEEDS)
            found.append(evaluate(model.runtime(), made.schema, LEVEL, test))
        losses.append([one.nll for one in found])
    ours, networks = np.mean(losses, axis=0)
    assert ours < 0.85 * networks
    assert ours < 0.65 * np.log(3)  # what knowing nothing costs


def _uniform(schema: Schema):
    flat = Schema(tuple(Predicate(one.name, one.values) for one in schema))
    variables = [Variable(one.name, one.values) for one in flat]
    return compile_circuit(prior_circuit(variables, {one.name: one.prior for one in flat}))
