"""What every table and figure of a knob says of how it was measured."""

from __future__ import annotations

from lpf.experiments.plan import Plan
from lpf.experiments.studies.knobs.cells import KNOBS, MANY_ITEMS, Knob, paper_cell


def others_at_default(knob: Knob) -> str:
    rest = [f"{one.symbol} = {one.default:g}" for one in KNOBS.values() if one is not knob]
    return f"Compliance, all other knobs at the paper's default ({', '.join(rest)})."


def who_is_asked(plan: Plan, knob: Knob) -> str:
    exam = paper_cell(plan, 0, {knob.name: knob.default}).exam
    items = f"{MANY_ITEMS} items each to choose from" if knob.name == "top_k" else "five items each"
    return f"{exam.entities:,} new companies with {items}."
