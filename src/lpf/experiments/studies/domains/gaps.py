"""How much of the way from the paper's model to a perfect reader is gone, domain by domain."""

from __future__ import annotations

from lpf.experiments.exhibits import Column, Row, Table
from lpf.experiments.naming import title_of
from lpf.experiments.plan import Plan
from lpf.experiments.studies.domains.runs import DomainRuns, finite_mean
from lpf.experiments.studies.domains.tables import notes_of
from lpf.experiments.studies.tables import cell_value, plain_value

GAP = ("lpf_robust", "lpf_paper", "perfect_reader")  # ours, where it begins, where it ends
GAP_COLUMNS = (
    Column("accuracy", "Accuracy", "share", None, 4),
    Column("nll", "NLL", "number", None, 4),
    Column("paper", "Paper mode + T", "number", None, 4),
    Column("perfect", "Perfect reader", "number", None, 4),
    Column("closed", "Gap closed", "share", None, 3),
    Column("ece", "ECE", "share", None, 4),
    Column("ece_null", "ECE if perfect", "share", None, 4),
)


def closed(ours: float | None, paper: float | None, perfect: float | None) -> float | None:
    """The share of the way from the paper's loss to the perfect reader's: 0 is no better than the
    paper's, 1 as good as the reader. None where one of them is not known, or there is no way."""
    if ours is None or paper is None or perfect is None or paper <= perfect:
        return None
    return (paper - ours) / (paper - perfect)


def gap_table(plan: Plan, fixed: DomainRuns) -> Table:
    return Table(
        f"{fixed.study}_gap",
        "The robust ensemble between the paper's model and a perfect reader",
        "A perfect reader knows what the generator meant by every text, but no more.",
        GAP_COLUMNS,
        tuple(_row(domain, fixed) for domain in plan.domains),
    )


def closing(plan: Plan, fixed: DomainRuns) -> str:
    """A sentence; none where a run crashed: means would be of different data sets."""
    if any(one.runs < one.asked for one in map(fixed.summary, GAP)):
        return ""
    whole = _share(fixed)
    by_domain = [_share(fixed, domain) for domain in plan.domains]
    known = [share for share in by_domain if share is not None]
    if whole is None or not known:
        return ""
    return (
        f"The ensemble closes {whole:.0%} of the gap between the paper's model with a fitted "
        f"temperature and a perfect reader; by domain {min(known):.0%} to {max(known):.0%}."
    )


def _share(fixed: DomainRuns, domain: str | None = None) -> float | None:
    ours, paper, perfect = (fixed.nll(method, domain) for method in GAP)
    return closed(ours, paper, perfect)


def _row(domain: str, fixed: DomainRuns) -> Row:
    ours, paper, perfect = found = [fixed.summary(method, domain) for method in GAP]
    cells = (
        cell_value(ours, "accuracy"),
        cell_value(ours, "nll"),
        plain_value(finite_mean(paper, "nll")),
        plain_value(finite_mean(perfect, "nll")),
        plain_value(_share(fixed, domain)),
        cell_value(ours, "ece"),
        plain_value(finite_mean(ours, "ece_null")),
    )
    note = notes_of(zip(map(title_of, GAP), found, strict=True))
    return Row(domain, domain, cells, note=note)
