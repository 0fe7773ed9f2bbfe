"""Algorithms 3 and 4: combine the items of an entity into one distribution."""

from lpf.combine.combined import Combined, Segments, combine_average
from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters, combine_robust

__all__ = [
    "Combined",
    "PaperParameters",
    "RobustParameters",
    "Segments",
    "combine_average",
    "combine_paper",
    "combine_robust",
    "credibility_weight",
]
