"""The paper's terms as frozen dataclasses: evidence, posteriors, factors, query options.

``Posteriors`` and ``Factors`` hold many items as arrays; ``LatentPosterior`` and ``SoftFactor`` are
one item of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lpf.errors import EvidenceError
from lpf.options import Fallback as Fallback
from lpf.options import Mode as Mode
from lpf.options import QueryOptions as QueryOptions
from lpf.options import Variant as Variant

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
KeyArray = NDArray[np.uint64]
EvidenceType = Literal["text", "structured", "hybrid"]
ColumnKind = Literal["text", "share", "number", "count", "time"]  # of a table that is written
LONGEST_TEXT = 1_000_000  # characters of an item's text or claim
SPLIT_TEXT = "Split the text into several items with the same report_id: they count as one."


def length_problem_of(text: str) -> str | None:
    """What is wrong with a text or claim that is too long to be read; None for any other."""
    if len(text) <= LONGEST_TEXT:
        return None
    return f"has {len(text):,} characters, at most {LONGEST_TEXT:,} are read"


# Floors of the paper's algorithms, used in paper mode.
SIGMA_FLOOR = 1e-6
LOG_EPSILON = 1e-12


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of evidence about one entity and predicate.

    ``credibility`` in [0, 1] says how far the item may be trusted, None if unknown. ``claim`` is
    the statement it is read against. ``supports_value`` is a label, for training. Items with the
    same ``report_id`` are copies: together they count as one. A text has at most LONGEST_TEXT
    characters, unless it is in a store already (``embedding_id``).
    """

    evidence_id: str
    entity_id: str
    predicate: str
    text_content: str
    credibility: float | None = None
    timestamp: datetime | None = None
    evidence_type: EvidenceType = "text"
    source: str | None = None
    supports_value: str | None = None
    claim: str | None = None
    embedding_id: int | None = None
    report_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("evidence_id", "entity_id", "predicate", "text_content"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                self._refuse(name, "must be a non-empty text")
        if self.embedding_id is None:
            self._refuse_long_texts()
        if self.credibility is not None and not 0.0 <= self.credibility <= 1.0:
            self._refuse("credibility", "must lie in [0, 1]")
        if self.timestamp is not None and self.timestamp.tzinfo is None:
            self._refuse("timestamp", "must carry a time zone")
        if self.evidence_type not in get_args(EvidenceType):
            self._refuse("evidence_type", f"must be one of {get_args(EvidenceType)}")

    def _refuse_long_texts(self) -> None:
        for name in ("text_content", "claim"):
            text = getattr(self, name)
            problem = None if text is None else length_problem_of(text)
            if problem is not None:
                raise EvidenceError(
                    f"evidence {self.evidence_id!r}: {problem}.", field=name, hint=SPLIT_TEXT
                )

    def _refuse(self, name: str, rule: str) -> None:
        raise EvidenceError(
            f"evidence {self.evidence_id!r}: {name} {rule}, got {getattr(self, name)!r}."
        )


@dataclass(frozen=True, slots=True)
class LatentPosterior:
    """q(z|e) of one item under one model: a diagonal Gaussian of ``d`` dimensions."""

    evidence_id: str
    mu: Float32Array
    sigma: Float32Array
    logvar: Float32Array
    confidence: float


@dataclass(frozen=True, slots=True)
class Posteriors:
    """q(z|e) of N items under S models: ``mu`` and ``sigma`` are [S, N, d]."""

    evidence_ids: Sequence[str]
    mu: Float32Array
    sigma: Float32Array

    def __len__(self) -> int:
        return int(self.mu.shape[1])

    @property
    def mean_sigma(self) -> FloatArray:
        """Mean of σ over dimensions and models, [N]."""
        return np.asarray(self.sigma.mean(axis=(0, 2), dtype=np.float64))

    @property
    def confidence(self) -> FloatArray:
        """1 / (1 + mean σ), [N] (Algorithm 2, line 13)."""
        return 1.0 / (1.0 + self.mean_sigma)

    def item(self, position: int, member: int = 0) -> LatentPosterior:
        sigma = self.sigma[member, position]
        return LatentPosterior(
            self.evidence_ids[position],
            self.mu[member, position],
            sigma,
            2.0 * np.log(sigma, out=np.full_like(sigma, -np.inf), where=sigma > 0),
            1.0 / (1.0 + float(sigma.mean(dtype=np.float64))),
        )


@dataclass(frozen=True, slots=True)
class SoftFactor:
    """Φ_e(y) of one item: what it says about ``variables[0]``, and its weight.

    ``group_id`` names the group of copies the item belongs to, None if it has no copies.
    """

    evidence_id: str
    variables: tuple[str, ...]
    potential: Mapping[str, float]
    weight: float
    group_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Factors:
    """Soft factors of N items over one predicate of V values.

    ``potential`` [N, V] float64 is what the combination works on and what a record holds, so an
    answer can be recomputed from it bit for bit. ``mean_sigma`` [N] is the posteriors' mean σ.
    """

    evidence_ids: Sequence[str]
    predicate: str
    values: tuple[str, ...]
    potential: FloatArray
    mean_sigma: FloatArray
    sampler: str
    n_samples: int
    temperature: float

    def __len__(self) -> int:
        return int(self.potential.shape[0])

    @property
    def confidence(self) -> FloatArray:
        """1 / (1 + mean σ), [N]."""
        return 1.0 / (1.0 + self.mean_sigma)

    def item(
        self, position: int, weight: float, group_id: str | None = None, **metadata: float
    ) -> SoftFactor:
        """One item's factor. ``metadata`` is added to what is known about the conversion."""
        return SoftFactor(
            evidence_id=self.evidence_ids[position],
            variables=(self.predicate,),
            potential=dict(zip(self.values, map(float, self.potential[position]), strict=True)),
            weight=weight,
            group_id=group_id,
            metadata={
                "n_samples": self.n_samples,
                "temperature": self.temperature,
                "mean_sigma": float(self.mean_sigma[position]),
                "base_confidence": float(1.0 / (1.0 + self.mean_sigma[position])),
                "sampler": self.sampler,
                **metadata,
            },
        )
