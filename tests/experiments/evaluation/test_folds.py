"""What is said of folds that crashed."""

from __future__ import annotations

import numpy as np
from answered_runs import a_crash, a_run

from lpf.experiments.answered import Answered
from lpf.experiments.evaluation.folds import whole_run
from lpf.experiments.judging.pooling import pooled


def a_fold(name: str, error: str | None = None) -> Answered:
    """Of three entities with ids of their own."""
    ids = tuple(f"{name}{place}" for place in range(3))
    rows = np.eye(3)
    if error is None:
        return a_run(rows, [0, 1, 2], entity_ids=ids)
    return a_run(rows, [0, 1, 2], entity_ids=ids, raw=None, tempered=None, error=error)


def test_the_same_error_is_said_once_with_how_many_folds_have_it() -> None:
    every = whole_run([a_fold(name, "it broke") for name in "abcde"])
    assert every.error == "in 5 of 5 folds: it broke"
    assert len(every.entity_ids) == 15


def test_different_errors_are_all_said_and_a_single_fold_is_named() -> None:
    folds = [a_fold("a"), a_fold("b", "hot"), a_fold("c", "cold"), a_fold("d", "hot")]
    assert whole_run(folds).error == "in 2 of 4 folds: hot; fold 3: cold"


def test_folds_without_errors_and_a_test_split_are_pooled_as_ever() -> None:
    folds = [a_fold("a"), a_fold("b")]
    found, expected = whole_run(folds), pooled(folds)
    np.testing.assert_array_equal(found.answers, expected.answers)
    assert (found.error, found.entity_ids) == (None, expected.entity_ids)
    assert whole_run([a_crash([0, 1])]).error == "TrainingError: it broke"
