"""The paper's four knobs, and the cells in which they are turned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from lpf.experiments.answered import Answered
from lpf.experiments.cells import Cell, DomainData, Exam, Setting, Settings
from lpf.experiments.plan import Plan
from lpf.experiments.printed.tables import Printed, printed_table
from lpf.experiments.studies.compliance.cells import DOMAIN, lesson
from lpf.experiments.studies.domains.runs import TEST_SEED

PAPER, ROBUST = "lpf_paper", "lpf_robust_single"
MANY_ITEMS = 20  # as many as the highest top_k: what is not there cannot be left out
MANY_ASKED = 300  # their texts are four times as many
MOST_MEMBERS, QUICK_MEMBERS = 5, 3
_PRINTED_NAMES = {"brier_over_k": "brier"}


@dataclass(frozen=True)
class Knob:
    """``name`` is that of the setting, and of the paper's table after ``ablation_``."""

    name: str
    title: str
    symbol: str
    values: tuple[int | float, ...]
    default: int | float
    log_x: bool = False

    def printed_row(self, value: float) -> str:
        """The name that the row of a value has in the paper's table."""
        return str(value) if isinstance(self.default, int) else f"{value:.1f}"


KNOBS: Mapping[str, Knob] = MappingProxyType(
    {
        knob.name: knob
        for knob in (
            Knob("n_samples", "Number of samples", "M", (4, 8, 16, 32, 64, 128), 16, log_x=True),
            Knob("temperature", "Temperature", "T", (0.5, 0.8, 1.0, 1.2, 1.5, 2.0), 1.0),
            Knob("alpha", "Weight of uncertainty", "α", (0.0, 0.1, 1.0, 2.0, 4.0, 5.0), 2.0),
            Knob("top_k", "Number of items", "top_k", (1, 3, 5, 10, 20), 5),
        )
    }
)


def members(plan: Plan) -> tuple[int, ...]:
    """Ranks in the search, the best among them, evenly over all: the best ones alone would show
    less of the seed's noise than there is."""
    last = len(plan.main_seeds) - 1
    wanted = QUICK_MEMBERS if plan.quick else MOST_MEMBERS
    places = {round(step * last / (wanted - 1)) for step in range(wanted)}
    return tuple(sorted(places))


def five_items(plan: Plan) -> Exam:
    return Exam(DomainData(DOMAIN, seed=TEST_SEED), plan.ablation_asked)


def many_items(plan: Plan, top_k: int) -> Exam:
    data = DomainData(DOMAIN, seed=TEST_SEED, changes=(f"items={MANY_ITEMS}",))
    return Exam(data, min(MANY_ASKED, plan.ablation_asked), top_k=top_k)


def paper_cell(plan: Plan, member: int, turned: Mapping[str, int | float]) -> Cell:
    """Paper mode with knobs ``turned``, the others at the paper's default. Where ``top_k`` is among
    them, there are items to choose from."""
    return _cell(plan, PAPER, member, turned)


def robust_cell(
    plan: Plan, member: int, turned: Mapping[str, int | float], sampler: str | None = None
) -> Cell:
    """The same network in robust mode, which decodes at the mean unless told to sample."""
    return _cell(plan, ROBUST, member, turned, sampler)


def printed_at(knob: Knob, value: float, measure: str) -> Printed | None:
    """What the paper prints for compliance; the appendix has what the main text leaves out."""
    row, name = knob.printed_row(value), _PRINTED_NAMES.get(measure, measure)
    tables = (f"ablation_{knob.name}", f"ablation_{knob.name}_{DOMAIN}")
    found = (printed_table(slug).value(row, name) for slug in tables)
    return next((one for one in found if one is not None), None)


def as_it_came(answered: Answered) -> Answered:
    """Judged before its temperature: so the paper measures."""
    return replace(answered, tempered=answered.raw)


def _cell(
    plan: Plan,
    method: str,
    member: int,
    turned: Mapping[str, int | float],
    sampler: str | None = None,
) -> Cell:
    exam = many_items(plan, int(turned["top_k"])) if "top_k" in turned else five_items(plan)
    # At its default a knob is left alone, so that ablations share the cell in their middle; robust
    # mode has other defaults.
    told: dict[str, Setting] = {
        name: value
        for name, value in turned.items()
        if name != "top_k" and (method == ROBUST or value != KNOBS[name].default)
    }
    told["member"] = member
    if sampler is not None:
        told["sampler"] = sampler
    return Cell(lesson(plan), exam, method, _ordered(told))


def _ordered(told: Mapping[str, Setting]) -> Settings:
    return tuple(sorted(told.items()))
