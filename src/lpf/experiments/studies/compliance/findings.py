"""What the numbers of compliance say, in sentences."""

from __future__ import annotations

from lpf.experiments.naming import title_of
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book, Runs
from lpf.experiments.studies.tables import comparisons


def main_findings(plan: Plan, large: Runs, book: Book) -> list[str]:
    sentences = (_ours(plan, large, book), _rivals(large, book), _papers_best(large, book))
    return [sentence for sentence in sentences if sentence]


def _ours(plan: Plan, large: Runs, book: Book) -> str:
    begin = f"On {plan.asked:,} new companies the robust ensemble has"
    ours = book.summary(large["lpf_robust"]).spreads
    if not ours:
        return f"{begin} no answers: every run of it crashed."
    return (
        f"{begin} an NLL of "
        f"{ours['nll'].mean:z.4f}, an accuracy of {ours['accuracy'].mean:z.4f} and an ECE of "
        f"{ours['ece'].mean:z.4f}, where a perfectly calibrated predictor would show "
        f"{ours['ece_null'].mean:z.4f}."
    )


def _rivals(large: Runs, book: Book) -> str:
    """Who is better than the ensemble; where nobody is, who comes nearest."""
    found = [
        (one.name, one.difference, one.adjusted)
        for one in comparisons("lpf_robust", large, book)
        if one.difference is not None and one.adjusted is not None
    ]
    if not found:
        return ""
    better = ", ".join(
        f"{title_of(name)} (by {difference.mean:z.4f}, p {p_value:z.3f})"
        for name, difference, p_value in found
        if difference.mean > 0
    )
    if better:
        return f"A lower NLL than the robust ensemble have: {better}."
    name, nearest, p_value = found[0]
    return (
        f"No method has a lower NLL; nearest is {title_of(name)}, {-nearest.mean:z.4f} above (95 % "
        f"interval {-nearest.high:z.4f} to {-nearest.low:z.4f}, corrected p {p_value:z.3f})."
    )


def _papers_best(large: Runs, book: Book) -> str:
    paper = book.summary(large["lpf_paper_best"]).spreads
    if not paper:
        return ""
    return (
        f"The paper's best setting has an ECE of {paper['raw_ece'].mean:z.3f} as published and of "
        f"{paper['ece'].mean:z.3f} once its temperature is fitted; its accuracy is "
        f"{paper['accuracy'].mean:z.4f}."
    )
