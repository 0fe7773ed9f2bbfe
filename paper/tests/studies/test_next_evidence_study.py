"""Reading in several orders, and what the study makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from builders import LEVELS, features, runtime, schema
from lpf.baselines.lpf_methods import FittedLpf
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.engine import Engine
from lpf.storage.atomic_files import write_atomically
from lpf.training import Examples, make_examples
from lpf.types import QueryOptions
from lpf_paper.exhibits import StudyResult
from lpf_paper.plan import full_plan, quick_plan
from lpf_paper.studies import collecting
from lpf_paper.studies.collecting import ORDERS, Collected, Reading, collected_in_orders
from lpf_paper.studies.domains_tables import domain_train_spec
from lpf_paper.studies.next_evidence import (
    ENTITIES,
    THRESHOLDS,
    NextEvidenceStudy,
    Orders,
    data_sets,
    study_result,
)

QUICK = quick_plan()
COUNT, EACH = 12, 4


@cache
def examples(count: int, seed: int) -> Examples:
    generator = np.random.default_rng(seed)
    rows = tuple(
        DatasetEntity(
            f"C{place}",
            {"level": LEVELS[place % 3]},
            tuple(
                DatasetItem(
                    f"C{place}_E{number}",
                    f"note {number} on {place} by {seed}",
                    source=f"source {number % 2}",
                    credibility=float(generator.uniform(0.5, 1.0)),
                )
                for number in range(EACH)
            ),
        )
        for place in range(count)
    )
    return make_examples(Dataset("made up", schema(), rows), features(count * EACH, seed))


@cache
def fitted() -> FittedLpf:
    return FittedLpf(Engine(runtime(1, gain=6.0), schema()), "level", QueryOptions())


@cache
def collected() -> Collected:
    return collected_in_orders(fitted(), examples(COUNT, 1), examples(20, 2), 3)


def reading() -> Reading:
    return Reading.of(fitted(), examples(COUNT, 1), examples(20, 2), np.random.default_rng(0))


def test_every_order_ends_with_the_answer_from_all_items() -> None:
    test = examples(COUNT, 1)
    expected = fitted().predict_proba(test)
    for order in ORDERS:
        answers = reading().in_order(order)
        assert answers.shape == (COUNT, EACH + 1, 3)
        np.testing.assert_allclose(answers[:, -1], expected, atol=1e-5)
        np.testing.assert_allclose(answers[:, 0], np.tile(answers[0, 0], (COUNT, 1)))
        assert collected().confidence[order].shape[1:] == (COUNT, EACH + 1)


def test_the_most_credible_item_is_read_first() -> None:
    one = reading()
    first = one.credibility.argmax(axis=1) + EACH * np.arange(COUNT)
    expected = one.answers([np.array([row]) for row in first])
    np.testing.assert_allclose(one.in_order("credibility")[:, 1], expected)


def test_information_is_that_of_the_items_group() -> None:
    one = reading()
    nothing = np.zeros((COUNT, EACH), np.bool_)
    gains = one._information(nothing)
    assert (gains >= 0.0).all()
    for group in range(len(one.unread.pools)):
        assert np.ptp(gains[one.group == group]) < 1e-9  # without items all entities are alike
    # Here, what an item says does not depend on its credibility, but how much it counts does.
    for source in (0, 1):
        same = one.source == source
        order = one.credibility[same].argsort()
        assert (np.diff(gains[same][order]) >= -1e-6).all()
        assert np.ptp(gains[same]) > 0.01


def test_sources_that_were_not_read_come_first() -> None:
    one = reading()
    read = np.zeros((COUNT, EACH), np.bool_)
    read[:, 0] = True
    scores = one._diversity(read)
    assert (scores[one.source == one.source[:, :1]] == -1.0).all()
    assert (scores[one.source != one.source[:, :1]] == 0.0).all()


def test_a_run_survives_its_file() -> None:
    plain = json.loads(json.dumps(collected().to_dict()))
    again = Collected.from_dict(plain)
    for order in ORDERS:
        np.testing.assert_array_equal(again.right[order], collected().right[order])
        np.testing.assert_allclose(
            again.confidence[order], collected().confidence[order], atol=1e-5
        )


def made_up(seed: int, best: str) -> Collected:
    """Confidence grows with items, faster in one order, and answers are as often right."""
    generator = np.random.default_rng(seed)
    counts = np.arange(collecting.ITEMS + 1)
    right, confidence = {}, {}
    for order in ORDERS:
        draws = collecting.RANDOM_ORDERS if order == "random" else 1
        speed = generator.uniform(0.4, 0.8, size=(draws, 60, 1)) * (2.0 if order == best else 1.0)
        confidence[order] = 1.0 - 0.6 * np.exp(-speed * counts)
        right[order] = (generator.random(confidence[order].shape) < confidence[order]).astype(float)
    return Collected(right, confidence)


@pytest.mark.parametrize("best", ["information", "credibility"])
def test_the_study_ranks_orders_by_the_items_they_need(best: str) -> None:
    found = study_result("next_evidence", QUICK, [made_up(seed, best) for seed in range(4)])
    table = found.tables[0]
    assert table.rows[0].name == best
    assert {row.name for row in table.rows} == {*ORDERS, "five_random"}
    for row in table.rows[:-1]:
        items = row.cells[1]
        assert items.low <= items.value <= items.high
    assert len(found.findings) == 4
    assert StudyResult.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_reading_stops_when_the_answer_is_sure_enough() -> None:
    orders = Orders.of([made_up(1, "credibility")])
    for threshold in (0.5, 0.8, 0.99):
        items, _ = orders.stopped("credibility", threshold)
        sure = orders.confidence["credibility"][0]
        for place, count in enumerate(items.astype(int)):
            assert sure[place, count] >= threshold or count == collecting.ITEMS
            assert (sure[place, 1:count] < threshold).all()
    assert list(THRESHOLDS) == sorted(THRESHOLDS)


def test_models_are_trained_with_the_cells_and_runs_are_stored(tmp_path: Path) -> None:
    study = NextEvidenceStudy()
    assert len(study.cells(QUICK)) == len(data_sets(QUICK)) == 2
    assert len(study.cells(full_plan())) == 2 * len(full_plan().domains)
    spec = domain_train_spec(QUICK, "compliance", 1)
    path = collecting.run_path(spec, ENTITIES, tmp_path)
    write_atomically(path, json.dumps(made_up(1, "random").to_dict()).encode())
    stored = collecting.stored_collection(spec, ENTITIES, tmp_path)
    assert stored.right.keys() == set(ORDERS)
    other = replace(spec, seed=2)
    assert collecting.run_path(other, ENTITIES, tmp_path) != path
