"""What the domains say of the robust ensemble, in sentences."""

from __future__ import annotations

from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.plan import Plan
from lpf.experiments.studies.domains.gaps import closing
from lpf.experiments.studies.domains.runs import DomainRuns, finite_mean
from lpf.experiments.studies.tables import comparisons
from lpf.metrics import Difference


def domain_findings(plan: Plan, fixed: DomainRuns, varying: DomainRuns) -> list[str]:
    sentences = (
        _standing(f"On the preset {fixed.preset}, with five items an entity,", fixed),
        _standing(f"On the preset {varying.preset}, with one to five items,", varying),
        _as_they_come(fixed),
        closing(plan, fixed),
        _calibrated(fixed),
    )
    return [sentence for sentence in sentences if sentence]


def _standing(where: str, runs: DomainRuns) -> str:
    ours = runs.nll("lpf_robust")
    if ours is None:
        return f"{where} the robust ensemble has no NLL that can be compared."
    begin = f"{where} the robust ensemble has an NLL of {ours:z.4f}"
    found = [
        (one.name, one.difference)
        for one in comparisons("lpf_robust", runs.by_method, runs.book)
        if one.difference is not None
    ]
    if not found:
        return f"{begin}; no other method could be compared with it."
    name, nearest = found[0]
    return (
        f"{begin}; the next method, {title_of(name)}, is {abs(nearest.mean):z.4f} "
        f"{_side(nearest)} (95 % interval {-nearest.high:z.4f} to {-nearest.low:z.4f})."
    )


def _side(difference: Difference) -> str:
    """Where the other method lies; ``difference`` is ours less its."""
    if difference.mean <= 0:
        return "above"
    return "below: it is better" if difference.low > 0 else "below, which may be chance"


def _as_they_come(runs: DomainRuns) -> str:
    """Which methods the temperature hurts: with few validation entities it may."""
    both = {
        method: (finite_mean(runs.summary(method), "raw_nll"), runs.nll(method))
        for method in runs.by_method
        if standing_of(method) != "reference"
    }
    hurt = {name: (raw, at) for name, (raw, at) in both.items() if raw and at and raw < at}
    ours = runs.nll("lpf_robust")
    if not hurt or ours is None:
        return ""
    told = ", ".join(
        f"{title_of(name)} ({raw:z.4f} for {at:z.4f})" for name, (raw, at) in sorted(hurt.items())
    )
    below = [title_of(name) for name, (raw, _) in hurt.items() if raw < ours]
    return (
        f"With five items, without the fitted temperature a lower NLL have: {told}. Below the "
        f"robust ensemble then: {', '.join(below) or 'none'}."
    )


def _calibrated(fixed: DomainRuns) -> str:
    cells = fixed.by_method["lpf_robust"]
    found = [fixed.book.summary([cell]).spreads.get("ece_p") for cell in cells]
    p_values = [one.mean for one in found if one is not None]
    if not p_values:
        return ""
    return (
        f"Its ECE can be told from that of a perfectly calibrated predictor in "
        f"{sum(p_value < 0.05 for p_value in p_values)} of {len(p_values)} data sets (at 5 %)."
    )
