"""The methods of one lesson, each made by its name and fitted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

from lpf.baselines import FittedMethod, Method, make_methods
from lpf.baselines.averaging import FactorAverage
from lpf.errors import ArtefactError, ConfigError, MissingPackageError
from lpf.experiments.cells import Setting, Settings
from lpf.experiments.lessons.examples import LessonExamples
from lpf.experiments.workbench.chosen_transformer import TRANSFORMER, chosen_checkpoint
from lpf.experiments.workbench.claim_only import CLAIM_ONLY, ClaimOnly
from lpf.experiments.workbench.flat_prior import FLAT_PRIOR, flat_circuit
from lpf.experiments.workbench.own import OwnMethod, is_own
from lpf.experiments.workbench.shared_models import SharedModels
from lpf.experiments.workbench.variants import OPTIONS, LpfVariant
from lpf.spn import CompiledCircuit

# Wrong with the machine or the folder; whatever else a method raises is its result.
NOT_THE_METHODS = (ArtefactError, MissingPackageError, OSError, MemoryError)


@dataclass(frozen=True)
class Fit:
    """``seconds`` are those of its learning, with what it shares with others."""

    method: FittedMethod
    seconds: float


class FittedMethods:
    def __init__(self, learned: LessonExamples, models: SharedModels) -> None:
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
                learned.train, learned.validation, learned.predicate, learned.lesson.seed
            )
            return Fit(fitted, perf_counter() - begin + shared)
        except NOT_THE_METHODS:
            raise
        except Exception as error:  # remembered, or the next exam would train it again
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
            return ClaimOnly(name, self.learned.library)
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
