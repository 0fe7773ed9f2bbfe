"""All methods by name, and the trained models that they need.

``Shared`` holds trained models, so that no network is trained twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from lpf.baselines.dawid_skene import DawidSkene
from lpf.baselines.interface import Method
from lpf.baselines.item_models import ItemModels
from lpf.baselines.linear import LogisticMean, Stacking
from lpf.baselines.lpf_methods import Lpf
from lpf.baselines.relational_graph import RelationalGraph
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
from lpf.baselines.transformer import TRANSFORMER, FineTunedTransformer, TransformerConfig
from lpf.circuits import CompiledCircuit
from lpf.errors import ConfigError
from lpf.model.runtime import Runtime
from lpf.types import QueryOptions


@dataclass(frozen=True)
class Shared:
    """``model`` is the trained model that is compared, ``published`` one that was trained exactly
    as in the paper (``TrainingConfig.paper()``), ``circuit`` what is known before any evidence (by
    default the schema's priors). ``items`` trains the deterministic classifier. ``checkpoint`` is
    the transformer to fine-tune (by default the reader's), ``transformer`` its budget."""

    model: Runtime | None = None
    published: Runtime | None = None
    circuit: CompiledCircuit | None = None
    items: ItemModels = field(default_factory=ItemModels)
    checkpoint: str | Path | None = None
    transformer: TransformerConfig = field(default_factory=TransformerConfig)

    def trained(self, name: str) -> Runtime:
        """The model; ConfigError that names the method if there is none."""
        if self.model is None:
            raise ConfigError(
                "needs a trained model, and none was given.",
                field=name,
                hint="Pass Shared(model=...), or leave the method out.",
            )
        return self.model

    def trained_as_published(self, name: str) -> Runtime:
        """The same for the model that was trained exactly as in the paper."""
        if self.published is None:
            raise ConfigError(
                "needs a model trained with TrainingConfig.paper(), and none was given.",
                field=name,
                hint="Pass Shared(published=...), or leave the method out.",
            )
        return self.published


Factory = Callable[[str, Shared], Method]


def _lpf(options: QueryOptions, *, single: bool = False) -> Factory:
    def make(name: str, shared: Shared) -> Method:
        model = shared.trained(name)
        return Lpf(name, model.member(0) if single else model, options, shared.circuit)

    return make


def _published(name: str, shared: Shared) -> Method:
    model = shared.trained_as_published(name)
    return Lpf(name, model, QueryOptions(variant="learned", mode="paper"), shared.circuit)


def _factors(*, ensemble: bool) -> Factory:
    return lambda name, shared: FactorAverage(name, shared.trained(name), ensemble)


# Paper mode uses the best member of a model only.
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
        TRANSFORMER: lambda name, shared: FineTunedTransformer(
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
    """The methods of these names, ready to be fitted. ConfigError for an unknown name, or for a
    method whose model is missing."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise ConfigError(
            f"unknown methods {unknown}; choose from {list(METHODS)}.", field="methods"
        )
    return [METHODS[name](name, shared) for name in names]
