"""Algorithms 3 and 4: combine the items of an entity into one distribution."""

from lpf.combine.calibration import LabelledFactors, fit_robust, fit_temperature
from lpf.combine.combined import Combined, combine_average
from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters, combine_robust
from lpf.items import Segments

__all__ = [
    "Combined",
    "LabelledFactors",
    "PaperParameters",
    "RobustParameters",
    "Segments",
    "combine_average",
    "combine_paper",
    "combine_robust",
    "credibility_weight",
    "fit_robust",
    "fit_temperature",
]
