"""Numbers of an exhibit in the units and with the digits that its column asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lpf.experiments.exhibits import Column

NOTHING = "—"
BYTES = ("B", "kB", "MB", "GB", "TB")


def quantity(column: Column, number: float | None) -> str:
    """``NOTHING`` where there is no number."""
    if number is None or math.isnan(number):
        return NOTHING
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    written = _magnitude(column, abs(number))
    if number >= 0:
        return written
    return f"> −{written[2:]}" if written.startswith("< ") else f"−{written}"


def difference(column: Column, number: float) -> str:
    """With its sign, also where it is nothing but for the digits that are not shown."""
    sign = "−" if number < 0 else "+"
    return sign + quantity(column, abs(number)).removeprefix("< ")


def duration(seconds: float) -> str:
    """In the two largest units that it fills."""
    if seconds < 60:
        return (
            _three_digits(1000 * seconds) + " ms" if seconds < 1 else _three_digits(seconds) + " s"
        )
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def short(number: float) -> str:
    """Three digits or so, for the inside of a figure, which knows of no column."""
    if number and not 0.0005 <= abs(number) < 1e7:
        return f"{number:.1e}".replace("-", "−")
    return _rounded(number, 0 if float(number).is_integer() else _fitting_decimals(abs(number)))


def alike(numbers: Sequence[float]) -> list[str]:
    """Numbers that are compared have as many decimals as each other: those that suit the largest.
    ``NOTHING`` for what is not finite."""
    finite = [one for one in numbers if math.isfinite(one)]
    largest = max(map(abs, finite), default=0.0)
    if all(one.is_integer() for one in finite) or not 0.01 <= largest < 1e7:
        return [short(one) if math.isfinite(one) else NOTHING for one in numbers]
    decimals = _fitting_decimals(largest)
    return [_rounded(one, decimals) if math.isfinite(one) else NOTHING for one in numbers]


def _fitting_decimals(size: float) -> int:
    """A share has three, be it 1 or less."""
    return 3 if size <= 1 else 2 if size < 10 else 1 if size < 100 else 0


def _rounded(number: float, decimals: int) -> str:
    return f"{number:,.{decimals}f}".replace("-", "−")


def _magnitude(column: Column, size: float) -> str:
    match column.kind:
        case "seconds":
            return duration(size)
        case "milliseconds":
            return duration(size / 1000)
        case "bytes":
            return _bytes(size)
        case "count" if float(size).is_integer():
            return f"{size:,.0f}"
        case "count":
            return f"{size:,.1f}"
        case _:
            return _decimals(size, column.decimals)


def _decimals(size: float, decimals: int) -> str:
    """What is little more than nothing is not shown as nothing."""
    least = 10.0**-decimals
    if 0 < size < least / 2:
        return f"< {least:.{decimals}f}"
    return f"{size:,.{decimals}f}" if size < 1e12 else f"{size:.{decimals}e}"


def _bytes(size: float) -> str:
    power = min(int(math.log(size, 1000)) if size >= 1 else 0, len(BYTES) - 1)
    return f"{_three_digits(size / 1000**power)} {BYTES[power]}"


def _three_digits(size: float) -> str:
    """At least, and all those before the point."""
    if size == 0:
        return "0"
    if size < 0.001:
        return "< 0.001"
    decimals = max(0, 2 - math.floor(math.log10(size)))
    return f"{size:,.{min(decimals, 3)}f}"
