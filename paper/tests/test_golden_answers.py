"""Cells of the studies answer what they answered when ``docs/results.json`` was made.

``golden/answers.json`` holds the probabilities of a small data set (9 test entities) as computed by
the version of the full run. On the machine that wrote it the numbers are the same to the last bit;
other processors round sums differently, hence the tolerance.

Five cells were written again since: ``lpf_paper``, ``vae_only`` and the one of 4 samples when
random draws became independent of the model card's wording, and both cells of ``logistic_mean``
when its scaling stopped stretching a feature that is rounding noise.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpf.evaluation import Cell, DomainData, EvalSpec, TrainSpec, Workbench
from lpf_paper.perturbations import Perturbation
from small_specs import kept_folder

GOLDEN = json.loads((Path(__file__).parent / "golden" / "answers.json").read_text())
TOLERANCE = 1e-6
TRAIN = TrainSpec(
    DomainData("compliance", changes=("entities=60", "items=2")), seed=1, seeds=(1, 2)
)
OWN = EvalSpec()
CELLS = {
    **{
        method: Cell(TRAIN, OWN, method)
        for method in (
            "lpf_robust",
            "lpf_paper",
            "lpf_learned",
            "vae_only",
            "logistic_mean",
            "dawid_skene",
            "majority_vote",
        )
    },
    "lpf_robust, 30 % flipped": Cell(
        TRAIN, EvalSpec(change=Perturbation("flipped", 0.3)), "lpf_robust"
    ),
    "logistic_mean, 30 % missing": Cell(
        TRAIN, EvalSpec(change=Perturbation("missing", 0.3)), "logistic_mean"
    ),
    "lpf_robust, prior not divided out": Cell(TRAIN, OWN, "lpf_robust", (("divide_prior", False),)),
    "lpf_paper, 4 samples": Cell(TRAIN, OWN, "lpf_paper", (("n_samples", 4),)),
}


@cache
def workbench() -> Workbench:
    return Workbench(TRAIN, kept_folder("golden"))


def test_every_golden_cell_is_computed() -> None:
    assert CELLS.keys() == GOLDEN["cells"].keys()


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", CELLS)
def test_a_cell_answers_as_in_the_full_run(name: str) -> None:
    answered = workbench().predict(CELLS[name])
    assert answered.error is None
    assert list(answered.entity_ids) == GOLDEN["entity_ids"]
    assert answered.labels.tolist() == GOLDEN["labels"]
    expected: dict[str, Any] = GOLDEN["cells"][name]
    np.testing.assert_allclose(answered.raw, expected["raw"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(answered.tempered, expected["tempered"], rtol=0, atol=TOLERANCE)
