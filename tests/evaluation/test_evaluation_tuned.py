"""``lpf_chosen`` has the reader that ``lpf train`` would choose, within its budget per fold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lpf.datasets import assign_splits
from lpf.datasets.dataset_file import write_dataset
from lpf.errors import ConfigError
from lpf.evaluation import feature_cache
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.method_names import CHOSEN
from lpf.evaluation.plan import EvaluationPlan
from lpf.evaluation.specs import Cell, EvalSpec, Settings, TrainSpec
from lpf.evaluation.workbench import Workbench
from small_specs import file_data
from tuned_models import coloured, quick_ladder, tiny_reader

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    quick_ladder(monkeypatch)
    reader = tiny_reader(tmp_path / "reader")
    monkeypatch.setattr(feature_cache, "open_reader", lambda **_: reader)
    path = tmp_path / "coloured.jsonl"
    write_dataset(path, assign_splits(coloured(90), "verdict", seed=1))
    return Workbench(TrainSpec(file_data(path), seeds=(1,)), tmp_path)


def chosen(bench: Workbench, settings: Settings = ()) -> np.ndarray:
    found = bench.predict(Cell(bench.train_spec, EvalSpec(), CHOSEN, settings))
    assert found.error is None
    assert found.raw is not None
    return found.raw


def test_the_chosen_model_answers_with_its_tuned_reader(bench: Workbench) -> None:
    tuned = chosen(bench)
    model = bench._models.chosen()
    assert model.tuned is not None
    assert model.tuned.digest[:16] in model.runtime.config.reader_id
    untuned = chosen(bench, (("budget", 0),))
    assert bench._models.chosen(0.0).tuned is None
    assert np.abs(tuned - untuned).max() > 1e-6
    # Loaded again, from what was stored.
    again = Workbench(bench.train_spec, bench.model_cache.folder.parent)
    again.feature_cache._readers = bench.feature_cache._readers
    assert np.array_equal(chosen(again), tuned)


def test_another_budget_is_another_result(tmp_path: Path) -> None:
    path = tmp_path / "coloured.jsonl"
    write_dataset(path, assign_splits(coloured(90), "verdict", seed=1))
    plans = [EvaluationPlan(path, (CHOSEN, "prior"), (1,), budget=one) for one in (600.0, 60.0)]
    default, short = (
        {cell.method: cell.settings for cell in Evaluator.of(plan).cells()} for plan in plans
    )
    assert default == {CHOSEN: (), "prior": ()} | {
        name: () for name in default if name not in (CHOSEN, "prior")
    }
    assert short[CHOSEN] == (("budget", 60),)
    assert short["prior"] == ()
    with pytest.raises(ConfigError):
        EvaluationPlan(path, budget=-1.0)
