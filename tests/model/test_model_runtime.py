from __future__ import annotations

import numpy as np
import pytest

from builders import deterministic_encoder, features, model_config, runtime, sharp_tensors
from lpf.combine.learned import Aggregator
from lpf.errors import ArtefactTensorError, ConfigError, EvidenceError, NonFiniteError
from lpf.factors.blocks import for_blocks
from lpf.model.config import PredicateHead
from lpf.model.layout import add_predicate
from lpf.model.runtime import Runtime
from lpf.types import SIGMA_FLOOR


def test_sigma_never_falls_below_the_paper_floor() -> None:
    config = model_config()
    tensors = sharp_tensors(config)
    tensors["encoder.log_sigma.bias"] = np.full((1, 64), -100.0, np.float32)
    posteriors = Runtime(config, tensors).encode(features(3))
    assert (posteriors.sigma == np.float32(SIGMA_FLOOR)).all()


def test_a_deterministic_encoder_has_no_spread() -> None:
    assert (runtime(encoder=deterministic_encoder()).encode(features(3)).sigma == 0).all()


def test_a_member_alone_answers_as_in_the_ensemble() -> None:
    model, inputs = runtime(3), features(4)
    whole = model.encode(inputs)
    alone = model.member(2).encode(inputs)
    np.testing.assert_allclose(alone.mu[0], whole.mu[2], atol=1e-6)
    assert model.member(2).version != model.member(1).version != model.version


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_refused_with_the_id(wrong: float) -> None:
    inputs = features(4)
    inputs[2, 100] = wrong
    with pytest.raises(NonFiniteError, match=r"1 item\(s\).*E3"):
        runtime().encode(inputs, ("E1", "E2", "E3", "E4"))


def test_opposite_infinities_do_not_hide_each_other() -> None:
    inputs = features(2)
    inputs[0, :2] = np.inf, -np.inf
    with pytest.raises(NonFiniteError, match="0"):
        runtime().encode(inputs)


def test_features_of_another_reader_are_refused() -> None:
    with pytest.raises(EvidenceError, match=r"\[N, 384\]"):
        runtime().encode(features(2, width=768))


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda t: t.pop("encoder.mu.bias"), r"missing: \['encoder.mu.bias'\]"),
        (lambda t: t.update(extra=np.zeros(1, np.float32)), r"not expected: \['extra'\]"),
        (lambda t: t.update({"encoder.mu.bias": np.zeros((1, 63), np.float32)}), "encoder.mu.bias"),
        (lambda t: t.update({"encoder.mu.bias": np.zeros((1, 64))}), "float64"),
        (lambda t: t["encoder.mu.bias"].fill(np.nan), "NaN"),
    ],
)
def test_a_wrong_tensor_is_named(spoil: object, named: str) -> None:
    config = model_config()
    tensors = sharp_tensors(config)
    spoil(tensors)
    with pytest.raises(ArtefactTensorError, match=named):
        Runtime(config, tensors)


def test_a_predicate_is_added_without_touching_the_trunk() -> None:
    before = runtime(2)
    head = PredicateHead("rating", ("A", "B", "C", "D"))
    config, tensors = add_predicate(before.config, before.tensors, head, [7, 8])
    after, inputs = Runtime(config, tensors), features(3)
    mu = before.encode(inputs).mu
    assert (after.encode(inputs).mu == mu).all()
    old = before.decoder("level").logits(mu)
    assert (after.decoder("level").logits(mu) == old).all()
    assert after.decoder("rating").logits(mu).shape == (2, 3, 4)
    with pytest.raises(ConfigError, match="given more than once"):
        add_predicate(config, tensors, head, [7, 8])


def test_one_item_alone_gets_all_the_weight_and_a_symmetric_pair_half() -> None:
    model = runtime()
    posteriors = model.encode(features(1))
    mu, sigma = posteriors.mu[:, None], posteriors.sigma[:, None]
    assert Aggregator(model).weigh(mu, sigma).weight.tolist() == [[[1.0]]]
    twice = [np.repeat(array, 2, axis=2) for array in (mu, sigma)]
    np.testing.assert_allclose(Aggregator(model).weigh(*twice).weight, 0.5, atol=1e-12)


def test_symmetric_consistency_does_not_depend_on_the_order() -> None:
    model = runtime()
    posteriors = model.encode(features(6))
    order = np.random.default_rng(0).permutation(6)
    one = Aggregator(model).weigh(posteriors.mu[:, None], posteriors.sigma[:, None])
    other = Aggregator(model).weigh(posteriors.mu[:, None, order], posteriors.sigma[:, None, order])
    np.testing.assert_allclose(other.weight, one.weight[..., order], atol=1e-6)


def test_many_items_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = runtime()
    posteriors = model.encode(features(40))
    mu, sigma = (a.reshape(1, 2, 20, -1) for a in (posteriors.mu, posteriors.sigma))
    whole = Aggregator(model).weigh(mu, sigma)
    monkeypatch.setattr("lpf.combine.learned.BLOCK_PAIRS", 60)
    parts = Aggregator(model).weigh(mu, sigma)
    np.testing.assert_allclose(parts.consistency, whole.consistency, atol=1e-6)


def test_a_model_without_aggregator_says_so() -> None:
    with pytest.raises(ConfigError, match="second stage"):
        Aggregator(runtime(aggregator=None))


def test_errors_in_a_block_are_raised() -> None:
    def work(block: slice) -> None:
        if block.start == 4:
            raise ValueError("block 4")

    with pytest.raises(ValueError, match="block 4"):
        for_blocks(work, 10, 2)


def test_blocks_cover_everything_once_and_blas_gets_its_threads_back() -> None:
    from threadpoolctl import threadpool_info

    before = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    seen = np.zeros(1001, int)

    def work(block: slice) -> None:
        seen[block] += 1

    for_blocks(work, 1001, 10)
    assert (seen == 1).all()
    after = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    assert before == after
