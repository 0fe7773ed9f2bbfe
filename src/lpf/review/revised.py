"""The answer as it would have been with a reviewer's judgements of its items.

It is computed from the record of the answer alone, as ``lpf explain`` leaves items out: neither the
model nor the texts are needed, so the revised answer of a review can be replayed for as long as the
ledger exists. In robust mode an item that is a duplicate joins the other's group of copies; paper
mode and averages have no such groups, so there duplicates share the weight of one item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lpf.errors import ReviewError
from lpf.explain.of_answers import NO_MODEL, recombination_of, recorded_answer
from lpf.explain.recombination import AveragedItems, PaperItems, RobustItems
from lpf.items import GroupArray
from lpf.orchestrator.replay import Replay
from lpf.review.records import Judgement, Review
from lpf.types import FloatArray


def check_judgements(answer: Mapping[str, Any], judgements: Sequence[Judgement]) -> None:
    """ReviewError for an item that the answer was not computed from, or that is judged twice."""
    ids = [name for name, _ in answer.get("evidence_chain", ())]
    known, seen = set(ids), set()
    for one in judgements:
        for name in (one.item, one.of):
            if name is not None and name not in known:
                raise ReviewError(
                    f"{answer['record_id']} was not computed from {name!r}; its items are "
                    f"{ids[:20]}. Nothing was recorded.",
                    field="item",
                )
        if (one.item, one.kind) in seen:
            raise ReviewError(
                f"{one.item!r} is judged twice. Nothing was recorded.", field=one.kind
            )
        seen.add((one.item, one.kind))
    for name in {one.item for one in judgements if one.kind == "exclude"}:
        others = [one for one in judgements if name in (one.item, one.of)]
        if len(others) > 1:
            raise ReviewError(
                f"{name!r} is excluded and judged otherwise as well. Nothing was recorded.",
                field="exclude",
            )


def revised_answer(
    answer: Mapping[str, Any], judgements: Sequence[Judgement]
) -> tuple[dict[str, float] | None, tuple[str, ...]]:
    """The probabilities by value; None, and a note that says why, if they cannot be computed from
    the record. ``answer`` are its fields with all blobs filled in."""
    if not judgements:
        return None, ()
    check_judgements(answer, judgements)
    found = recorded_answer(answer)
    if found.method == "learned" or found.items is None:
        return None, (f"there is no revised answer: {NO_MODEL}",)
    probabilities = _revised(recombination_of(found, found.items), found.ids, judgements)
    return dict(zip(found.values, probabilities.tolist(), strict=True)), ()


def replay_review(review: Review, answer: Mapping[str, Any]) -> Replay:
    """Compute the revised answer of a review again, from the record of the answer."""
    if review.revised is None:
        why = review.notes[0] if review.notes else "it does not judge any items"
        raise ReviewError(
            f"{review.record_id} has no revised answer ({why}). Nothing was computed.",
            field="record",
            hint=f"To compute the answer itself again: lpf ledger replay {review.about}",
        )
    again, _ = revised_answer(answer, review.judgements)
    assert again is not None  # it could be computed once
    note = f"the answer {review.about} under the judgements of {review.reviewer}"
    return Replay(review.record_id, review.revised, again, False, (note,))


def _revised(recombination: Any, ids: Sequence[str], judgements: Sequence[Judgement]) -> FloatArray:
    places = {name: place for place, name in enumerate(ids)}
    weights = np.ones(len(ids))
    dropped = np.zeros(len(ids), np.bool_)
    pairs = []
    for one in judgements:
        place = places[one.item]
        if one.kind == "exclude":
            dropped[place] = True
        elif one.kind == "reweight":
            weights[place] = one.weight
        elif one.of is not None:
            pairs.append((place, places[one.of]))
    kept = np.flatnonzero(~dropped)
    if isinstance(recombination, RobustItems):
        given = recombination.familiarity
        changed = replace(
            recombination,
            familiarity=given if (weights == 1.0).all() else _times(given, weights),
            groups=_joined(recombination.groups, pairs, len(ids)),
        )
        return np.asarray(changed.answers([kept])[0])
    labels = _labels(None, pairs, len(ids))
    weights /= np.bincount(labels)[labels]
    if isinstance(recombination, PaperItems):
        shared = replace(recombination, weight=recombination.weight * weights)
        return np.asarray(shared.answers([kept])[0])
    assert isinstance(recombination, AveragedItems)
    return recombination.weighted(np.where(dropped, 0.0, weights))


def _times(given: FloatArray | None, weights: FloatArray) -> FloatArray:
    return weights if given is None else given * weights


def _joined(
    groups: GroupArray | None, pairs: Sequence[tuple[int, int]], count: int
) -> GroupArray | None:
    """The groups of copies, in which the items of each pair are copies of each other."""
    if not pairs:
        return groups
    labels = _labels(groups, pairs, count)
    return np.where(np.bincount(labels)[labels] > 1, labels, -1)


def _labels(groups: GroupArray | None, pairs: Sequence[tuple[int, int]], count: int) -> GroupArray:
    """The group of each item; an item without copies is a group of its own."""
    own = np.arange(count, dtype=np.int64)
    labels = own if groups is None else np.where(groups >= 0, groups, own + groups.max() + 1)
    for one, other in pairs:
        labels = np.where(labels == labels[one], labels[other], labels)
    return np.asarray(np.unique(labels, return_inverse=True)[1].reshape(-1), dtype=np.int64)
