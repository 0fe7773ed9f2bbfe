"""The fitted numbers of a predicate, each with a sentence on what it means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lpf.combine.robust import CREDIBILITY_BOUNDS, expit
from lpf.report.words import decimals, percent

if TYPE_CHECKING:
    from lpf.calibration import CalibrationFit
    from lpf.training.fitting import Fitted

Explained = tuple[str, str, str]


def explained(fitted: Fitted) -> Iterator[Explained]:
    """Name, value and meaning of each."""
    yield from _parameters(fitted.robust)
    if fitted.learned_temperature is not None:
        yield (
            "temperature of LPF-Learned",
            decimals(fitted.learned_temperature),
            "The same as the temperature above, for the answers of the learned variant.",
        )
    yield from _gains(fitted.robust)


def _parameters(fit: CalibrationFit) -> Iterator[Explained]:
    numbers = fit.parameters
    yield (
        "temperature T",
        decimals(numbers.temperature),
        "How single items are read: 1 as the model has them; above 1 flatter, as it was too "
        "sure of itself; below 1 sharper.",
    )
    yield (
        "rho ρ",
        decimals(numbers.rho),
        "How much error the items of an entity share: at 0 each counts in full, at 1 all of them "
        "together count as one.",
    )
    yield (
        "epsilon ε",
        decimals(numbers.epsilon),
        "The chance that an item of typical or unknown credibility says nothing of the truth.",
    )
    yield (
        "slope",
        decimals(numbers.slope),
        "How much credibility changes that chance; at 0 it predicts nothing.",
    )
    typical = float(expit(np.array(numbers.centre)))
    yield (
        "centre",
        decimals(numbers.centre),
        f"What counts as typical credibility, as log-odds: {percent(typical)}.",
    )
    if numbers.highest < CREDIBILITY_BOUNDS[1]:
        yield (
            "highest credibility",
            percent(numbers.highest),
            "The highest that the slope was fitted on. One above it counts as this.",
        )
    if numbers.source_epsilon:
        yield (
            "source epsilon",
            decimals(numbers.source_epsilon),
            "The chance that a source is unreliable as a whole.",
        )


def _gains(fit: CalibrationFit) -> Iterator[Explained]:
    yield (
        "NLL before and after",
        f"{decimals(fit.nll_before)} → {decimals(fit.nll_after)}",
        "What the true values cost the model on average, before the fit and after; lower is "
        "better. Measured on the entities that were fitted on.",
    )
    if fit.nll_cross_fitted is not None:
        yield (
            "NLL after, held out",
            decimals(fit.nll_cross_fitted),
            "The same on entities left out of the fit in turn. If it is above the value before, "
            "the fit did not help.",
        )
    yield (
        "entities",
        str(fit.entities),
        "Entities it was fitted on."
        if fit.converged
        else "Entities it was fitted on. The search for the numbers did not settle.",
    )
