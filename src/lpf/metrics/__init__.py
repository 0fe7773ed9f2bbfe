"""How good answers are: right or wrong, calibrated or not, and what differences are worth."""

from lpf.metrics.bins import BinKind
from lpf.metrics.calibration import (
    EceNull,
    Reliability,
    classwise_ece,
    ece,
    ece_null,
    mce,
    reliability,
)
from lpf.metrics.checked import LabelArray, checked
from lpf.metrics.intervals import (
    Difference,
    holm,
    mean_differences,
    paired_difference,
    percentiles,
)
from lpf.metrics.resampling import Resampled, resampled
from lpf.metrics.scores import (
    accuracy,
    brier,
    brier_losses,
    confidence_sd,
    confidences,
    confusion,
    high_confidence_errors,
    judged,
    log_losses,
    low_confidence_correct,
    macro_f1,
    mean_confidence,
    nll,
    weighted_f1,
)
from lpf.metrics.selective import RiskCoverage, aurc, risk_coverage

__all__ = [
    "BinKind",
    "Difference",
    "EceNull",
    "LabelArray",
    "Reliability",
    "Resampled",
    "RiskCoverage",
    "accuracy",
    "aurc",
    "brier",
    "brier_losses",
    "checked",
    "classwise_ece",
    "confidence_sd",
    "confidences",
    "confusion",
    "ece",
    "ece_null",
    "high_confidence_errors",
    "holm",
    "judged",
    "log_losses",
    "low_confidence_correct",
    "macro_f1",
    "mce",
    "mean_confidence",
    "mean_differences",
    "nll",
    "paired_difference",
    "percentiles",
    "reliability",
    "resampled",
    "risk_coverage",
    "weighted_f1",
]
