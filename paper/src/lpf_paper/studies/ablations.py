"""Robust mode with one part removed at a time: how much does each part contribute?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lpf.evaluation import (
    DEFAULT_ENSEMBLE,
    Cell,
    Comparison,
    DomainData,
    EvalSpec,
    Loss,
    Settings,
    Summary,
    TrainSpec,
    compare,
)
from lpf.training import UNEQUAL
from lpf_paper.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.compliance_runs import DOMAIN
from lpf_paper.studies.domains_tables import TEST_SEED, eval_spec_at
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_tables import COLUMNS, cell_value, counted, plain_value

METHOD = "lpf_robust"
DEFAULT = "default"
ENSEMBLES = (1, 2, 3, 5, 7)
SIGNIFICANT = 0.05
SMALLEST_CHANGE = 0.0001  # smallest difference in loss that is not rounding
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
class Setup:
    """The data of a test, and its number of items. ``shares`` of the values replace the domain's
    own."""

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
        """Settings of the generator."""
        return (f"shares={','.join(map(str, self.shares))}",) if self.shares else ()

    @property
    def balanced(self) -> bool:
        """Return True if training draws all values equally often: π is then uniform, and dividing
        by it changes nothing."""
        return bool(self.shares) and max(self.shares) / min(self.shares) > UNEQUAL


SETUPS = (
    Setup("paper_fixed", "paper"),
    Setup("paper_varying", "paper", "varying"),
    Setup("hard_fixed", "hard"),
    Setup("hard_varying", "hard", "varying"),
)
# Shares that training leaves unchanged, and shares so unequal that it balances the values.
UNEQUAL_SETUPS = (
    Setup("unequal", "paper", shares=(0.2, 0.25, 0.55)),
    Setup("unequal_balanced", "paper", shares=(0.05, 0.15, 0.8)),
)


@dataclass(frozen=True)
class Change:
    """A variant's mean loss minus the default's: above 0, the removed part was useful. None if
    nothing could be compared. ``p`` is corrected by Holm's method."""

    mean: float
    low: float
    high: float
    p: float

    @property
    def verdict(self) -> Verdict:
        """The variant compared with the default."""
        if (
            self.p >= SIGNIFICANT
            or self.low <= 0.0 <= self.high
            or abs(self.mean) < SMALLEST_CHANGE
        ):
            return "neither"
        return "worse" if self.mean > 0 else "better"

    def __str__(self) -> str:
        return f"{self.mean:+z.4f} ({self.low:+z.4f} to {self.high:+z.4f})"


def variants(plan: ExperimentPlan, setup: Setup) -> Mapping[str, Variant]:
    if setup.shares:
        return PRIORS
    return {**INTEGRATORS, **PARTS, **ensembles(plan)}


def runs(plan: ExperimentPlan, setup: Setup) -> dict[str, list[Cell]]:
    """The cells of the default and of each variant, one per data set."""
    settings = {DEFAULT: (), **{name: one.settings for name, one in variants(plan, setup).items()}}
    return {
        name: [_cell(plan, setup, seed, changed) for seed in data_sets(plan, setup)]
        for name, changed in settings.items()
    }


def data_sets(plan: ExperimentPlan, setup: Setup) -> tuple[int, ...]:
    """Seeds of the data sets. One is enough if training itself decides the outcome."""
    return plan.study_seeds[:1] if setup.balanced else plan.study_seeds


def default_size(plan: ExperimentPlan) -> int:
    """An ensemble cannot have more networks than were trained."""
    return min(DEFAULT_ENSEMBLE, len(plan.training_seeds))


def ensembles(plan: ExperimentPlan) -> dict[str, Variant]:
    return {
        f"ensemble_{size}": Variant(
            "One network" if size == 1 else f"{size} networks", (("ensemble", size),)
        )
        for size in ENSEMBLES
        if size <= len(plan.training_seeds) and size != default_size(plan)
    }


def _cell(plan: ExperimentPlan, setup: Setup, seed: int, settings: Settings) -> Cell:
    data = DomainData(DOMAIN, setup.preset, seed, setup.changes)
    train_spec = TrainSpec(data, seed=seed, seeds=plan.training_seeds)
    return Cell(train_spec, eval_spec_of(plan, setup), METHOD, settings)


def eval_spec_of(plan: ExperimentPlan, setup: Setup) -> EvalSpec:
    """The test entities of the domains study; new ones for unequal shares."""
    if setup.shares:
        return EvalSpec(
            DomainData(DOMAIN, setup.preset, TEST_SEED, setup.changes), plan.ablation_entities
        )
    return eval_spec_at(plan, setup.preset, DOMAIN, setup.items)


def _compared(cells: Runs, results: ResultReader, measure: Loss) -> list[Comparison]:
    others = {name: results.runs(own) for name, own in cells.items() if name != DEFAULT}
    return compare(results.runs(cells[DEFAULT]), others, measure)


def changes_of(
    cells: Runs, results: ResultReader, measure: Loss = "nll"
) -> dict[str, Change | None]:
    return {one.name: _change(one) for one in _compared(cells, results, measure)}


def _change(one: Comparison) -> Change | None:
    """The variant minus the default; ``one`` has the opposite sign."""
    if one.difference is None or one.adjusted is None:
        return None
    ours = one.difference
    return Change(0.0 - ours.mean, 0.0 - ours.high, 0.0 - ours.low, one.adjusted)


Changes = Mapping[str, Mapping[str, Change | None]]  # by setup and variant


def ablation_findings(plan: ExperimentPlan, changes: Changes) -> list[str]:
    sentences = [_integral(changes)]
    sentences += [_part(name, PARTS[name], changes) for name in PARTS]
    sentences += _networks(plan, changes)
    return [*sentences, *_unequal(changes)]


def _integral(changes: Changes) -> str:
    """The integral over q(z|e), the paper's central step."""
    found = [
        (INTEGRATORS[name].title, setup, change)
        for setup in SETUPS
        for name in INTEGRATORS
        if (change := changes[setup.name][name]) is not None
    ]
    if not found:
        return "No integral could be compared with decoding at the mean."
    means = [change.mean for *_, change in found]
    reach = f"NLL changes by {min(means):+z.4f} to {max(means):+z.4f}"
    if any(change.verdict == "better" for *_, change in found):
        return _integral_helps(found, reach)
    worse = sum(change.verdict == "worse" for *_, change in found)
    return (
        f"The integral over q(z|e) brings nothing: in none of {len(found)} comparisons is any "
        f"integrator better than decoding at the mean beyond chance, in {worse} it is worse; "
        f"{reach}, and no 95 % interval reaches below {min(one[2].low for one in found):+z.4f}."
    )


def _integral_helps(found: Sequence[tuple[str, Setup, Change]], reach: str) -> str:
    better = [one for one in found if one[2].verdict == "better"]
    worse = sum(change.verdict == "worse" for *_, change in found)
    named = "; ".join(f"{title}, {setup.title}: {change}" for title, setup, change in better)
    return (
        f"Integrating over q(z|e) instead of decoding at its mean lowers NLL beyond chance in "
        f"{len(better)} of {len(found)} comparisons ({named}) and raises it in {worse}; "
        f"{reach}."
    )


def _part(name: str, variant: Variant, changes: Changes) -> str:
    """One variant over all setups."""
    found = [
        (setup, change) for setup in SETUPS if (change := changes[setup.name][name]) is not None
    ]
    if not found:
        return f"{variant.title}: could not be compared."
    by_setup = "; ".join(f"{setup.title} {change}" for setup, change in found)
    worse, better = (
        sum(change.verdict == verdict for _, change in found) for verdict in ("worse", "better")
    )
    return (
        f"{variant.title}: NLL is worse beyond chance on {worse} and better on {better} of "
        f"{len(found)} tests ({by_setup})."
    )


def _networks(plan: ExperimentPlan, changes: Changes) -> list[str]:
    sizes = ensembles(plan)
    return [
        f"Against {default_size(plan)} networks: {_lowered(_part(name, variant, changes))}"
        for name, variant in sizes.items()
    ]


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _unequal(changes: Changes) -> list[str]:
    found = [(setup, changes[setup.name]) for setup in UNEQUAL_SETUPS]
    return [sentence for setup, among in found if (sentence := _divided(setup, among))]


def _divided(setup: Setup, changes: Mapping[str, Change | None]) -> str | None:
    """What dividing by the prior contributes if some values are rare."""
    undivided = changes["undivided"]
    if undivided is None:
        return None
    where = f"Where values have shares of {setup.share_words}"
    if setup.balanced and abs(undivided.mean) < SMALLEST_CHANGE:
        return (
            f"{where}, training draws all values equally often, so that the shares it divides by "
            f"are even and leaving that out changes nothing ({undivided})."
        )
    verdict = {
        "worse": "is worth it",
        "better": "does harm",
        "neither": "makes no difference beyond chance",
    }[undivided.verdict]
    begin = f"{where}, dividing the prior out {verdict}: without it NLL changes by {undivided}"
    return f"{begin}, with everything else fitted again{_before_fitting(changes)}."


def _before_fitting(changes: Mapping[str, Change | None]) -> str:
    divided, undivided = changes["unfitted"], changes["unfitted_undivided"]
    if divided is None or undivided is None:
        return ""
    return (
        f"; before anything is fitted NLL is {divided.mean:+z.4f} from the default's with the "
        f"prior divided out and {undivided.mean:+z.4f} without"
    )


ABLATION_COLUMNS = (
    COLUMNS["nll"],
    Column("change", "NLL, change", "number", "lower", 4),
    Column("p", "p (Holm)", "share", None, 4),
    COLUMNS["accuracy"],
    Column("errors", "Errors, change", "share", "lower", 4),
    COLUMNS["ece"],
    COLUMNS["ece_null"],
)


def ablation_table(
    plan: ExperimentPlan, setup: Setup, changes: Mapping[str, Change | None], results: ResultReader
) -> Table:
    return Table(
        f"ablations_{setup.name}",
        f"One part removed: {setup.title}",
        f"Compliance, {described_test(plan, setup)}. Changes are the variant minus the default, "
        "paired by entity and data set, with 95 % intervals and p-values corrected for the number "
        f"of variants: above 0, the removed part was useful. {_how(setup)}",
        ABLATION_COLUMNS,
        tuple(_rows(plan, setup, changes, results)),
    )


def described_test(plan: ExperimentPlan, setup: Setup) -> str:
    """For captions."""
    many = "five items" if setup.items == "fixed" else "one to five items"
    sets = counted(len(data_sets(plan, setup)), "data set")
    return f"{eval_spec_of(plan, setup).entities:,} new companies with {many} each, {sets}"


def _rows(
    plan: ExperimentPlan, setup: Setup, changes: Mapping[str, Change | None], results: ResultReader
) -> list[Row]:
    cells = runs(plan, setup)
    errors = changes_of(cells, results, "error")
    default = f"Robust mode as it is: at the mean, {default_size(plan)} networks"
    rows = [_row(DEFAULT, default, results.summary(cells[DEFAULT]), None, None)]
    for name, variant in variants(plan, setup).items():
        summary = results.summary(cells[name])
        rows.append(_row(name, variant.title, summary, changes[name], errors[name]))
    return rows


def _row(
    name: str, title: str, summary: Summary, change: Change | None, errors: Change | None
) -> Row:
    nll, accuracy, ece, null = (
        cell_value(summary, measure) for measure in ("nll", "accuracy", "ece", "ece_null")
    )
    p = plain_value(None if change is None else change.p)
    cells = (nll, _shown(change), p, accuracy, _shown(errors), ece, null)
    note = "; ".join(summary.notes) or None
    return Row(name, title, cells, "ours" if name == DEFAULT else "rival", note)


def _shown(change: Change | None) -> Value | None:
    return None if change is None else Value(change.mean, low=change.low, high=change.high)


def _how(setup: Setup) -> str:
    if setup.shares:
        return "Without dividing, all other parameters are fitted again."
    return (
        "ε and ρ are set to 0 after fitting. All parameters were fitted with decoding at the mean, "
        "which the integrators then replace."
    )


ALL_SETUPS = (*SETUPS, *UNEQUAL_SETUPS)


@dataclass(frozen=True)
class AblationsStudy:
    name: str = "ablations"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        return [
            cell for setup in ALL_SETUPS for cells in runs(plan, setup).values() for cell in cells
        ]

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        changes = {setup.name: changes_of(runs(plan, setup), results) for setup in ALL_SETUPS}
        return StudyResult(
            self.name,
            "Robust mode, one part removed at a time",
            "How much do the integral over the latent space, dividing by the prior, ε, ρ, fitting "
            "and the ensemble contribute?",
            tuple(ablation_findings(plan, changes)),
            tuple(
                ablation_table(plan, setup, changes[setup.name], results) for setup in ALL_SETUPS
            ),
            tuple(
                figure
                for figure in (*_change_figures(plan, changes), _ensemble_figure(plan, results))
                if figure.series
            ),
        )


def _change_figures(plan: ExperimentPlan, changes: Changes) -> list[Figure]:
    """One figure per preset."""
    presets = dict.fromkeys(setup.preset for setup in SETUPS)
    return [_change_figure(plan, preset, changes) for preset in presets]


def _change_figure(plan: ExperimentPlan, preset: str, changes: Changes) -> Figure:
    """One set of bars per number of items."""
    among = [setup for setup in SETUPS if setup.preset == preset]
    series = tuple(_bars(plan, setup, changes[setup.name]) for setup in among)
    return Figure(
        f"ablations_{preset}",
        f"Effect of removing a part, preset {preset}",
        f"Compliance, {'; '.join(described_test(plan, setup) for setup in among)}. NLL minus that "
        "of unchanged robust mode, with 95 % intervals; to the right of 0 the part was useful.",
        "bars",
        "",
        "NLL, change",
        tuple(one for one in series if one.x),
    )


def _bars(plan: ExperimentPlan, setup: Setup, changes: Mapping[str, Change | None]) -> Series:
    known = {name: change for name, change in changes.items() if change is not None}
    titles = variants(plan, setup)
    return Series(
        "Five items" if setup.items == "fixed" else "One to five items",
        tuple(titles[name].title for name in known),
        tuple(change.mean for change in known.values()),
        tuple(change.low for change in known.values()),
        tuple(change.high for change in known.values()),
        "ours" if setup.items == "fixed" else "rival",
    )


def _ensemble_figure(plan: ExperimentPlan, results: ResultReader) -> Figure:
    series = tuple(_sizes(plan, setup, results) for setup in SETUPS)
    return Figure(
        "ablations_ensemble",
        "Number of networks",
        f"Compliance, {len(plan.study_seeds)} data sets; the best ones of "
        f"{len(plan.training_seeds)} networks, each ensemble fitted separately. Means with 95 % "
        "intervals.",
        "lines",
        "Networks",
        "NLL",
        tuple(one for one in series if one.x),
    )


def _sizes(plan: ExperimentPlan, setup: Setup, results: ResultReader) -> Series:
    by_size = dict(_by_size(runs(plan, setup), plan))
    found = {
        size: spread
        for size, cells in sorted(by_size.items())
        if (spread := results.summary(cells).spreads.get("nll")) is not None
    }
    bounds = [
        (one.low, one.high)
        for one in found.values()
        if one.low is not None and one.high is not None
    ]
    has_bounds = len(bounds) == len(found)
    return Series(
        setup.title,
        tuple(map(float, found)),
        tuple(one.mean for one in found.values()),
        tuple(low for low, _ in bounds) if has_bounds else (),
        tuple(high for _, high in bounds) if has_bounds else (),
        "ours" if setup.preset == "paper" else "rival",
    )


def _by_size(cells: Runs, plan: ExperimentPlan) -> list[tuple[int, Sequence[Cell]]]:
    others = [
        (int(name.removeprefix("ensemble_")), own)
        for name, own in cells.items()
        if name.startswith("ensemble_")
    ]
    return [(default_size(plan), cells[DEFAULT]), *others]
