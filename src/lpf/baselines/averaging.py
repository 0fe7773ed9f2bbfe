"""Plain averages of what single items say: VAE-Only of the paper, and the same without the VAE."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.baselines.interface import FittedMethod
from lpf.baselines.item_models import ItemModel, ItemModels, natural_shares
from lpf.combine import combine_average
from lpf.factors.convert import ConversionConfig
from lpf.model.runtime import Runtime
from lpf.training.examples import Examples
from lpf.types import FloatArray

PAPER_SAMPLES = 16


@dataclass(frozen=True)
class Averaged:
    """(1/K)·Σ pᵢ over an entity's items."""

    items: ItemModel

    def predict_proba(self, examples: Examples) -> FloatArray:
        return combine_average(self.items.probabilities(examples), examples.segments).distribution


@dataclass(frozen=True)
class FactorAverage:
    """Averaged factors of a trained model: its best member with sixteen samples, as published, or
    (``ensemble``) all members, each decoding at the mean."""

    name: str
    model: Runtime
    ensemble: bool = False
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        natural = natural_shares(train, predicate)
        if self.ensemble:
            return Averaged(ItemModel(self.model, predicate, natural))
        conversion = ConversionConfig("plain", PAPER_SAMPLES, seed=seed)
        return Averaged(ItemModel(self.model.member(0), predicate, natural, conversion))


@dataclass(frozen=True)
class ClassifierAverage:
    """Averaged probabilities of the deterministic classifier, its best member or all."""

    name: str
    items: ItemModels
    ensemble: bool = False
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        found = self.items.model(train, validation, predicate, seed)
        return Averaged(found if self.ensemble else found.best())
