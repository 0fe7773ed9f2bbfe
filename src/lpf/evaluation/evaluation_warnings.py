"""What must be said of a file: groups that are too few, what is on both sides, claims.

Which entities asked about have nothing in common with those learned from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lpf.datasets import Dataset, DatasetEntity, find_leakage
from lpf.evaluation.summaries import FEWEST_GROUPS
from lpf.training.training_warnings import no_better_than_prior

if TYPE_CHECKING:
    from lpf.evaluation.evaluation import Evaluation


def unshared(dataset: Dataset) -> tuple[str, ...]:
    """Ids of the test entities that share neither a text nor a claim nor a group with an entity of
    another split. Case and blanks make no difference."""
    learned = {thing for entity in dataset if entity.split != "test" for thing in _things(entity)}
    return tuple(
        entity.entity_id
        for entity in dataset
        if entity.split == "test" and not any(thing in learned for thing in _things(entity))
    )


def _things(entity: DatasetEntity) -> Iterator[tuple[str, str]]:
    if entity.group_id is not None:
        yield "group", entity.group_id
    if entity.claim is not None:
        yield "text", _same(entity.claim)
    for item in entity.evidence:
        yield "text", _same(item.text)


def _same(text: str) -> str:
    return " ".join(text.casefold().split())


PRIOR = "prior"
SHARED_KINDS = ("text", "claim", "group_id")


def unlearned(evaluation: Evaluation) -> list[str]:
    """That LPF is no better than knowing nothing; empty where one of both has no answers."""
    ours = evaluation.ours
    if ours is None or PRIOR not in evaluation.runs:
        return []
    spreads = [evaluation.scores(name).spreads.get("nll") for name in (ours, PRIOR)]
    losses = [one.mean for one in spreads if one is not None]
    return list(no_better_than_prior(evaluation.title(ours), *losses)) if len(losses) == 2 else []


def claims_read(dataset: Dataset) -> list[str]:
    """That texts were read against claims, which training does only where it is told to."""
    if not any(entity.claim is not None for entity in dataset):
        return []
    return [
        "Texts were read against their entities' claims. 'lpf train' does so only where lpf.toml "
        "has with_claim = true under [reader]."
    ]


def few_groups(placed: Sequence[Dataset]) -> list[str]:
    """``placed`` is the data set in the splits of each part, here and below."""
    asked = [entity for one in placed for entity in one if entity.split == "test"]
    groups = {(entity.group_id, entity.group_id or entity.entity_id) for entity in asked}
    if len(groups) >= FEWEST_GROUPS:
        return []
    return [
        f"Those asked about are of {len(groups)} group{'s' * (len(groups) > 1)}: too few for "
        f"intervals and p-values, which need {FEWEST_GROUPS}, since entities of one are alike."
    ]


def what_is_shared(
    placed: Sequence[Dataset], in_folds: bool
) -> tuple[list[str], frozenset[str] | None]:
    """What those asked about share with those learned from, over all folds, and the ids of those
    who share nothing; None where nobody shares anything."""
    asked = sum(len(one.positions("test")) for one in placed)
    clean = frozenset(name for one in placed for name in unshared(one))
    if len(clean) == asked:
        return [], None
    others = " What is said of the others alone is told beside." if clean else ""
    caution = (
        f"{asked - len(clean):,} of {asked:,} entities share a text, claim or group with those "
        f"learned from{_largest_leak(placed, in_folds)}.{others}"
    )
    return [caution], clean


def _largest_leak(placed: Sequence[Dataset], in_folds: bool) -> str:
    """In brackets; empty where claims of some are texts of others, which is no leak by kind."""
    leaks = [
        (leak, fold)
        for fold, one in enumerate(placed, 1)
        for leak in find_leakage(one)
        if leak.splits[0] == "test" and leak.kind in SHARED_KINDS
    ]
    if not leaks:
        return ""
    largest, fold = max(leaks, key=lambda pair: pair[0].entities)
    where = f"in fold {fold}, " if in_folds else ""
    return f" ({where}{largest.sentence.rstrip('.')})"
