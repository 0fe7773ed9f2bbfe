"""The paper's settings varied one at a time, in paper mode and, where they apply, robust mode."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lpf.evaluation import Cell, Comparison, Predictions, Spread, compare
from lpf_paper.exhibits import StudyResult
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.knobs_tables import (
    FIGURES,
    KNOBS,
    MANY_ITEMS,
    Knob,
    Sweep,
    knob_figure,
    make_sweep,
    paper_runs,
    paper_table,
    printed_at,
    robust_default,
    robust_runs,
    robust_table,
    robust_ways,
    without_temperature,
)
from lpf_paper.studies.study import ResultReader


def findings(plan: ExperimentPlan, sweeps: Sequence[Sweep], results: ResultReader) -> list[str]:
    sentences = [sentence for sweep in sweeps if (sentence := _swept(sweep))]
    return [
        *_at_the_default(sweeps),
        *sentences,
        *_more_items(sweeps),
        *_against_robust(plan, results),
    ]


def _swept(sweep: Sweep) -> str | None:
    """The range over a knob, with the range over seeds and the paper's numbers."""
    with_scores = [point for point in sweep.points if point.raw.spreads]
    middle = next((one for one in with_scores if one.value == sweep.knob.default), None)
    if middle is None or len(with_scores) < 2:
        return None
    knob, nll = sweep.knob, middle.raw.spreads["nll"].mean
    best = min(with_scores, key=lambda point: point.raw.spreads["nll"].mean)
    accuracies = [point.raw.spreads["accuracy"].mean for point in with_scores]
    errors = [point.raw.spreads["ece"].mean for point in with_scores]
    tempered = [point.tempered.spreads["nll"].mean for point in with_scores]
    return (
        f"{knob.title} ({knob.symbol} from {with_scores[0].value:g} to "
        f"{with_scores[-1].value:g}): paper mode's accuracy {_range(accuracies, 4)}"
        f"{_seed_range(middle.raw.spreads['accuracy'])}, "
        f"its ECE {_range(errors, 3)}{_printed_range(knob)}. Its NLL is lowest at {knob.symbol} = "
        f"{best.value:g} ({best.raw.spreads['nll'].mean:z.4f}, against {nll:z.4f} at the default); "
        f"once a temperature is fitted, it {_range(tempered, 4)}."
    )


def _range(values: Sequence[float], decimals: int) -> str:
    low, high = f"{min(values):.{decimals}f}", f"{max(values):.{decimals}f}"
    return f"stays at {low}" if low == high else f"lies between {low} and {high}"


def _printed_range(knob: Knob) -> str:
    accuracies, errors = (
        [found.value for value in knob.values if (found := printed_at(knob, value, measure))]
        for measure in ("accuracy", "ece")
    )
    if not accuracies or not errors:
        return ""
    return (
        f" (printed: {min(accuracies):z.3f} to {max(accuracies):z.3f} and {min(errors):z.3f} to "
        f"{max(errors):z.3f})"
    )


def _at_the_default(sweeps: Sequence[Sweep]) -> list[str]:
    """The default setting, which all sweeps share and the paper prints in each table."""
    best = next(
        point.best.spreads
        for sweep in sweeps
        if sweep.knob.name == "n_samples"
        for point in sweep.points
        if point.value == sweep.knob.default
    )
    printed = {
        measure: [
            found.value
            for knob in KNOBS.values()
            if (found := printed_at(knob, knob.default, measure)) is not None
        ]
        for measure in ("nll", "ece")
    }
    if not best:
        return []
    return [
        f"At the paper's default the best network has an NLL of {best['nll'].mean:z.3f} and an ECE "
        f"of {best['ece'].mean:z.3f} as answers come. For this one setting the paper's four tables "
        f"print NLLs of {_listed(printed['nll'])} and ECEs of {_listed(printed['ece'])}."
    ]


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:z.3f}" for number in sorted(set(numbers)))


def _seed_range(spread: Spread) -> str:
    return "" if spread.sd is None else f" (networks differ by an sd of {spread.sd:z.4f})"


def _more_items(sweeps: Sequence[Sweep]) -> list[str]:
    """Whether more items help. The paper's entities have five, so this needs a larger test."""
    points = next(sweep.points for sweep in sweeps if sweep.knob.name == "top_k")
    by_value = {point.value: point for point in points}
    five, all_of_them = (
        by_value[KNOBS["top_k"].default].raw.spreads,
        by_value[MANY_ITEMS].raw.spreads,
    )
    if not five or not all_of_them:
        return []
    gain = all_of_them["accuracy"].mean - five["accuracy"].mean
    return [
        f"Where companies do have {MANY_ITEMS} items, all of them instead of the best five change "
        f"paper mode's accuracy by {gain:+z.4f} and its ECE by "
        f"{all_of_them['ece'].mean - five['ece'].mean:+z.4f}. The paper's companies have five "
        "items each: its rows for 10 and 20 can only repeat the one for 5."
    ]


def _against_robust(plan: ExperimentPlan, results: ResultReader) -> list[str]:
    """The best setting of paper mode in hindsight against robust mode's default."""
    ours = results.runs(robust_default(plan))
    settings = {
        f"{knob.symbol} = {value:g}": results.runs(paper_runs(plan, {knob.name: value}))
        for knob in KNOBS.values()
        if knob.name != "top_k"
        for value in knob.values
    }
    raw = {name: [without_temperature(run) for run in runs] for name, runs in settings.items()}
    ways = (("as it comes", raw), ("with a fitted temperature", settings))
    return [sentence for words, runs in ways if (sentence := _hindsight(ours, words, runs))]


def _hindsight(
    ours: Sequence[Predictions], words: str, runs: Mapping[str, Sequence[Predictions]]
) -> str | None:
    found = [one for one in compare(ours, runs) if one.difference is not None]
    if not found:
        return None
    best = max(found, key=_lead)
    assert best.difference is not None  # filtered above
    change = -best.difference.mean
    verdict = f"{abs(change):z.4f} {'above' if change >= 0 else 'below'} robust mode's"
    return (
        f"The best of paper mode's settings of M, T and α {words}, {best.name}, chosen in "
        f"hindsight, has an NLL {verdict} on the same networks and companies (95 % interval "
        f"{-best.difference.high:+z.4f} to {-best.difference.low:+z.4f}): "
        f"{_winner(best)}."
    )


def _lead(one: Comparison) -> float:
    return -math.inf if one.difference is None else one.difference.mean


def _winner(best: Comparison) -> str:
    assert best.difference is not None
    if best.difference.high < 0:
        return "robust mode wins"
    return "paper mode wins" if best.difference.low > 0 else "nobody wins beyond chance"


@dataclass(frozen=True)
class PaperKnobsStudy:
    name: str = "paper_knobs"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        found = [
            cell
            for knob in KNOBS.values()
            for value in knob.values
            for cell in paper_runs(plan, {knob.name: value})
        ]
        for knob in KNOBS.values():
            for value in knob.values:
                for sampler in robust_ways(knob):
                    found += robust_runs(plan, knob, value, sampler)
        found += robust_default(plan)
        return list(dict.fromkeys(found))

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        sweeps = [make_sweep(plan, knob, results) for knob in KNOBS.values()]
        return StudyResult(
            self.name,
            "The paper's knobs, one at a time",
            "How do the number of samples, the temperature, α and top_k affect paper mode, and is "
            "the effect larger than that of another seed?",
            tuple(findings(plan, sweeps, results)),
            (
                *(paper_table(plan, sweep) for sweep in sweeps),
                *(robust_table(plan, sweep) for sweep in sweeps if sweep.knob.name != "alpha"),
            ),
            tuple(knob_figure(plan, sweep, measure) for sweep in sweeps for measure in FIGURES),
        )
