"""The folds of one repetition as one run: every entity answered once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from lpf.errors import EvidenceError
from lpf.experiments.answered import Answered, Costs
from lpf.types import FloatArray


def pooled(answers: Sequence[Answered]) -> Answered:
    """In the order given. Costs are those of one fold: the mean, the largest of ``peak_bytes``.

    One fold that crashed leaves the repetition without answers, and its error says which: the
    others' entities alone would be another test set. Raises EvidenceError for folds of other
    values and for an entity that is in two.
    """
    _refuse_strangers(answers)
    failed = _failures(answers)
    temperatures = {one.temperature for one in answers}
    return Answered(
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


def _refuse_strangers(answers: Sequence[Answered]) -> None:
    if not answers:
        raise EvidenceError("answers: no folds were given. Nothing was pooled.")
    if any(one.values != answers[0].values for one in answers):
        kinds = sorted({one.values for one in answers})
        raise EvidenceError(f"answers: folds have different values, {kinds}. Nothing was pooled.")
    times = Counter(name for one in answers for name in one.entity_ids)
    name, most = times.most_common(1)[0]
    if most > 1:
        raise EvidenceError(
            f"answers: entity {name!r} is asked about {most} times. Nothing was pooled; give the "
            "folds of one repetition, which hold each entity once."
        )


def _failures(answers: Sequence[Answered]) -> list[str]:
    if len(answers) == 1:  # the test split of a file, which is no fold
        return [one.error for one in answers if one.error]
    places: dict[str, list[int]] = {}  # what goes wrong in one fold mostly does in all
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
    """None where a fold kept its answers at the temperature only."""
    there = [one for one in rows if one is not None]
    return np.concatenate(there) if len(there) == len(rows) else None


def _groups(answers: Sequence[Answered]) -> tuple[str | None, ...]:
    """Empty where no fold has a protected field; unknown in a fold that has none."""
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
    """Over those that were measured."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None
