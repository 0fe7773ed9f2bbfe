"""The folds of one repetition as one run, whose error says each thing once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lpf.experiments.answered import Answered
from lpf.experiments.judging.pooling import pooled


def whole_run(folds: Sequence[Answered]) -> Answered:
    """As ``pooled``; what goes wrong in one fold mostly does in all."""
    run = pooled(folds)
    if run.error is None or len(folds) == 1:
        return run
    return replace(run, error=_told_once(folds))


def _told_once(folds: Sequence[Answered]) -> str:
    places: dict[str, list[int]] = {}
    for place, fold in enumerate(folds, 1):
        if fold.error is not None:
            places.setdefault(fold.error, []).append(place)
    return "; ".join(
        f"fold {where[0]}: {error}"
        if len(where) == 1
        else f"in {len(where)} of {len(folds)} folds: {error}"
        for error, where in places.items()
    )
