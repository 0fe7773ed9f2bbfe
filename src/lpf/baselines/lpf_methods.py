"""LPF behind the interface of all methods: a trained model in an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lpf.baselines.interface import FittedMethod
from lpf.circuits import CompiledCircuit
from lpf.engine import Engine
from lpf.model.runtime import Runtime
from lpf.training.examples import Examples
from lpf.training.fitting import calibrated, fit_predicate
from lpf.training.lexical import with_logits
from lpf.types import FloatArray, QueryOptions


@dataclass(frozen=True)
class FittedLpf:
    """A fitted ``Lpf``: an engine with its query options. ``read`` gives examples the features of
    the model's own reader, if it has one."""

    engine: Engine
    predicate: str
    options: QueryOptions
    read: Callable[[Examples], Examples] | None = None

    def predict_proba(self, examples: Examples) -> FloatArray:
        examples = examples if self.read is None else self.read(examples)
        items = with_logits(examples, self.engine.runtime.words).items
        rows = self.engine.countable(items, self.predicate, self.options)
        used = items if rows is None else items.select(rows)
        return self.engine.answer(used, self.predicate, self.options).distribution


@dataclass(frozen=True)
class Lpf:
    """``model`` under ``options``. In robust mode its parameters (for the learned variant the
    temperature) are fitted on the given validation entities again, because a single member needs
    different parameters from the ensemble."""

    name: str
    model: Runtime
    options: QueryOptions
    circuit: CompiledCircuit | None = None
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        schema, model = train.dataset.schema, self.model
        if self.options.mode == "robust":
            extended = with_logits(validation, model.words)
            fitted = fit_predicate(model, schema[predicate], extended)
            model = calibrated(model, {predicate: fitted})
        engine = Engine(model, schema, self.circuit)
        return FittedLpf(engine, predicate, replace(self.options, seed=seed))
