from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from builders import LEVELS, features, model_config, runtime, schema, sharp_tensors
from lpf.circuits import DataTable, Variable, compile_circuit, learn_chow_liu, prior_circuit
from lpf.combine import RobustParameters, Segments, combine_paper, credibility_weight
from lpf.engine import Engine, Facts, Items
from lpf.errors import (
    ConfigError,
    EvidenceError,
    ImpossibleEvidenceError,
    NonFiniteError,
    SchemaError,
    UnknownPredicateError,
)
from lpf.model.runtime import Runtime
from lpf.schema import Predicate, Schema
from lpf.types import QueryOptions

EVERY_WAY = {
    "robust": QueryOptions(),
    "robust moments": QueryOptions(sampler="moments"),
    "robust sampled": QueryOptions(sampler="orthogonal", n_samples=8),
    "paper": QueryOptions.paper(),
    "paper-best": QueryOptions.paper_best(),
    "paper pooled": QueryOptions(mode="paper", sampler="orthogonal"),
    "paper, section 4 weight": QueryOptions(mode="paper", weight_form="sigmoid"),
    "learned": QueryOptions(variant="learned"),
}


def items(counts: list[int], seed: int = 0) -> Items:
    total = sum(counts)
    generator = np.random.default_rng(seed)
    return Items(
        features(total, seed),
        ids=tuple(f"E{i}" for i in range(total)),
        keys=generator.integers(0, 2**63, total).astype(np.uint64),
        credibility=np.where(generator.random(total) < 0.2, np.nan, generator.random(total)),
        groups=generator.integers(-1, 2, total),
        sources=generator.integers(-1, 2, total),
        segments=Segments.of_counts(counts),
    )


def part(whole: Items, rows: slice | np.ndarray, counts: list[int]) -> Items:
    return Items(
        whole.features[rows],
        ids=tuple(np.array(whole.ids)[rows]),
        keys=whole.keys[rows],
        credibility=whole.credibility[rows],
        groups=whole.groups[rows],
        sources=whole.sources[rows],
        segments=Segments.of_counts(counts),
    )


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(runtime(3), schema())


@pytest.mark.parametrize("way", EVERY_WAY)
def test_an_answer_is_the_same_alone_in_a_batch_and_in_any_order(engine: Engine, way: str) -> None:
    counts = [5, 1, 3, 8, 2, 5] * 40
    whole = items(counts)
    together = engine.answer(whole, "level", EVERY_WAY[way]).distribution
    np.testing.assert_allclose(together.sum(axis=1), 1.0, atol=1e-12)
    starts = np.cumsum([0, *counts])
    order = np.random.default_rng(1).permutation(len(counts))
    rows = np.concatenate([np.arange(starts[e], starts[e + 1]) for e in order])
    shuffled = engine.answer(
        part(whole, rows, [counts[e] for e in order]), "level", EVERY_WAY[way]
    ).distribution
    np.testing.assert_allclose(shuffled, together[order], atol=1e-5)
    for entity in range(0, len(counts), 31):
        rows = slice(starts[entity], starts[entity + 1])
        alone = engine.answer(part(whole, rows, [counts[entity]]), "level", EVERY_WAY[way])
        np.testing.assert_allclose(alone.distribution[0], together[entity], atol=1e-5)
        assert alone.top()[0] == LEVELS[together[entity].argmax()]


@pytest.mark.parametrize("way", ["robust", "paper", "learned"])
def test_the_order_of_an_entity_s_items_does_not_matter(engine: Engine, way: str) -> None:
    whole = items([6])
    order = np.array([3, 1, 5, 0, 4, 2])
    one = engine.answer(whole, "level", EVERY_WAY[way]).distribution
    other = engine.answer(part(whole, order, [6]), "level", EVERY_WAY[way]).distribution
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_the_answer_is_rebuilt_bit_for_bit_from_its_parts(engine: Engine, way: str) -> None:
    answers = engine.answer(items([5]), "level", EVERY_WAY[way])
    again = engine.answer(items([5]), "level", EVERY_WAY[way])
    assert (answers.distribution == again.distribution).all()
    if answers.factors is not None:
        combined = answers.combined
        total = combined.base + combined.segments.sum(combined.contributions)
        weights = np.exp(total - total.max(axis=1, keepdims=True))
        assert (weights / weights.sum(axis=1, keepdims=True) == answers.distribution).all()


@pytest.mark.parametrize("way", EVERY_WAY)
def test_only_robust_mode_weighs_items_by_relevance(way: str) -> None:
    """Of one head alone; items without a claim have stance logits of 0 and count fully."""
    plain = runtime(2, seed=4)
    level, outcome = plain.config.predicates
    config = replace(plain.config, predicates=(replace(level, relevance_start=381), outcome))
    weighing = Engine(Runtime(config, plain.tensors, plain.version), schema())
    given, options = items([3, 2]), EVERY_WAY[way]
    given.features[:, 381:] = [[0, 0, 0], [2, 0, 1], [0, 0, 5], [0, 0, 0], [0, 0, 0]]
    before = Engine(plain, schema()).answer(given, "level", options)
    answer = weighing.answer(given, "level", options)
    assert before.relevance is None
    assert (answer.distribution[1] == before.distribution[1]).all()
    if options.mode == "paper" or options.variant == "learned":
        assert answer.relevance is None
        assert (answer.distribution == before.distribution).all()
    else:
        assert answer.relevance is not None
        assert answer.relevance[[0, 3, 4]].tolist() == [1.0, 1.0, 1.0]
        assert answer.relevance[2] < 0.001 < answer.relevance[1] < 1.0
        ratio = answer.combined.parts["discount"] / before.combined.parts["discount"]
        np.testing.assert_allclose(ratio, answer.relevance, rtol=1e-12)
        assert (answer.distribution[0] != before.distribution[0]).any()
    other = weighing.answer(given, "outcome", options)
    assert other.relevance is None


def related_circuit():
    variables = [Variable("level", LEVELS), Variable("outcome", ("clean", "qualified"))]
    likely = {"low": "qualified", "medium": "clean", "high": "clean"}
    rows = [{"level": level, "outcome": likely[level]} for level in LEVELS for _ in range(30)]
    return compile_circuit(learn_chow_liu(DataTable.from_rows(variables, rows)))


def test_known_facts_change_the_answer() -> None:
    engine = Engine(runtime(), schema(), related_circuit())
    evidence = items([4])
    nothing = engine.answer(evidence, "level").distribution[0]
    clean = engine.answer(evidence, "level", facts=[Facts(hard={"outcome": "clean"})])
    qualified = engine.answer(evidence, "level", facts=[Facts(hard={"outcome": "qualified"})])
    assert qualified.distribution[0, 0] > nothing[0] > clean.distribution[0, 0]
    doubtful = engine.answer(
        evidence, "level", facts=[Facts(soft={"outcome": np.array([0.1, 0.9])})]
    )
    assert nothing[0] < doubtful.distribution[0, 0] < qualified.distribution[0, 0]


def test_facts_without_evidence_still_answer_and_nothing_gives_the_prior() -> None:
    engine = Engine(runtime(), schema(), related_circuit())
    nothing = Items(features(0))
    known = engine.answer(nothing, "level", facts=[Facts(hard={"outcome": "qualified"})])
    assert known.top()[0] == "low"
    np.testing.assert_allclose(engine.answer(nothing, "level").distribution[0], 1 / 3, atol=0.02)


def test_some_entities_of_a_batch_have_facts() -> None:
    engine = Engine(runtime(), schema(), related_circuit())
    facts = [Facts(), Facts(hard={"outcome": "qualified"}), Facts()]
    whole = items([2, 3, 1])
    many = engine.answer(whole, "level", facts=facts).distribution
    one = engine.answer(part(whole, slice(2, 5), [3]), "level", facts=facts[1:2]).distribution
    np.testing.assert_allclose(many[1], one[0], atol=1e-5)


def test_contradictory_hard_facts_are_a_named_error() -> None:
    variables = [Variable("level", LEVELS), Variable("outcome", ("clean", "qualified"))]
    impossible = prior_circuit(variables, {"outcome": (1.0, 0.0)})
    engine = Engine(runtime(), schema(), compile_circuit(impossible))
    with pytest.raises(ImpossibleEvidenceError):
        engine.answer(items([1]), "level", facts=[Facts(hard={"outcome": "qualified"})])


def test_factors_are_averaged_if_the_circuit_lacks_the_predicate() -> None:
    circuit = compile_circuit(prior_circuit([Variable("outcome", ("clean", "qualified"))], None))
    answers = Engine(runtime(), schema(), circuit).answer(items([3]), "level")
    assert answers.method == "average"
    np.testing.assert_allclose(answers.distribution[0], answers.factors.potential.mean(axis=0))


def test_fitted_parameters_of_the_model_are_used() -> None:
    fitted = RobustParameters(2.0, 0.3, 0.2, 0.5, 0.1, True)
    config = model_config(calibration={"level": fitted.to_dict()})
    model = Runtime(config, sharp_tensors(config))
    engine = Engine(model, schema())
    answers = engine.answer(items([3]), "level")
    assert answers.parameters == fitted
    assert answers.factors.temperature == 2.0
    plain = Engine(runtime(), schema()).answer(items([3]), "level")
    assert not np.allclose(answers.distribution, plain.distribution)


@pytest.mark.parametrize(
    "options", [QueryOptions.paper(), QueryOptions(variant="learned", mode="paper")]
)
def test_paper_mode_uses_the_best_member_alone(options: QueryOptions) -> None:
    model = runtime(3)
    whole = Engine(model, schema()).answer(items([4]), "level", options)
    alone = Engine(model.member(0), schema()).answer(items([4]), "level", options)
    np.testing.assert_allclose(whole.distribution, alone.distribution, atol=1e-12)


def test_fitted_numbers_that_cannot_be_used_name_the_model() -> None:
    config = model_config(calibration={"level": {"gamma": 1.0}})
    model = Runtime(config, sharp_tensors(config), "v1")
    with pytest.raises(ConfigError, match=r"model v1: .*gamma.*train again"):
        Engine(model, schema()).answer(items([2]), "level", QueryOptions())


def test_values_in_another_order_are_refused() -> None:
    """Arrays are matched by position: a schema in another order would swap answers silently."""
    turned = Schema((Predicate("level", LEVELS[::-1], (0.98, 0.01, 0.01)),))
    with pytest.raises(SchemaError, match="in the same order"):
        Engine(runtime(), turned)
    circuit = compile_circuit(prior_circuit([Variable("level", LEVELS[::-1])], None))
    with pytest.raises(SchemaError, match="the circuit"):
        Engine(runtime(), schema(), circuit)


def test_no_entities_give_no_answers(engine: Engine) -> None:
    nothing = Items(features(0), segments=Segments.of_counts([]))
    assert engine.answer(nothing, "level").distribution.shape == (0, 3)


def test_the_basis_of_an_answer_is_reported() -> None:
    engine = Engine(runtime(), schema(), related_circuit())
    facts = [Facts(), Facts(hard={"outcome": "clean"}), Facts()]
    answers = engine.answer(items([2, 0, 0]), "level", facts=facts)
    assert [answers.source(e) for e in range(3)] == ["inference", "facts", "none"]


@pytest.mark.parametrize("case", ["learned", "average"])
def test_facts_that_cannot_count_are_refused(case: str) -> None:
    circuit = compile_circuit(prior_circuit([Variable("outcome", ("clean", "qualified"))], None))
    engine = Engine(runtime(), schema(), circuit if case == "average" else None)
    options = QueryOptions(variant="learned") if case == "learned" else QueryOptions()
    with pytest.raises(ConfigError, match="only the circuit"):
        engine.answer(items([2]), "level", options, [Facts(hard={"outcome": "clean"})])


def test_changing_a_result_does_not_affect_the_next(engine: Engine) -> None:
    answers = engine.answer(items([2]), "level")
    with pytest.raises(ValueError, match="read-only"):
        answers.combined.base[0, 0] = 5.0


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_network_that_overflows_is_refused_in_every_variant(engine: Engine, way: str) -> None:
    huge = Items(features(2) * np.float32(1e38), ids=("a", "b"))
    with pytest.raises(NonFiniteError, match="overflows"):
        engine.answer(huge, "level", EVERY_WAY[way])


@pytest.mark.parametrize("variant", ["spn", "learned"])
@pytest.mark.parametrize("with_keys", [True, False])
def test_uncertainty_does_not_depend_on_other_entities(
    engine: Engine, variant: str, with_keys: bool
) -> None:
    whole = items([3, 4])
    keys = whole.keys if with_keys else None
    options = QueryOptions(variant=variant, uncertainty_samples=8)
    both = Items(whole.features, keys=keys, segments=whole.segments)
    alone = Items(whole.features[3:], keys=None if keys is None else keys[3:])
    many = engine.answer(both, "level", options).uncertainty
    one = engine.answer(alone, "level", options).uncertainty
    assert many.item(1) == pytest.approx(one.item(0), abs=1e-5)


@pytest.mark.parametrize("variant", ["spn", "learned"])
def test_uncertainty_in_blocks_of_entities_is_the_same(
    engine: Engine, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = items([3, 1, 4, 1, 2])
    options = QueryOptions(variant=variant, uncertainty_samples=8)
    at_once = engine.answer(whole, "level", options).uncertainty
    monkeypatch.setattr("lpf.combine.uncertainty.DRAWN_AT_ONCE", 1)
    in_blocks = engine.answer(whole, "level", options).uncertainty
    for entity in range(5):
        assert in_blocks.item(entity) == pytest.approx(at_once.item(entity), abs=1e-6)


def test_items_without_keys_are_drawn_by_their_features(engine: Engine) -> None:
    inputs, options = features(6), QueryOptions.paper()
    both = Items(inputs, segments=Segments.of_counts([2, 4]))
    many = engine.answer(both, "level", options).distribution[1]
    one = engine.answer(Items(inputs[2:]), "level", options).distribution[0]
    np.testing.assert_allclose(many, one, atol=1e-5)


def test_paper_mode_is_rebuilt_bit_for_bit_from_recorded_factors(engine: Engine) -> None:
    answers = engine.answer(items([5]), "level", QueryOptions.paper())
    document = json.loads(json.dumps([answers.factors.potential.tolist(),
                                      answers.factors.mean_sigma.tolist()]))  # fmt: skip
    potential, sigma = map(np.array, document)
    weight = credibility_weight(sigma, answers.parameters)
    prior = np.log(np.full(3, 1 / 3))
    again = combine_paper(potential, weight, answers.combined.base[0], Segments.one(5))
    np.testing.assert_allclose(answers.combined.base[0], prior)
    assert (again.distribution == answers.distribution).all()


def test_the_schema_prior_counts() -> None:
    skewed = Schema((Predicate("level", LEVELS, (0.98, 0.01, 0.01)),))
    model = runtime()
    found = Engine(model, skewed).answer(items([1]), "level").distribution[0, 0]
    assert found > Engine(model, schema()).answer(items([1]), "level").distribution[0, 0]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_non_finite_features_are_refused_with_the_id(engine: Engine, wrong: float) -> None:
    evidence = items([3])
    evidence.features[1, 0] = wrong
    for way in EVERY_WAY.values():
        with pytest.raises(NonFiniteError, match="E1"):
            engine.answer(evidence, "level", way)


def test_wrong_calls_are_refused_by_name(engine: Engine) -> None:
    with pytest.raises(UnknownPredicateError, match="nothing"):
        engine.answer(items([1]), "nothing")
    with pytest.raises(EvidenceError, match="credibility: 2 for 3 items"):
        Items(features(3), credibility=np.ones(2))
    with pytest.raises(EvidenceError, match="credibility: must lie in"):
        Items(features(1), credibility=np.array([1.5]))
    with pytest.raises(EvidenceError, match="2 entries of facts for 1"):
        engine.answer(items([1]), "level", facts=[Facts(), Facts()])
    with pytest.raises(EvidenceError, match="segments cover 5 items of 3"):
        engine.answer(Items(features(3), segments=Segments.of_counts([5])), "level")
    with pytest.raises(ConfigError, match="weight_form"):
        engine.answer(items([1]), "level", QueryOptions(mode="paper", weight_form="best"))


def test_the_learned_variant_needs_an_aggregator_and_evidence(engine: Engine) -> None:
    learned = QueryOptions(variant="learned")
    with pytest.raises(ConfigError, match="second stage"):
        Engine(runtime(aggregator=None), schema()).answer(items([1]), "level", learned)
    with pytest.raises(EvidenceError, match="to aggregate"):
        engine.answer(items([1, 0]), "level", learned)


def test_learned_weights_sum_to_one_over_each_entity(engine: Engine) -> None:
    answers = engine.answer(items([5, 1, 3]), "level", QueryOptions(variant="learned"))
    sums = answers.combined.segments.sum(answers.combined.weight)
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)
    assert answers.combined.weight[5] == pytest.approx(1.0)


def test_a_thousand_items_about_one_entity(engine: Engine) -> None:
    evidence = Items(features(1000))
    for way in EVERY_WAY.values():
        distribution = engine.answer(evidence, "level", way).distribution
        assert np.isfinite(distribution).all()
        assert distribution.sum() == pytest.approx(1.0)


def test_every_intermediate_result_of_an_item_is_returned(engine: Engine) -> None:
    answers = engine.answer(items([5, 2]), "level")
    parts = answers.combined.parts
    assert parts.keys() == {"epsilon", "discount", "exponent", "log_ratio"}
    again = parts["exponent"][:, None] * parts["log_ratio"]
    assert (again == answers.combined.contributions).all()
    factor = answers.soft_factor(6, group_id="g")
    assert factor.evidence_id == "E6"
    assert factor.weight == factor.metadata["exponent"] == parts["exponent"][6]
    assert factor.metadata["epsilon"] == parts["epsilon"][6]
    paper = engine.answer(items([3]), "level", QueryOptions.paper())
    assert paper.soft_factor(0).weight == paper.weight[0] < 0.5
    with pytest.raises(ConfigError, match="weights, not factors"):
        engine.answer(items([3]), "level", QueryOptions(variant="learned")).soft_factor(0)
