from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from training_examples import LEVEL, OUTCOME, SMALL, made_up

from lpf.model.layout import fresh_tensors
from lpf.model.networks import to_numpy
from lpf.training import Examples, TrainingConfig
from lpf.training.assembly import model_config
from lpf.training.material import heads_of, item_weights, labels_of, make_material
from lpf.training.members import Masks, generators, shuffled
from lpf.training.stage_one import StageOne, StageOneState, best_tensors, histories_of


def staged(
    examples: Examples,
    seeds: tuple[int, ...],
    config: TrainingConfig = SMALL,
    predicates: tuple[str, ...] = ("level",),
) -> StageOne:
    dataset = examples.dataset
    labels = labels_of(dataset, predicates)
    train = examples.rows(dataset.positions("train"))
    validation = examples.rows(dataset.positions("validation"))
    heads = heads_of(dataset, predicates, train, config)
    model = model_config(heads, config, seeds, "hash", examples.features.shape[1])
    count = len(seeds)
    material = make_material(
        examples.features, labels, [train] * count, [validation] * count, config
    )
    return StageOne(model, material, config, seeds)


def trained(stage: StageOne) -> StageOneState:
    return stage.run(stage.begin(fresh_tensors(stage.model, stage.seeds)))


def test_training_lowers_the_loss_and_reads_the_items() -> None:
    (history,) = histories_of(trained(staged(made_up(), (1,))))
    assert history.best.validation_loss < history.epochs[0].validation_loss
    assert history.best.validation_accuracy > 0.9
    assert history.best.validation_loss == pytest.approx(
        history.best.validation_cross_entropy + SMALL.beta * history.best.validation_kl, rel=1e-5
    )


def test_a_seed_trains_the_same_alone_and_with_others() -> None:
    """All that is drawn depends on the seed alone; sums differ in their last bits only."""
    examples = made_up()
    alone = trained(staged(examples, (7,)))
    among = trained(staged(examples, (3, 7, 11)))
    first, second = histories_of(alone)[0], histories_of(among)[1]
    assert [one.validation_loss for one in first.epochs[:5]] == pytest.approx(
        [one.validation_loss for one in second.epochs[:5]], abs=1e-4
    )
    for name, tensor in fresh_tensors(staged(examples, (7,)).model, (7,)).items():
        other = fresh_tensors(staged(examples, (3, 7, 11)).model, (3, 7, 11))[name]
        np.testing.assert_array_equal(tensor[0], other[1])


def test_the_same_run_twice_gives_the_same_bits() -> None:
    stage = staged(made_up(), (1, 2))
    first, second = best_tensors(trained(stage)), best_tensors(trained(stage))
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_a_seed_that_stops_early_is_cut_out_and_keeps_its_best_epoch() -> None:
    config = replace(SMALL, patience=2, max_epochs=40, learning_rate=5e-3)
    stage = staged(made_up(noise=2.5), (1, 2, 3), config)
    state = trained(stage)
    lengths = [len(history.epochs) for history in histories_of(state)]
    assert len(set(lengths)) > 1, "this seed choice was made so that they stop at different times"
    for place, history in enumerate(histories_of(state)):
        assert history.converged
        assert len(history.epochs) - history.best_epoch == config.patience
        kept = {name: tensor[place : place + 1] for name, tensor in state.best.items()}
        loss = _validation_loss(stage, kept, place)
        assert loss == pytest.approx(history.best.validation_loss, abs=1e-5)


def _validation_loss(stage: StageOne, tensors: dict[str, torch.Tensor], place: int) -> float:
    one = StageOne(
        replace(stage.model, members=1, seeds=stage.seeds[place : place + 1]),
        stage.material.member([place]),
        stage.config,
        stage.seeds[place : place + 1],
    )
    state = one.begin(to_numpy(tensors))
    return float(one._validate(state.members, one.material).total(stage.config.beta))


def test_a_seed_that_never_stops_improving_has_not_converged() -> None:
    state = trained(staged(made_up(), (1,), replace(SMALL, max_epochs=2)))
    assert [history.converged for history in histories_of(state)] == [False]


def test_several_predicates_train_jointly_and_items_without_a_label_do_not_count() -> None:
    examples = made_up(predicates=(LEVEL, OUTCOME))
    stage = staged(examples, (1,), predicates=("level", "outcome"))
    stage.material.labels["outcome"][::2] = -1
    (history,) = histories_of(trained(stage))
    assert history.best.validation_accuracy > 0.9


def test_a_deterministic_encoder_has_no_divergence() -> None:
    state = trained(staged(made_up(), (1,), replace(SMALL, deterministic=True)))
    (history,) = histories_of(state)
    assert history.best.validation_kl == 0.0
    assert "encoder.log_sigma.weight" not in state.best
    assert history.best.validation_accuracy > 0.9


def test_only_the_named_tensors_are_trained() -> None:
    stage = staged(made_up(), (1, 2))
    begun = fresh_tensors(stage.model, stage.seeds)
    head = [name for name in begun if name.startswith("decoder.head")]
    after = best_tensors(stage.run(stage.begin(begun, head)))
    for name, tensor in begun.items():
        assert (name in head) != np.array_equal(tensor, after[name]), name


@pytest.mark.parametrize(
    ("shares", "balance", "is_balanced"),
    [
        ((0.3, 0.4, 0.3), "auto", False),
        ((0.05, 0.15, 0.8), "auto", True),
        ((0.05, 0.15, 0.8), "never", False),
        ((0.3, 0.4, 0.3), "always", True),
    ],
)
def test_unequal_classes_are_balanced(
    shares: tuple[float, ...], balance: str, is_balanced: bool
) -> None:
    examples = made_up(200, shares=shares)
    config = replace(SMALL, balance=balance)
    stage = staged(examples, (1,), config)
    (head,) = stage.model.predicates
    assert (stage.material.sampling is not None) == is_balanced
    if is_balanced:
        assert head.training_shares == pytest.approx((1 / 3,) * 3, abs=0.01)
        drawn = shuffled(stage.material.train, generators((1,), 1, 0), stage.material.sampling)
        counts = np.bincount(stage.material.labels["level"][drawn[0]].numpy())
        assert counts.min() > 0.7 * counts.max()
    else:
        counts = np.bincount(examples.dataset.item_labels("level")[stage.material.train[0].numpy()])
        assert head.training_shares == pytest.approx((counts + 1) / (counts + 1).sum(), abs=1e-9)


def test_weights_balance_the_most_unequal_predicate() -> None:
    labels = {"a": np.array([0, 0, 1, 1]), "b": np.array([0, 1, 1, 1])}
    rows = np.arange(4)
    weights = item_weights(labels, rows, replace(SMALL, balance="always"))
    np.testing.assert_allclose(weights, [2.0, 2 / 3, 2 / 3, 2 / 3])


def test_masks_drop_at_their_rates_and_keep_the_mean() -> None:
    masks = Masks(generators((1, 2), 1), 4000, [(8, 0.2), (4, 0.5)], 3)
    noise = masks.batch(0, 4000)
    assert noise.shape == (2, 4000, 3)
    assert abs(float(noise.mean())) < 0.02
    for width, rate in ((8, 0.2), (4, 0.5)):
        kept = masks.dropout(torch.ones(2, 4000, width), rate)
        assert float((kept == 0).float().mean()) == pytest.approx(rate, abs=0.01)
        assert float(kept.mean()) == pytest.approx(1.0, abs=0.02)
    assert not torch.equal(*masks.batch(0, 4000))
