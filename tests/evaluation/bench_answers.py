"""Answers of methods on a small training data set, and other test sets."""

from __future__ import annotations

from lpf.evaluation.predictions import Predictions
from lpf.evaluation.specs import Cell, DomainData, EvalSpec
from small_specs import TRAIN_SPEC, bench

ELSEWHERE = EvalSpec(DomainData("legal", seed=1000, changes=("items=3",)), entities=20)

OWN_TEST = EvalSpec()


def answered(
    method: str, eval_spec: EvalSpec = OWN_TEST, **settings: bool | float | str
) -> Predictions:
    return bench().predict(Cell(TRAIN_SPEC, eval_spec, method, tuple(settings.items())))
