"""Parameters of the generator: how many entities, and how noisy their evidence is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Literal, get_args

from lpf.errors import ConfigError

Unseen = Literal["wordings", "sentences"]
_NOTHING = "none"
MOST_ENTITIES = 1_000_000
MOST_ITEMS = 1000


@dataclass(frozen=True)
class GeneratorParameters:
    """Parameters of the generator; ``docs/domains.md`` explains each one.

    The perfect reader knows and uses all of them.
    """

    entities: int = 900
    items: int = 5
    items_min: int | None = None
    contradiction: float = 0.08
    ambiguity: float = 0.05
    borderline: float = 0.0
    pull: float = 0.5
    credibility_range: tuple[float, float] = (0.65, 0.98)
    credibility_beta: tuple[float, float] = (10.0, 2.0)
    credibility_correlation: float = 0.6
    copies: float = 0.0
    missing: float = 0.0
    drift: float = 0.0
    max_age_years: float = 2.0
    fact_share: float = 0.3
    unseen: Unseen = "wordings"
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        self._check_counts()
        for name in ("ambiguity", "pull", "fact_share"):
            self._check(0.0 <= getattr(self, name) <= 1.0, name, "in [0, 1]")
        for name in ("contradiction", "borderline", "copies", "missing"):
            self._check(0.0 <= getattr(self, name) < 1.0, name, "in [0, 1)")
        for name in ("credibility_correlation", "drift", "max_age_years"):
            self._check(0.0 <= getattr(self, name) < math.inf, name, "0 or above")
        self._check_credibility()
        self._check(self.unseen in get_args(Unseen), "unseen", f"one of {get_args(Unseen)}")
        if self.shares is not None:
            is_sum_one = abs(math.fsum(self.shares) - 1.0) < 1e-9
            self._check(is_sum_one and min(self.shares) > 0, "shares", "above 0, with a sum of 1")

    def _check_counts(self) -> None:
        entities = 1 <= self.entities <= MOST_ENTITIES
        self._check(entities, "entities", f"from 1 to {MOST_ENTITIES:,}")
        self._check(1 <= self.items <= MOST_ITEMS, "items", f"from 1 to {MOST_ITEMS:,}")
        least = self.items if self.items_min is None else self.items_min
        self._check(1 <= least <= self.items, "items_min", f"from 1 to items ({self.items})")

    def _check_credibility(self) -> None:
        low, high = self.credibility_range
        self._check(0.0 <= low < high <= 1.0, "credibility_range", "two rising numbers in [0, 1]")
        positive = all(0.0 < number < math.inf for number in self.credibility_beta)
        self._check(positive, "credibility_beta", "two numbers above 0")

    def _check(self, holds: bool, name: str, rule: str) -> None:
        if not holds:
            raise ConfigError(
                f"must be {rule}, got {getattr(self, name)!r}. Nothing was generated.",
                field=f"generator.{name}",
            )


PRESETS: Mapping[str, GeneratorParameters] = MappingProxyType(
    {
        # Independent noise, chosen so that a model trained on 630 entities reads .82 to .88 of the
        # single validation items correctly, as in the paper's tables.
        "paper": GeneratorParameters(),
        # Shared errors, copies, missing and ageing evidence, as in real data.
        "hard": GeneratorParameters(
            contradiction=0.04,
            borderline=0.15,
            copies=0.1,
            missing=0.1,
            drift=0.03,
        ),
    }
)


def preset(name: str) -> GeneratorParameters:
    """Return the preset with this name. Raises ConfigError."""
    if name not in PRESETS:
        raise ConfigError(f"must be one of {sorted(PRESETS)}, got {name!r}.", field="preset")
    return PRESETS[name]


def with_settings(base: GeneratorParameters, settings: Iterable[str]) -> GeneratorParameters:
    """Return ``base`` changed by settings such as ``copies=0.2`` or ``shares=0.2,0.3,0.5``."""
    changes: dict[str, object] = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign:
            raise ConfigError(f"must be NAME=VALUE, got {setting!r}.", field="generator")
        changes[name.strip()] = _parsed(name.strip(), value.strip())
    return replace(base, **changes)  # type: ignore[arg-type]


def _parsed(name: str, value: str) -> object:
    kinds = {field.name: str(field.type) for field in fields(GeneratorParameters)}
    if name not in kinds:
        raise ConfigError(
            f"unknown parameter; choose from {sorted(kinds)}.", field=f"generator.{name}"
        )
    kind = kinds[name]
    if value.lower() == _NOTHING and "None" in kind:
        return None
    try:
        if kind.startswith("tuple"):
            return _numbers(value, 2 if kind.count("float") == 2 else None)
        return value if kind == "Unseen" else int(value) if "int" in kind else float(value)
    except ValueError:
        raise ConfigError(
            f"must be of type {kind}, got {value!r}.", field=f"generator.{name}"
        ) from None


def _numbers(value: str, count: int | None) -> tuple[float, ...]:
    numbers = tuple(float(part) for part in value.split(","))
    if count is not None and len(numbers) != count:
        raise ValueError(f"{len(numbers)} numbers, not {count}")
    return numbers
