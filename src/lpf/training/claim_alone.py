"""The claim alone: a regression that never sees the evidence, fitted beside every model.

A model that is no better has learned nothing from evidence. It is fitted to the entities that the
model may be fitted to, all but those of the test split. Folds of them choose its penalty, and an
entity is judged by the fit without its fold; test entities are judged by the fit to all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.datasets import grouped_folds
from lpf.errors import ConfigError, DatasetError
from lpf.factors.distributions import softmax
from lpf.metrics import LabelArray
from lpf.model.claim_alone import ClaimAlone
from lpf.model.runtime import Runtime
from lpf.reading.pair import claim_part
from lpf.training.examples import Examples
from lpf.training.fitting import HeldOutScores, Scores, class_shares, gain_over
from lpf.training.held_out import is_learned
from lpf.training.softmax_regression import (
    PENALTIES,
    RegressionRows,
    Scaling,
    fit_path,
    is_past_the_best,
)
from lpf.types import Float32Array, FloatArray

FOLDS, FOLDS_SEED = 5, 0
# Weaker ones too: claims that tell all should be believed.
CLAIM_PENALTIES = (*PENALTIES, 0.003, 0.001, 0.0003)
FEWEST_PER_VALUE = 2  # of entities, so that a fit without one of them still knows the value

Places = NDArray[np.intp]


@dataclass(frozen=True)
class ClaimFit:
    """The regression of one predicate and, by entity ID, its answers [V] about entities that it was
    not fitted to."""

    model: ClaimAlone
    penalty: float
    held_out: Mapping[str, FloatArray]


def fit_claims_alone(
    examples: Examples, reader_id: str, predicates: Sequence[str], *, everything: bool
) -> dict[str, ClaimFit]:
    """Regressions by predicate, fitted to all entities but those of the test split, or to
    ``everything``. A predicate is left out if its entities do not have two different claims, or
    too few to form folds."""
    part = claim_part(reader_id, examples.features.shape[1])
    if part is None:
        return {}
    fits = {name: _fit(examples, part, name, everything=everything) for name in predicates}
    return {name: fit for name, fit in fits.items() if fit is not None}


def with_claims_alone(runtime: Runtime, fits: Mapping[str, ClaimFit]) -> Runtime:
    """The same model, which now also knows what claims alone say."""
    if not fits:
        return runtime
    tensors = {
        key: array for name, fit in fits.items() for key, array in fit.model.tensors(name).items()
    }
    names = (*runtime.config.claim_alone, *fits)
    config = replace(runtime.config, claim_alone=names)
    return Runtime(config, {**runtime.tensors, **tensors}, runtime.version)


def compared_with_claims(
    held_out: HeldOutScores, fits: Mapping[str, ClaimFit], examples: Examples
) -> HeldOutScores:
    """The same scores, compared with what the claim alone says about the same entities."""
    compared = {
        name: _compared(scores, fits[name], examples, name) if name in fits else scores
        for name, scores in held_out.by_predicate.items()
    }
    return replace(held_out, by_predicate=compared)


def _compared(scores: Scores, fit: ClaimFit, examples: Examples, name: str) -> Scores:
    both = [
        place
        for place, entity in enumerate(examples.dataset)
        if entity.entity_id in scores.losses and entity.entity_id in fit.held_out
    ]
    if len(both) < len(scores.losses):
        return scores  # numbers of different entities would stand side by side
    dataset = examples.dataset.select(both)
    labels, names = dataset.labels(name), [entity.entity_id for entity in dataset]
    alone = np.stack([fit.held_out[one] for one in names])
    gain, beats = gain_over(alone, np.array([scores.losses[one] for one in names]), dataset, labels)
    return replace(
        scores,
        claim_nll=metrics.nll(alone, labels),
        claim_accuracy=metrics.accuracy(alone, labels),
        claim_gain=gain.mean,
        claim_gain_low=gain.low,
        claim_gain_high=gain.high,
        beats_claim=beats,
    )


def _fit(examples: Examples, part: slice, name: str, *, everything: bool) -> ClaimFit | None:
    dataset = examples.dataset
    claimed = np.array([entity.claim is not None for entity in dataset], bool)
    claimed &= (examples.segments.counts > 0) & (dataset.labels(name) >= 0)
    is_test = np.array([not (everything or is_learned(entity)) for entity in dataset], bool)
    known, test = np.flatnonzero(claimed & ~is_test), np.flatnonzero(claimed & is_test)
    if len({dataset.entities[place].claim for place in known}) < 2:
        return None
    labels = dataset.labels(name)
    values = len(dataset.schema[name].values)
    folds = _folds(examples, name, known, values)
    if folds is None:
        return None
    # The claim's features are the same for all items of an entity.
    claims = examples.features[examples.segments.offsets[:-1].clip(max=len(examples.features) - 1)]
    claims = claims[:, part]
    penalty, answers = _in_folds(claims[known], labels[known], folds, values)
    model = _regression(claims[known], labels[known], penalty, values)
    asked = [*zip(known, answers, strict=True)]
    asked += zip(test, np.exp(model.log_probabilities(claims[test])), strict=True)
    held_out = {dataset.entities[place].entity_id: answer for place, answer in asked}
    return ClaimFit(model, penalty, held_out)


def _folds(examples: Examples, name: str, known: Places, values: int) -> tuple[Places, ...] | None:
    """Positions among ``known``; None if there are too few entities or groups."""
    dataset = examples.dataset.select(known.tolist())
    rarest = int(np.bincount(dataset.labels(name), minlength=values).min())
    groups = len({entity.group_id or entity.entity_id for entity in dataset})
    if rarest < FEWEST_PER_VALUE:
        return None
    try:
        return grouped_folds(dataset, name, max(2, min(FOLDS, rarest, groups)), FOLDS_SEED)
    except (ConfigError, DatasetError):  # all entities of a value, or all at all, are in one group
        return None


def _in_folds(
    claims: Float32Array, labels: LabelArray, folds: Sequence[Places], values: int
) -> tuple[float, FloatArray]:
    """The penalty with the lowest NLL on held-out folds, and the answers [E, V] under it."""
    paths = []
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(labels)), fold)
        scaling = Scaling.of(claims[rest])
        asked = scaling.apply(claims[fold])
        rows = RegressionRows(scaling.apply(claims[rest]), labels[rest], np.ones(len(rest)))
        paths.append(_answer_path(rows, asked, values))
    order = np.argsort(np.concatenate(folds))
    tried: list[tuple[float, float, FloatArray]] = []
    for steps in zip(*paths, strict=True):
        answers = np.concatenate([found for _, found in steps])[order]
        tried.append((metrics.nll(answers, labels), steps[0][0], answers))
        if is_past_the_best([loss for loss, *_ in tried]):
            break
    _, penalty, answers = min(tried, key=lambda one: one[0])
    return penalty, answers


def _answer_path(
    rows: RegressionRows, asked: Float32Array, values: int
) -> Iterator[tuple[float, FloatArray]]:
    for penalty, fit in fit_path(rows, values, CLAIM_PENALTIES):
        yield penalty, softmax(fit.logits(asked))


def _regression(
    claims: Float32Array, labels: LabelArray, penalty: float, values: int
) -> ClaimAlone:
    scaling = Scaling.of(claims)
    rows = RegressionRows(scaling.apply(claims), labels, np.ones(len(labels)))
    ((_, fit),) = fit_path(rows, values, (penalty,))
    head = fit.unscaled(scaling)
    shares = class_shares(labels, values)
    return ClaimAlone(
        head.weight.astype(np.float32),
        head.bias.astype(np.float32),
        np.log(shares).astype(np.float32),
    )
