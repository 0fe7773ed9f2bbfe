"""``python -m benchmarks.calibration_floor``: how calibrated can anybody be with 135 validation
entities?

A perfect reader whose only fault is a wrong temperature gets it back by a fit on the validation
entities of a data set, as every method does, and is judged on the large test set of its domain.
What is left is what 135 entities leave of a single number: no method that has to fit as much or
more can count on less.
"""

from __future__ import annotations

import sys

import numpy as np

from lpf import metrics
from lpf.combine.calibration import fit_temperature
from lpf.domains import domain_names, generate, generate_test, load_domain, perfect_answers, preset
from lpf.factors.tempering import log_tempered
from lpf.types import FloatArray

DATA_SEEDS = (1, 2, 3, 4, 5)
TEST_SEED, TEST_ENTITIES = 1000, 3000
FAULT = 1.3  # the temperature that is wrong
PRIOR_SD = 1.0
NULL_DRAWS = 300


def main() -> int:
    for name in ("paper", "hard"):
        found = [floor(domain, name, seed) for domain in domain_names() for seed in DATA_SEEDS]
        errors, told = (np.array(column) for column in zip(*found, strict=True))
        print(
            f"{name}: a perfect reader with one temperature fitted on 135 entities has an ECE of "
            f"{errors.mean():.4f} and is told from perfect in {told.sum()} of {len(told)} data sets"
        )
    return 0


def floor(domain_name: str, preset_name: str, seed: int) -> tuple[float, bool]:
    """ECE on the large test set, and whether it can be told from perfect (at 5 %)."""
    domain, parameters = load_domain(domain_name), preset(preset_name)
    made = generate(domain, parameters, seed=seed)
    held = made.select(made.positions("validation").tolist())
    test = generate_test(domain, parameters, seed=TEST_SEED, entities=TEST_ENTITIES)
    fitted = fit_temperature(
        tempered(perfect_answers(held), FAULT), held.labels(domain.predicate), PRIOR_SD
    )
    answers = tempered(tempered(perfect_answers(test), FAULT), fitted)
    error = metrics.ece(answers, test.labels(domain.predicate))
    null = metrics.ece_null(answers, np.random.default_rng(0), draws=NULL_DRAWS)
    return error, null.p_value(error) < 0.05


def tempered(distribution: FloatArray, temperature: float) -> FloatArray:
    return np.exp(log_tempered(np.log(distribution) / temperature, 1.0))


if __name__ == "__main__":
    sys.exit(main())
