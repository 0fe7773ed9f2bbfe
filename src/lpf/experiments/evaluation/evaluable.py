"""What a file must have to be evaluated, found out before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lpf.datasets import Dataset, require_trainable
from lpf.errors import ConfigError, DatasetError

FEWEST = 60


def require_enough(path: Path, dataset: Dataset, predicate: str) -> None:
    """Entities, and values to tell apart."""
    if len(dataset) < FEWEST:
        raise DatasetError(
            f"{path}: has {len(dataset)} labelled entities, and an evaluation needs "
            f"{FEWEST} at least: some to learn from, some to fit on, some to ask about. "
            "Nothing was evaluated; 'lpf train' takes fewer and says how far to trust it."
        )
    values = {entity.labels[predicate] for entity in dataset}
    if len(values) == 1:
        raise DatasetError(
            f"{path}: all {len(dataset):,} entities have the value {values.pop()!r} of "
            f"{predicate!r}, so there is nothing to tell apart. Nothing was evaluated. Add "
            "entities of other values."
        )


def require_claims_of_all(path: Path, dataset: Dataset) -> None:
    """Or of none: texts are read against the claim where there are claims."""
    without = [entity.entity_id for entity in dataset if entity.claim is None]
    if without and len(without) < len(dataset):
        raise DatasetError(
            f"{path}: {len(without):,} of {len(dataset):,} entities have no claim (first: "
            f"{without[0]}), the others have one, so they cannot be read alike. Nothing was "
            "evaluated. Give every entity a claim, or none, or leave those without out."
        )


def require_field(dataset: Dataset, protected: str | None) -> None:
    """Of one entity at least, where results are to be told apart by it."""
    if protected is None or any(protected in entity.fields for entity in dataset):
        return
    known = sorted({name for entity in dataset for name in entity.fields})
    raise ConfigError(
        f"protected: no entity has a field {protected!r}; they have {known or 'none'}. Nothing was "
        "evaluated."
    )


def require_whole_splits(path: Path, dataset: Dataset) -> None:
    """Of every entity, or of none."""
    without = [entity.entity_id for entity in dataset if entity.split is None]
    if without and len(without) < len(dataset):
        raise DatasetError(
            f"{path}: {len(without):,} of {len(dataset):,} entities have no split (first: "
            f"{without[0]}), the others have one. Nothing was evaluated. Give every entity a "
            "split, or none, or use --resplit, which forgets them."
        )


def require_groups(path: Path, dataset: Dataset, folds: int) -> None:
    """One a fold at least."""
    named = {entity.group_id for entity in dataset if entity.group_id is not None}
    groups = len(named) + sum(entity.group_id is None for entity in dataset)
    if groups >= folds:
        return
    remedy = f"Use --folds {groups}" if groups > 1 else "Give some entities a test split"
    raise ConfigError(
        f"folds: {folds} were asked for, and {path} has {groups} group{'s' * (groups > 1)} of "
        f"entities, which stay whole. Nothing was evaluated. {remedy}, or add groups."
    )


def require_learnable(
    path: Path, placed: Sequence[Dataset], predicate: str, in_folds: bool
) -> None:
    """That training and validation can do their work, in every fold."""
    for fold, one in enumerate(placed, 1):
        learned = [place for place, entity in enumerate(one) if entity.split != "test"]
        try:
            require_trainable(one.select(learned), predicate)
        except DatasetError as error:
            where = f", fold {fold} of {len(placed)}" if in_folds else ""
            remedy = "" if in_folds else " --resplit evaluates it in folds."
            raise DatasetError(
                f"{path}{where}: those learned from do not suffice: {error}{remedy}"
            ) from error
