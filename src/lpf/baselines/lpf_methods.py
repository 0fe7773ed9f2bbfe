"""LPF itself behind the same interface: a trained model, asked as the engine is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lpf.baselines.interface import FittedMethod
from lpf.circuits import CompiledCircuit
from lpf.engine import Engine
from lpf.model.runtime import Runtime
from lpf.training.examples import Examples
from lpf.training.fitting import calibrated, fit_predicate
from lpf.types import FloatArray, QueryOptions


@dataclass(frozen=True)
class FittedLpf:
    """An engine with the options it is asked with."""

    engine: Engine
    predicate: str
    options: QueryOptions

    def predict_proba(self, examples: Examples) -> FloatArray:
        return self.engine.answer(examples.items, self.predicate, self.options).distribution


@dataclass(frozen=True)
class Lpf:
    """``model`` under ``options``. Where they ask for robust mode, its numbers (for the learned
    variant its temperature) are fitted on the validation entities given, whatever the model came
    with: one member alone needs other numbers than the ensemble."""

    name: str
    model: Runtime
    options: QueryOptions
    circuit: CompiledCircuit | None = None
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        schema, model = train.dataset.schema, self.model
        if self.options.mode == "robust":
            fitted = fit_predicate(model, schema[predicate], validation)
            model = calibrated(model, {predicate: fitted})
        engine = Engine(model, schema, self.circuit)
        return FittedLpf(engine, predicate, replace(self.options, seed=seed))
