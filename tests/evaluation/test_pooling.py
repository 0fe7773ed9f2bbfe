from __future__ import annotations

import numpy as np
import pytest
from answered_runs import a_crash, a_run, calibrated_run

from lpf.errors import EvidenceError
from lpf.evaluation.measures import measure
from lpf.evaluation.predictions import Costs, Predictions
from lpf.evaluation.summaries import pooled


def folds_of(run: Predictions, *sizes: int) -> list[Predictions]:
    ends = np.cumsum(sizes)
    return [
        a_run(
            run.answers[begin:end],
            run.labels[begin:end].tolist(),
            raw=None if run.raw is None else run.raw[begin:end],
            counts=run.counts[begin:end],
            credibility=run.credibility[begin:end],
            entity_ids=run.entity_ids[begin:end],
            groups=run.groups[begin:end],
        )
        for begin, end in zip((0, *ends), ends, strict=False)
    ]


def test_folds_become_the_run_they_came_from() -> None:
    whole = calibrated_run(
        60,
        1,
        counts=np.arange(60),
        credibility=np.linspace(0, 1, 60),
        groups=("a", None, "b") * 20,
    )
    found = pooled(folds_of(whole, 20, 25, 15))
    for name in ("raw", "tempered", "labels", "counts", "credibility"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    assert (found.entity_ids, found.values) == (whole.entity_ids, whole.values)
    assert (found.groups, found.error) == (whole.groups, None)
    assert measure(found) == measure(whole)


def test_an_entity_in_two_folds_is_refused() -> None:
    run = calibrated_run(10, 1)
    with pytest.raises(EvidenceError, match=r"entity 'e\d' is in 2 folds\. Nothing was"):
        pooled([run, *folds_of(run, 4)])


def test_folds_of_other_values_and_no_folds_are_refused() -> None:
    two = a_run([[0.5, 0.5]], [0], entity_ids=("other",))
    with pytest.raises(EvidenceError, match="folds have different values"):
        pooled([calibrated_run(3, 0), two])
    with pytest.raises(EvidenceError, match="no folds were given"):
        pooled([])


def test_a_crashed_fold_has_entities_but_no_answers() -> None:
    good = a_run(np.eye(3), [0, 1, 2], entity_ids=("a", "b", "c"))
    found = pooled([good, a_crash([0, 1])])
    assert found.error == "fold 2: TrainingError: it broke"
    assert (found.raw, found.tempered) == (None, None)
    assert found.entity_ids == ("a", "b", "c", "e0", "e1")
    with pytest.raises(EvidenceError, match="no predictions to score: fold 2"):
        measure(found)


def test_what_is_in_no_fold_has_no_number() -> None:
    assert pooled([a_crash([0, 1])]).error == "TrainingError: it broke"


def test_notes_of_folds_are_not_repeated() -> None:
    runs = [
        a_run([[1.0, 0.0]], [0], entity_ids=(name,), note=note)
        for name, note in (("a", "hot"), ("b", None), ("c", "hot"), ("d", "cold"))
    ]
    assert pooled(runs).note == "hot; cold"
    assert pooled(runs[1:2]).note is None


def test_costs_and_temperature() -> None:
    costs = [
        Costs(fit_seconds=2.0, query_ms=1.0, per_second=10.0, stored_bytes=10, peak_bytes=7),
        Costs(fit_seconds=4.0, query_ms=3.0, stored_bytes=13, peak_bytes=9),
    ]
    runs = [
        a_run([[1.0, 0.0]], [0], entity_ids=(name,), costs=cost, temperature=(2.0, 0.0))
        for name, cost in zip("ab", costs, strict=True)
    ]
    found = pooled(runs)
    assert found.costs == Costs(3.0, 2.0, 10.0, 12, 9)
    assert found.temperature == (2.0, 0.0)
    third = a_run([[1.0, 0.0]], [0], entity_ids=("c",), temperature=(1.5, 0.0))
    assert pooled([*runs, third]).temperature is None
    assert pooled([third]).costs == Costs()


def test_a_fold_without_raw_answers_or_groups() -> None:
    first = a_run([[1.0, 0.0]], [0], entity_ids=("a",), raw=None, groups=("north",))
    second = a_run([[0.0, 1.0], [0.5, 0.5]], [0, 1], entity_ids=("b", "c"))
    found = pooled([first, second])
    assert (found.raw, found.groups) == (None, ("north", None, None))
    np.testing.assert_array_equal(found.answers, [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])


def a_fold(name: str, error: str | None = None) -> Predictions:
    """Of three entities with ids of their own."""
    ids = tuple(f"{name}{place}" for place in range(3))
    rows = np.eye(3)
    if error is None:
        return a_run(rows, [0, 1, 2], entity_ids=ids)
    return a_run(rows, [0, 1, 2], entity_ids=ids, raw=None, tempered=None, error=error)


def test_the_same_error_is_reported_once_with_its_number_of_folds() -> None:
    every = pooled([a_fold(name, "it broke") for name in "abcde"])
    assert every.error == "in 5 of 5 folds: it broke"
    assert len(every.entity_ids) == 15


def test_different_errors_are_all_reported_and_a_single_fold_is_named() -> None:
    folds = [a_fold("a"), a_fold("b", "hot"), a_fold("c", "cold"), a_fold("d", "hot")]
    assert pooled(folds).error == "in 2 of 4 folds: hot; fold 3: cold"
