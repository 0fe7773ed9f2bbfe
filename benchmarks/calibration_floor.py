"""``python -m benchmarks.calibration_floor``: the best ECE that 135 validation entities allow.

A perfect reader is given a wrong temperature. The temperature is fitted on the validation entities
of a data set, as for every method, and the reader is scored on the large test set of its domain.
The remaining ECE comes from fitting a single number on 135 entities; a method that fits as much or
more cannot expect a lower one.
"""

from __future__ import annotations

import sys

import numpy as np

from lpf import metrics
from lpf.combine.calibration import fit_temperature
from lpf.domains import domain_names, generate, generate_test, load_domain, perfect_answers, preset
from lpf.factors.distributions import log_tempered
from lpf.types import FloatArray

DATA_SEEDS = (1, 2, 3, 4, 5)
TEST_SEED, TEST_ENTITIES = 1000, 3000
WRONG_TEMPERATURE = 1.3
PRIOR_SD = 1.0
NULL_DRAWS = 300


def main() -> int:
    for name in ("paper", "hard"):
        floors = [floor(domain, name, seed) for domain in domain_names() for seed in DATA_SEEDS]
        errors, differ = (np.array(column) for column in zip(*floors, strict=True))
        print(
            f"{name}: a perfect reader with one temperature fitted on 135 entities has an ECE of "
            f"{errors.mean():.4f}; it differs from perfect calibration in {differ.sum()} of "
            f"{len(differ)} data sets"
        )
    return 0


def floor(domain_name: str, preset_name: str, seed: int) -> tuple[float, bool]:
    """ECE on the large test set, and True if it differs from perfect calibration (at 5 %)."""
    domain, parameters = load_domain(domain_name), preset(preset_name)
    dataset = generate(domain, parameters, seed=seed)
    validation = dataset.select(dataset.positions("validation").tolist())
    test = generate_test(domain, parameters, seed=TEST_SEED, entities=TEST_ENTITIES)
    fitted = fit_temperature(
        tempered(perfect_answers(validation), WRONG_TEMPERATURE),
        validation.labels(domain.predicate),
        PRIOR_SD,
    )
    answers = tempered(tempered(perfect_answers(test), WRONG_TEMPERATURE), fitted)
    error = metrics.ece(answers, test.labels(domain.predicate))
    null = metrics.ece_null(answers, np.random.default_rng(0), draws=NULL_DRAWS)
    return error, null.p_value(error) < 0.05


def tempered(distribution: FloatArray, temperature: float) -> FloatArray:
    return np.exp(log_tempered(np.log(distribution) / temperature, 1.0))


if __name__ == "__main__":
    sys.exit(main())
