"""The parts of robust mode that can be taken out, and the tests on which they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lpf.experiments.cells import Cell, DomainData, Exam, Lesson, Settings
from lpf.experiments.judging.comparisons import Comparison, Loss, compare
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book, Runs
from lpf.experiments.studies.compliance.cells import DOMAIN
from lpf.experiments.studies.domains.runs import TEST_SEED, exam_at
from lpf.experiments.workbench.variants import DEFAULT_ENSEMBLE
from lpf.training.settings import UNEQUAL

METHOD = "lpf_robust"
DEFAULT = "default"
ENSEMBLES = (1, 2, 3, 5, 7)
SURE = 0.05
TELLING = 0.0001  # of a difference in loss; below, it is rounding
Verdict = Literal["better", "worse", "neither"]


@dataclass(frozen=True)
class Variant:
    title: str
    settings: Settings


INTEGRATORS: Mapping[str, Variant] = {
    "moments": Variant("Integral by moments", (("sampler", "moments"),)),
    "orthogonal": Variant("Integral by 16 orthogonal samples", (("sampler", "orthogonal"),)),
    "plain": Variant("Integral by 16 plain samples", (("sampler", "plain"),)),
}
UNDIVIDED = Variant("Prior not divided out", (("divide_prior", False),))
UNFITTED = Variant("Nothing fitted", (("fitted", False),))
PARTS: Mapping[str, Variant] = {
    "undivided": UNDIVIDED,
    "epsilon": Variant("ε = 0: every item speaks", (("epsilon", 0.0),)),
    "rho": Variant("ρ = 0: items share no error", (("rho", 0.0),)),
    "unfitted": UNFITTED,
}
PRIORS: Mapping[str, Variant] = {
    "undivided": UNDIVIDED,
    "unfitted": UNFITTED,
    "unfitted_undivided": Variant(
        "Nothing fitted, prior not divided out", (("divide_prior", False), ("fitted", False))
    ),
}


@dataclass(frozen=True)
class Place:
    """A test: on which data, with what number of items. ``shares`` are those of the values where
    they are not the domain's own."""

    name: str
    preset: str
    items: Literal["fixed", "varying"] = "fixed"
    shares: tuple[float, ...] = ()

    @property
    def title(self) -> str:
        many = "five items" if self.items == "fixed" else "one to five items"
        return f"values of {self.share_words}" if self.shares else f"preset {self.preset}, {many}"

    @property
    def share_words(self) -> str:
        return " : ".join(f"{share:g}" for share in self.shares)

    @property
    def changes(self) -> tuple[str, ...]:
        """What the generator is told."""
        return (f"shares={','.join(map(str, self.shares))}",) if self.shares else ()

    @property
    def balanced(self) -> bool:
        """Whether training draws its values equally often, so that π is even and dividing by it
        changes nothing, whatever the shares."""
        return bool(self.shares) and max(self.shares) / min(self.shares) > UNEQUAL


PLACES = (
    Place("paper_fixed", "paper"),
    Place("paper_varying", "paper", "varying"),
    Place("hard_fixed", "hard"),
    Place("hard_varying", "hard", "varying"),
)
# As unequal as training leaves them alone, and more: there it balances them.
UNEQUAL_PLACES = (
    Place("unequal", "paper", shares=(0.2, 0.25, 0.55)),
    Place("unequal_balanced", "paper", shares=(0.05, 0.15, 0.8)),
)


@dataclass(frozen=True)
class Change:
    """What a variant's mean loss has over the default's: above 0, what was taken out was good for
    something. None where nothing could be compared. ``p`` is after Holm."""

    mean: float
    low: float
    high: float
    p: float

    @property
    def verdict(self) -> Verdict:
        """Of the variant, beside the default."""
        if self.p >= SURE or self.low <= 0.0 <= self.high or abs(self.mean) < TELLING:
            return "neither"
        return "worse" if self.mean > 0 else "better"

    def __str__(self) -> str:
        return f"{self.mean:+z.4f} ({self.low:+z.4f} to {self.high:+z.4f})"


def variants(plan: Plan, place: Place) -> Mapping[str, Variant]:
    if place.shares:
        return PRIORS
    return {**INTEGRATORS, **PARTS, **ensembles(plan)}


def runs(plan: Plan, place: Place) -> dict[str, list[Cell]]:
    """The cells of the default and of each variant, one a data set."""
    settings = {DEFAULT: (), **{name: one.settings for name, one in variants(plan, place).items()}}
    return {
        name: [_cell(plan, place, seed, told) for seed in data_sets(plan, place)]
        for name, told in settings.items()
    }


def data_sets(plan: Plan, place: Place) -> tuple[int, ...]:
    """Their seeds. One is enough where nothing can come out but what training makes sure of."""
    return plan.study_seeds[:1] if place.balanced else plan.study_seeds


def default_size(plan: Plan) -> int:
    """An ensemble cannot have more networks than were trained."""
    return min(DEFAULT_ENSEMBLE, len(plan.training_seeds))


def ensembles(plan: Plan) -> dict[str, Variant]:
    return {
        f"ensemble_{size}": Variant(
            "One network" if size == 1 else f"{size} networks", (("ensemble", size),)
        )
        for size in ENSEMBLES
        if size <= len(plan.training_seeds) and size != default_size(plan)
    }


def _cell(plan: Plan, place: Place, seed: int, settings: Settings) -> Cell:
    data = DomainData(DOMAIN, place.preset, seed, place.changes)
    lesson = Lesson(data, seed=seed, seeds=plan.training_seeds)
    return Cell(lesson, exam_of(plan, place), METHOD, settings)


def exam_of(plan: Plan, place: Place) -> Exam:
    """Those of the domains, whose texts are read anyhow; but for unequal values, which are new."""
    if place.shares:
        return Exam(DomainData(DOMAIN, place.preset, TEST_SEED, place.changes), plan.ablation_asked)
    return exam_at(plan, place.preset, DOMAIN, place.items)


def _compared(cells: Runs, book: Book, measure: Loss) -> list[Comparison]:
    others = {name: book.runs(found) for name, found in cells.items() if name != DEFAULT}
    return compare(book.runs(cells[DEFAULT]), others, measure)


def changes_of(cells: Runs, book: Book, measure: Loss = "nll") -> dict[str, Change | None]:
    return {one.name: _change(one) for one in _compared(cells, book, measure)}


def _change(one: Comparison) -> Change | None:
    """The comparison is of the default with the variant; here it is the other way round."""
    if one.difference is None or one.adjusted is None:
        return None
    found = one.difference
    return Change(0.0 - found.mean, 0.0 - found.high, 0.0 - found.low, one.adjusted)
