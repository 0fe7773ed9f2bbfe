"""P3 and P4: what the weights of the learned aggregator are, and what contradictions do to them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.domains import stream
from lpf.engine import Items
from lpf.factors import ConversionConfig, Converter
from lpf.items import Segments
from lpf.types import Float32Array, FloatArray, Posteriors
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.studies.theorems.statement import CheckedStatement, verdict_of
from lpf_paper.studies.theorems.trained import LEARNED, TrainedNetworks, first_items

ITEMS = 5
# The world worked out by hand: two independent items of two values, each +1 or -1.
ACCURACIES = (0.9, 0.7)
STEPS = 2001
CHECKS = 20
INSTEAD = (
    "If items are independent and the scale of the decoder is free, weights proportional to the "
    "log-odds of two-valued items reach the exact answer. There is no 'only if': for copies every "
    "choice of weights is as good."
)


@dataclass(frozen=True)
class TwoItemWorld:
    """Items say +1 or -1 and are right with these probabilities; values are equally likely. The
    aggregate is z = w·first + (1 - w)·second, and the decoder gives +1 a log-odds of scale·z."""

    accuracies: tuple[float, float] = ACCURACIES

    @property
    def log_odds(self) -> tuple[float, float]:
        first, second = (log(one / (1.0 - one)) for one in self.accuracies)
        return first, second

    def loss(self, weight: FloatArray, scale: float) -> FloatArray:
        """The expected log loss at each weight of the first item, by symmetry for the value +1."""
        total = np.zeros_like(weight)
        for first in (1, -1):
            for second in (1, -1):
                chance = 1.0
                for accuracy, says in zip(self.accuracies, (first, second), strict=True):
                    chance *= accuracy if says == 1 else 1.0 - accuracy
                z = weight * first + (1.0 - weight) * second
                total += chance * np.logaddexp(0.0, -scale * z)
        return total

    def best_weight(self, scale: float) -> float:
        grid = np.linspace(0.0, 1.0, STEPS)
        return float(grid[self.loss(grid, scale).argmin()])

    @property
    def free_scale(self) -> float:
        """The scale with which the exact posterior can be reached."""
        return sum(self.log_odds)

    @property
    def proportional_weight(self) -> float:
        """Of the first item, if weights are proportional to the log-odds: what it says."""
        return self.log_odds[0] / self.free_scale

    @property
    def single_scale(self) -> float:
        """The scale of a decoder that was trained on single items and then frozen: right for an
        item drawn from both."""
        mean = sum(self.accuracies) / 2.0
        return log(mean / (1.0 - mean))


def gradient_ratio(weights: FloatArray, gradient: FloatArray) -> FloatArray:
    """The derivative of log p(y | z), z = Σ wᵢ μᵢ, in each μᵢ, divided by wᵢ. By the chain rule it
    is that in z for every item and any weights. ``gradient`` is that of the logit of p."""
    step = 1e-6
    codes = np.arange(1.0, len(weights) + 1.0)[:, None] * np.ones_like(gradient)

    def value(moved: FloatArray) -> float:
        return float(-np.logaddexp(0.0, -(weights @ moved) @ gradient))

    found = np.empty_like(codes)
    for place in np.ndindex(codes.shape):
        up, down = codes.copy(), codes.copy()
        up[place] += step
        down[place] -= step
        found[place] = (value(up) - value(down)) / (2.0 * step)
    return np.asarray(found / weights[:, None])


@dataclass(frozen=True)
class WeightLosses:
    """Log losses of the trained decoder with different weights for the items, and the correlation
    of learned weights with informativeness, by rank within each entity."""

    learned: float
    equal: float
    proportional: float
    correlation: float


def weight_losses(networks: TrainedNetworks) -> WeightLosses:
    """An item is as informative as its factor lowers the entropy of even shares."""
    latent, labels = _latent(networks), networks.labels(networks.usual)
    single = _decoded(networks, latent.mu, latent.sigma)
    information = log(single.shape[1]) + (single * np.log(single)).sum(axis=1)
    shape = (len(labels), ITEMS)
    given = _combined(networks, latent.mu, latent.sigma, ITEMS).weight.reshape(shape)
    informative = information.reshape(shape)
    codes = latent.mu[0].reshape(*shape, -1)

    def loss(weights: FloatArray) -> float:
        mixed = np.einsum("ek,ekd->ed", weights, codes).astype(np.float32)[None]
        return metrics.nll(_decoded(networks, mixed, np.zeros_like(mixed)), labels)

    return WeightLosses(
        loss(given),
        loss(np.full(shape, 1.0 / ITEMS)),
        loss(informative / informative.sum(axis=1, keepdims=True)),
        rank_correlation(given, informative),
    )


def rank_correlation(first: FloatArray, second: FloatArray) -> float:
    """Of the ranks within each row."""
    ranks = [
        one.argsort(axis=1).argsort(axis=1).ravel().astype(np.float64) for one in (first, second)
    ]
    first_centred, second_centred = (one - one.mean() for one in ranks)
    norms = np.linalg.norm(first_centred) * np.linalg.norm(second_centred)
    return float(first_centred @ second_centred / norms)


@dataclass(frozen=True)
class ItemMeans:
    """Means over entities, of one item of each."""

    weight: float
    quality: float
    consistency: float


@dataclass(frozen=True)
class PairReaction:
    """What contradictions do. Of pairs of items with equal and with opposite codes: the mean
    consistency, and in what share of the pairs it is ``lower`` if they contradict. ``total`` is the
    sum of the two weights, its largest distance from 1. ``before`` and ``after`` are the means of
    one item of five, as it is and with its code turned around."""

    alike: float
    contradicting: float
    lower: float
    total: float
    before: ItemMeans
    after: ItemMeans


def pair_reaction(networks: TrainedNetworks) -> PairReaction:
    latent = _latent(networks)
    starts = np.arange(0, len(latent), ITEMS)
    sigma = np.repeat(latent.sigma[:, starts], 2, axis=1)

    def pair(sign: float) -> Any:
        mu = np.repeat(latent.mu[:, starts], 2, axis=1)
        mu[:, 1::2] *= np.float32(sign)
        return _combined(networks, mu, sigma, 2)

    alike, against = pair(1.0), pair(-1.0)
    turned = latent.mu.copy()
    turned[:, starts] *= np.float32(-1.0)
    before, after = (
        _means(_combined(networks, mu, latent.sigma, ITEMS), starts) for mu in (latent.mu, turned)
    )
    total = against.weight.reshape(-1, 2).sum(axis=1)
    return PairReaction(
        float(alike.consistency.mean()),
        float(against.consistency.mean()),
        float((against.consistency < alike.consistency).mean()),
        float(np.abs(total - 1.0).max()),
        before,
        after,
    )


def _means(combined: Any, rows: NDArray[np.intp]) -> ItemMeans:
    named = ("weight", "quality", "consistency")
    return ItemMeans(*(float(getattr(combined, name)[rows].mean()) for name in named))


def _latent(networks: TrainedNetworks) -> Posteriors:
    fitted = networks.fitted(LEARNED)
    return fitted.engine.posteriors(first_items(networks.usual, ITEMS), fitted.options)


def _combined(networks: TrainedNetworks, mu: Float32Array, sigma: Float32Array, count: int) -> Any:
    """The learned combination of items with these codes, ``count`` per entity: the weights and the
    mean consistency of each item."""
    fitted = networks.fitted(LEARNED)
    ids = tuple(map(str, range(mu.shape[1])))
    width = fitted.engine.runtime.config.encoder.input_width
    segments = Segments.of_counts([count] * (len(ids) // count))
    unread = Items(np.zeros((len(ids), width), np.float32), ids, segments=segments)
    posteriors = Posteriors(ids, mu, sigma)
    answers = fitted.engine.answer(unread, fitted.predicate, fitted.options, posteriors=posteriors)
    return answers.combined


def _decoded(networks: TrainedNetworks, mu: Float32Array, sigma: Float32Array) -> FloatArray:
    """Factors at the mean of each code."""
    fitted = networks.fitted(LEARNED)
    runtime = fitted.engine.model_for(fitted.options)
    posteriors = Posteriors(tuple(map(str, range(mu.shape[1]))), mu, sigma)
    converter = Converter(runtime, fitted.predicate, ConversionConfig("mean"))
    return converter.from_posteriors(posteriors).potential


def optimality_statement(networks: TrainedNetworks) -> CheckedStatement:
    world, losses = TwoItemWorld(), weight_losses(networks)
    free, frozen = world.best_weight(world.free_scale), world.best_weight(world.single_scale)
    spread = circularity()
    is_reached = abs(free - world.proportional_weight) <= 1.0 / STEPS
    is_frozen_too = abs(frozen - world.proportional_weight) <= 1.0 / STEPS
    return CheckedStatement(
        "P3",
        "P3, optimality of the learned weights",
        "The aggregator minimises the expected log loss if and only if weights are proportional "
        "to the informativeness of the items, that is, to the derivative of log p in each code.",
        INSTEAD if is_reached else "",
        f"With two items that are right in {ACCURACIES[0]:.0%} and {ACCURACIES[1]:.0%} and a "
        f"decoder that was trained on single items and frozen, as in the paper, the best weight of "
        f"the first is {frozen:.3f}; in proportion to what they say it would be "
        f"{world.proportional_weight:.3f}.",
        f"If the decoder's scale is free, the best weight is {free:.3f}. The printed condition is "
        f"met by any weights: the derivative in an item's code is its weight times the same vector "
        f"(checked on {CHECKS} random weights, largest difference {spread:.0e}). Trained, {ITEMS} "
        f"items: log loss {losses.learned:.4f} with the learned weights, {losses.equal:.4f} with "
        f"equal ones and {losses.proportional:.4f} with weights proportional to how far each "
        f"factor lowers the entropy; learned weights and that correlate by "
        f"{losses.correlation:.2f} in rank.",
        verdict_of(stated=is_frozen_too and spread > 1e-3, corrected=None),
        (_losses_table(losses),),
        (_weights_figure(world),),
    )


def contradiction_statement(networks: TrainedNetworks) -> CheckedStatement:
    found = pair_reaction(networks)
    return CheckedStatement(
        "P4",
        "P4, handling of contradictions",
        "If two items have opposite codes, their consistency is low, which reduces both weights.",
        "",
        f"Two items with opposite codes still share a weight of 1 (to {found.total:.0e}), so both "
        f"cannot be reduced, and their consistency was lower than that of two equal items in "
        f"{found.lower:.0%} of the pairs only.",
        f"Nothing trains the consistency to be low for contradictions: its mean was "
        f"{found.contradicting:.3f} for them and {found.alike:.3f} for equal items. The aggregate "
        f"shrinks because the mean of opposite codes is near 0, with any weights. One item of "
        f"five, turned around, goes from a weight of {found.before.weight:.3f} to "
        f"{found.after.weight:.3f}, from a quality of {found.before.quality:.3f} to "
        f"{found.after.quality:.3f}, and from a consistency of {found.before.consistency:.3f} to "
        f"{found.after.consistency:.3f}.",
        verdict_of(stated=found.total > 1e-6 and found.lower >= 0.95, corrected=None),
        (_reaction_table(found),),
    )


def circularity() -> float:
    """The largest relative difference, over random weights, between the items' ratios of derivative
    to weight."""
    worst = 0.0
    for check in range(CHECKS):
        generator = stream(check, "theorems", "weights")
        weights, gradient = generator.dirichlet(np.ones(4)), generator.normal(size=3)
        ratios = gradient_ratio(weights, gradient)
        worst = max(worst, float(np.ptp(ratios, axis=0).max() / np.abs(ratios).max()))
    return worst


def _losses_table(losses: WeightLosses) -> Table:
    rows = (
        ("learned", "Learned weights", losses.learned),
        ("equal", "Equal weights", losses.equal),
        ("proportional", "Proportional to the entropy removed", losses.proportional),
    )
    return Table(
        "theorems_weights",
        "P3: log loss by weights",
        f"LPF-Learned as published, new entities with {ITEMS} items each, the same codes and the "
        "same decoder.",
        (Column("nll", "Log loss", "number", "lower", 4),),
        tuple(Row(name, title, (Value(loss),)) for name, title, loss in rows),
    )


def _reaction_table(found: PairReaction) -> Table:
    rows = (
        ("alike", "Consistency of two equal items", found.alike),
        ("contradicting", "Consistency of two opposite items", found.contradicting),
        ("lower", "Pairs with a lower consistency if opposite", found.lower),
        ("weight_before", "Weight of one item of five", found.before.weight),
        ("weight_after", "Its weight with the opposite code", found.after.weight),
        ("quality_before", "Its quality", found.before.quality),
        ("quality_after", "Its quality with the opposite code", found.after.quality),
        ("consistency_before", "Its consistency", found.before.consistency),
        ("consistency_after", "Its consistency with the opposite code", found.after.consistency),
    )
    return Table(
        "theorems_contradictions",
        "P4: consistency and weights of contradicting items",
        "LPF-Learned as published, one pair per new entity. Opposite: the mean of the code changes "
        "its sign, its variance stays.",
        (Column("value", "Mean", "number", None, 4),),
        tuple(Row(name, title, (Value(number),)) for name, title, number in rows),
    )


def _weights_figure(world: TwoItemWorld) -> Figure:
    weights = np.linspace(0.0, 1.0, 51)
    x = tuple(weights.tolist())
    free, frozen = (
        tuple(world.loss(weights, scale).tolist())
        for scale in (world.free_scale, world.single_scale)
    )
    return Figure(
        "theorems_weights",
        "P3: the best weight depends on the decoder",
        f"Two independent items that are right in {ACCURACIES[0]:.0%} and {ACCURACIES[1]:.0%}; "
        "exact.",
        "lines",
        "Weight of the better item",
        "Expected log loss",
        (
            Series("Decoder with a free scale", x, free, standing="ours"),
            Series("Decoder trained on single items", x, frozen),
        ),
    )
