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

from lpf.errors import ConfigError, EvidenceError

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
KeyArray = NDArray[np.uint64]
EvidenceType = Literal["text", "structured", "hybrid"]
Variant = Literal["spn", "learned"]
Mode = Literal["robust", "paper"]
Fallback = Literal["average", "learned"]

# Floors of the paper's algorithms, used in paper mode.
SIGMA_FLOOR = 1e-6
LOG_EPSILON = 1e-12


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of evidence about one entity and predicate.

    ``credibility`` in [0, 1] says how far the item may be trusted, None if unknown. ``claim`` is
    the statement it is read against. ``supports_value`` is a label, for training. Items with the
    same ``report_id`` are copies: together they count as one.
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
        if self.credibility is not None and not 0.0 <= self.credibility <= 1.0:
            self._refuse("credibility", "must lie in [0, 1]")
        if self.timestamp is not None and self.timestamp.tzinfo is None:
            self._refuse("timestamp", "must carry a time zone")
        if self.evidence_type not in get_args(EvidenceType):
            self._refuse("evidence_type", f"must be one of {get_args(EvidenceType)}")

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


@dataclass(frozen=True)
class QueryOptions:
    """How a question is to be answered. What does not apply to the mode is refused, not ignored.

    ``robust`` is the default mode; ``paper`` follows the published algorithms to the letter, and
    ``QueryOptions.paper()`` and ``paper_best()`` are its two published settings. None means the
    mode's own default: for the sampler ``mean`` (robust) or ``plain`` (paper), for the temperature
    the fitted one (robust) or 1 (paper), for alpha 2 (paper). ``top_k``, ``min_credibility``,
    ``query_text`` and ``as_of`` choose the evidence, before the engine sees it. ``fallback`` says
    how the variant ``spn`` answers where the circuit does not cover the predicate.
    """

    variant: Variant = "spn"
    mode: Mode = "robust"
    top_k: int = 5
    sampler: str | None = None
    n_samples: int | None = None
    temperature: float | None = None
    alpha: float | None = None
    weight_form: str | None = None
    min_credibility: float = 0.5
    query_text: str | None = None
    as_of: datetime | None = None
    seed: int = 0
    uncertainty_samples: int = 0
    fallback: Fallback = "average"

    def __post_init__(self) -> None:
        self._check(self.variant in get_args(Variant), "variant", f"one of {get_args(Variant)}")
        self._check(self.mode in get_args(Mode), "mode", f"one of {get_args(Mode)}")
        self._check(self.fallback in get_args(Fallback), "fallback", f"one of {get_args(Fallback)}")
        self._check(self.top_k >= 1, "top_k", "at least 1")
        self._check(0.0 <= self.min_credibility <= 1.0, "min_credibility", "in [0, 1]")
        warm = self.temperature is None or 0.0 < self.temperature < float("inf")
        self._check(warm, "temperature", "above 0")
        self._check(self.uncertainty_samples >= 0, "uncertainty_samples", "0 (off) or above")
        aware = self.as_of is None or self.as_of.tzinfo is not None
        self._check(aware, "as_of", "a time with its zone")
        if self.mode == "robust":
            self._refuse(("alpha", "weight_form"), "applies in paper mode only")
        if self.variant == "learned":
            self._refuse(
                ("alpha", "weight_form", "sampler", "n_samples"),
                "does not apply to the variant 'learned', which draws no samples",
            )

    @classmethod
    def paper(cls) -> QueryOptions:
        """The paper's defaults: M = 16, T = 1, α = 2, top_k = 5."""
        return cls(mode="paper", sampler="plain", n_samples=16, temperature=1.0, alpha=2.0)

    @classmethod
    def paper_best(cls) -> QueryOptions:
        """The setting behind the paper's headline table: M = 4, T = 0.8, α = 0.1."""
        return cls(mode="paper", sampler="plain", n_samples=4, temperature=0.8, alpha=0.1)

    def _check(self, holds: bool, name: str, rule: str) -> None:
        if not holds:
            raise ConfigError(f"options.{name}: must be {rule}, got {getattr(self, name)!r}.")

    def _refuse(self, names: Sequence[str], reason: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise ConfigError(f"options.{name}: {reason}; leave it out.")
