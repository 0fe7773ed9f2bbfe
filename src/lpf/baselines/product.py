"""SPN-Only: the deterministic classifier in the circuit, without anything that robust mode adds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.baselines.interface import FittedMethod
from lpf.baselines.item_models import ItemModel, ItemModels
from lpf.combine import RobustParameters, combine_robust
from lpf.engine import Background
from lpf.spn import CompiledCircuit
from lpf.training.examples import Examples
from lpf.types import FloatArray

# P ∝ P_circuit(y)·Π Φᵢ(y)/π(y): every item counts fully, none is doubted.
PLAIN = RobustParameters(rho=0.0, epsilon=0.0)


@dataclass(frozen=True)
class Product:
    """What ``CircuitOnly`` learns."""

    items: ItemModel
    log_prior: FloatArray

    def predict_proba(self, examples: Examples) -> FloatArray:
        return combine_robust(
            self.items.factors(examples),
            np.full(len(examples.features), np.nan),
            self.items.shares,
            self.log_prior,
            examples.segments,
            PLAIN,
        ).distribution


@dataclass(frozen=True)
class CircuitOnly:
    """The best deterministic classifier, multiplied."""

    name: str
    items: ItemModels
    circuit: CompiledCircuit | None = None
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        background = Background(train.dataset.schema, self.circuit)
        found = self.items.model(train, validation, predicate, seed).best()
        return Product(found, background.log_prior(predicate))
