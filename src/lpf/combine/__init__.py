"""Algorithms 3 and 4: from the items of an entity to one distribution, with each item's part."""

from lpf.combine.combined import Combined, combine_average
from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters, combine_robust
from lpf.items import Segments

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
