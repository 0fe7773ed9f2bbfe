"""The verdict: whether a model's probabilities can still be trusted, with one sentence of reason.

- *not trusted*: outcomes refute the promise, by a test with a chance of false alarms of 5 % in all.
- *watch*: something has changed that may make answers worse, or outcomes begin to disagree.
- *unknown*: nothing of this, but too few outcomes are known.
- *trusted*: nothing of this, and enough outcomes are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from lpf.monitor.trust_file import STATES
from lpf.sureness import Trust

if TYPE_CHECKING:
    from lpf.monitor.monitoring import PredicateReport

FEWEST_OUTCOMES: Final = 30
SUSPICIOUS: Final = 0.25  # of the capital that refutes the promise: a reason to watch
NAMES_SHOWN = 3


def judged(report: PredicateReport, at: int) -> Trust:
    """The verdict on the answers to one predicate."""
    stated = report.stated_bet
    if stated is not None and stated.alarm is not None:
        return Trust("not trusted", _worse(report), at)
    reasons = list(_to_watch(report))
    if reasons:
        return Trust("watch", "; ".join(reasons), at)
    if report.outcomes < FEWEST_OUTCOMES:
        return Trust("unknown", _too_few(report), at)
    return Trust(
        "trusted",
        f"{report.outcomes:,} outcomes are no more surprising than the answers to "
        f"{report.predicate} promised",
        at,
    )


def worst(verdicts: Sequence[Trust]) -> Trust:
    """The worst of the verdicts on several predicates, the first of those."""
    return max(verdicts, key=lambda one: STATES.index(one.state))


def _worse(report: PredicateReport) -> str:
    stated = report.stated_bet
    assert stated is not None and stated.alarm is not None  # noqa: PT018
    accuracy, nll = report.scores[0], report.scores[1]
    return (
        f"answers to {report.predicate} are worse than they say: of {report.outcomes:,} outcomes "
        f"{_percent(accuracy.now.mean)} were as answered, {_percent(accuracy.stated)} were "
        f"promised, and the NLL is {nll.now.mean:.2f} instead of {nll.stated:.2f}"
    )


def _to_watch(report: PredicateReport) -> Iterator[str]:
    stated, before = report.stated_bet, report.held_out_bet
    if stated is not None and stated.now >= SUSPICIOUS * stated.needed:
        yield f"outcomes of {report.predicate} begin to disagree with the stated probabilities"
    if before is not None and before.alarm is not None:
        yield f"answers to {report.predicate} are worse than those about held-out entities"
    low = [one for one in report.coverage if one.is_low]
    if low:
        one = low[-1]
        yield (
            f"{_percent(one.promised)} prediction sets of {report.predicate} had the true value in "
            f"only {_percent(one.share)} of {one.outcomes:,} cases"
        )
    if report.texts is not None and report.texts.is_found:
        yield (
            f"{_percent(report.texts.share, 1)} of the texts about {report.predicate} are unlike "
            f"the training texts, {_percent(report.texts.promised)} were expected"
        )
    if report.answered is not None and report.answered.is_found:
        yield (
            f"the mix of answers to {report.predicate} has changed: "
            f"{_percent(report.answered.distance)} of them have other values than those about "
            "held-out entities"
        )
    suspects = [one for one in report.sources if one.findings]
    if suspects:
        names = ", ".join(
            "items without a source" if one.source is None else one.source[:80]
            for one in suspects[:NAMES_SHOWN]
        )
        more = len(suspects) - NAMES_SHOWN
        rest = f" and {more:,} more" if more > 0 else ""
        yield f"sources have changed: {names}{rest} ({suspects[0].findings[0]})"


def _too_few(report: PredicateReport) -> str:
    if not report.entities:
        return f"no answer to {report.predicate} by this model from evidence is recorded"
    if not report.outcomes:
        return (
            f"no outcome of an answer to {report.predicate} is known yet; {FEWEST_OUTCOMES} are "
            "needed"
        )
    return (
        f"too few outcomes of answers to {report.predicate} are known yet: {report.outcomes:,}, "
        f"and {FEWEST_OUTCOMES} are needed"
    )


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"
