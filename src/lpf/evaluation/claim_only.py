"""What the claim alone gives away: a regression that never sees the evidence.

Claims are often written in a way that tells their label. Whatever is not above this row was not
learned from evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.baselines import FittedMethod
from lpf.baselines.interface import entity_labels, value_count
from lpf.baselines.linear import Labelled, LogisticModel, fit_regression
from lpf.errors import DatasetError
from lpf.evaluation.feature_cache import FeatureCache
from lpf.reading import Reader, ReadRequest
from lpf.training import Examples
from lpf.types import FloatArray

CLAIM_ONLY = "claim_only"


@dataclass(frozen=True)
class ClaimRegression:
    regression: LogisticModel
    reader: Reader

    def predict_proba(self, examples: Examples) -> FloatArray:
        return self.regression.probabilities(_features(examples, self.reader))


@dataclass(frozen=True)
class ClaimOnly:
    name: str
    feature_cache: FeatureCache
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        reader = self.feature_cache.opened(with_claim=False)
        known, held = (
            Labelled(_features(part, reader), entity_labels(part, predicate))
            for part in (train, validation)
        )
        return ClaimRegression(fit_regression(known, held, value_count(train, predicate)), reader)


def _features(examples: Examples, reader: Reader) -> FloatArray:
    """[E, width] of the claims."""
    claims = [entity.claim for entity in examples.dataset]
    if None in claims:
        raise DatasetError(
            f"dataset {examples.dataset.name!r}: entity {claims.index(None)} has no claim, so the "
            f"method {CLAIM_ONLY!r} has nothing to read. Leave the method out."
        )
    requests = [ReadRequest(claim) for claim in claims if claim is not None]
    return np.asarray(reader.read_many(requests), np.float64)
