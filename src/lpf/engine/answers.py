"""What comes out: distributions, and all they were made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lpf.combine.combined import Combined
from lpf.combine.learned import LearnedCombined
from lpf.combine.paper import PaperParameters
from lpf.combine.robust import RobustParameters
from lpf.combine.uncertainty import Uncertainty
from lpf.errors import ConfigError
from lpf.types import Factors, FloatArray, SoftFactor

Method = Literal["spn", "learned", "average"]
Source = Literal["inference", "facts", "none"]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers for E entities: ``distribution`` [E, V] over ``values``, and all it was made of.

    ``method`` says what was really used: ``average`` where the circuit does not cover the
    predicate. ``weight`` [N] is paper mode's, else None. ``has_facts`` says which entities came
    with known facts; empty where none did.
    """

    predicate: str
    values: tuple[str, ...]
    distribution: FloatArray
    method: Method
    combined: Combined | LearnedCombined
    factors: Factors | None
    weight: FloatArray | None
    parameters: RobustParameters | PaperParameters | None
    uncertainty: Uncertainty | None
    has_facts: tuple[bool, ...] = ()

    def __len__(self) -> int:
        return len(self.distribution)

    def top(self, position: int = 0) -> tuple[str, float]:
        """The most probable value of an entity and its probability."""
        row = self.distribution[position]
        best = int(row.argmax())
        return self.values[best], float(row[best])

    def source(self, position: int = 0) -> Source:
        """What the answer rests on: ``inference`` from evidence, known ``facts`` without any, or
        ``none``, that is, the prior alone."""
        if self.combined.segments.counts[position] > 0:
            return "inference"
        return "facts" if self.has_facts and self.has_facts[position] else "none"

    def soft_factor(self, position: int, group_id: str | None = None) -> SoftFactor:
        """One item's factor as a record keeps it. Its weight is the exponent it entered with.
        ConfigError for the variant ``learned``, which has no factors."""
        if self.factors is None or not isinstance(self.combined, Combined):
            raise ConfigError("the variant 'learned' has weights, not factors.")
        parts = self.combined.parts
        named = {
            name: float(parts[name][position]) for name in ("epsilon", "exponent") if name in parts
        }
        weight = named.get("exponent", 1.0 / len(self.factors))
        return self.factors.item(position, weight, group_id, **named)
