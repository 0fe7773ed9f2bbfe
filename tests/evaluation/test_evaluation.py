"""The results of evaluating a file: summaries, comparisons and subsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from answered_runs import a_crash, a_run
from made_evaluations import evaluator, made

from lpf.evaluation.comparisons import compare
from lpf.evaluation.measures import by_group
from lpf.evaluation.summaries import summarise
from small_specs import Entity, all_three, entities, in_splits


def test_parts_are_means_over_the_repetitions_that_have_answers(tmp_path: Path) -> None:
    rows = [
        {**row, "fields": {"region": ("north", "south")[place // 10 % 2]}}
        for place, row in enumerate(in_splits(entities(70), all_three))
    ]
    found = made(evaluator(tmp_path, rows, seeds=(1, 2, 3), protected="region"), tmp_path)
    found.runs["prior"][2] = replace(found.runs["prior"][2], tempered=None, error="it broke")
    first, second = (by_group(run) for run in found.runs["prior"][:2])
    parts = found.subset_scores("prior")
    assert [(part.name, part.entities) for part in parts] == [
        (part.name, part.entities) for part in first
    ]
    for part, one, two in zip(parts, first, second, strict=True):
        assert one.nll != two.nll
        assert part.nll == pytest.approx((one.nll + two.nll) / 2)
        assert part.accuracy == pytest.approx((one.accuracy + two.accuracy) / 2)
    assert found.subset_scores("lpf_robust") != parts


def in_groups(rows: Sequence[Entity], size: int) -> list[Entity]:
    return [{**row, "group_id": f"g{place // size}"} for place, row in enumerate(rows)]


def test_entities_of_a_group_are_drawn_together(tmp_path: Path) -> None:
    apart, grouped = (
        made(evaluator(tmp_path, rows, seeds=(1,), folds=2), tmp_path)
        for rows in (entities(200), in_groups(entities(200), 10))
    )
    assert apart.group_of == {}
    assert grouped.group_of["e199"] == "g19"
    for found in (apart, grouped):
        runs, groups = found.runs, found.group_of
        assert found.scores("prior") == summarise(runs["prior"], groups=groups)
        others = {"logistic_mean": runs["logistic_mean"]}
        assert found.comparisons() == compare(runs["lpf_robust"], others, groups=groups)
    assert grouped.scores("prior") != summarise(grouped.runs["prior"])


def test_the_verdict_goes_by_nll(tmp_path: Path) -> None:
    rows = in_splits(entities(400), all_three)
    asking = evaluator(tmp_path, rows, seeds=(1,))
    found = made(asking, tmp_path, lpf_robust=4.0, logistic_mean=0.0)
    (one,) = found.comparisons()
    assert one.name == "logistic_mean"
    assert one.difference is not None
    assert one.difference.high < 0  # below 0 robust LPF is better
    assert evaluator(tmp_path, rows, seeds=(1,), methods=("prior",)).methods == ("prior",)
    alone = made(evaluator(tmp_path, rows, seeds=(1,), methods=("prior",)), tmp_path)
    assert alone.comparisons() == []


def test_methods_are_compared_with_the_trained_model(tmp_path: Path) -> None:
    rows = in_splits(entities(100), all_three)
    named = {
        "lpf_chosen": ("prior", "lpf_robust", "lpf_chosen"),
        "lpf_robust": ("lpf_robust", "lpf_learned"),
        None: ("prior", "logistic_mean"),
    }
    for ours, methods in named.items():
        found = made(evaluator(tmp_path, rows, seeds=(1,), methods=methods), tmp_path)
        assert found.ours == ours
    both = made(evaluator(tmp_path, rows, seeds=(1,), methods=named["lpf_chosen"]), tmp_path)
    assert [one.name for one in both.comparisons()] == ["lpf_robust"]


def test_only_some_entities_keep_their_answers() -> None:
    run = a_run(np.eye(3), [0, 1, 2], groups=("a", "b", "c"), temperature=(1.0, 0.0))
    found = run.select(frozenset({"e0", "e2"}))
    assert (found.entity_ids, found.groups) == (("e0", "e2"), ("a", "c"))
    np.testing.assert_array_equal(found.answers, np.eye(3)[[0, 2]])
    np.testing.assert_array_equal(found.labels, [0, 2])
    assert found.temperature == (1.0, 0.0)
    crashed = a_crash([0, 1, 2]).select(frozenset({"e1"}))
    assert (crashed.entity_ids, crashed.tempered) == (("e1",), None)
