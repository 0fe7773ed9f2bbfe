"""The methods of one training spec, each made from its name and fitted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter

from lpf.baselines import (
    CLAIM_ONLY,
    TRANSFORMER,
    ZERO_LABEL,
    FittedMethod,
    Method,
    ZeroLabel,
    make_methods,
)
from lpf.baselines.linear import ClaimOnly
from lpf.baselines.simple import FactorAverage
from lpf.baselines.transformer_checkpoints import checkpoint_of
from lpf.circuits import CompiledCircuit, Variable, compile_circuit, prior_circuit
from lpf.errors import ArtefactError, ConfigError, MissingPackageError
from lpf.evaluation.feature_cache import SpecExamples
from lpf.evaluation.model_cache import SharedModels
from lpf.evaluation.own_method import OwnMethod, is_own
from lpf.evaluation.specs import Setting, Settings
from lpf.evaluation.variants import OPTIONS, LpfVariant
from lpf.reading.tuned import TunedReader
from lpf.schema import Predicate, Schema
from lpf.training import Examples

# These use the uniform prior of the paper: a temperature fitted afterwards would also sharpen any
# other prior.
FLAT_PRIOR = ("lpf_paper", "lpf_paper_best", "lpf_learned_published")


def flat(schema: Schema) -> Schema:
    """The same predicates with uniform priors."""
    return Schema(tuple(Predicate(one.name, one.values) for one in schema))


def flat_circuit(schema: Schema) -> CompiledCircuit:
    """A circuit that holds the uniform priors only."""
    uniform = flat(schema)
    variables = [Variable(one.name, one.values) for one in uniform]
    return compile_circuit(prior_circuit(variables, {one.name: one.prior for one in uniform}))


# Errors of the machine or the folder end the run; any other error of a method is its result.
MACHINE_ERRORS = (ArtefactError, MissingPackageError, OSError, MemoryError)


@dataclass(frozen=True)
class Fit:
    """``seconds`` of training, including what the method shares with others."""

    method: FittedMethod
    seconds: float


class FittedMethods:
    """``estimators`` are own methods that were given as objects, by name."""

    def __init__(
        self,
        examples: SpecExamples,
        models: SharedModels,
        estimators: Mapping[str, object] | None = None,
    ) -> None:
        self.examples, self.models, self.estimators = examples, models, estimators or {}
        self._fits: dict[tuple[str, Settings], Fit | Exception] = {}

    def fit(self, name: str, settings: Settings) -> Fit:
        """If the method failed, its error is raised again on every call."""
        key = (name, settings)
        if key not in self._fits:
            self._fits[key] = self._newly_fitted(name, settings)
        fit = self._fits[key]
        if isinstance(fit, Exception):
            raise fit
        return fit

    def _newly_fitted(self, name: str, settings: Settings) -> Fit | Exception:
        examples = self.examples
        try:
            method = self._method(name, dict(settings))
            shared = self.models.seconds(
                name, dict(settings)
            )  # trains what is shared, so not timed here
            begin = perf_counter()
            fitted = method.fit(
                examples.train, examples.validation, examples.predicate, examples.train_spec.seed
            )
            return Fit(fitted, perf_counter() - begin + shared)
        except MACHINE_ERRORS:
            raise
        except Exception as error:  # stored, or the next eval_spec would train it again
            return error

    def _method(self, name: str, settings: Mapping[str, Setting]) -> Method:
        if name in self.estimators or is_own(name):
            return OwnMethod(name, self.estimators.get(name))
        if name == "vae_only" and settings.keys() == {"member"}:
            return FactorAverage(name, self.models.model.runtime.member(int(settings["member"])))
        if name == TRANSFORMER and (checkpoint := checkpoint_of(settings)) is not None:
            shared = replace(self.models.shared(name), checkpoint=checkpoint)
            return make_methods(shared, [name])[0]
        if settings and name not in OPTIONS:
            raise ConfigError(f"has no settings, got {sorted(settings)}.", field=name)
        if name == CLAIM_ONLY:
            dataset = self.examples.examples.dataset
            return ClaimOnly(name, self.examples.feature_cache.claim_reader(dataset))
        if name == ZERO_LABEL:
            return ZeroLabel(name, self.examples.reader_id)
        if name in OPTIONS:
            circuit = self._flat_circuit if name in FLAT_PRIOR else None
            model = self.models.variant_model(name, settings)
            read = None if model.tuned is None else partial(self._read, tuned=model.tuned)
            return LpfVariant(name, model.runtime, settings, circuit, read=read)
        return make_methods(self.models.shared(name), [name])[0]

    def _read(self, examples: Examples, tuned: TunedReader) -> Examples:
        return self.examples.feature_cache.tuned_examples(examples, tuned)

    @cached_property
    def _flat_circuit(self) -> CompiledCircuit:
        return flat_circuit(self.examples.examples.dataset.schema)


def error_text(error: Exception) -> str:
    """An error of a method as its result reports it."""
    return f"{type(error).__name__}: {error}"
