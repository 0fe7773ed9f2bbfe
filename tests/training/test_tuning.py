"""Tuning the pair encoder: what it is tuned on, what changes, and that a stopped run continues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lpf.datasets import assign_splits
from lpf.errors import TrainingError
from lpf.model.linear_shape import LinearHead
from lpf.reading import PairReader, ReadRequest, StanceReader
from lpf.reading.stance import HIDDEN_WIDTH, relevance
from lpf.training import Examples, make_examples, read_features, tuning
from lpf.training.linear import BY_RELEVANCE, LinearTrainer
from lpf.training.tuning import STATE, Tuning, TuningSettings, estimated_seconds
from lpf.training.tuning_data import MOST_ITEMS, TuningData, tuning_data
from lpf.types import Float32Array
from tuned_models import coloured, tiny_reader

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = TuningSettings(rate=1e-3, head_rate=1e-3, passes=1, batch_tokens=400)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> PairReader:
    return tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def stance(reader: PairReader) -> StanceReader:
    assert isinstance(reader.stance, StanceReader)
    return reader.stance


@pytest.fixture(scope="module")
def weights(stance: StanceReader) -> dict[str, Float32Array]:
    return stance.weights()


def examples_of(reader: PairReader, *, own_labels: bool = False) -> Examples:
    dataset = assign_splits(coloured(60, own_labels=own_labels), "verdict", seed=1)
    return make_examples(dataset, read_features(dataset, reader))


@pytest.fixture(scope="module")
def examples(reader: PairReader) -> Examples:
    return examples_of(reader)


def data_of(examples: Examples, stance: StanceReader) -> TuningData:
    train, validation = examples.split("train"), examples.split("validation")
    assert train is not None
    assert validation is not None
    return tuning_data(train, validation, ("verdict",), stance)


@pytest.fixture(scope="module")
def data(examples: Examples, stance: StanceReader) -> TuningData:
    return data_of(examples, stance)


def test_a_sample_keeps_whole_entities_with_their_labels(data: TuningData) -> None:
    sample = data.sample(0.5, np.random.default_rng(3))
    assert sample.entities == round(0.5 * data.entities)
    assert len(sample.pairs) == sample.offsets[-1] == len(sample.stances)
    (head,), (whole,) = sample.heads, data.heads
    places = {(*claim, 0, *text): row for row, (claim, text) in enumerate(data.pairs)}
    for row, (claim, text) in enumerate(sample.pairs):
        before = places[(*claim, 0, *text)]
        assert head.labels[head.units[row]] == whole.labels[whole.units[before]]
        assert head.weights[row] == whole.weights[before]
        assert np.array_equal(sample.stances[row], data.stances[before])
    owners = np.repeat(np.arange(sample.entities), np.diff(sample.offsets))
    assert len(set(zip(owners.tolist(), head.units.tolist(), strict=True))) == sample.entities
    assert data.sample(1.0, np.random.default_rng(3)) is data


def test_the_items_of_an_entity_are_pooled_by_relevance(
    data: TuningData, examples: Examples
) -> None:
    train = examples.split("train")
    assert train is not None
    (head,) = data.heads
    assert data.entities == len(train.dataset)
    assert len(head.labels) == len(train.dataset)
    assert head.labels.tolist() == train.dataset.labels("verdict").tolist()
    assert head.units.tolist() == train.segments.owner.tolist()
    says = relevance(train.features, train.features.shape[1] - 3)
    several = np.flatnonzero(train.segments.counts > 1)[0]
    rows = train.segments.rows(int(several))
    ratio = head.weights[rows] / head.weights[rows].sum()
    assert ratio == pytest.approx(says[rows] / says[rows].sum(), rel=1e-4)
    assert np.allclose(data.stances, train.features[:, -3:])


def test_items_with_labels_of_their_own_have_those(
    reader: PairReader, stance: StanceReader
) -> None:
    own = examples_of(reader, own_labels=True)
    train = own.split("train")
    assert train is not None
    (head,) = data_of(own, stance).heads
    second = np.setdiff1d(np.arange(len(train.features)), train.dataset.offsets[:-1])
    assert head.units.tolist() == list(range(len(train.features)))
    assert set(head.labels[second].tolist()) == {1}
    assert set(head.labels.tolist()) == {0, 1}
    assert head.weights.tolist() == [1.0] * len(train.features)
    assert not head.offsets.any()


def test_of_many_items_the_most_relevant_are_tuned_on(
    examples: Examples, stance: StanceReader
) -> None:
    dataset = examples.dataset
    train = dataset.positions("train")
    one = dataset.entities[train[0]]
    items = tuple(
        replace(one.evidence[0], evidence_id=f"more:{place}", text=f"box seen {place} times")
        for place in range(MOST_ITEMS + 3)
    )
    changed = replace(
        dataset,
        entities=tuple(
            replace(entity, evidence=items) if place == train[0] else entity
            for place, entity in enumerate(dataset)
        ),
    )
    requests = [(item.text, entity.claim) for entity in changed for item in entity.evidence]
    stances = stance.read_many([ReadRequest(*pair) for pair in requests])
    many = make_examples(changed, stances)
    data = data_of(many, stance)
    counts = np.diff(data.offsets)
    (head,) = data.heads
    assert counts.max() == MOST_ITEMS
    place = int(np.flatnonzero(counts == MOST_ITEMS)[0])
    of_entity = head.weights[data.offsets[place] : data.offsets[place + 1]]
    weights = LinearTrainer(many, HIDDEN_WIDTH).item_weights(BY_RELEVANCE)
    of_all = weights[many.segments.rows(int(train[0]))]
    assert of_entity.sum() == pytest.approx(of_all.sum(), rel=1e-4)
    assert np.sort(of_entity / of_entity.sum()) == pytest.approx(
        np.sort(of_all)[-MOST_ITEMS:] / np.sort(of_all)[-MOST_ITEMS:].sum(), rel=1e-4
    )


def test_batches_have_whole_entities_and_every_pair_once(data: TuningData) -> None:
    batches = data.batches(200, np.random.default_rng(0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(data.pairs)))
    owner = np.repeat(np.arange(data.entities), np.diff(data.offsets))
    seen = [set(owner[rows].tolist()) for rows in batches]
    assert sum(map(len, seen)) == data.entities
    sizes = [len(rows) * int(data.lengths[rows].max()) for rows in batches]
    assert all(
        size <= 200 or len(entities) == 1 for size, entities in zip(sizes, seen, strict=True)
    )


def test_tuning_starts_from_the_best_regression_on_untuned_features(
    data: TuningData, weights: dict[str, Float32Array]
) -> None:
    still = replace(SETTINGS, dropout=0.0, agreement=0.0)
    network = Tuning(weights, data, still)
    (head,) = data.heads
    everything = np.arange(len(data.pairs))
    with torch.no_grad():
        loss = float(network.loss(everything))
    shares = np.bincount(head.labels) / len(head.labels)
    by_shares = float(-np.log(shares[head.labels]).mean())
    assert loss < by_shares
    agreeing = Tuning(weights, data, replace(still, agreement=1.0))
    with torch.no_grad():
        assert float(agreeing.loss(everything)) == pytest.approx(loss, abs=2e-3)


def test_tuning_lowers_the_loss(data: TuningData, weights: dict[str, Float32Array]) -> None:
    (head,) = data.heads
    blank = LinearHead(np.zeros_like(head.start.weight), np.zeros(2))
    untrained = replace(data, heads=(replace(head, start=blank),))
    top = Tuning(weights, untrained, replace(SETTINGS, dropout=0.0, passes=3))
    everything = np.arange(len(data.pairs))
    with torch.no_grad():
        before = float(top.loss(everything))
    seen: list[tuple[int, int]] = []
    tensors = top.run(lambda done, total: seen.append((done, total)))
    with torch.no_grad():
        assert float(top.loss(everything)) < before
    assert seen[-1] == (3 * len(data.pairs), 3 * len(data.pairs))
    assert not np.array_equal(tensors["hidden.weight"], weights["hidden.weight"])


def test_all_layers_but_no_embedding_table_are_tuned(
    data: TuningData, weights: dict[str, Float32Array]
) -> None:
    tensors = Tuning(weights, data, SETTINGS).run()
    changed = {name for name in tensors if not np.array_equal(tensors[name], weights[name])}
    assert "encoder.layer.0.output.dense.weight" in changed
    assert "embeddings.word_embeddings.weight" not in changed
    assert "embeddings.position_embeddings.weight" not in changed


def stop_after(batches: int) -> Callable[[int, int], None]:
    calls = 0

    def progress(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == batches:
            raise KeyboardInterrupt

    return progress


def test_a_stopped_run_continues_with_the_same_result(
    data: TuningData,
    weights: dict[str, Float32Array],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "SAVE_SECONDS", 0.0)
    settings = replace(SETTINGS, passes=2, batch_tokens=250)
    whole = Tuning(weights, data, settings).run()
    with pytest.raises(KeyboardInterrupt):
        Tuning(weights, data, settings, tmp_path).run(stop_after(4))
    assert (tmp_path / STATE).stat().st_mode & 0o077 == 0
    again = Tuning(weights, data, settings, tmp_path)
    assert 0 < again.done < again.pairs
    tensors = again.run()
    assert all(np.array_equal(tensors[name], whole[name]) for name in whole)


def test_a_damaged_state_is_refused_by_name(
    data: TuningData, weights: dict[str, Float32Array], tmp_path: Path
) -> None:
    (tmp_path / STATE).write_bytes(b"nothing")
    with pytest.raises(TrainingError, match=STATE):
        Tuning(weights, data, SETTINGS, tmp_path)


def test_the_estimate_grows_with_the_passes_and_changes_nothing(
    data: TuningData, weights: dict[str, Float32Array]
) -> None:
    before = torch.random.get_rng_state()
    assert estimated_seconds(weights, data, SETTINGS) > 0.0
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_long_text_is_tuned_on_by_its_closest_passage(stance: StanceReader) -> None:
    long = " ".join(["nothing to see here"] * 80) + " the box is red " + "again and again " * 80
    ((claim, text),) = stance.token_pairs([ReadRequest(long, "the box is red")])
    assert len(claim) + len(text) + 3 <= 192
    (whole,) = stance.token_pairs([ReadRequest("the box is red", "the box is red")])
    assert set(np.asarray(whole[1]).tolist()) <= set(np.asarray(text).tolist())
