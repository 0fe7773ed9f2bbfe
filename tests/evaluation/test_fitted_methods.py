"""Methods by name: what they are built from, and that each is fitted once."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench_answers import ELSEWHERE, answered

from lpf.evaluation.specs import Cell, EvalSpec, TrainSpec
from lpf.evaluation.variants import LpfVariant
from lpf.evaluation.workbench import Workbench
from lpf.training import Trainer, TrainingConfig
from small_specs import DATA, TRAIN_SPEC, bench


def test_unknown_methods_and_inapplicable_settings_become_error_rows() -> None:
    assert "unknown methods ['divination']" in (answered("divination").error or "")
    assert "logistic_mean: has no settings, got ['rho']" in (
        answered("logistic_mean", rho=0.5).error or ""
    )
    assert "unknown settings ['colour']" in (answered("lpf_robust", colour=1).error or "")


def test_lpf_chosen_is_the_model_that_training_chooses() -> None:
    """Trained by its own recipe, in a folder of its own, and asked as the engine is asked."""
    part = bench()
    config = TrainingConfig(members=len(TRAIN_SPEC.seeds))
    learned = part.examples.select(
        np.flatnonzero([entity.split != "test" for entity in part.examples.dataset])
    )
    reader_id = part.model.runtime.config.reader_id
    trained = Trainer(learned, reader_id, (part.predicate,), config, TRAIN_SPEC.seeds).run()
    assert trained.choice is not None
    method = LpfVariant("lpf_chosen", trained.runtime(), {})
    expected = method.fit(part.train, part.validation, part.predicate, TRAIN_SPEC.seed)
    np.testing.assert_allclose(
        answered("lpf_chosen").raw,
        expected.predict_proba(part.test_examples(EvalSpec())),
        atol=1e-9,
    )
    assert any(folder.name.endswith("-chosen") for folder in part.model_cache.folder.iterdir())


def test_a_failed_fit_is_not_repeated_for_the_next_test_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "falling_method.py").write_text(
        "class Falls:\n"
        "    fits = 0\n"
        "    def fit(self, X, y):\n"
        "        Falls.fits += 1\n"
        "        raise RuntimeError('it fell')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    first, second = answered("falling_method:Falls"), answered("falling_method:Falls", ELSEWHERE)
    assert first.error == second.error == "RuntimeError: it fell"
    assert (len(first.labels), len(second.labels)) == (18, 20)
    assert sys.modules["falling_method"].Falls.fits == 1


def test_paper_mode_starts_from_a_flat_prior() -> None:
    """With the domain's own prior it would say something else."""
    prior = bench().examples.dataset.schema[bench().predicate].prior
    assert max(prior) > min(prior)
    method = LpfVariant("lpf_paper", bench().model.runtime, {})
    fitted = method.fit(bench().train, bench().validation, bench().predicate, TRAIN_SPEC.seed)
    weighted = answered("lpf_paper").raw * prior
    weighted /= weighted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        fitted.predict_proba(bench().test_examples(EvalSpec())), weighted, atol=1e-6
    )


def test_no_networks_are_trained_for_methods_that_have_none(tmp_path: Path) -> None:
    train_spec = TrainSpec(replace(DATA, changes=("entities=60", "items=1")))
    other = Workbench(train_spec, tmp_path)
    for name in ("prior", "logistic_mean", "oracle"):
        assert other.predict(Cell(train_spec, EvalSpec(), name)).error is None
    assert not (tmp_path / "models").exists()
