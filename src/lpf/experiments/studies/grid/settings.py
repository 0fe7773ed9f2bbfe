"""The settings of the paper's grid, and the cells in which they are tried."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from lpf.experiments.cells import Cell
from lpf.experiments.plan import Plan
from lpf.experiments.studies.knobs.cells import (
    KNOBS,
    MANY_ITEMS,
    many_items,
    paper_cell,
    robust_cell,
)

Setting = Mapping[str, int | float]
GRID: Mapping[str, tuple[int | float, ...]] = {
    "n_samples": (4, 8, 16, 32),
    "temperature": (0.8, 1.0, 1.2, 1.5),
    "alpha": (0.1, 1.0, 2.0, 5.0),
    "top_k": (1, 3, 5, 10, 20),
}
CORNER: Mapping[str, tuple[int | float, ...]] = {
    "n_samples": (4, 16),
    "temperature": (0.8, 1.0),
    "alpha": (0.1, 2.0),
    "top_k": (1, 5, 20),
}
DEFAULT: Setting = {name: knob.default for name, knob in KNOBS.items()}
HEADLINE: Setting = {"n_samples": 4, "temperature": 0.8, "alpha": 0.1, "top_k": 5}
BEST_NETWORK = 0


def grid(plan: Plan) -> Mapping[str, tuple[int | float, ...]]:
    """All of it, or the corner with the paper's two published settings."""
    return GRID if plan.grid else CORNER


def settings(plan: Plan) -> list[Setting]:
    names = grid(plan)
    return [dict(zip(names, values, strict=True)) for values in product(*names.values())]


def at(plan: Plan, setting: Setting) -> Cell:
    return paper_cell(plan, BEST_NETWORK, setting)


def robust_at(plan: Plan, top_k: int) -> Cell:
    """The same network in robust mode, with as many items."""
    return robust_cell(plan, BEST_NETWORK, {"top_k": top_k})


def words(setting: Setting) -> str:
    return ", ".join(f"{KNOBS[name].symbol} = {value:g}" for name, value in setting.items())


def where(plan: Plan, count: int) -> str:
    """For captions; ``count`` settings have answers."""
    asked, all_of_it = len(settings(plan)), "" if plan.grid else ", a corner of the paper's grid"
    crashed = f" {asked - count} of {asked} settings crashed." if count < asked else ""
    entities = many_items(plan, MANY_ITEMS).entities
    return (
        f"{count} settings{all_of_it}, the best network of the search, compliance, {entities:,} "
        f"new companies with {MANY_ITEMS} items to choose from.{crashed}"
    )
