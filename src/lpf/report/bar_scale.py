"""How bars are measured: beside one of 40, bars of 0.1 and 0.3 are slivers that look alike, unless
the axis is that of a logarithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lpf.experiments.exhibits import Series
from lpf.report.axes import decimal_ticks, finite, space_by_logarithm
from lpf.report.palette import LIGHT
from lpf.report.quantities import NOTHING, alike, two_digits
from lpf.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 50.0  # the largest over the least that a linear axis shows
MARGIN = 0.1  # of a logarithmic axis, before the least bar's end and behind the largest one's


@dataclass(frozen=True)
class Scale:
    """``limits`` of a logarithmic axis; without them it is linear, and bars begin at nothing."""

    limits: tuple[float, float] | None = None

    @classmethod
    def of(cls, series: Sequence[Series]) -> Scale:
        """What is below nothing, bar or bound, has no logarithm. A bar of nothing has none either,
        but no length to be seen on any axis. References do not decide: to be next to nothing is
        what a perfect one is there for."""
        values = finite([y for one in series for y in one.y])
        rated = _positive([one for one in series if one.standing != "reference"])
        lows = finite([end for one in series for end in one.low])
        if (values < 0).any() or (lows < 0).any() or not rated.size:
            return cls()
        if rated.max() <= WIDEST * rated.min():
            return cls()
        ends = finite([end for one in series for end in one.high])
        least, largest = _positive(series).min(), np.nanmax(np.append(ends, values))
        room = (largest / least) ** MARGIN
        return cls((float(least / room), float(largest * room)))

    @property
    def start(self) -> float:
        return 0.0 if self.limits is None else self.limits[0]

    def words(self, values: Sequence[float]) -> list[str]:
        """Beside the bars; empty where there is none."""
        found = alike(values) if self.limits is None else [two_digits(one) for one in values]
        return ["" if one == NOTHING else one for one in found]

    def title(self, measured: str) -> str:
        said = "" if self.limits is None else "logarithmic axis"
        return ", ".join(filter(None, (measured, said)))

    def set_on(self, axes: Axes, along: Literal["x", "y"]) -> None:
        """After the bars were drawn."""
        if self.limits is None:
            line = axes.axvline if along == "x" else axes.axhline
            line(0, color=LIGHT["quiet"], linewidth=0.8)
            return
        low, high = self.limits
        space_by_logarithm(axes, decimal_ticks(np.log10(high / low)), along)
        axes.set(**{f"{along}lim": self.limits})


def _positive(series: Sequence[Series]) -> FloatArray:
    values = finite([y for one in series for y in one.y])
    return values[values > 0]
