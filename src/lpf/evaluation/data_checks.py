"""What is checked about the data of an evaluation: errors before anything is run, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lpf.datasets import Dataset, DatasetEntity, find_leakage, require_trainable
from lpf.errors import ConfigError, DatasetError
from lpf.evaluation.summaries import FEWEST_GROUPS
from lpf.model.zero_label import without_counterpart

if TYPE_CHECKING:
    from lpf.evaluation.evaluation import Evaluation

FEWEST = 60


def require_enough(where: str, dataset: Dataset, predicate: str) -> None:
    """DatasetError for fewer than 60 labelled entities, or a single value."""
    if len(dataset) < FEWEST:
        raise DatasetError(
            f"{where} has {len(dataset)} labelled entities, and an evaluation needs at least "
            f"{FEWEST} to train, validate and test on. Nothing was evaluated.",
            hint="'lpf train' takes fewer and says how far to trust the model.",
        )
    values = {entity.labels[predicate] for entity in dataset}
    if len(values) == 1:
        raise DatasetError(
            f"{where}: all {len(dataset):,} entities have the value {values.pop()!r} of "
            f"{predicate!r}. Nothing was evaluated.",
            hint="Add entities of other values.",
        )


def require_field(dataset: Dataset, protected: str | None) -> None:
    """ConfigError if results are to be split by a field that no entity has."""
    if protected is None or any(protected in entity.fields for entity in dataset):
        return
    known = sorted({name for entity in dataset for name in entity.fields})
    raise ConfigError(
        f"no entity has a field {protected!r}; they have {known or 'none'}. Nothing was evaluated.",
        field="protected",
    )


def require_whole_splits(where: str, dataset: Dataset) -> None:
    """DatasetError if only some entities have a split."""
    without = [entity.entity_id for entity in dataset if entity.split is None]
    if without and len(without) < len(dataset):
        raise DatasetError(
            f"{where}: {len(without):,} of {len(dataset):,} entities have no split (first: "
            f"{without[0]}), the others have one. Nothing was evaluated.",
            hint="Give every entity a split, or none, or ignore the splits (--resplit, "
            "resplit=True).",
        )


def require_groups(where: str, dataset: Dataset, folds: int) -> None:
    """ConfigError for more folds than groups: entities of a group stay together."""
    named = {entity.group_id for entity in dataset if entity.group_id is not None}
    groups = len(named) + sum(entity.group_id is None for entity in dataset)
    if groups >= folds:
        return
    fix = f"Use {groups} folds" if groups > 1 else "Give some entities a test split"
    raise ConfigError(
        f"{folds} folds were requested, and {where} has {groups} group{'s' * (groups > 1)} of "
        "entities, which stay together. Nothing was evaluated.",
        field="folds",
        hint=f"{fix}, or add groups.",
    )


def require_learnable(
    where: str, fold_datasets: Sequence[Dataset], predicate: str, in_folds: bool
) -> None:
    """DatasetError if any fold has too few training or validation entities."""
    for fold, dataset in enumerate(fold_datasets, 1):
        not_test = [place for place, entity in enumerate(dataset) if entity.split != "test"]
        try:
            require_trainable(dataset.select(not_test), predicate)
        except DatasetError as error:
            place = f", fold {fold} of {len(fold_datasets)}" if in_folds else ""
            raise DatasetError(
                f"{where}{place}: the training and validation entities do not suffice: {error}",
                hint=None if in_folds else "--resplit evaluates it in folds.",
            ) from error


def unshared(dataset: Dataset) -> tuple[str, ...]:
    """IDs of the test entities that share no text, claim or group with an entity of another split.
    Case and white space make no difference."""
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


def beats_class_shares(evaluation: Evaluation) -> bool | None:
    """Whether LPF's NLL is below that of the class shares beyond chance: the whole 95 % interval of
    the paired difference is. None if either has no predictions."""
    ours = evaluation.ours
    both = [] if ours is None else [evaluation.runs.get(name) for name in (ours, PRIOR)]
    if ours is None or not all(runs and any(one.error is None for one in runs) for runs in both):
        return None
    difference = evaluation.compare(ours, PRIOR).difference
    return difference is not None and difference.high < 0.0


def unlearned(evaluation: Evaluation) -> list[str]:
    """A warning if LPF is no better than the class shares; empty if either has no predictions."""
    ours = evaluation.ours
    if ours is None or beats_class_shares(evaluation) is not False:
        return []
    compared = evaluation.compare(ours, PRIOR)
    difference = compared.difference
    interval = compared.note or "no interval"
    if difference is not None:
        interval = (
            f"95 % interval of the difference {difference.low:+.3f} to {difference.high:+.3f}"
        )
    return [
        f"{evaluation.title(ours)} is not better than the class shares: NLL "
        f"{evaluation.nll(ours):.3f}, class shares {evaluation.nll(PRIOR):.3f} ({interval})."
    ]


def missing_claims(dataset: Dataset) -> list[str]:
    """A warning if only some entities have a claim."""
    without = [entity.entity_id for entity in dataset if entity.claim is None]
    if not without or len(without) == len(dataset):
        return []
    return [
        f"{len(without):,} of {len(dataset):,} entities have no claim (first: {without[0]}). Their "
        "texts are read without one; those of the others with their claim."
    ]


def unmatched_verdicts(dataset: Dataset, values: Sequence[str]) -> list[str]:
    """A note if entities have claims and most values are verdicts, but not all of them."""
    unmatched = without_counterpart(values)
    claimed = all(entity.claim is not None for entity in dataset)
    if not claimed or not unmatched or len(values) - len(unmatched) < 2:
        return []
    named = ", ".join(map(repr, unmatched))
    return [
        f"Not answered without labels (zero_label): {named} "
        f"{'has' if len(unmatched) == 1 else 'have'} no counterpart among supported, refuted and "
        "not_enough."
    ]


def few_groups(fold_datasets: Sequence[Dataset]) -> list[str]:
    """A warning if there are no intervals. ``fold_datasets``: the data set in the splits of each
    fold, here and below."""
    test = [entity for one in fold_datasets for entity in one if entity.split == "test"]
    groups = {(entity.group_id, entity.group_id or entity.entity_id) for entity in test}
    if len(groups) >= FEWEST_GROUPS:
        return []
    return [
        f"The test entities form {len(groups)} group{'s' * (len(groups) > 1)}. Intervals and "
        f"p-values need at least {FEWEST_GROUPS}, because entities of a group are alike."
    ]


def what_is_shared(
    fold_datasets: Sequence[Dataset], in_folds: bool
) -> tuple[list[str], frozenset[str] | None]:
    """A warning about test entities that share something with training or validation entities, over
    all folds, and the IDs of those that share nothing; None if no entity shares anything."""
    test = sum(len(one.positions("test")) for one in fold_datasets)
    clean = frozenset(name for one in fold_datasets for name in unshared(one))
    if len(clean) == test:
        return [], None
    others = " The others are also scored separately." if clean else ""
    warning = (
        f"{test - len(clean):,} of {test:,} test entities share a text, claim or group with "
        f"training entities{_largest_leak(fold_datasets, in_folds)}.{others}"
    )
    return [warning], clean


def _largest_leak(fold_datasets: Sequence[Dataset], in_folds: bool) -> str:
    """In brackets; empty if claims of some are texts of others, which is not a leak of one kind."""
    leaks = [
        (leak, fold)
        for fold, one in enumerate(fold_datasets, 1)
        for leak in find_leakage(one)
        if leak.splits[0] == "test" and leak.kind in SHARED_KINDS
    ]
    if not leaks:
        return ""
    largest, fold = max(leaks, key=lambda pair: pair[0].entities)
    where = f"in fold {fold}, " if in_folds else ""
    return f" ({where}{largest.sentence.rstrip('.')})"
