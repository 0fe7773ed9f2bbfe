"""Which reader a model has: the untuned one, or one that was tuned to the labels of its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from lpf.types import FloatArray


@dataclass(frozen=True)
class RungOutcome:
    """A rung of the ladder. ``nll`` is the NLL of validation entities and ``gain`` how far it is
    below that of the untuned reader, with its standard error; all are None for a rung that was
    ``skipped`` for this reason. ``seconds`` are those that it took, or would have taken. It was
    tuned on a ``share`` of the training entities."""

    name: str
    seconds: float
    nll: float | None = None
    gain: float | None = None
    gain_error: float | None = None
    skipped: str | None = None
    share: float = 1.0

    @classmethod
    def tried(
        cls, name: str, seconds: float, losses: FloatArray, untuned: FloatArray, share: float = 1.0
    ) -> RungOutcome:
        """``losses`` and ``untuned`` are the log losses of the same validation entities."""
        gains = untuned - losses
        error = float(gains.std(ddof=1)) / sqrt(len(gains)) if len(gains) > 1 else np.inf
        nll, gain = float(losses.mean()), float(gains.mean())
        return cls(name, seconds, nll, gain, error, share=share)

    @property
    def is_better(self) -> bool:
        """The gain is larger than its standard error."""
        return self.gain is not None and self.gain_error is not None and self.gain > self.gain_error

    def describe(self) -> str:
        """Without times: model cards must not depend on the machine."""
        if self.nll is None:
            return f"{self.name}: not tried, {self.skipped}"
        part = "" if self.share == 1.0 else f", tuned on {self.share:.0%} of the entities"
        return f"{self.name}{part}: held-out NLL {self.nll:.4f}, {self.difference}"

    @property
    def difference(self) -> str:
        """How far the NLL is below that of the untuned reader, or above it."""
        if self.gain is None or self.gain_error is None:
            return ""
        direction = "lower" if self.gain > 0.0 else "higher"
        return f"{abs(self.gain):.4f} {direction} (standard error {self.gain_error:.4f})"


@dataclass(frozen=True)
class ReaderChoice:
    """``chosen`` is the name of the rung whose reader the model has; None is the untuned reader.
    ``not_tried`` says why no rung was looked at."""

    untuned_nll: float | None = None
    rungs: tuple[RungOutcome, ...] = ()
    chosen: str | None = None
    not_tried: str | None = None

    def with_rung(self, rung: RungOutcome) -> ReaderChoice:
        """With one more rung, which is chosen if it is better than the untuned reader, and has a
        lower NLL than any other rung that is."""
        tried = (*self.rungs, rung)
        better = [one for one in tried if one.is_better]
        chosen = min(better, key=lambda one: one.nll or 0.0).name if better else None
        return replace(self, rungs=tried, chosen=chosen)

    def describe(self) -> str:
        """Which reader was chosen and why, in one sentence."""
        return "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        if self.chosen is not None:
            yield f"tuned to the labels, {self.chosen}"
        elif self.not_tried is not None:
            yield f"untuned: {self.not_tried}"
            return
        else:
            yield "untuned"
        if self.untuned_nll is not None:
            yield f"untuned: held-out NLL {self.untuned_nll:.4f}"
        yield from (one.describe() for one in self.rungs)
