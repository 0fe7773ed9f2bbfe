"""How familiar a text is: how near its features are to those of the training texts.

A normal distribution is fitted to the training features: its own variance along the ``rank`` main
directions, one common variance τ along all others. The distance of features x from its mean m is

    τ · Mahalanobis² = |x - m|² - |(x - m) U|²,   U = V·sqrt(λ / (λ + τ))

where V [width, rank] are the directions and λ their variances. Models are fitted without each fold
of entities in turn, which gives the distances of unseen ordinary texts. From these follow the
distance up to which a text has its full weight, and the distance from which it has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.model.config import FamiliarityConfig
from lpf.model.layout import familiarity_prefix
from lpf.types import Float32Array, FloatArray

MEAN, DIRECTIONS = "mean", "directions"  # tensors, after the prefix of ``model.layout``
FEWEST_TEXTS = 12  # with fewer, nothing can be said about texts that were not seen
MOST_DIRECTIONS = 64
TEXTS_PER_DIRECTION = 4
FOLDS = 5
FOLDS_SEED = 97
# Of unseen ordinary texts, this share keeps its full weight, and this share at least half of it.
FULL_SHARE, HALF_SHARE = 0.98, 0.99
# A quantile of few distances is too low by chance: the limits are moved out by this many times the
# spread (median to HALF_SHARE), divided by the square root of the number of texts.
SLACK = 3.0
LEAST_RAMP = 1 / 8  # of the spread, from full weight to none
# Both as shares of the distance of a text that has nothing in common with the training texts. If
# these are all worded alike, any other wording would be too far away for its own good: texts at
# less than half of that distance always have their full weight.
ALWAYS_FULL, SHORTEST_RAMP = 0.5, 0.05
NO_VARIANCE = 1e-9


@dataclass(frozen=True)
class Familiarity:
    """Weights in [0, 1] for features. ``mean`` [width] and ``directions`` [width, rank] are of the
    features of the text alone."""

    config: FamiliarityConfig
    mean: FloatArray
    directions: FloatArray

    @classmethod
    def of(
        cls,
        config: FamiliarityConfig,
        tensors: Mapping[str, Float32Array],
        predicate: str | None = None,
    ) -> Familiarity:
        """From a model's tensors: those of one head's own, or of all heads without their own."""
        prefix = familiarity_prefix(predicate)
        mean, directions = tensors[prefix + MEAN], tensors[prefix + DIRECTIONS]
        # In float64, so that a weight depends on the batch by no more than its last bits.
        return cls(config, mean.astype(float), directions.astype(float))

    def tensors(self, predicate: str | None = None) -> dict[str, Float32Array]:
        prefix = familiarity_prefix(predicate)
        return {
            prefix + MEAN: self.mean.astype(np.float32),
            prefix + DIRECTIONS: np.ascontiguousarray(self.directions, np.float32),
        }

    def __call__(self, features: Float32Array) -> FloatArray:
        """The weight of each item [N], from features [N, reader's width]: 1 is familiar, 0 is
        unlike anything that was trained on, with a smooth step between."""
        return self.weight(self.distance(features[:, self.config.start : self.config.stop]))

    def distance(self, texts: Float32Array) -> FloatArray:
        """[N], from the features of the texts alone [N, width]."""
        return _distance(texts, self.mean, self.directions)

    def weight(self, distance: FloatArray) -> FloatArray:
        near, far = self.config.full_until, self.config.none_from
        step = np.minimum(np.maximum((distance - near) / (far - near), 0.0), 1.0)
        return np.asarray(1.0 - step * step * (3.0 - 2.0 * step))


def without_wordless(
    weights: FloatArray | None, wordless: NDArray[np.bool_] | None
) -> FloatArray | None:
    """``weights`` [N] (None: all 1) with 0 for the texts that have no word, whatever the model was
    trained on: among few and varied texts, a distance does not tell junk from evidence."""
    if wordless is None or not wordless.any():
        return weights
    return np.where(wordless, 0.0, 1.0 if weights is None else weights)


def fit_familiarity(
    features: Float32Array, groups: NDArray[np.intp], part: slice
) -> Familiarity | None:
    """Fit to features [N, reader's width] of the training items. ``groups`` [N] number what must
    not be divided between folds, such as entities; ``part`` has the features of the text alone.
    None if there are too few different texts, or if all are of one group."""
    start, stop, _ = part.indices(features.shape[1])
    different = _different(features[:, start:stop])
    texts, groups = features[different, start:stop].astype(np.float64), groups[different]
    if len(texts) < FEWEST_TEXTS or stop - start < 2 or len(np.unique(groups)) < 2:
        return None
    mean, directions = _fit(texts)
    nothing = np.zeros((1, stop - start))
    # Features at a right angle to all of the training texts', and as long.
    unrelated = (texts * texts).sum(axis=1).mean() + _distance(nothing, mean, directions)[0]
    limits = _limits(_unseen_distances(texts, groups), float(unrelated))
    config = FamiliarityConfig(start, stop, directions.shape[1], *limits)
    # Rounded to float32, as it is saved: weights are the same before and after.
    return Familiarity.of(config, Familiarity(config, mean, directions).tensors())


def _different(texts: Float32Array) -> list[int]:
    """The first position of each text. A text that comes again in another fold would look as if
    unseen texts were always seen ones."""
    first: dict[bytes, int] = {}
    for place, row in enumerate(texts):
        first.setdefault(row.tobytes(), place)
    return list(first.values())


def _fit(texts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean [width] and shrunk directions U [width, rank]."""
    count, width = texts.shape
    rank = max(1, min(MOST_DIRECTIONS, count // TEXTS_PER_DIRECTION, width - 1))
    mean = texts.mean(axis=0)
    centred = texts - mean
    variances, directions = np.linalg.eigh(centred.T @ centred / max(1, count - 1))
    main, rest = np.maximum(variances[::-1][:rank], 0.0), variances[::-1][rank:]
    common = max(float(rest.mean()), NO_VARIANCE)
    return mean, directions[:, ::-1][:, :rank] * np.sqrt(main / (main + common))


def _unseen_distances(texts: FloatArray, groups: NDArray[np.intp]) -> FloatArray:
    """The distance of each text from a fit without its fold, [N]."""
    numbers, place = np.unique(groups, return_inverse=True)
    folds = min(FOLDS, len(numbers))
    fold_of = np.random.default_rng(FOLDS_SEED).permutation(len(numbers)) % folds
    fold = fold_of[place.reshape(-1)]
    distances = np.empty(len(texts))
    for number in range(folds):
        held_out = fold == number
        distances[held_out] = _distance(texts[held_out], *_fit(texts[~held_out]))
    return distances


def _limits(distances: FloatArray, unrelated: float) -> tuple[float, float]:
    """The distances ``full_until`` and ``none_from``, from those of unseen texts and that of an
    unrelated one."""
    middle, full, half = np.quantile(distances, [0.5, FULL_SHARE, HALF_SHARE])
    spread = max(half - middle, NO_VARIANCE)
    near = max(full + SLACK * spread / np.sqrt(len(distances)), ALWAYS_FULL * unrelated)
    ramp = max(2.0 * (half - full), LEAST_RAMP * spread, SHORTEST_RAMP * unrelated)
    return float(near), float(near + ramp)


def _distance(
    texts: Float32Array | FloatArray, mean: FloatArray, directions: FloatArray
) -> FloatArray:
    centred = texts - mean
    inside = centred @ directions
    return np.asarray((centred * centred).sum(axis=1) - (inside * inside).sum(axis=1))
