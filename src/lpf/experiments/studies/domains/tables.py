"""Tables of the domains: all of them together, method against method, and one by one."""

from __future__ import annotations

from collections.abc import Iterable

from lpf.experiments.exhibits import Column, Row, Table, Value
from lpf.experiments.judging.summaries import Summary
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.plan import Plan
from lpf.experiments.printed.tables import PrintedTable, printed_table
from lpf.experiments.studies.domains.runs import DomainRuns, cells_at, data_seeds
from lpf.experiments.studies.tables import (
    cell_value,
    comparison_table,
    counted,
    mean_of_row,
    method_table,
    printed_value,
)

MEASURES = (
    "nll",
    "raw_nll",
    "accuracy",
    "macro_f1",
    "brier",
    "ece",
    "ece_null",
    "ece_p",
    "aurc",
)
# The paper's LPF-Learned: its numbers by domain belong beside this one, not beside the repaired.
PUBLISHED = "lpf_learned_published"


def pooled_table(plan: Plan, runs: DomainRuns) -> Table:
    fixed = runs.place == "fixed"
    entities = plan.asked if fixed else plan.asked // 2
    sets = counted(len(data_seeds(plan, runs.preset)), "data set")
    return method_table(
        f"{runs.study}_{runs.place}",
        f"All domains together, {runs.items}",
        f"Means and sd over {len(plan.domains)} domains with {sets} of 630 training entities each; "
        f"{entities:,} test entities a domain, in wordings that no training saw. A temperature "
        "for everyone, by the number of items where it varies; NLL before T is that of the answers "
        "as they come.",
        runs.by_method,
        MEASURES,
        runs.book,
    )


def against_table(runs: DomainRuns) -> Table:
    suffix = "" if runs.place == "fixed" else f"_{runs.place}"
    return comparison_table(
        f"{runs.study}_against{suffix}",
        "Paired by entity and data set; below 0 the ensemble is better. Intervals of 95 % over "
        "data sets and entities together, p-values corrected for the number of methods.",
        "lpf_robust",
        runs.by_method,
        runs.book,
        f", {runs.items}",
    )


def nll_table(plan: Plan, fixed: DomainRuns) -> Table:
    columns = tuple(Column(domain, domain, "number", "lower", 4) for domain in plan.domains)
    rows = [_nll_row(plan, method, fixed) for method in fixed.by_method]
    rows.sort(key=lambda row: (row.standing == "reference", *mean_of_row(row)))
    return Table(
        f"{fixed.study}_nll",
        "NLL by domain",
        "Mean and sd over data sets, five items an entity.",
        columns,
        tuple(rows),
    )


def cross_domain_table(plan: Plan, own: DomainRuns) -> Table:
    """On the 135 test entities of each data set, as the paper does; LPF-Learned as published where
    it was run."""
    beside, published = printed_table("cross_domain"), _published(plan, own)
    titles = {method: title_of(method) for method in (*own.by_method, PUBLISHED)}
    if published is not None:
        titles[PUBLISHED] += ", on new entities"
    run = (
        "not run here"
        if published is None
        else f"run on the first data set of each domain alone and asked about {plan.asked:,} new "
        "entities, in wordings that no training saw"
    )
    return Table(
        "cross_domain",
        "Accuracy on each data set's own 135 test entities",
        "Mean and sd over data sets. The paper has one data set a domain and reports the best "
        f"of seven seeds by its test accuracy. {title_of(PUBLISHED)}, was {run}.",
        tuple(Column(name, title, "share", "higher", 4) for name, title in titles.items()),
        tuple(_cross_domain_row(domain, own, published, beside) for domain in plan.domains),
    )


def far_table(plan: Plan, first: DomainRuns) -> Table:
    return method_table(
        f"{first.study}_far",
        "Those that are slow to train, on the first data set of each domain",
        f"{len(plan.domains)} runs a method, five items an entity. Training on one core.",
        first.by_method,
        (*MEASURES, "fit_seconds"),
        first.book,
    )


def notes_of(summaries: Iterable[tuple[str, Summary]]) -> str | None:
    """Each note after those it is said of; what is said of answers before their temperature has
    no place in these tables."""
    about: dict[str, list[str]] = {}
    for name, summary in summaries:
        for note in summary.notes:
            if not note.startswith("raw_"):
                about.setdefault(note, []).append(name)
    return "; ".join(f"{', '.join(names)}: {note}" for note, names in about.items()) or None


def _nll_row(plan: Plan, method: str, fixed: DomainRuns) -> Row:
    found = {domain: fixed.summary(method, domain) for domain in plan.domains}
    shown = tuple(cell_value(one, "nll") for one in found.values())
    return Row(method, title_of(method), shown, standing_of(method), notes_of(found.items()))


def _published(plan: Plan, own: DomainRuns) -> DomainRuns | None:
    """Its runs, which are of new entities; None where there are none."""
    if PUBLISHED not in plan.far_methods:
        return None
    cells = cells_at(plan, own.preset, "fixed", [PUBLISHED], first=True)
    return DomainRuns(own.preset, "fixed", cells, own.book)


def _cross_domain_row(
    domain: str, own: DomainRuns, published: DomainRuns | None, beside: PrintedTable
) -> Row:
    found = {method: own.summary(method, domain) for method in own.by_method}
    if published is not None:
        found[PUBLISHED] = published.summary(PUBLISHED, domain)
    methods = (*own.by_method, PUBLISHED)
    cells = tuple(_beside(beside, domain, method, found.get(method)) for method in methods)
    note = notes_of((title_of(method), one) for method, one in found.items())
    return Row(domain, domain, cells, note=note)


def _beside(beside: PrintedTable, domain: str, method: str, summary: Summary | None) -> Value:
    paper, doubt = printed_value(beside, domain, method)
    spread = None if summary is None else summary.spreads.get("accuracy")
    return Value(None, paper=paper, doubt=doubt) if spread is None else spread.value(paper, doubt)
