"""How sure an answer is, in words: if it was deferred, which values are possible, and how far it
may be relied on. The same lines on the terminal, in case files and of records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from lpf.results import QueryResult
from lpf.sureness import Decision, PredictionSet, TrackRecord


def how_sure(result: QueryResult) -> list[str]:
    """Lines about a live answer, without a full stop; none if the model cannot tell."""
    lines = _lines(
        result.decision,
        result.prediction_set,
        result.track_record,
        result.source,
        result.predicate,
    )
    trust = result.trust
    warning = [] if trust is None or trust.warning is None else [trust.warning]
    return [*warning, *lines]


def how_sure_then(record: Mapping[str, Any]) -> list[str]:
    """Lines about a recorded answer. Records hold set and decision, and not the held-out answers
    that they follow from."""
    decision, chosen = record.get("decision"), record.get("prediction_set")
    return list(
        _lines(
            None if decision is None else Decision.from_dict(decision),
            None if chosen is None else PredictionSet.from_dict(chosen),
            None,
            record["query_type"],
            record["predicate"],
        )
    )


def _lines(
    decision: Decision | None,
    chosen: PredictionSet | None,
    known: TrackRecord | None,
    source: str,
    predicate: str,
) -> Iterator[str]:
    if decision is not None:
        if known is not None and known.unlike and decision.answered:
            yield known.sentence
        yield "; ".join([_decided(decision, known), *([] if known is None else known.caveats)])
        if decision.help is not None:
            yield f"what would help: {decision.help}"
    elif known is not None and (known.unlike or not known.overtaken):
        yield known.sentence
    if chosen is not None:
        meaning = _meaning(chosen, known, source, predicate)
        yield f"{_share(chosen.coverage)} set: {', '.join(chosen.values)} ({meaning})"


def _decided(decision: Decision, known: TrackRecord | None) -> str:
    risk = f"a risk of at most {_share(decision.max_risk)}"
    if not decision.answered:
        return f"deferred: {decision.why} (asked for {risk})"
    if decision.answered_share is None:
        return f"answered at {risk}: the known fact is certain enough"
    about = "" if known is None or known.apart else "about "
    return (
        f"answered at {risk}, with {about}{_share(decision.confidence)} confidence; "
        f"{_share(decision.answered_share)} of held-out entities get an answer"
    )


def _meaning(chosen: PredictionSet, known: TrackRecord | None, source: str, predicate: str) -> str:
    """What the prediction set promises, and on what it is based."""
    if chosen.cutoffs is None:
        if source == "canonical":
            return "by the confidence of the known fact"
        return f"all values: there is no evidence about {predicate} itself"
    each = " of each value" if chosen.by_value else ""
    if all(one is None for one in chosen.cutoffs.values()):
        least = math.ceil(chosen.coverage / (1.0 - chosen.coverage) - 1e-9)
        number = "the" if known is None else f"{known.entities:,}"
        return (
            f"{number} held-out entities are too few to leave any value out; at least "
            f"{least}{each} are needed, each of a group of its own"
        )
    least_share = "at least" if known is not None and known.apart else "about"
    held_out = "held-out ones" if known is None else f"{known.entities:,} held-out ones"
    return (
        f"has the true value for {least_share} {_share(chosen.coverage)} of entities{each} like "
        f"the {held_out}"
    )


def _share(number: float) -> str:
    """0.995 as 99.5 %."""
    return f"{100 * number:.3g} %"
