"""Verdicts on claims without any labels: the stance reader's own answers as a model.

``lpf init --claims`` creates a workspace whose model is built here. It answers from the first
evidence file on, and says that it has seen no labels of the user's; ``lpf train`` replaces it.
"""

from __future__ import annotations

from lpf.model.artefact import ModelCard
from lpf.model.config import ModelConfig
from lpf.model.zero_label import VERDICT, ZeroLabelNumbers
from lpf.reading.pair import PairReader
from lpf.types import Float32Array

CARD_NAME = "verdicts without labels"
INTENDED = (
    "A first verdict on claims from texts about them, before there are labels: supported, refuted, "
    "or not enough information."
)
UNSUITABLE = (
    "Claims whose truth does not follow from what texts say, languages other than English, "
    "decisions about people without a person who reads the evidence."
)


def zero_label_model(
    numbers: ZeroLabelNumbers, reader: PairReader
) -> tuple[ModelConfig, dict[str, Float32Array], ModelCard]:
    """A linear model of the stance logits among the features of ``reader``."""
    config, tensors = numbers.model(VERDICT, numbers.values, reader.reader_id, reader.width)
    card = ModelCard(
        CARD_NAME,
        f"No labels of yours. Fitted to {numbers.claims:,} claims of public data sets that the "
        "stance reader was not trained on, each with texts about other things.",
        INTENDED,
        UNSUITABLE,
        metrics={f"{VERDICT}/{name}": value for name, value in numbers.scores.items()},
    )
    return config, tensors, card
