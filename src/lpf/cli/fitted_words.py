"""What was fitted for a model, each number with a sentence that says what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Numbers = Mapping[str, float | None]
EXAMPLE = 5  # items, to say what a share of error comes to


def fitted_lines(numbers: Numbers) -> Iterator[tuple[str, float, str]]:
    """Name, number and meaning, of those that are there."""
    meanings = {
        "temperature": _temperature,
        "rho": _rho,
        "epsilon": _epsilon,
        "slope": _slope,
        "learned_temperature": _learned,
    }
    for name, meaning in meanings.items():
        number = numbers.get(name)
        if number is not None:
            yield name, float(number), meaning(float(number))


def _temperature(number: float) -> str:
    return f"what is read from a single item {_towards(number)}."


def _learned(number: float) -> str:
    return f"what the learned aggregator answers {_towards(number)}."


def _towards(temperature: float) -> str:
    if abs(temperature - 1.0) < 0.02:
        return "is taken as it is"
    return "was too sure and is softened" if temperature > 1 else "was too timid and is sharpened"


def _rho(number: float) -> str:
    counted = EXAMPLE / (1.0 + (EXAMPLE - 1) * number)
    return f"items share errors: {EXAMPLE} count as much as {counted:.1f} independent ones."


def _epsilon(number: float) -> str:
    return f"of items of usual credibility, {100 * number:.0f} % are taken to say nothing."


def _slope(number: float) -> str:
    if number < 0.05:
        return "the credibility of items tells next to nothing of how far to trust them."
    return "items of higher credibility are trusted more; at 1, as much more as their odds say."
