"""Verdicts on claims without any labels: the stance reader's own answers as a model.

``lpf init --claims`` creates a workspace whose model is built here. It answers from the first
evidence file on, and says that it has seen no labels of the user's; ``lpf train`` replaces it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpf.errors import ReaderIntegrityError, ReaderUnavailableError
from lpf.model.artefact import ModelCard
from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.linear_shape import LinearHead, linear_config, linear_tensors
from lpf.reading.export import STANCE, installed_weights
from lpf.reading.pair import PairReader, stance_start
from lpf.reading.stance import STANCES
from lpf.schema import Predicate
from lpf.types import Float32Array

VERDICT = "verdict"
NUMBERS_FILE = "zero_label.json"
CARD_NAME = "verdicts without labels"
INTENDED = (
    "A first verdict on claims from texts about them, before there are labels: supported, refuted, "
    "or not enough information."
)
UNSUITABLE = (
    "Claims whose truth does not follow from what texts say, languages other than English, "
    "decisions about people without a person who reads the evidence."
)


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


def zero_label_model(
    numbers: ZeroLabelNumbers, reader: PairReader
) -> tuple[ModelConfig, dict[str, Float32Array], ModelCard]:
    """A linear model of the stance logits among the features of ``reader``."""
    start = stance_start(reader.reader_id, reader.width)
    assert start is not None  # the stance reader is installed, so it is part of the reader
    weight = np.zeros((reader.width, len(numbers.values)))
    weight[start : start + len(STANCES)] = numbers.weight
    head = PredicateHead(
        VERDICT, numbers.values, numbers.prior, trained_rho=1.0, relevance_start=start
    )
    config = linear_config([head], (0,), reader.reader_id, reader.width)
    tensors = linear_tensors(config, [{VERDICT: LinearHead(weight, np.array(numbers.bias))}])
    fitted = {"rho": 1.0, "epsilon": 0.0, "fitted": 1.0}
    config = ModelConfig.from_dict(
        config.to_dict()
        | {
            "calibration": {VERDICT: fitted},
            "calibrated_on": {VERDICT: 0},
            "min_credibility": {VERDICT: 0.0},
            "sampling_key": "seeds 0",
        }
    )
    card = ModelCard(
        CARD_NAME,
        f"No labels of yours. Fitted to {numbers.claims:,} claims of public data sets that the "
        "stance reader was not trained on, each with texts about other things.",
        INTENDED,
        UNSUITABLE,
        metrics={f"{VERDICT}/{name}": value for name, value in numbers.scores.items()},
    )
    return config, tensors, card
