"""Answers of methods on a small training data set, and other test sets."""

from __future__ import annotations

from lpf.evaluation.predictions import Predictions
from lpf.evaluation.specs import Cell, DomainData, EvalSpec
from small_specs import TRAIN_SPEC, bench

ELSEWHERE = EvalSpec(DomainData("legal", seed=1000, changes=("items=3",)), entities=20)


def answered(
    method: str, eval_spec: EvalSpec = EvalSpec(), **settings: bool | float | str
) -> Predictions:
    return bench().predict(Cell(TRAIN_SPEC, eval_spec, method, tuple(settings.items())))
