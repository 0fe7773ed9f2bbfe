"""The structured record of an entity: what kinds of field there are, and their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Value = str | int | float | bool


class Field(Protocol):
    """A field makes its value from ``draws`` uniform numbers in [0, 1), and rises with them.

    ``weight`` says how much it speaks for the last value of the domain, ``is_text`` whether
    sentences may name it, and ``is_shared`` whether entities of one group have it in common.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def weight(self) -> float: ...
    @property
    def draws(self) -> int: ...
    @property
    def is_text(self) -> bool: ...
    @property
    def is_shared(self) -> bool: ...
    @property
    def described(self) -> str: ...
    def value(self, uniform: Sequence[float]) -> Value: ...


@dataclass(frozen=True)
class NameField:
    """One draw from each list, joined."""

    name: str
    parts: tuple[tuple[str, ...], ...]
    joiner: str = " "
    weight: float = 0.0
    kind: str = "name"
    is_text: bool = True
    is_shared: bool = True

    @property
    def draws(self) -> int:
        return len(self.parts)

    @property
    def described(self) -> str:
        return f"one of {math.prod(map(len, self.parts)):,} names"

    def value(self, uniform: Sequence[float]) -> str:
        drawn = zip(self.parts, uniform, strict=True)
        return self.joiner.join(part[int(u * len(part))] for part, u in drawn)


@dataclass(frozen=True)
class ChoiceField:
    """One of several words, or (kind ``year``) of several years."""

    name: str
    choices: tuple[str, ...] | tuple[int, ...]
    kind: str = "choice"
    weight: float = 0.0
    draws: int = 1
    is_text: bool = True

    @property
    def is_shared(self) -> bool:
        return self.kind == "choice"

    @property
    def described(self) -> str:
        if self.kind == "year":
            return ", ".join(map(str, self.choices))
        return f"one of {len(self.choices)} words, such as {self.choices[0]}"

    def value(self, uniform: Sequence[float]) -> Value:
        return self.choices[int(uniform[0] * len(self.choices))]


@dataclass(frozen=True)
class NumberField:
    """A number between two, with ``decimals``; of kind ``integer`` a whole one."""

    name: str
    low: float
    high: float
    decimals: int = 0
    weight: float = 0.0
    kind: str = "number"
    draws: int = 1
    is_text: bool = False
    is_shared: bool = False

    @property
    def described(self) -> str:
        return f"{self.low:,.{self.decimals}f} to {self.high:,.{self.decimals}f}"

    def value(self, uniform: Sequence[float]) -> Value:
        number = self.low + (self.high - self.low) * uniform[0]
        if self.kind == "integer":
            return math.floor(number + 0.5)
        return round(number, self.decimals)


@dataclass(frozen=True)
class FlagField:
    """True for the upper half of the draws."""

    name: str
    weight: float = 0.0
    kind: str = "flag"
    draws: int = 1
    is_text: bool = False
    is_shared: bool = False

    @property
    def described(self) -> str:
        return "yes or no"

    def value(self, uniform: Sequence[float]) -> bool:
        return uniform[0] > 0.5
