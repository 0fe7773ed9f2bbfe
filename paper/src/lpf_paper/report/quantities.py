"""Numbers of an exhibit as text, in the units and with the digits of their column."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lpf_paper.exhibits import Column

NOTHING = "—"
BYTES = ("B", "kB", "MB", "GB", "TB")
PLAIN = 0.0005, 1e7  # the range in which a number in a figure needs no power of ten


def quantity(column: Column, number: float | None) -> str:
    """A number on its own: if it would round to 0, it is shown as "< 0.0001" instead.
    ``NOTHING`` if there is no number."""
    if number is not None and 0 < number < math.inf and _is_nothing(column, number):
        return f"< {_magnitude(column, _last_digit(column, number))}"
    return rounded(column, number)


def rounded(column: Column, number: float | None) -> str:
    """A number next to related ones, such as the ends of its interval: it may round to 0, which
    then has no sign."""
    if number is None or math.isnan(number):
        return NOTHING
    sign = "−" if number < 0 else ""
    if math.isinf(number):
        return f"{sign}∞"
    if _is_nothing(column, number):
        return _magnitude(column, 0.0)
    return sign + _magnitude(column, abs(number))


def difference(column: Column, number: float) -> str:
    """With its sign, unless it rounds to 0."""
    if _is_nothing(column, number):
        return _magnitude(column, 0.0)
    return ("−" if number < 0 else "+") + _magnitude(column, abs(number))


def is_seen(column: Column, number: float | None, spread: float) -> bool:
    """Return True if a spread reaches the last digit that the number is shown with."""
    if number is None or not math.isfinite(number):
        return True
    return spread > _last_digit(column, number) / 2


def duration(seconds: float) -> str:
    """In its one or two largest units, such as "3 min 05 s"."""
    if seconds < 60:
        return (
            _three_digits(1000 * seconds) + " ms" if seconds < 1 else _three_digits(seconds) + " s"
        )
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def short(number: float) -> str:
    """About three digits, for numbers inside a figure, which belong to no column."""
    if number and not PLAIN[0] <= abs(number) < PLAIN[1]:
        return f"{number:.1e}".replace("-", "−")
    return _fixed(number, 0 if float(number).is_integer() else _fitting_decimals(abs(number)))


def two_digits(number: float) -> str:
    """Two significant digits, for numbers of very different sizes. ``NOTHING`` if not finite."""
    if not math.isfinite(number):
        return NOTHING
    if number and not PLAIN[0] <= abs(number) < PLAIN[1]:
        return short(number)
    shortened = float(f"{number:.1e}")
    if not shortened:
        return _fixed(shortened, 0)
    return _fixed(shortened, max(0, 1 - math.floor(math.log10(abs(shortened)))))


def alike(numbers: Sequence[float]) -> list[str]:
    """Numbers to be compared, all with the number of decimals that suits the largest.
    ``NOTHING`` if not finite."""
    finite = [one for one in numbers if math.isfinite(one)]
    largest = max(map(abs, finite), default=0.0)
    if all(one.is_integer() for one in finite) or not 0.01 <= largest < PLAIN[1]:
        return [short(one) if math.isfinite(one) else NOTHING for one in numbers]
    decimals = _fitting_decimals(largest)
    return [_fixed(one, decimals) if math.isfinite(one) else NOTHING for one in numbers]


def _fitting_decimals(size: float) -> int:
    """Three for shares, fewer for larger numbers."""
    return 3 if size <= 1 else 2 if size < 10 else 1 if size < 100 else 0


def _fixed(number: float, decimals: int) -> str:
    """Zero has no sign."""
    return f"{number:z,.{decimals}f}".replace("-", "−")


def _is_nothing(column: Column, number: float) -> bool:
    return abs(number) <= _last_digit(column, number) / 2


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
            decimals = column.decimals
            return f"{size:,.{decimals}f}" if size < 1e12 else f"{size:.{decimals}e}"


def _last_digit(column: Column, number: float) -> float:
    """The value of one unit in the last digit that is shown."""
    size = abs(number)
    match column.kind:
        case "seconds":
            return _last_of_duration(size)
        case "milliseconds":
            return 1000 * _last_of_duration(size / 1000)
        case "bytes":
            unit = 1000.0 ** _power(size)
            return unit * _last_of_three(size / unit)
        case "count":
            return 0.1
        case _:
            return 10.0**-column.decimals


def _last_of_duration(seconds: float) -> float:
    if seconds < 1:
        return _last_of_three(1000 * seconds) / 1000
    return _last_of_three(seconds) if seconds < 60 else 1.0 if seconds < 3600 else 60.0


def _bytes(size: float) -> str:
    power = _power(size)
    return f"{_three_digits(size / 1000**power)} {BYTES[power]}"


def _power(size: float) -> int:
    """The power of 1000 that gives the unit."""
    return min(int(math.log(size, 1000)) if size >= 1 else 0, len(BYTES) - 1)


def _three_digits(size: float) -> str:
    """At least three digits, and all those before the decimal point."""
    return f"{size:,.{_three_decimals(size)}f}" if size else "0"


def _last_of_three(size: float) -> float:
    return 10.0 ** -_three_decimals(size)


def _three_decimals(size: float) -> int:
    return 3 if size < 0.1 else max(0, 2 - math.floor(math.log10(size)))
