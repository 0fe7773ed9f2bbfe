"""One method over several runs: mean and sd over seeds, and intervals.

``pooled`` joins the folds of one repetition into one run, in which every entity is answered once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from lpf import metrics
from lpf.errors import EvidenceError
from lpf.evaluation.measures import measure
from lpf.evaluation.predictions import Costs, Predictions
from lpf.metrics.calibration import BINS, Bins
from lpf.types import FloatArray

DRAWS = 2000
LEVEL = 0.95
# With five groups, all differ in the same direction by chance in more than 5 % of cases.
FEWEST_GROUPS = 6
BY_ENTITY = ("accuracy", "nll", "brier", "mean_confidence")


@dataclass(frozen=True)
class Spread:
    """A measure over ``runs`` seeds: its mean, the standard deviation between seeds (divided by
    runs - 1, None for one run), and the ends of its interval if it has one."""

    mean: float
    sd: float | None
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True)
class Summary:
    """``spreads`` by the names of ``measure``; empty if every run failed. ``runs`` of ``all_runs``
    have predictions. Intervals come from ``draws`` resamplings of seeds and entities with ``seed``.
    ``notes`` are remarks on failed runs, other runs and infinite losses."""

    runs: int
    all_runs: int
    spreads: Mapping[str, Spread]
    notes: tuple[str, ...]
    draws: int
    seed: int
    level: float = LEVEL


def summarise(
    answers: Sequence[Predictions],
    *,
    groups: Mapping[str, str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Summary:
    """``answers`` has one run per seed, on the same entities or others; failed runs are left out.

    Accuracy, nll, brier, mean_confidence and ece have 95 % percentile intervals. Resampling adds
    noise to an ECE and so raises it; draws are therefore shifted to the measured mean. The interval
    is that of the ECE that this number of entities shows, chance included: compare it with
    ``ece_null``. ``ece_p`` is the mean over runs and not a p-value itself. ``groups`` maps entity
    IDs to groups: a group is resampled as a whole, and fewer than six give no intervals.
    """
    succeeded = [run for run in answers if run.error is None]
    measured = [measure(run, seed=seed) for run in succeeded]
    names = dict.fromkeys(name for measures in measured for name in measures)
    values = {name: [run[name] for run in measured if name in run] for name in names}
    keys = [entity_keys(run, groups) for run in succeeded]
    intervals = {}
    if succeeded and not too_few(keys, groups):
        intervals = _intervals(succeeded, keys, values, np.random.default_rng(seed), draws)
    spreads = {name: _spread(values[name], intervals.get(name)) for name in names}
    notes = (*_failed_runs(answers), *_notes(succeeded), *_infinite(values))
    return Summary(len(succeeded), len(answers), spreads, notes, draws, seed)


def entity_keys(answered: Predictions, groups: Mapping[str, str] | None = None) -> list[Hashable]:
    """What identifies an entity across runs: its ID and its label, because generated data of
    another seed has the same IDs for other entities (a chance match is harmless). An
    entity of a group is identified by the group, so that resampling takes groups as a whole: their
    entities are alike and count for less than as many independent ones."""
    named = groups or {}
    return [
        ("group", named[name]) if name in named else (name, label)
        for name, label in zip(answered.entity_ids, answered.labels.tolist(), strict=True)
    ]


def too_few(keys: Iterable[Iterable[Hashable]], groups: Mapping[str, str] | None) -> bool:
    """Return True if there are groups, and too few of them for an interval."""
    return bool(groups) and len({key for row in keys for key in row}) < FEWEST_GROUPS


def _spread(values: Sequence[float], interval: tuple[float, float] | None) -> Spread:
    finite = all(math.isfinite(value) for value in values)
    low, high = interval or (None, None)
    sd = stdev(values) if finite and len(values) > 1 else None
    return Spread(fmean(values), sd, low, high, len(values))


def _intervals(
    answers: Sequence[Predictions],
    keys: Sequence[Sequence[Hashable]],
    values: Mapping[str, Sequence[float]],
    generator: np.random.Generator,
    draws: int,
) -> dict[str, tuple[float, float]]:
    """An ECE under weights is Σ_b |Σ_e w_e·(right_e - confidence_e)| / Σ_e w_e, so that its bins
    are columns of means like any other."""
    names = [name for name in BY_ENTITY if np.isfinite(values[name]).all()]
    columns = [np.column_stack([_losses(one, names), _gaps(one)]) for one in answers]
    drawn = metrics.resampled(columns, keys, generator, draws)
    lows, highs = metrics.percentiles(drawn.over_seeds()[:, : len(names)], LEVEL)
    intervals = {name: (float(lows[at]), float(highs[at])) for at, name in enumerate(names)}
    errors = (drawn.shares * np.abs(drawn.means[:, :, len(names) :]).sum(axis=2)).sum(axis=1)
    return intervals | {"ece": _centred(errors, fmean(values["ece"]))}


def _losses(answered: Predictions, names: Sequence[str]) -> FloatArray:
    """[E, names]."""
    rows, labels = answered.answers, answered.labels.astype(np.int64)
    confidence, right = metrics.confidence_and_hits(rows, labels)
    by_name = {
        "accuracy": right.astype(np.float64),
        "nll": metrics.log_losses(rows, labels),
        "brier": metrics.brier_losses(rows, labels),
        "mean_confidence": confidence,
    }
    return np.column_stack([by_name[name] for name in names])


def _gaps(answered: Predictions) -> FloatArray:
    """[E, bins], right - confidence in the column of its bin and 0 elsewhere."""
    confidence, right = metrics.confidence_and_hits(
        answered.answers, answered.labels.astype(np.int64)
    )
    bins = Bins.of(confidence, BINS, "width")
    gaps = np.zeros((len(right), BINS))
    column = np.repeat(np.arange(len(bins.count)), bins.count)
    gaps[bins.order, column] = (right - confidence)[bins.order]
    return gaps


def _centred(drawn: FloatArray, observed: float) -> tuple[float, float]:
    low, high = metrics.percentiles(drawn + (observed - drawn.mean()), LEVEL)
    return max(0.0, float(low)), float(high)


def _failed_runs(answers: Sequence[Predictions]) -> list[str]:
    errors = [one.error for one in answers if one.error is not None]
    if not errors:
        return []
    reasons = "; ".join(dict.fromkeys(errors))
    return [f"{len(errors)} of {len(answers)} runs have no answers: {reasons}"]


def _notes(answers: Sequence[Predictions]) -> list[str]:
    counts = Counter(one.note for one in answers if one.note is not None)
    return [f"{runs} of {len(answers)} runs: {note}" for note, runs in counts.items()]


def _infinite(values: Mapping[str, Sequence[float]]) -> list[str]:
    return [
        f"{name} is infinite in {bad} of {len(runs)} runs: labels got probability 0"
        for name, runs in values.items()
        if (bad := sum(math.isinf(value) for value in runs))
    ]


def pooled(answers: Sequence[Predictions]) -> Predictions:
    """Joins folds in the given order. Costs are per fold: the mean, and the largest ``peak_bytes``.

    If one fold failed, the repetition has no predictions, and its error says which: the entities of
    the other folds alone would be another test set. Raises EvidenceError for folds with different
    values, and for an entity that is in two folds.
    """
    _require_one_partition(answers)
    failed = _failures(answers)
    temperatures = {one.temperature for one in answers}
    return Predictions(
        raw=None if failed else _joined([one.raw for one in answers]),
        tempered=None if failed else np.concatenate([one.answers for one in answers]),
        labels=np.concatenate([one.labels for one in answers]),
        counts=np.concatenate([one.counts for one in answers]),
        credibility=np.concatenate([one.credibility for one in answers]),
        entity_ids=tuple(name for one in answers for name in one.entity_ids),
        values=answers[0].values,
        groups=_groups(answers),
        temperature=temperatures.pop() if len(temperatures) == 1 else None,
        costs=_mean_costs([one.costs for one in answers]),
        error="; ".join(failed) or None,
        note="; ".join(dict.fromkeys(one.note for one in answers if one.note)) or None,
    )


def _require_one_partition(answers: Sequence[Predictions]) -> None:
    if not answers:
        raise EvidenceError("no folds were given. Nothing was pooled.")
    if any(one.values != answers[0].values for one in answers):
        kinds = sorted({one.values for one in answers})
        raise EvidenceError(f"folds have different values, {kinds}. Nothing was pooled.")
    times = Counter(name for one in answers for name in one.entity_ids)
    name, most = times.most_common(1)[0]
    if most > 1:
        raise EvidenceError(
            f"entity {name!r} is in {most} folds. Nothing was pooled.",
            hint="Give the folds of one repetition, which hold each entity once.",
        )


def _failures(answers: Sequence[Predictions]) -> list[str]:
    if len(answers) == 1:  # the test split of a file, not a fold
        return [one.error for one in answers if one.error]
    places: dict[str, list[int]] = {}  # usually all folds have the same error
    for place, one in enumerate(answers, 1):
        if one.error:
            places.setdefault(one.error, []).append(place)
    return [
        f"fold {where[0]}: {error}"
        if len(where) == 1
        else f"in {len(where)} of {len(answers)} folds: {error}"
        for error, where in places.items()
    ]


def _joined(rows: Sequence[FloatArray | None]) -> FloatArray | None:
    """None if a fold has its predictions at the fitted temperature only."""
    known = [fold for fold in rows if fold is not None]
    return np.concatenate(known) if len(known) == len(rows) else None


def _groups(answers: Sequence[Predictions]) -> tuple[str | None, ...]:
    """Empty if no fold has a protected field; None for a fold without one."""
    if not any(one.groups for one in answers):
        return ()
    return tuple(group for one in answers for group in one.groups or (None,) * len(one.entity_ids))


def _mean_costs(costs: Sequence[Costs]) -> Costs:
    stored = _mean([one.stored_bytes for one in costs])
    return Costs(
        fit_seconds=_mean([one.fit_seconds for one in costs]),
        query_ms=_mean([one.query_ms for one in costs]),
        per_second=_mean([one.per_second for one in costs]),
        stored_bytes=None if stored is None else round(stored),
        peak_bytes=max(
            (one.peak_bytes for one in costs if one.peak_bytes is not None), default=None
        ),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that were measured."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None
