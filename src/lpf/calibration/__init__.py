"""What is fitted on validation data: robust mode's T, ρ and ε, and a temperature for any other."""

from lpf.calibration.robust import CalibrationFit, LabelledFactors, answered, fit_robust
from lpf.calibration.temperature import fit_temperature

__all__ = ["CalibrationFit", "LabelledFactors", "answered", "fit_robust", "fit_temperature"]
