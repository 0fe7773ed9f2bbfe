"""Stored results are read back unchanged, and damaged ones are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from answered_runs import a_crash, a_run

from lpf.errors import StorageError
from lpf.evaluation import predictions as predictions_module
from lpf.evaluation.predictions import Costs, Predictions
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.specs import Cell, DomainData, EvalSpec, TrainSpec

TRAIN_SPEC = TrainSpec(DomainData("compliance"))
FIRST, SECOND, THIRD = (
    Cell(TRAIN_SPEC, EvalSpec(), name) for name in ("prior", "oracle", "stacking")
)
ANSWERED = a_run(
    [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]],
    [2, 0],
    raw=np.array([[0.2, 0.2, 0.6], [0.3, 0.3, 0.4]]),
    credibility=np.array([0.5, np.nan]),
    groups=("north", None),
    temperature=(0.25, -0.5),
    costs=Costs(1.5, 0.1, 1000.0, 64, 128),
)


def assert_same(one: Predictions, other: Predictions) -> None:
    for name, value in vars(one).items():
        found = getattr(other, name)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found, value)
            assert found.dtype == value.dtype
        else:
            assert found == value


def test_answers_are_read_back_exactly(tmp_path: Path) -> None:
    ResultStore(tmp_path).save(FIRST, ANSWERED)
    assert_same(ANSWERED, ResultStore(tmp_path).load(FIRST))


def test_a_crash_is_stored_with_its_error(tmp_path: Path) -> None:
    crash = a_crash([0, 1], "TrainingError: it broke ∞")
    ResultStore(tmp_path).save(FIRST, crash)
    found = ResultStore(tmp_path).load(FIRST)
    assert_same(crash, found)
    assert (found.raw, found.tempered) == (None, None)


def test_missing_lists_cells_once_in_order_and_crashes_count_as_results(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.save(SECOND, a_crash([0]))
    assert store.missing([THIRD, SECOND, FIRST, THIRD]) == [THIRD, FIRST]
    store.delete(SECOND)
    store.delete(FIRST)  # which was never there
    assert store.missing([SECOND]) == [SECOND]


def test_no_partial_files_are_left(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.save(FIRST, ANSWERED)
    unwritable = a_run([[1.0]], [0], costs=Costs(fit_seconds=float("nan")))
    with pytest.raises(ValueError, match="Out of range float values"):
        store.save(SECOND, unwritable)
    assert [path.stem for path in (tmp_path / "answers").iterdir()] == [FIRST.key]


@pytest.mark.parametrize("damage", ["emptied", "cut", "other", "array", "flipped"])
def test_a_damaged_file_is_named(damage: str, tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.save(FIRST, ANSWERED)
    (path,) = (tmp_path / "answers").iterdir()
    whole = path.read_bytes()
    if damage == "array":
        with path.open("wb") as file:
            np.savez(file, something=np.zeros(3))
    else:
        middle = len(whole) // 2
        flipped = whole[:60] + bytes(byte ^ 0xFF for byte in whole[60:80]) + whole[80:]
        damaged = {"emptied": b"", "cut": whole[:middle], "other": b"junk", "flipped": flipped}
        path.write_bytes(damaged[damage])
    with pytest.raises(StorageError, match="Remove it and repeat") as caught:
        store.load(FIRST)
    assert str(path) in str(caught.value)


def test_answers_of_another_format_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(tmp_path)
    with monkeypatch.context() as later:
        later.setattr(predictions_module, "FORMAT", 2)
        store.save(FIRST, ANSWERED)
    with pytest.raises(StorageError, match="predictions of format 2, not 1"):
        store.load(FIRST)


def test_a_missing_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"is missing: there is no result of 'prior'"):
        ResultStore(tmp_path).load(FIRST)
