"""The methods of one train_spec, each made by its name and fitted once.

The uniform prior of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

from lpf.baselines import FittedMethod, Method, make_methods
from lpf.baselines.simple import FactorAverage
from lpf.circuits import CompiledCircuit, Variable, compile_circuit, prior_circuit
from lpf.errors import ArtefactError, ConfigError, MissingPackageError
from lpf.evaluation.chosen_transformer import TRANSFORMER, chosen_checkpoint
from lpf.evaluation.claim_only import CLAIM_ONLY, ClaimOnly
from lpf.evaluation.feature_cache import SpecExamples
from lpf.evaluation.model_cache import SharedModels
from lpf.evaluation.own_method import OwnMethod, is_own
from lpf.evaluation.specs import Setting, Settings
from lpf.evaluation.variants import OPTIONS, LpfVariant
from lpf.schema import Predicate, Schema

# With the uniform P0 of the paper: a temperature after the fact would sharpen any other prior
# along with the rest.
FLAT_PRIOR = ("lpf_paper", "lpf_paper_best", "lpf_learned_published")


def flat(schema: Schema) -> Schema:
    """The same predicates, every value as likely as the next."""
    return Schema(tuple(Predicate(one.name, one.values) for one in schema))


def flat_circuit(schema: Schema) -> CompiledCircuit:
    """The circuit of the flat prior alone."""
    uniform = flat(schema)
    variables = [Variable(one.name, one.values) for one in uniform]
    return compile_circuit(prior_circuit(variables, {one.name: one.prior for one in uniform}))


# Wrong with the machine or the folder; whatever else a method raises is its result.
NOT_THE_METHODS = (ArtefactError, MissingPackageError, OSError, MemoryError)


@dataclass(frozen=True)
class Fit:
    """``seconds`` are those of its learning, with what it shares with others."""

    method: FittedMethod
    seconds: float


class FittedMethods:
    def __init__(self, learned: SpecExamples, models: SharedModels) -> None:
        self.learned, self.models = learned, models
        self._fits: dict[tuple[str, Settings], Fit | Exception] = {}

    def fit(self, name: str, settings: Settings) -> Fit:
        """Raises whatever the method raised, each time it is asked for."""
        key = (name, settings)
        if key not in self._fits:
            self._fits[key] = self._newly_fitted(name, settings)
        found = self._fits[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _newly_fitted(self, name: str, settings: Settings) -> Fit | Exception:
        learned = self.learned
        try:
            method = self._method(name, dict(settings))
            shared = self.models.seconds(name)  # trains what is shared, so before the clock
            begin = perf_counter()
            fitted = method.fit(
                learned.train, learned.validation, learned.predicate, learned.train_spec.seed
            )
            return Fit(fitted, perf_counter() - begin + shared)
        except NOT_THE_METHODS:
            raise
        except Exception as error:  # remembered, or the next eval_spec would train it again
            return error

    def _method(self, name: str, settings: Mapping[str, Setting]) -> Method:
        if is_own(name):
            return OwnMethod(name)
        if name == "vae_only" and settings.keys() == {"member"}:
            return FactorAverage(name, self.models.model.runtime.member(int(settings["member"])))
        if name == TRANSFORMER and (checkpoint := chosen_checkpoint(settings)) is not None:
            shared = replace(self.models.shared(name), checkpoint=checkpoint)
            return make_methods(shared, [name])[0]
        if settings and name not in OPTIONS:
            raise ConfigError(f"{name}: cannot be changed, got {sorted(settings)}.")
        if name == CLAIM_ONLY:
            return ClaimOnly(name, self.learned.feature_cache)
        if name in OPTIONS:
            circuit = self._flat_circuit if name in FLAT_PRIOR else None
            return LpfVariant(name, self.models.variant_model(name).runtime, settings, circuit)
        return make_methods(self.models.shared(name), [name])[0]

    @cached_property
    def _flat_circuit(self) -> CompiledCircuit:
        return flat_circuit(self.learned.examples.dataset.schema)


def told(error: Exception) -> str:
    """What a method raised, as its result says it."""
    return f"{type(error).__name__}: {error}"
