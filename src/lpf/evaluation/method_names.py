"""Titles of methods for people, and whether a method is ours, a rival or a reference."""

from __future__ import annotations

from collections.abc import Mapping

from lpf.baselines import CLAIM_ONLY, METHODS, ZERO_LABEL
from lpf.baselines.interface import Standing as Standing

LANGUAGE_MODEL = "llm:"
# The model that ``lpf train`` saves: networks or a linear model.
CHOSEN = "lpf_chosen"
# Methods that only an evaluation has; all others are in ``lpf.baselines.METHODS``.
_EXTRA: Mapping[str, tuple[str, Standing]] = {
    CHOSEN: ("LPF-SPN, robust, reading chosen", "ours"),
    CLAIM_ONLY: ("The claim alone", "reference"),
    ZERO_LABEL: ("No labels", "reference"),
}


def title_of(method: str) -> str:
    if method.startswith(LANGUAGE_MODEL):
        return f"{method.removeprefix(LANGUAGE_MODEL)}, zero-shot"
    if method in METHODS:
        return METHODS[method].title
    return _EXTRA[method][0] if method in _EXTRA else method


def standing_of(method: str) -> Standing:
    """``ours`` is what we recommend; paper mode, own methods and language models are rivals."""
    if method in METHODS:
        return METHODS[method].standing
    return _EXTRA[method][1] if method in _EXTRA else "rival"
