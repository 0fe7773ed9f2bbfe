"""LPF with changed settings, for ablations.

Settings of a cell: ``member`` (only the member of that rank), ``ensemble`` (number of best
members), ``sampler``, ``n_samples``, ``temperature``, ``alpha`` and ``weight_form`` as in
``QueryOptions``, ``rho``, ``epsilon`` and ``slope`` instead of the fitted ones, ``fitted=False``
for robust mode without fitting, ``divide_prior=False`` for a product that counts the prior once per
item, ``budget`` for the seconds that the chosen model may be trained for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lpf.baselines import FittedMethod
from lpf.baselines.lpf_methods import FittedLpf
from lpf.circuits import CompiledCircuit
from lpf.engine import Engine
from lpf.errors import ConfigError
from lpf.evaluation.method_names import CHOSEN
from lpf.evaluation.specs import Setting
from lpf.model.config import ModelConfig
from lpf.model.runtime import Runtime
from lpf.training import Examples
from lpf.training.assembly import select_members
from lpf.training.fitting import calibrated, fit_predicate
from lpf.training.lexical import with_logits
from lpf.types import QueryOptions

DEFAULT_ENSEMBLE = 5
_MEMBERS = ("member", "ensemble")
_ROBUST = ("rho", "epsilon", "slope")
_SWITCHES = ("fitted", "divide_prior")
_TRAINING = ("budget",)  # of the chosen model
_QUERY = ("sampler", "n_samples", "temperature", "alpha", "weight_form")
# The methods that have settings, with their default options.
OPTIONS: Mapping[str, QueryOptions] = {
    "lpf_robust": QueryOptions(),
    "lpf_chosen": QueryOptions(),
    "lpf_robust_single": QueryOptions(),
    "lpf_paper": QueryOptions.paper(),
    "lpf_paper_best": QueryOptions.paper_best(),
    "lpf_learned": QueryOptions(variant="learned"),
    "lpf_learned_published": QueryOptions(variant="learned", mode="paper"),
}


ENSEMBLES = ("lpf_robust", "lpf_chosen", "lpf_learned", "lpf_learned_published")


@dataclass(frozen=True)
class LpfVariant:
    """``model`` has all members of the search, best first. ``read`` gives examples the features of
    the model's own reader, if it has one."""

    name: str
    model: Runtime
    settings: Mapping[str, Setting]
    circuit: CompiledCircuit | None = None
    is_reference: bool = False
    read: Callable[[Examples], Examples] | None = None

    def __post_init__(self) -> None:
        trained = _TRAINING if self.name == CHOSEN else ()
        known = (*_MEMBERS, *_ROBUST, *_SWITCHES, *_QUERY, *trained)
        unknown = sorted(self.settings.keys() - set(known))
        if unknown or self.name not in OPTIONS:
            raise ConfigError(
                f"unknown settings {unknown or sorted(self.settings)}; {sorted(OPTIONS)} have the "
                f"settings {list(known)}.",
                field=self.name,
            )

        unclear = [
            name for name in _SWITCHES if not isinstance(self.settings.get(name, True), bool)
        ]
        if unclear:
            raise ConfigError(f"{unclear} must be True or False.", field=self.name)

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        model, options = self._model(), self._options(seed)
        schema = train.dataset.schema
        if self.settings.get("divide_prior") is False:
            model = _with_uniform_shares(model, predicate)
        # The chosen model may be fitted to validation entities: it keeps its own parameters.
        is_fitted = self.name == CHOSEN
        if options.mode == "robust" and not is_fitted and self.settings.get("fitted") is not False:
            extended = with_logits(validation, model.words)
            model = calibrated(
                model, {predicate: fit_predicate(model, schema[predicate], extended)}
            )
        model = self._with_numbers(model, predicate)
        engine = Engine(model, schema, self.circuit)
        return FittedLpf(engine, predicate, options, self.read)

    def _model(self) -> Runtime:
        member = self.settings.get("member")
        if member is not None:
            self._check("member", int(member), 0, self.model.members - 1)
            return self.model.member(int(member))
        single = self.name not in ENSEMBLES
        wanted = int(self.settings.get("ensemble", 1 if single else DEFAULT_ENSEMBLE))
        if "ensemble" in self.settings:
            self._check("ensemble", wanted, 1, self.model.members)
        return best_members(self.model, wanted)

    def _check(self, setting: str, number: int, least: int, most: int) -> None:
        if not least <= number <= most:
            raise ConfigError(
                f"{setting} must be {least} to {most}, because the search has "
                f"{self.model.members} members, got {number}.",
                field=self.name,
            )

    def _options(self, seed: int) -> QueryOptions:
        changes: dict[str, Any] = {
            name: value for name, value in self.settings.items() if name in _QUERY
        }
        return replace(OPTIONS[self.name], seed=seed, **changes)

    def _with_numbers(self, model: Runtime, predicate: str) -> Runtime:
        numbers = {name: float(self.settings[name]) for name in _ROBUST if name in self.settings}
        config = model.config
        if self.settings.get("fitted") is False:
            config = replace(config, calibration={}, min_credibility={})
        if numbers:
            changed = {**config.calibration.get(predicate, {}), **numbers}
            config = replace(config, calibration={**config.calibration, predicate: changed})
        return Runtime(config, model.tensors, model.version)


def best_members(model: Runtime, count: int) -> Runtime:
    """The first ``count`` members, or all if there are fewer."""
    places = range(min(count, model.members))
    if len(places) == 1:
        return model.member(0)
    config, tensors = select_members(model.config, model.tensors, places)
    return Runtime(config, tensors, model.version)


def _with_uniform_shares(model: Runtime, predicate: str) -> Runtime:
    """With uniform π, factors are multiplied without dividing by the prior."""
    document: dict[str, Any] = model.config.to_dict()
    heads = [
        replace(head, training_shares=(1.0 / len(head.values),) * len(head.values))
        if head.name == predicate
        else head
        for head in ModelConfig.from_dict(document).predicates
    ]
    return Runtime(replace(model.config, predicates=tuple(heads)), model.tensors, model.version)
