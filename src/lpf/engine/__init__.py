"""From the features of items to answers: encode, convert, combine.

Pure computation: no store, no clock, no ledger. One question is the case E = 1 of many.
"""

from lpf.engine.answers import Answers
from lpf.engine.background import Background
from lpf.engine.engine import Engine
from lpf.engine.items import Facts, Items

__all__ = ["Answers", "Background", "Engine", "Facts", "Items"]
