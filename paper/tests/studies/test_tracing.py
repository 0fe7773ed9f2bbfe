from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from builders import LEVELS, features, runtime, schema
from lpf.baselines.lpf_methods import FittedLpf
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.domains import perfect_answers
from lpf.engine import Engine
from lpf.evaluation.specs import DomainData, TrainSpec
from lpf.training import Examples, make_examples
from lpf.types import QueryOptions
from lpf_paper.studies.tracing import Trace, stored_trace, trace_path, traced


def entities(count: int) -> Iterator[DatasetEntity]:
    """Of one to five items, some without a credibility."""
    generator = np.random.default_rng(4)
    for place in range(count):
        items = tuple(
            DatasetItem(
                f"C{place}_E{number}",
                f"note {number} on {place}",
                source="a note" if number else None,
                credibility=None if number == 1 else float(generator.uniform(0.5, 1.0)),
            )
            for number in range(1 + place % 5)
        )
        posterior = generator.dirichlet(np.ones(3)).tolist()
        truth = {"posterior": dict(zip(LEVELS, posterior, strict=True))}
        yield DatasetEntity(
            f"C{place}", {"level": LEVELS[generator.integers(3)]}, items, truth=truth
        )


@cache
def fitted() -> tuple[FittedLpf, Examples]:
    dataset = Dataset("made up", schema(), tuple(entities(60)))
    count = sum(1 for _ in dataset.items)
    asked = FittedLpf(Engine(runtime(3, gain=6.0), schema()), "level", QueryOptions())
    return asked, make_examples(dataset, features(count))


@cache
def document() -> str:
    return json.dumps(traced(*fitted()), allow_nan=False)


def a_trace() -> Trace:
    return Trace.from_dict(json.loads(document()))


def test_a_trace_has_the_answers_that_the_method_gives() -> None:
    asked, examples = fitted()
    expected = asked.predict_proba(examples)
    found = np.array([one.distribution for one in a_trace().answers])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    labels = examples.dataset.labels("level")
    assert [one.truth for one in a_trace().answers] == labels.tolist()
    assert [one.is_right for one in a_trace().answers] == (
        expected.argmax(axis=1) == labels
    ).tolist()


def test_prior_and_contributions_add_up_to_the_answer() -> None:
    for one in a_trace().answers:
        scores = np.array(one.base) + sum(np.array(item.contributions) for item in one.items)
        shares = np.exp(scores - scores.max())
        np.testing.assert_allclose(shares / shares.sum(), one.distribution, atol=1e-12)


def test_items_are_those_of_the_entity_in_their_order() -> None:
    _, examples = fitted()
    for one, entity in zip(a_trace().answers, examples.dataset, strict=True):
        assert one.entity_id == entity.entity_id
        shown = [(item.evidence_id, item.text, item.credibility) for item in one.items]
        given = [(item.evidence_id, item.text, item.credibility) for item in entity.evidence]
        assert shown == given
        assert all(0.0 < item.exponent <= 1.0 for item in one.items)
        assert all(abs(sum(item.potential) - 1.0) < 1e-9 for item in one.items)


def test_conflict_is_none_where_there_is_one_item_and_some_where_items_differ() -> None:
    for one in a_trace().answers:
        assert 0.0 <= one.conflict <= 1.0
        if len(one.items) == 1:
            assert one.conflict == 0.0
    said = [one for one in a_trace().answers if len({item.says for item in one.items}) > 1]
    assert said
    assert all(one.conflict > 0.0 for one in said)


def test_the_perfect_reader_stands_beside() -> None:
    _, examples = fitted()
    found = np.array([one.perfect for one in a_trace().answers])
    np.testing.assert_allclose(found, perfect_answers(examples.dataset), atol=1e-12)


def test_an_answer_is_held_against_the_truth_where_it_is_wrong_and_else_the_runner_up() -> None:
    trace = a_trace()
    assert trace.errors
    assert all(one.rival == one.truth != one.answer for one in trace.errors)
    for one in trace.right:
        assert one.distribution[one.rival] == sorted(one.distribution)[-2]
    for ranked in (trace.errors, trace.right):
        confidences = [one.confidence for one in ranked]
        assert confidences == sorted(confidences, reverse=True)


def test_a_stored_trace_is_read_and_not_recomputed(tmp_path: Path) -> None:
    train_spec = TrainSpec(DomainData("no such domain"))
    path = trace_path(train_spec, tmp_path)
    path.parent.mkdir()
    path.write_text(document())
    assert stored_trace(train_spec, tmp_path) == a_trace()
