"""Paper mode, as published: log P = log P0 + Σ wᵢ log(Φᵢ + 1e-12)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

import numpy as np

from lpf.combine.combined import Combined, normalised
from lpf.errors import ConfigError
from lpf.items import Segments
from lpf.types import LOG_EPSILON, SIGMA_FLOOR, FloatArray

WeightForm = Literal["product", "sigmoid"]


@dataclass(frozen=True)
class PaperParameters:
    """α and the form of the credibility weight: confidence times penalty (``product``, Algorithm 1)
    or the penalty alone (``sigmoid``, section 4)."""

    alpha: float = 2.0
    weight_form: WeightForm = "product"

    def to_dict(self) -> dict[str, float | str]:
        """Return the settings and constants of this mode, as stored in records."""
        return {**asdict(self), "log_epsilon": LOG_EPSILON, "sigma_floor": SIGMA_FLOOR}

    def __post_init__(self) -> None:
        if not np.isfinite(self.alpha) or self.alpha < 0:
            raise ConfigError(f"must be 0 or above, got {self.alpha!r}.", field="alpha")
        if self.weight_form not in get_args(WeightForm):
            raise ConfigError(
                f"must be one of {get_args(WeightForm)}, got {self.weight_form!r}.",
                field="weight_form",
            )


def credibility_weight(mean_sigma: FloatArray, parameters: PaperParameters) -> FloatArray:
    """Return w per item: 1/(1+exp(α·mean σ)), times 1/(1+mean σ) in the product form.

    It is always below 0.5 and hardly differs between items (see docs/paper.md).
    """
    # exp(-x) / (1 + exp(-x)) does not overflow for large sigma.
    decay = np.exp(-parameters.alpha * mean_sigma)
    penalty = decay / (1.0 + decay)
    return penalty / (1.0 + mean_sigma) if parameters.weight_form == "product" else penalty


def combine_paper(
    potential: FloatArray, weight: FloatArray, log_prior: FloatArray, segments: Segments
) -> Combined:
    """Combine factors ``potential`` [N, V] with weights [N].

    ``log_prior`` [E, V] or [V] is the circuit's joint with the known facts, or the schema's prior.
    """
    segments.check(len(potential))
    contributions = weight[:, None] * np.log(potential + LOG_EPSILON)
    return normalised(log_prior, contributions, segments, {"exponent": weight})
