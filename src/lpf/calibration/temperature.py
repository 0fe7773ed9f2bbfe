"""One temperature after the fact, for any predictor: the fair comparison, and LPF-Learned's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpf.errors import EvidenceError
from lpf.factors.tempering import log_tempered
from lpf.types import FloatArray

LOG_TEMPERATURE_SD = 0.5  # prior: log T ~ N(0, 0.5²); without it a fit near the ceiling runs away
_LOG_BOUNDS = (-5.0, 5.0)


def fit_temperature(
    distribution: FloatArray, labels: NDArray[np.intp], prior_sd: float = LOG_TEMPERATURE_SD
) -> float:
    """The temperature [E, V] distributions need to fit the labels [E], by maximum a posteriori.
    ``prior_sd`` is that of log T: answers known to be on another scale need a wide one."""
    from scipy.optimize import minimize_scalar

    if len(distribution) != len(labels) or not len(labels):
        raise EvidenceError(
            f"{len(labels)} labels for {len(distribution)} answers; a temperature needs as many "
            "of one as of the other, and at least one."
        )
    with np.errstate(divide="ignore"):
        logs = np.log(distribution)
    rows = np.arange(len(labels))

    def loss(log_temperature: float) -> float:
        scored = log_tempered(logs, float(np.exp(log_temperature)))[rows, labels]
        return float(-scored.sum() + 0.5 * (log_temperature / prior_sd) ** 2)

    if not np.isfinite(loss(0.0)):
        impossible = np.flatnonzero(np.isneginf(logs[rows, labels]))[:10].tolist()
        raise EvidenceError(
            f"answers at positions {impossible} give their label probability zero; no temperature "
            "can mend that."
        )
    return float(np.exp(minimize_scalar(loss, bounds=_LOG_BOUNDS, method="bounded").x))
