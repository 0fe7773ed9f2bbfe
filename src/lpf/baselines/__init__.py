"""The methods that LPF is compared with, and LPF itself, behind one ``fit``/``predict_proba``.

All read the same features and splits and train with the same budget; ``run_methods`` gives every
one the same temperature afterwards. Importing this room imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from lpf.baselines.dawid_skene import DawidSkene, Votes, fit_confusions
from lpf.baselines.interface import FittedMethod, Method
from lpf.baselines.item_models import ItemModels
from lpf.baselines.linear import Labelled, LogisticMean, Stacking, fit_regression
from lpf.baselines.lpf_methods import FittedLpf, Lpf
from lpf.baselines.methods import Shared
from lpf.baselines.relational_graph import RelationalGraph
from lpf.baselines.run_methods import Outcome, run_methods
from lpf.baselines.set_networks import AttentionPooling, DeepSets, Evidential
from lpf.baselines.simple import (
    CircuitOnly,
    ClassifierAverage,
    FactorAverage,
    Oracle,
    PerfectReader,
    Prior,
    Voting,
)
from lpf.baselines.tempered import Temperature, Tempered, with_temperature
from lpf.baselines.transformer import FineTunedTransformer, TransformerConfig
from lpf.errors import ConfigError
from lpf.model.runtime import Runtime
from lpf.types import QueryOptions

Factory = Callable[[str, Shared], Method]


def _lpf(options: QueryOptions, *, single: bool = False) -> Factory:
    def make(name: str, shared: Shared) -> Method:
        model = shared.trained(name)
        return Lpf(name, model.member(0) if single else model, options, shared.circuit)

    return make


def _published(name: str, shared: Shared) -> Method:
    model: Runtime = shared.trained_as_published(name)
    return Lpf(name, model, QueryOptions(variant="learned", mode="paper"), shared.circuit)


def _factors(*, ensemble: bool) -> Factory:
    return lambda name, shared: FactorAverage(name, shared.trained(name), ensemble)


# Paper mode answers with the best member alone, whatever the model has.
METHODS: Mapping[str, Factory] = MappingProxyType(
    {
        "lpf_robust": _lpf(QueryOptions()),
        "lpf_robust_single": _lpf(QueryOptions(), single=True),
        "lpf_paper": _lpf(QueryOptions.paper()),
        "lpf_paper_best": _lpf(QueryOptions.paper_best()),
        "lpf_learned": _lpf(QueryOptions(variant="learned")),
        "lpf_learned_published": _published,
        "vae_only": _factors(ensemble=False),
        "vae_only_ensemble": _factors(ensemble=True),
        "deterministic_average": lambda name, shared: ClassifierAverage(name, shared.items),
        "deterministic_ensemble_average": lambda name, shared: ClassifierAverage(
            name, shared.items, ensemble=True
        ),
        "spn_only": lambda name, shared: CircuitOnly(name, shared.items, shared.circuit),
        "edl_aggregated": lambda name, shared: Evidential(name, individual=False),
        "edl_individual": lambda name, shared: Evidential(name, individual=True),
        "edl_individual_broken": lambda name, shared: Evidential(
            name, individual=True, faulty=True
        ),
        "logistic_mean": lambda name, shared: LogisticMean(name),
        "deep_sets": lambda name, shared: DeepSets(name),
        "attention_pooling": lambda name, shared: AttentionPooling(name),
        "transformer": lambda name, shared: FineTunedTransformer(
            name, shared.checkpoint, shared.transformer
        ),
        "relational_graph": lambda name, shared: RelationalGraph(name),
        "majority_vote": lambda name, shared: Voting(name, shared.items, weighted=False),
        "confidence_vote": lambda name, shared: Voting(name, shared.items, weighted=True),
        "stacking": lambda name, shared: Stacking(name, shared.items),
        "dawid_skene": lambda name, shared: DawidSkene(name, shared.items),
        "prior": lambda name, shared: Prior(name),
        "perfect_reader": lambda name, shared: PerfectReader(name),
        "oracle": lambda name, shared: Oracle(name),
    }
)


def make_methods(shared: Shared, names: Sequence[str] = tuple(METHODS)) -> list[Method]:
    """The methods of these names, ready to be fitted. ConfigError for a name that is none, or a
    method that lacks its model."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise ConfigError(f"methods: {unknown} are none; those are {list(METHODS)}.")
    return [METHODS[name](name, shared) for name in names]


__all__ = [
    "METHODS",
    "Factory",
    "FittedLpf",
    "FittedMethod",
    "ItemModels",
    "Labelled",
    "Method",
    "Outcome",
    "Shared",
    "Temperature",
    "Tempered",
    "TransformerConfig",
    "Votes",
    "fit_confusions",
    "fit_regression",
    "make_methods",
    "run_methods",
    "with_temperature",
]
