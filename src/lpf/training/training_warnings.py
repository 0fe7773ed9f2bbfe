"""Warnings about a model: what a user must know before relying on it.

They are part of the model card, so a change of their wording changes the version of new models, but
not their answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lpf.combine.calibration import FEW_ENTITIES, CalibrationFit, rough_error
from lpf.datasets import Dataset
from lpf.datasets.leakage import find_leakage
from lpf.model.artefact import claim_verdict, class_shares_verdict
from lpf.schema import Predicate
from lpf.training.config import UNEQUAL, Balance
from lpf.training.fitting import HeldOutScores, Scores
from lpf.training.history import SeedHistory
from lpf.training.model_choice import ModelChoice
from lpf.types import FloatArray

# A posterior equal to the prior ignores its item; one without width claims certainty.
COLLAPSED_KL = 0.1
COLLAPSED_SIGMA = 0.02
UNBALANCED = 1.5  # from this ratio of shares on, balancing makes a difference
PRIOR_GAP = 0.15


def data_warnings(dataset: Dataset) -> Iterator[str]:
    """What was left out of the data, and what its splits share."""
    yield from dataset.exclusions
    for leak in find_leakage(dataset):
        yield leak.sentence


def seed_warnings(histories: Sequence[SeedHistory], deterministic: bool) -> Iterator[str]:
    """Seeds whose posteriors collapsed."""
    if deterministic:
        return
    empty = [one.seed for one in histories if one.best.validation_kl < COLLAPSED_KL]
    narrow = [one.seed for one in histories if one.best.mean_sigma < COLLAPSED_SIGMA]
    if empty:
        yield (
            f"the posterior of seeds {empty} collapsed to the prior (KL below {COLLAPSED_KL}): "
            "these members ignore the evidence; lower --beta."
        )
    if narrow:
        yield (
            f"sigma of seeds {narrow} collapsed (mean below {COLLAPSED_SIGMA}): their sampled "
            "uncertainty means nothing; raise --beta."
        )


def unlearned_warnings(held_out: HeldOutScores) -> Iterator[str]:
    """Predicates that are answered no better than by the class shares, or by the claim alone: the
    first warnings."""
    for name, one in held_out.by_predicate.items():
        if not one.beats_class_shares:
            yield class_shares_verdict(name, held_out.data, one.to_dict())
        if one.beats_claim is False:
            yield claim_verdict(name, held_out.data, one.to_dict())


def balancing_may_help(labels: np.ndarray, balance: Balance) -> bool:
    """Return True if some values are rarer in training than others and were not balanced."""
    counts = np.bincount(labels[labels >= 0])
    present = counts[counts > 0]
    ratio = present.max() / present.min()
    balanced = balance == "always" or (balance == "auto" and ratio > UNEQUAL)
    return bool(ratio >= UNBALANCED and not balanced)


def answer_warnings(
    predicate: Predicate, distribution: FloatArray, labels: np.ndarray, balancing: bool
) -> Iterator[str]:
    """Values that are never the answer for a validation entity, though some have them.
    ``balancing`` is True if balancing could help."""
    advice = ", or train with --balance always" if balancing else ""
    given = np.bincount(distribution.argmax(axis=1), minlength=len(predicate.values))
    there = np.bincount(labels, minlength=len(predicate.values))
    for value, answered, count in zip(predicate.values, given, there, strict=True):
        if count and not answered:
            yield (
                f"{predicate.name}: {value!r} is never answered, though {count} validation "
                f"entities have it. Add more entities with this value{advice}."
            )


def size_warnings(predicate: str, entities: int) -> Iterator[str]:
    if entities < FEW_ENTITIES:
        yield (
            f"{predicate}: probabilities were fitted on {entities} entities only; they can be off "
            f"by {100 * rough_error(entities):.0f} points or more. Label more entities before "
            "relying on them."
        )


def group_warnings(predicate: str, fit: CalibrationFit) -> Iterator[str]:
    """Few groups say little about the next one."""
    if fit.groups is None:
        return
    if fit.groups == 1:
        found = "so nothing is known about how good answers about other groups are"
    elif fit.parameters.trust == 1.0:
        found = "what was learned holds between them, but it may not in the next group"
    else:
        found = (
            "and what was learned from some holds less in the others, so evidence counts only "
            f"{100 * fit.parameters.trust:.0f} % of what it says"
        )
    groups = "1 group" if fit.groups == 1 else f"{fit.groups} groups"
    yield (
        f"{predicate}: the labelled entities belong to only {groups} (group_id), {found}. Label "
        "entities of more groups."
    )


def choice_warnings(choice: ModelChoice | None) -> Iterator[str]:
    if choice is None or not choice.is_linear:
        return
    if choice.networks_nll is None:
        yield (
            f"the model is linear (held-out NLL {choice.linear_nll:.4f}); networks were not "
            "compared. What is shown about seeds and epochs is about networks that are not part "
            "of it."
        )
    elif choice.keeps_verdicts and choice.verdicts_nll is not None:
        yield (
            f"the verdicts without labels are kept (held-out NLL {choice.verdicts_nll:.4f}): what "
            "was learned from your labels is not better by two standard errors (networks "
            f"{choice.networks_nll:.4f}, linear model {choice.linear_nll:.4f}). What is shown "
            "about seeds and epochs is about networks that are not part of the model."
        )
    else:
        nll = choice.linear_nll if choice.verdicts_nll is None else choice.verdicts_nll
        yield (
            f"the model is linear (held-out NLL {nll:.4f}, networks "
            f"{choice.networks_nll:.4f}): what is shown about seeds and epochs is about networks "
            "that are not part of it."
        )


def small_data_warnings(predicate: str, scores: Scores) -> Iterator[str]:
    """How far a model that was scored on folds of a few entities can be trusted."""
    right = round(scores.accuracy * scores.entities)
    low, high = wilson(right, scores.entities)
    yield (
        f"{predicate}: {right} of {scores.entities} unseen entities were answered correctly; with "
        f"this few, the true accuracy can be anywhere from {low:.0%} to {high:.0%}."
    )


def wilson(right: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, which stays within 0 and 1."""
    z = 1.96
    share, spread = right / count, z * z / count
    centre = share + spread / 2
    half = z * np.sqrt(share * (1 - share) / count + spread / (4 * count))
    return float((centre - half) / (1 + spread)), float((centre + half) / (1 + spread))


def prior_warnings(predicate: Predicate, labels: np.ndarray) -> Iterator[str]:
    """A prior that differs from the labels changes all answers with little evidence."""
    shares = np.bincount(labels[labels >= 0], minlength=len(predicate.values))
    gap = np.abs(shares / max(1, shares.sum()) - np.array(predicate.prior))
    if gap.max() > PRIOR_GAP:
        worst = int(gap.argmax())
        yield (
            f"{predicate.name}: the prior gives {predicate.values[worst]!r} "
            f"{predicate.prior[worst]:.0%}, the training data {shares[worst] / shares.sum():.0%}. "
            "If the data are the better guess, change the prior: in lpf.toml or, once a circuit "
            "was learned, with 'lpf facts learn'; for a classifier with prior=."
        )
