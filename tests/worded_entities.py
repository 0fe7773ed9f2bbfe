"""Texts in which one short code tells the value. A sentence encoder hardly sees it; a regression on
words does."""

from __future__ import annotations

from typing import Any

import numpy as np

VALUES = ("bad", "good")
_CODES = np.random.default_rng(3).permutation(
    [f"{a}{b}{n}" for a in "kvz" for b in "xqt" for n in (4, 7)]
)
CODES = {"bad": tuple(_CODES[::2]), "good": tuple(_CODES[1::2])}
ABOUT = ("invoice", "delivery", "contract", "audit", "shipment", "complaint", "permit", "visit")
PLACES = ("Oslo", "Lima", "Cairo", "Quebec", "Osaka", "Nairobi", "Perth", "Riga", "Porto", "Delhi")


def coded_text(value: str, drawn: np.random.Generator) -> str:
    """One in ten has a code of the other value."""
    shown = value if drawn.random() < 0.9 else VALUES[1 - VALUES.index(value)]
    code = drawn.choice(CODES[shown])
    return (
        f"The {drawn.choice(ABOUT)} about the {drawn.choice(ABOUT)} from {drawn.choice(PLACES)} "
        f"was filed as {code} on day {drawn.integers(1, 300)} and sent to {drawn.choice(PLACES)}."
    )


def coded(count: int = 120, items: int = 2, seed: int = 0, first: int = 0) -> list[dict[str, Any]]:
    """Rows of evidence, some items each about C0000 and so on, bad and good in turn."""
    drawn = np.random.default_rng(seed)
    return [
        {
            "evidence_id": f"C{place:04d}_E{item}",
            "entity_id": f"C{place:04d}",
            "text": coded_text(value, drawn),
            "supports_value": value,
        }
        for place in range(first, first + count)
        for value in (VALUES[place % 2],)
        for item in range(items)
    ]
