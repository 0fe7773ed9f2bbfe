"""Checks that data can be evaluated, made before anything is run."""

from __future__ import annotations

from collections.abc import Sequence

from lpf.datasets import Dataset, require_trainable
from lpf.errors import ConfigError, DatasetError

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


def require_claims_of_all(where: str, dataset: Dataset) -> None:
    """DatasetError if only some entities have a claim: texts are read together with the claim."""
    without = [entity.entity_id for entity in dataset if entity.claim is None]
    if without and len(without) < len(dataset):
        raise DatasetError(
            f"{where}: {len(without):,} of {len(dataset):,} entities have no claim (first: "
            f"{without[0]}), so their texts cannot be read in the same way. Nothing was evaluated.",
            hint="Give every entity a claim, or none, or leave out those without.",
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
