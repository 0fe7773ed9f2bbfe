"""Compares one method with others, on the same entities and seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lpf import metrics
from lpf.errors import ConfigError, EvidenceError
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.summaries import FEWEST_GROUPS, entity_keys, too_few
from lpf.metrics import Difference, LabelArray
from lpf.metrics.intervals import DRAWS, LEVEL
from lpf.types import FloatArray

Loss = Literal["nll", "brier", "error"]


def _errors(rows: FloatArray, labels: LabelArray) -> FloatArray:
    """[E], 1 for a wrong answer."""
    return (~metrics.confidence_and_hits(rows, labels)[1]).astype(np.float64)


LOSSES: Mapping[str, Callable[[FloatArray, LabelArray], FloatArray]] = {
    "nll": metrics.log_losses,
    "brier": metrics.brier_losses,
    "error": _errors,
}


@dataclass(frozen=True)
class Comparison:
    """One method (the reference) against method ``name``.

    ``difference`` is the reference's mean loss less the other's: below 0 the reference is better.
    ``adjusted`` is its p-value after Holm's correction, over all methods that could be compared.
    Both are None if no comparison was possible; ``note`` gives the reason, and also says if runs
    are missing. ``seeds`` of ``runs`` runs were compared, with ``entities`` answers in all.
    """

    name: str
    measure: Loss | Literal["accuracy"]
    seeds: int
    runs: int
    entities: int
    difference: Difference | None = None
    adjusted: float | None = None
    note: str | None = None

    def as_accuracy(self) -> Comparison:
        """A difference in errors as one in accuracy: above 0 the reference is better."""
        if self.measure != "error" or self.difference is None:
            return replace(self, measure="accuracy")
        loss = self.difference
        flipped = replace(loss, mean=-loss.mean, low=-loss.high, high=-loss.low)
        return replace(self, measure="accuracy", difference=flipped)

    def __str__(self) -> str:
        if self.difference is None:
            return f"against {self.name}: {self.note}"
        difference = self.difference
        return (
            f"{self.measure} against {self.name}: {difference.mean:+.4f} "
            f"({difference.level:.0%} interval {difference.low:+.4f} to {difference.high:+.4f}), "
            f"p = {difference.p_value:.4f}, after Holm {self.adjusted:.4f}"
        )


@dataclass(frozen=True)
class _Pair:
    """``runs`` are the positions, of ``all_runs``, at which both methods have predictions;
    ``losses`` are those of the two methods there."""

    name: str
    all_runs: int
    runs: tuple[int, ...]
    losses: tuple[tuple[FloatArray, FloatArray], ...]

    @property
    def ruled_out(self) -> tuple[int, int]:
        """The number of infinite losses of each method."""
        first, second = (
            sum(int(np.isinf(both[at]).sum()) for both in self.losses) for at in (0, 1)
        )
        return first, second


def compare(
    reference: Sequence[Predictions],
    others: Mapping[str, Sequence[Predictions]],
    measure: Loss = "nll",
    *,
    groups: Mapping[str, str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = LEVEL,
) -> list[Comparison]:
    """Mean differences of a loss with percentile intervals, one per method of ``others``, in order.

    A position in the sequences is a seed, so a run that failed keeps its position; methods are
    compared on the seeds that both have. A reference with one run is paired with every run of the
    other method. Different seeds may have different test entities; both methods of one seed must
    have the same in the same order, or EvidenceError is raised. Infinite losses have no mean
    difference: a pair with one is not compared, and ``note`` says so. ``groups`` maps entity IDs to
    groups: entities of a group are resampled together, and with fewer than six groups nothing is
    compared.
    """
    if measure not in LOSSES:
        raise ConfigError(
            f"unknown measure {measure!r}; choose from {sorted(LOSSES)}.", field="measure"
        )
    keys_by_run = [entity_keys(run, groups) for run in reference]
    few = too_few(keys_by_run, groups)
    pairs = [_pair(name, reference, other, measure) for name, other in others.items()]
    comparisons = [_without_difference(pair, measure, few) for pair in pairs]
    comparable = [pair for pair in pairs if pair.runs and not few and not any(pair.ruled_out)]
    differences: dict[str, Difference] = {}
    for runs in dict.fromkeys(pair.runs for pair in comparable):
        same_runs = [pair for pair in comparable if pair.runs == runs]
        keys = [keys_by_run[run if len(keys_by_run) > 1 else 0] for run in runs]
        means = metrics.mean_differences(
            _columns(same_runs), keys, np.random.default_rng(seed), draws=draws, level=level
        )
        differences |= {pair.name: mean for pair, mean in zip(same_runs, means, strict=True)}
    return _adjusted(comparisons, differences)


def _pair(
    name: str, reference: Sequence[Predictions], other: Sequence[Predictions], measure: Loss
) -> _Pair:
    if len(reference) == 1:
        reference = [reference[0]] * len(other)
    if len(other) != len(reference):
        raise EvidenceError(
            f"{name}: {len(other)} runs cannot be paired with {len(reference)}. Nothing was "
            "compared.",
            hint="A run that failed keeps its position, as predictions with an error.",
        )
    runs = tuple(
        run
        for run, (one, two) in enumerate(zip(reference, other, strict=True))
        if one.error is None and two.error is None
    )
    for run in runs:
        _refuse_mismatch(name, run, reference[run], other[run])
    both = tuple((_losses(reference[run], measure), _losses(other[run], measure)) for run in runs)
    return _Pair(name, len(other), runs, both)


def _refuse_mismatch(name: str, run: int, one: Predictions, two: Predictions) -> None:
    same = (
        one.entity_ids == two.entity_ids
        and one.values == two.values
        and np.array_equal(one.labels, two.labels)
    )
    if not same:
        raise EvidenceError(
            f"{name}, run {run + 1}: its entities, labels or values are not those of the reference "
            "in the same order, so losses cannot be paired. Nothing was compared."
        )


def _losses(answered: Predictions, measure: Loss) -> FloatArray:
    """[E]."""
    return LOSSES[measure](answered.answers, answered.labels.astype(np.int64))


def _columns(pairs: Sequence[_Pair]) -> list[FloatArray]:
    """Differences of losses, [E, pairs] per run; all ``pairs`` have the same runs."""
    return [
        np.column_stack([pair.losses[at][0] - pair.losses[at][1] for pair in pairs])
        for at in range(len(pairs[0].runs))
    ]


def _without_difference(pair: _Pair, measure: Loss, few: bool) -> Comparison:
    entities = sum(len(first) for first, _ in pair.losses)
    note = _note(pair, few)
    return Comparison(pair.name, measure, len(pair.runs), pair.all_runs, entities, note=note)


def _note(pair: _Pair, few: bool) -> str | None:
    if not pair.runs:
        return "not compared: no run in which both methods have predictions"
    if few:
        return f"not compared: the test entities belong to fewer than {FEWEST_GROUPS} groups"
    notes = []
    if len(pair.runs) < pair.all_runs:
        notes.append(f"{len(pair.runs)} of {pair.all_runs} runs, in which both have predictions")
    if any(pair.ruled_out):
        by_reference, by_method = pair.ruled_out
        notes.append(
            "not compared: log losses are infinite, because labels were given probability 0, "
            f"{by_reference} by the reference and {by_method} by this method"
        )
    return "; ".join(notes) or None


def _adjusted(
    comparisons: Sequence[Comparison], differences: Mapping[str, Difference]
) -> list[Comparison]:
    p_values = np.array([one.p_value for one in differences.values()])
    by_name = dict(zip(differences, metrics.holm(p_values).tolist(), strict=True))
    return [
        replace(one, difference=differences.get(one.name), adjusted=by_name.get(one.name))
        for one in comparisons
    ]
