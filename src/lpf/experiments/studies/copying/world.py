"""Five sources, two of which copy a weak third: a world of votes whose exact posterior is known.

    y          every value as likely
    v₀ v₁ v₂   y with their accuracy, else any other value as likely
    v₃ v₄      v₂ with the copy rate, else a vote of their own

Votes are symbols, so that nothing depends on how texts are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.domains.streams import stream
from lpf.errors import ConfigError
from lpf.types import FloatArray

Whole = NDArray[np.intp]

SOURCES = 5
COPIED = 2
COPIERS = (3, 4)
FAMILIES = (0, 1, 2, 2, 2)  # sources of one number copy each other


@dataclass(frozen=True)
class CopyingWorld:
    """``accuracy`` of each source's own votes, which the last two cast where they do not copy;
    ``copy_rate`` of those two; the number of ``values``."""

    accuracy: tuple[float, ...]
    copy_rate: float = 0.95
    values: int = 3

    def __post_init__(self) -> None:
        for name, holds, rule in (
            ("accuracy", self._has_accuracies(), f"{SOURCES} numbers in (0, 1)"),
            ("copy_rate", 0.0 <= self.copy_rate <= 1.0, "in [0, 1]"),
            ("values", self.values >= 2, "at least 2"),
        ):
            if not holds:
                raise ConfigError(
                    f"copying.{name}: must be {rule}, got {getattr(self, name)!r}. Nothing was run."
                )

    def chances(self, source: int) -> FloatArray:
        """P(own vote | y), [vote, y]."""
        right = self.accuracy[source]
        wrong = (1.0 - right) / (self.values - 1)
        return np.where(np.eye(self.values, dtype=bool), right, wrong)

    def _has_accuracies(self) -> bool:
        return len(self.accuracy) == SOURCES and all(0.0 < one < 1.0 for one in self.accuracy)


# The two that are independent are so good that it is nearly enough to know how good they are. They
# differ, so that no posterior is a tie.
STRONG = CopyingWorld(accuracy=(0.98, 0.96, 0.7, 0.7, 0.7))
# Here their odds together are less than those of the weak one heard three times:
# (.8/.1)·(.7/.15) = 37 against (.65/.175)³ = 51.
MODERATE = CopyingWorld(accuracy=(0.8, 0.7, 0.65, 0.65, 0.65))


def copying_votes(entities: int, seed: int, world: CopyingWorld = STRONG) -> tuple[Whole, Whole]:
    """Votes [E, 5] and labels [E]."""
    if entities < 1 or seed < 0:
        raise ConfigError(
            "copying: needs at least 1 entity and a seed of 0 or above, got "
            f"{entities} and {seed}. Nothing was drawn."
        )
    generator = stream(seed, "copying", "votes")
    labels = generator.integers(world.values, size=entities)
    right = generator.random((entities, SOURCES)) < np.array(world.accuracy)
    away = generator.integers(1, world.values, size=right.shape)
    votes = (labels[:, None] + np.where(right, 0, away)) % world.values
    for copier in COPIERS:
        copies = generator.random(entities) < world.copy_rate
        votes[:, copier] = np.where(copies, votes[:, COPIED], votes[:, copier])
    return votes.astype(np.intp), labels.astype(np.intp)


def exact_posterior(votes: Whole, world: CopyingWorld) -> FloatArray:
    """P(y | votes) of whoever knows the world, [E, V]. Whether a copier copied is summed over."""
    seen = np.ones((len(votes), world.values))
    for source in range(SOURCES):
        own = world.chances(source)[votes[:, source]]
        if source in COPIERS:
            same = (votes[:, source] == votes[:, COPIED])[:, None]
            own = world.copy_rate * same + (1.0 - world.copy_rate) * own
        seen *= own
    return np.asarray(seen / seen.sum(axis=1, keepdims=True))
