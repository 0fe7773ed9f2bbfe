"""Few training entities: how many does each method need?"""

from __future__ import annotations

from lpf.evaluation import CHOSEN, Cell, Comparison, title_of
from lpf_paper.exhibits import Figure, Table
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.robustness import SIGNIFICANT, compliance_train_spec, data_sets, untouched
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.study_figures import Steps, step_figure, step_table
from lpf_paper.studies.study_tables import comparisons

ALL = 630  # training entities of a data set
VALIDATION = 135
# With few labels, training may choose a linear model (OURS); NETWORKS are shown for comparison.
OURS, NETWORKS = CHOSEN, "lpf_robust"
METHODS = (
    OURS,
    NETWORKS,
    "vae_only_ensemble",
    "deterministic_ensemble_average",
    "logistic_mean",
    "deep_sets",
    "lpf_learned",
)


def few_cells(plan: ExperimentPlan) -> list[Cell]:
    return [cell for places in few_steps(plan).runs.values() for cells in places for cell in cells]


def few_steps(plan: ExperimentPlan) -> Steps:
    runs = {
        method: tuple(_cells(plan, method, entities) for entities in plan.few) for method in METHODS
    }
    words = tuple(f"{entities:,}" for entities in plan.few)
    return Steps(tuple(float(entities) for entities in plan.few), words, runs)


def few_tables(plan: ExperimentPlan, results: ResultReader) -> list[Table]:
    steps, caption = few_steps(plan), _how(plan)
    return [
        step_table("few_nll", "NLL by training entities", caption, steps, "nll", results),
        step_table(
            "few_accuracy", "Accuracy by training entities", caption, steps, "accuracy", results
        ),
    ]


def few_figures(plan: ExperimentPlan, results: ResultReader) -> list[Figure]:
    steps = few_steps(plan)
    return [
        step_figure(
            f"few_{measure}",
            f"{title} by training entities",
            _how(plan),
            "Training entities",
            steps,
            measure,
            results,
            log_x=True,
        )
        for measure, title in (("nll", "NLL"), ("accuracy", "Accuracy"))
    ]


def few_findings(plan: ExperimentPlan, results: ResultReader) -> list[str]:
    """One sentence per end of the range, and from how many entities on LPF is not beaten."""
    steps = few_steps(plan)
    ends = dict.fromkeys((0, len(steps.x) - 1))
    return [*(_at(steps, place, results) for place in ends), _unbeaten(steps, results)]


def _cells(plan: ExperimentPlan, method: str, entities: int) -> tuple[Cell, ...]:
    """With all training entities, the cells are those of other studies."""
    bound = entities if entities < ALL else None
    return tuple(
        Cell(compliance_train_spec(plan, seed, bound), untouched(plan), method)
        for seed in plan.study_seeds
    )


def _how(plan: ExperimentPlan) -> str:
    return (
        f"Compliance, {plan.ablation_entities:,} new companies, mean over {data_sets(plan)}. "
        "Training entities are drawn so that each value keeps its share. The "
        f"{VALIDATION} validation entities, used for early stopping and to fit temperatures, "
        "are always there, so there are more labels in all. All methods are trained in the same "
        f'way as with many; "{title_of(OURS)}" is the model that training saves, networks or a '
        "linear model."
    )


def _at(steps: Steps, place: int, results: ResultReader) -> str:
    begin = f"With {steps.words[place]} training entities"
    found = [one for one in _compared(steps, place, results) if one.difference is not None]
    if not found:
        return f"{begin} nothing can be compared: answers are missing."
    ours = steps.mean(OURS, "nll", place, results)
    better = [one for one in found if one.difference is not None and one.difference.mean > 0]
    nearest = found[0]
    assert nearest.difference is not None  # filtered above
    mean, low, high = nearest.difference.mean, nearest.difference.low, nearest.difference.high
    proven = nearest.adjusted is not None and nearest.adjusted < SIGNIFICANT
    doubt = "" if proven else ", which may be chance"
    if better:
        return (
            f"{begin} {title_of(nearest.name)} has a lower NLL than LPF's {ours:z.4f}, "
            f"by {mean:z.4f} (95 % interval {low:z.4f} to {high:z.4f}){doubt}."
        )
    return (
        f"{begin} LPF has the lowest NLL, {ours:z.4f}; next is "
        f"{title_of(nearest.name)}, {-mean:z.4f} above (95 % interval {-high:z.4f} to "
        f"{-low:z.4f}){doubt}."
    )


def _compared(steps: Steps, place: int, results: ResultReader) -> list[Comparison]:
    """Without LPF's own networks."""
    runs = {method: cells for method, cells in steps.at(place).items() if method != NETWORKS}
    return comparisons(OURS, runs, results)


def _unbeaten(steps: Steps, results: ResultReader) -> str:
    beaten = [place for place in range(len(steps.x)) if _is_beaten(steps, place, results)]
    if not beaten:
        return "At no number of training entities is LPF beaten by more than chance."
    if beaten[-1] == len(steps.x) - 1:
        return "LPF is beaten by more than chance with the most entities, too."
    first = steps.words[beaten[-1] + 1]
    return f"From {first} on LPF is not beaten by more than chance."


def _is_beaten(steps: Steps, place: int, results: ResultReader) -> bool:
    return any(
        one.difference is not None and one.difference.mean > 0
        for one in _compared(steps, place, results)
        if one.adjusted is not None and one.adjusted < SIGNIFICANT
    )
