"""Verdicts on claims without any labels: numbers that turn the stances of texts into an answer.

The package of the stance reader has them in ``zero_label.json``, fitted to claims that the reader
was not trained on. With xᵢ the stance logits of text i and uᵢ its relevance,

    P(v) ∝ s(v)^(1 - Σ aᵢ) · Π softmax(xᵢ·W + c)(v)^aᵢ,    aᵢ = uᵢ / max(1, Σ uⱼ)

s is the answer if no text says anything about the claim. A predicate whose values mean the same as
``supported``, ``refuted`` and ``not_enough`` is answered by the same numbers; without a value for
``not_enough``, the other two share its probability in proportion to their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from lpf.errors import ConfigError, ReaderIntegrityError, ReaderUnavailableError
from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.linear_shape import LinearHead, linear_config, linear_tensors
from lpf.reading.export import STANCE, installed_weights
from lpf.reading.pair import stance_start
from lpf.reading.stance import STANCES
from lpf.schema import Predicate
from lpf.types import Float32Array, FloatArray

VERDICT: Final = "verdict"
NUMBERS_FILE: Final = "zero_label.json"
# Usual names of the verdicts, in small letters and with _ between words.
VERDICT_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "supported": ("supported", "supports", "support", "true", "entailment", "entailed"),
        "refuted": (
            *("refuted", "refutes", "refute", "false"),
            *("contradicted", "contradicts", "contradict", "contradiction"),
        ),
        "not_enough": (
            *("not_enough", "not_enough_info", "not_enough_information", "not_enough_evidence"),
            *("nei", "neutral", "unverified"),
        ),
    }
)


def verdict_meant(value: str) -> str | None:
    """The verdict that a value's name stands for; None for any other name. Case and what is between
    the words make no difference."""
    plain = "_".join(value.casefold().replace("-", " ").replace("_", " ").split())
    return next((one for one, names in VERDICT_NAMES.items() if plain in names), None)


def without_counterpart(values: Sequence[str]) -> tuple[str, ...]:
    """The values that stand for no verdict, or for one that an earlier value stands for."""
    meant = [verdict_meant(value) for value in values]
    return tuple(
        value
        for place, (value, verdict) in enumerate(zip(values, meant, strict=True))
        if verdict is None or verdict in meant[:place]
    )


@dataclass(frozen=True)
class VerdictHead:
    """The numbers for the values of one predicate: ``weight`` [3, V], ``bias`` [V] and ``silent``
    [V], the answer if no text says anything about the claim."""

    weight: FloatArray
    bias: FloatArray
    silent: FloatArray


def installed_head(values: Sequence[str]) -> VerdictHead | None:
    """The installed numbers for ``values``; None if there are none, or if a value stands for no
    verdict."""
    if without_counterpart(values) or installed_weights(STANCE) is None:
        return None
    return ZeroLabelNumbers.installed().head(values)


@dataclass(frozen=True)
class ZeroLabelNumbers:
    """What the package of the stance reader was fitted to say of stances: ``weight`` [3, 3] and
    ``bias`` [3] from stance logits to the logits of ``values``, ``prior`` [3] if no text says
    anything about the claim, and how well that did on held-out ``claims``."""

    values: tuple[str, ...]
    weight: tuple[tuple[float, ...], ...]
    bias: tuple[float, ...]
    prior: tuple[float, ...]
    claims: int
    scores: Mapping[str, float]

    @classmethod
    def installed(cls) -> ZeroLabelNumbers:
        """From the installed package. ReaderUnavailableError if there is none."""
        folder = installed_weights(STANCE)
        if folder is None:
            raise ReaderUnavailableError(
                "verdicts without labels need the stance reader, whose weights are not installed. "
                "Nothing was created.",
                hint=STANCE.install_hint,
            )
        path = folder / NUMBERS_FILE
        try:
            return cls._of(json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReaderIntegrityError(
                f"{path} cannot be used ({error}). Nothing was created.",
                hint=f"Reinstall the package {STANCE.requirement}.",
            ) from error

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> ZeroLabelNumbers:
        count = len(STANCES)
        weight = np.array(document["weight"], float)
        if weight.shape != (count, count) or len(document["values"]) != count:
            raise ValueError("it has the wrong shape")
        return cls(
            tuple(map(str, document["values"])),
            tuple(map(tuple, weight.tolist())),
            tuple(map(float, document["bias"])),
            tuple(map(float, document["prior"])),
            int(document["claims"]),
            {name: float(document[name]) for name in ("accuracy", "nll", "ece", "ece_null")},
        )

    def predicate(self) -> Predicate:
        description = "What the evidence says of the claim."
        return Predicate(VERDICT, self.values, self.prior, description=description)

    def head(self, values: Sequence[str]) -> VerdictHead:
        """The numbers for ``values``. ConfigError if one stands for no verdict. Leaving a column
        out gives its probability to the others in proportion to theirs."""
        if unmatched := without_counterpart(values):
            raise ConfigError(
                f"the values {list(unmatched)} have no counterpart among {list(self.values)}, so "
                "nothing can be said about them without labels.",
                hint="Names that are understood are listed in docs/evaluation.md.",
            )
        columns = [self.values.index(str(verdict_meant(value))) for value in values]
        silent = np.array(self.prior)[columns]
        return VerdictHead(
            np.array(self.weight)[:, columns], np.array(self.bias)[columns], silent / silent.sum()
        )

    def model(
        self, name: str, values: tuple[str, ...], reader_id: str, width: int
    ) -> tuple[ModelConfig, dict[str, Float32Array]]:
        """A linear model of the stance logits among the ``width`` features of a reader, to be used
        with the prior ``head(values).silent``. ConfigError if the reader reads no stances."""
        start = stance_start(reader_id, width)
        if start is None:
            raise ConfigError(
                f"the reader {reader_id!r} reads no stances towards a claim, which verdicts "
                "without labels are made from.",
                hint=STANCE.install_hint,
            )
        numbers = self.head(values)
        weight = np.zeros((width, len(values)))
        weight[start : start + len(STANCES)] = numbers.weight
        silent = tuple(numbers.silent.tolist())
        head = PredicateHead(name, values, silent, trained_rho=1.0, relevance_start=start)
        config = linear_config([head], (0,), reader_id, width)
        tensors = linear_tensors(config, [{name: LinearHead(weight, numbers.bias)}])
        config = replace(
            config,
            calibration={name: {"rho": 1.0, "epsilon": 0.0, "fitted": 1.0}},
            calibrated_on={name: 0},
            min_credibility={name: 0.0},
            sampling_key="seeds 0",
        )
        return config, tensors
