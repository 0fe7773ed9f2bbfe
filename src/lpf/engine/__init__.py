"""From the features of items to answers: encode, convert, combine.

Pure computation, apart from the factor cache: no store, no clock, no ledger. One question is the
case E = 1 of many.
"""

from lpf.engine.background import Background, Facts
from lpf.engine.engine import Answers, Engine
from lpf.engine.factor_cache import FactorCache
from lpf.items import Items

__all__ = ["Answers", "Background", "Engine", "FactorCache", "Facts", "Items"]
