"""What taking parts out of robust mode did, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lpf.experiments.plan import Plan
from lpf.experiments.studies.ablations.parts import (
    INTEGRATORS,
    PARTS,
    PLACES,
    TELLING,
    UNEQUAL_PLACES,
    Change,
    Place,
    Variant,
    default_size,
    ensembles,
)

Changes = Mapping[str, Mapping[str, Change | None]]  # by place and variant


def ablation_findings(plan: Plan, changes: Changes) -> list[str]:
    sentences = [_integral(changes)]
    sentences += [_part(name, PARTS[name], changes) for name in PARTS]
    sentences += _networks(plan, changes)
    return [*sentences, *_unequal(changes)]


def _integral(changes: Changes) -> str:
    """Said plainly: the paper's central step is one of the parts."""
    found = [
        (INTEGRATORS[name].title, place, change)
        for place in PLACES
        for name in INTEGRATORS
        if (change := changes[place.name][name]) is not None
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


def _integral_helps(found: Sequence[tuple[str, Place, Change]], reach: str) -> str:
    better = [one for one in found if one[2].verdict == "better"]
    worse = sum(change.verdict == "worse" for *_, change in found)
    named = "; ".join(f"{title}, {place.title}: {change}" for title, place, change in better)
    return (
        f"Integrating over q(z|e) instead of decoding at its mean lowers NLL beyond chance in "
        f"{len(better)} of {len(found)} comparisons ({named}) and raises it in {worse}; "
        f"{reach}."
    )


def _part(name: str, variant: Variant, changes: Changes) -> str:
    """One variant over all places."""
    found = [
        (place, change) for place in PLACES if (change := changes[place.name][name]) is not None
    ]
    if not found:
        return f"{variant.title}: could not be compared."
    told = "; ".join(f"{place.title} {change}" for place, change in found)
    worse, better = (
        sum(change.verdict == verdict for _, change in found) for verdict in ("worse", "better")
    )
    return (
        f"{variant.title}: NLL is worse beyond chance on {worse} and better on {better} of "
        f"{len(found)} tests ({told})."
    )


def _networks(plan: Plan, changes: Changes) -> list[str]:
    sizes = ensembles(plan)
    return [
        f"Against {default_size(plan)} networks: {_lowered(_part(name, variant, changes))}"
        for name, variant in sizes.items()
    ]


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _unequal(changes: Changes) -> list[str]:
    found = [(place, changes[place.name]) for place in UNEQUAL_PLACES]
    return [sentence for place, among in found if (sentence := _divided(place, among))]


def _divided(place: Place, changes: Mapping[str, Change | None]) -> str | None:
    """What dividing by the prior is good for where some values are rarer than others."""
    undivided = changes["undivided"]
    if undivided is None:
        return None
    where = f"Where values have shares of {place.share_words}"
    if place.balanced and abs(undivided.mean) < TELLING:
        return (
            f"{where}, training draws all values equally often, so that the shares it divides by "
            f"are even and leaving that out changes nothing ({undivided})."
        )
    verdict = {
        "worse": "is worth it",
        "better": "does harm",
        "neither": "makes no difference that can be told from chance",
    }[undivided.verdict]
    told = f"{where}, dividing the prior out {verdict}: without it NLL changes by {undivided}"
    return f"{told}, all else fitted anew{_before_fitting(changes)}."


def _before_fitting(changes: Mapping[str, Change | None]) -> str:
    divided, undivided = changes["unfitted"], changes["unfitted_undivided"]
    if divided is None or undivided is None:
        return ""
    return (
        f"; before anything is fitted NLL is {divided.mean:+z.4f} from the default's with the "
        f"prior divided out and {undivided.mean:+z.4f} without"
    )
