"""What to collect next, in plain English."""

from __future__ import annotations

import math

from lpf.explain.kinds import ANY
from lpf.explain.next_evidence import FACT, NextEvidence, Offer
from lpf.explain.weight_reasons import joined

NOTHING_LEFT = 0.005  # bits; less doubt than this is shown as none
CLOSE = 0.001  # bits
DISTINCT = 2.0  # standard errors by which offers must differ
MOST_NAMED = 3


def next_sentences(found: NextEvidence) -> list[str]:
    """The verdict first."""
    lines = [_verdict(found)]
    if found.plan.steps > 1 and found.steps:
        lines.append(_plan(found))
    return [*lines, *filter(None, (_dearer(found), _about_as_good(found)))]


def described(kind: str) -> str:
    """What a sentence calls one more observation of a kind."""
    what, _, name = kind.partition(":")
    if kind == ANY:
        return "one more item of any kind"
    if kind.startswith(FACT):
        return f"knowing {name}"
    if what == "source":
        return f"one more item from {name}"
    return f"one more item of {what} {name}"


def _verdict(found: NextEvidence) -> str:
    if found.is_enough:
        return (
            f"Nothing needs to be collected: {found.value} has {_share(found.confidence)} already, "
            f"and {_share(found.plan.enough or 0.0)} are enough."
        )
    if found.doubt < NOTHING_LEFT:
        return f"There is no doubt left to remove: {found.value} is practically certain."
    if not found.steps:
        best = max(found.offers, key=lambda one: one.bits)
        return (
            f"Nothing on offer is worth collecting: {described(best.kind)}, the best, is expected "
            f"to remove {best.bits:.3f} of the {found.doubt:.2f} bits of doubt, less than "
            f"{found.plan.least:g}."
        )
    best = found.steps[0].offer
    return (
        f"{_capital(described(best.kind))} is expected to remove {_bits(best.bits)} of the "
        f"{_bits(found.doubt)} bits of doubt; there is a {_share(best.changes)} chance that it "
        "changes the answer."
    )


def _plan(found: NextEvidence) -> str:
    steps, enough = found.steps, found.plan.enough
    last = steps[-1]
    count = "this step" if len(steps) == 1 else f"these {len(steps)} steps"
    sentence = (
        f"After {count} the most probable value is expected to have "
        f"{_share(last.offer.confidence)}, and {_bits(last.bits)} of the {_bits(found.doubt)} bits "
        "of doubt to be gone"
    )
    if enough is not None and last.offer.confidence < enough:
        sentence += f", which is short of {_share(enough)}"
    if len(steps) < found.plan.steps and (enough is None or last.offer.confidence < enough):
        sentence += "; nothing after that is worth collecting"
    return f"{sentence}."


def _dearer(found: NextEvidence) -> str:
    """The offer with the most bits, if it is not the best for its cost."""
    if not found.steps:
        return ""
    best, most = found.steps[0].offer, max(found.offers, key=lambda one: one.bits)
    if most.kind == best.kind or most.bits - best.bits < CLOSE:
        return ""
    return (
        f"{_capital(described(most.kind))} would remove more, {_bits(most.bits)} bits, but costs "
        f"{most.cost:g} instead of {best.cost:g}."
    )


def _about_as_good(found: NextEvidence) -> str:
    """Offers that the stored items are too few to tell from the best one."""
    if not found.steps:
        return ""
    best, *others = found.offers
    near = [
        one.kind
        for one in others
        if one.cost == best.cost
        and best.bits - one.bits < DISTINCT * math.hypot(best.error, one.error)
    ]
    if not near:
        return ""
    return f"About as good, as far as the stored items tell: {joined(near, MOST_NAMED)}."


def basis(offer: Offer) -> str:
    """What an offer's numbers are based on."""
    if offer.stored is None or offer.drawn is None:
        return "the circuit"
    if offer.drawn < offer.stored:
        return f"{offer.drawn:,} of {offer.stored:,} items"
    return f"{offer.stored:,} items"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _bits(bits: float) -> str:
    return f"{bits:.2f}" if bits >= 0.1 else f"{bits:.3f}"


def _share(share: float) -> str:
    """A share that is not 0 or 1 is not shown as such."""
    if 0.0 < share < 0.005:
        return "less than 1 %"
    if 0.995 <= share < 1.0:
        return "more than 99 %"
    return f"{100 * share:.0f} %"
