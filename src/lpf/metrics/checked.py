"""What every score asks of its input, asked in one place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpf.errors import EvidenceError, NonFiniteError
from lpf.types import FloatArray

LabelArray = NDArray[np.int64]

SUM_TOLERANCE = 1e-6


def checked(probabilities: FloatArray, labels: LabelArray) -> tuple[FloatArray, LabelArray]:
    """``probabilities`` [E, V] as float64 and ``labels`` [E] as int64, places in the row.

    Raises ``EvidenceError`` for anything that is not a distribution with a label in each row.
    """
    rows, places = checked_probabilities(probabilities), np.asarray(labels)
    if places.shape != rows.shape[:1]:
        raise _refused(f"labels: {places.shape} given for {len(rows)} rows; one a row is needed")
    if places.dtype.kind not in "iu":
        raise _refused(f"labels: must be whole numbers, got {places.dtype}")
    outside = np.flatnonzero((places < 0) | (places >= rows.shape[1]))
    if len(outside):
        row = int(outside[0])
        raise _refused(f"labels[{row}]: {places[row]} is not in 0 to {rows.shape[1] - 1}")
    return rows, places.astype(np.int64)


def checked_probabilities(probabilities: FloatArray) -> FloatArray:
    """The part of ``checked`` for what needs no labels."""
    rows = np.asarray(probabilities, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise _refused(f"probabilities: must be [entities, values], not empty, got {rows.shape}")
    if not np.isfinite(rows).all():
        row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise NonFiniteError(f"probabilities[{row}]: not finite, {rows[row]}. Nothing was scored.")
    if rows.min() < 0.0:
        row = int(np.flatnonzero(rows.min(axis=1) < 0.0)[0])
        raise _refused(f"probabilities[{row}]: below 0, {rows[row]}")
    totals = rows.sum(axis=1)
    astray = np.flatnonzero(np.abs(totals - 1.0) > SUM_TOLERANCE)
    if len(astray):
        row = int(astray[0])
        raise _refused(f"probabilities[{row}]: sums to {totals[row]:.9g}; divide rows by their sum")
    return rows


def _refused(problem: str) -> EvidenceError:
    return EvidenceError(f"{problem}. Nothing was scored.")
