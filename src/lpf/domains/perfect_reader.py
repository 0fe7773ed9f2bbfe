"""The perfect reader: the exact posterior given the symbols of all items and the model.

    P(y | s, c, t) ∝ P(y) Σ_b P(b|y) Πᵢ Σ_v P(v|y,b) Σ_g P(g|v, ηᵢ) P(sᵢ|g)

over the items that are not copies, since a copy adds no information. No method can have a lower
expected NLL from the texts of one entity alone, so it is the upper bound for comparisons. It does
not use the structured fields or other entities.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lpf.datasets.dataset import Dataset, DatasetEntity
from lpf.domains.evidence_model import EvidenceModel
from lpf.errors import DatasetError
from lpf.types import FloatArray

POSTERIOR = "posterior"
POSTERIOR_WITH_FACTS = "posterior_with_facts"


def posteriors(
    model: EvidenceModel,
    symbols: NDArray[np.int64],
    credibility: FloatArray,
    age_days: NDArray[np.int64],
    original: NDArray[np.bool_],
) -> FloatArray:
    """Return P(y | items), [E, V], from [E, K]; ``original`` is False for copies and padding."""
    seen = np.where(original[..., None], _likelihood(model, symbols, credibility, age_days), 1.0)
    pull = model.parameters.pull
    states = [
        _product(seen),
        _product((1.0 - pull) * seen + pull * np.roll(seen, 1, axis=-1)),
        _product((1.0 - pull) * seen + pull * np.roll(seen, -1, axis=-1)),
    ]
    # np.roll wraps around at the ends, where the probability of being borderline is zero.
    probabilities = _log(model.borderline_probabilities.T[:, None, :])
    joint = np.logaddexp.reduce(probabilities + np.stack(states), axis=0)
    return _normalised(joint + np.log(model.shares))


def with_fact(
    posterior: FloatArray, table: FloatArray, related: NDArray[np.int64], known: NDArray[np.bool_]
) -> FloatArray:
    """Return the posterior [E, V] given also the related value [E] where it is ``known``."""
    likelihood = np.where(known[:, None], table.T[related], 1.0)
    joint = posterior * likelihood
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def perfect_answers(dataset: Dataset, *, with_facts: bool = False) -> FloatArray:
    """Return the stored posteriors of a generated data set, [E, V]. Raises DatasetError."""
    predicate = next(iter(dataset.schema))
    key = POSTERIOR_WITH_FACTS if with_facts else POSTERIOR
    rows = [[_stored(entity, key)[value] for value in predicate.values] for entity in dataset]
    return np.array(rows, dtype=np.float64)


def _stored(entity: DatasetEntity, key: str) -> Mapping[str, float]:
    if entity.truth is None or key not in entity.truth:
        raise DatasetError(
            "is missing, so there is no perfect answer to compare with.",
            field=f"entity {entity.entity_id!r}: truth.{key}",
            hint="Only generated data sets have it.",
        )
    stored: Mapping[str, float] = entity.truth[key]
    return stored


def _likelihood(
    model: EvidenceModel,
    symbols: NDArray[np.int64],
    credibility: FloatArray,
    age_days: NDArray[np.int64],
) -> FloatArray:
    """Return P(s | v) per item, [E, K, V]."""
    noise = model.noise(credibility, age_days)[..., None]
    clear = model.symbol_probabilities.T[symbols]
    blurred = (model.other_grades @ model.symbol_probabilities).T[symbols]
    return np.asarray((1.0 - noise) * clear + noise * blurred)


def _product(likelihood: FloatArray) -> FloatArray:
    """Return the log of the product over items, [E, V]."""
    return np.asarray(_log(likelihood).sum(axis=1))


def _log(probabilities: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _normalised(joint: FloatArray) -> FloatArray:
    peak = joint.max(axis=1, keepdims=True)
    weights = np.exp(joint - peak)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
