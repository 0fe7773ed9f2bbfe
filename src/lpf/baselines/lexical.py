"""A regression on the words of an entity's texts and of its claim; it reads no features."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.baselines.interface import FittedMethod
from lpf.factors.distributions import softmax
from lpf.reading.fitted_words import LexicalModel
from lpf.training.examples import Examples
from lpf.training.lexical import entity_logits, fit_lexical
from lpf.types import FloatArray


@dataclass(frozen=True)
class OnWords:
    """A fitted ``LexicalRegression``."""

    model: LexicalModel

    def predict_proba(self, examples: Examples) -> FloatArray:
        return softmax(entity_logits(self.model, examples))


@dataclass(frozen=True)
class LexicalRegression:
    """Chosen and calibrated on held-out training entities; validation entities are not used."""

    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        return OnWords(fit_lexical(train, predicate, seed=seed).model)
