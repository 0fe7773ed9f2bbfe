"""How sure an answer is, from the answers about held-out entities that the model brings along.

What is known of held-out entities holds for answers from evidence, made as they were. An answer
from a known fact is as sure as the fact; one without evidence of its own has a set of all values
and is deferred.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lpf.metrics.deferral import RISK_CONFIDENCE, fewest_without_error
from lpf.metrics.prediction_sets import never_empty, sets, surprise
from lpf.model.held_out import HeldOutAnswers
from lpf.results import QueryResult, unfamiliar_places
from lpf.sureness import Decision, PredictionSet, Reason, TrackRecord, by_probability
from lpf.types import FloatArray

# From this conflict on, a deferral names contradiction as its reason.
CONTRADICTING = 0.15
ROUNDING = 1e-9


def judge(result: QueryResult, held: HeldOutAnswers | None) -> None:
    """Adds the prediction set and the decision that the options ask for, and the track record of
    answers as sure. ``held`` is None for a model that has no held-out answers: then only a known
    fact's answer has a set."""
    options = result.options
    if options.coverage is not None:
        result.prediction_set = _prediction_set(
            result, held, options.coverage, options.coverage_by_value
        )
    if options.max_risk is not None:
        result.decision = _decision(result, held, options.max_risk)
    if held is not None and _is_from_evidence(result) and options.mode == "robust":
        result.track_record = _track_record(result, held)


def _is_from_evidence(result: QueryResult) -> bool:
    return result.source == "inference" and result.method == "spn"


def _prediction_set(
    result: QueryResult, held: HeldOutAnswers | None, coverage: float, by_value: bool
) -> PredictionSet:
    if result.source == "canonical":
        values = by_probability(result.distribution, coverage)
        return PredictionSet(coverage, by_value, values, None)
    if held is None or not _is_from_evidence(result):
        return PredictionSet(coverage, by_value, result.values, None)
    cutoffs = held.cutoffs(coverage, by_value)
    values = values_of_set(result.values, np.array(result.probabilities), cutoffs.tolist())
    listed = [number if np.isfinite(number) else None for number in cutoffs.tolist()]
    by_name = dict(zip(result.values, listed, strict=True))
    return PredictionSet(coverage, by_value, values, by_name)


def values_of_set(
    values: tuple[str, ...], probabilities: FloatArray, cutoffs: list[float]
) -> tuple[str, ...]:
    """The values whose surprise is at most their cutoff; the most probable one, if there is
    none."""
    surprises = surprise(probabilities)[None]
    (members,) = never_empty(sets(surprises, np.array(cutoffs)), surprises)
    return tuple(value for value, inside in zip(values, members.tolist(), strict=True) if inside)


def _decision(result: QueryResult, held: HeldOutAnswers | None, max_risk: float) -> Decision:
    if result.source == "canonical":
        assert result.confidence is not None  # a fact has a value
        sure = 1.0 - result.confidence <= max_risk + ROUNDING
        reasons: tuple[Reason, ...] = () if sure else ("uncertain_fact",)
        return Decision(max_risk, 1.0, sure, reasons=reasons)
    if held is None or not _is_from_evidence(result):
        return Decision(max_risk, RISK_CONFIDENCE, False, reasons=tuple(_reasons(result, None)))
    cutoff = held.deferral_cutoff(max_risk)
    if cutoff is None:
        return _out_of_reach(held, max_risk)
    top = int(np.argmax(result.probabilities))
    answered = is_sure_enough(np.array(result.probabilities), cutoff) and bool(held.seen[top])
    return Decision(
        max_risk,
        RISK_CONFIDENCE,
        answered,
        cutoff=cutoff if np.isfinite(cutoff) else None,
        reasons=() if answered else tuple(_reasons(result, held)),
        answered_share=held.answered(cutoff),
    )


def is_sure_enough(probabilities: FloatArray, cutoff: float) -> bool:
    """True if the most probable value is surer than the cutoff asks."""
    return float(surprise(probabilities).min()) < cutoff


def _out_of_reach(held: HeldOutAnswers, max_risk: float) -> Decision:
    """What can be reached instead, and what would help."""
    needed, smallest = fewest_without_error(max_risk), held.smallest_risk
    entities = "held-out entities"
    if held.independent < len(held):
        entities = f"groups of {entities}"
    if held.independent < needed:
        advice = (
            f"at least {needed:,} {entities} answered right are needed to show it, and the model "
            f"has {held.independent:,}: label more entities and train again"
        )
    else:
        advice = (
            f"of {held.independent:,} {entities}, too many of the surest answers were wrong: more "
            "evidence, corrected labels or more training entities would help"
        )
    if smallest is not None:
        advice += f"; --max-risk {smallest:g} can be kept"
    return Decision(
        max_risk,
        RISK_CONFIDENCE,
        False,
        reachable=False,
        reasons=("risk_out_of_reach",),
        answered_share=0.0,
        smallest_risk=smallest,
        help=advice,
    )


def _reasons(result: QueryResult, held: HeldOutAnswers | None) -> Iterator[Reason]:
    """Why this answer is not sure enough."""
    found = False
    used, left_out = result.evidence, result.left_out
    damaged = 0 if left_out is None else left_out.damaged
    if used is None:
        if damaged:
            yield "unreadable_text"
        yield "too_little_evidence"
        return
    blank = 0 if used.wordless is None else int(used.wordless.sum())
    if 2 * (blank + damaged) >= len(used) + damaged:
        found = True
        yield "unreadable_text"
    if 2 * (len(unfamiliar_places(used)) - blank) >= len(used):
        found = True
        yield "far_from_training"
    if held is not None and not held.seen[int(np.argmax(result.probabilities))]:
        found = True
        yield "value_never_seen"
    conflict = result.conflict
    if conflict is not None and conflict >= CONTRADICTING and len(used) > 1:
        found = True
        yield "contradicting_evidence"
    if not found:
        yield "too_little_evidence"


def _track_record(result: QueryResult, held: HeldOutAnswers) -> TrackRecord:
    right, nearest = held.nearest(float(surprise(np.array(result.probabilities)).min()))
    used = result.evidence
    unlike = used is not None and 2 * len(unfamiliar_places(used)) >= len(used) > 0
    return TrackRecord(
        right, nearest, len(held), held.kind == "apart", unlike, tuple(_caveats(result, held))
    )


def _caveats(result: QueryResult, held: HeldOutAnswers) -> Iterator[str]:
    """How this answer differs from those about held-out entities."""
    if held.has_few_groups:
        yield f"they are of only {held.group_count} groups, so it may not hold for another group"
    also = [name for name, part in (("known facts", result.facts), ("related evidence",
            result.related)) if part]  # fmt: skip
    if also:
        yield f"they were answered without {' and '.join(also)}"
    changed = other_settings(result)
    if changed:
        yield f"they were answered with other settings ({', '.join(changed)})"


def other_settings(result: QueryResult) -> list[str]:
    """Options of the question that change the answer, and that held-out entities did not have."""
    options = result.options
    names = ("temperature", "sampler", "top_k", "query_text")
    found = [name for name in names if getattr(options, name) is not None]
    if options.without_claim_prior:
        found.append("without_claim_prior")
    if result.threshold == "given":
        found.append("min_credibility")
    return found
