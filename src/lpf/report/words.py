"""Numbers as a reader meets them."""

from __future__ import annotations


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """A difference of two shares, with its sign."""
    return f"{100 * difference:+z.1f}".replace("-", "−")


def decimals(number: float) -> str:
    """Three of them. What is little more than nothing is not shown as nothing."""
    return "< 0.001" if 0 < number < 0.0005 else f"{number:z.3f}".replace("-", "−")


def percent_spread(mean: float, sd: float, seeds: int) -> str:
    """One seed has no spread, which is not a spread of nothing."""
    return percent(mean) if seeds < 2 else f"{100 * mean:.1f} ± {100 * sd:.1f} %"


def decimals_spread(mean: float, sd: float, seeds: int) -> str:
    return decimals(mean) if seeds < 2 else f"{decimals(mean)} ± {decimals(sd)}"


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def cut(name: str, characters: int) -> str:
    """What is cut off ends in dots. Cut in the middle: names of a kind differ at both ends."""
    if len(name) <= characters:
        return name
    head = (characters - 1) * 2 // 3
    return f"{name[:head].rstrip()}…{name[len(name) - (characters - 1 - head) :].lstrip()}"
