"""All methods by name: ``METHODS`` is the only list of them.

``Shared`` is what they are built from besides the data. It holds trained models, so that no network
is trained twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from lpf.baselines.dawid_skene import DawidSkene
from lpf.baselines.interface import Method, Standing
from lpf.baselines.item_models import ItemModels
from lpf.baselines.lexical import LexicalRegression
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

# What is trained first and shared by several methods: LPF's networks, or those trained exactly as
# in the paper; the classifier of single items, also over folds. Or what only some data has: true
# probabilities (generated data); the labels of test entities.
Needs = Literal["networks", "published networks", "items", "item folds", "truth", "test labels"]


@dataclass(frozen=True)
class MethodEntry:
    """Everything that the package knows about a method by its name. ``title`` is for people,
    ``build`` makes the method from its name and what methods share."""

    title: str
    build: Factory
    needs: Needs | None = None
    standing: Standing = "rival"


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
METHODS: Mapping[str, MethodEntry] = MappingProxyType(
    {
        "lpf_robust": MethodEntry(
            "LPF-SPN, robust ensemble", _lpf(QueryOptions()), "networks", "ours"
        ),
        "lpf_robust_single": MethodEntry(
            "LPF-SPN, robust, one network", _lpf(QueryOptions(), single=True), "networks", "ours"
        ),
        "lpf_paper": MethodEntry("LPF-SPN, paper mode", _lpf(QueryOptions.paper()), "networks"),
        "lpf_paper_best": MethodEntry(
            "LPF-SPN, paper's best setting", _lpf(QueryOptions.paper_best()), "networks"
        ),
        "lpf_learned": MethodEntry(
            "LPF-Learned, repaired", _lpf(QueryOptions(variant="learned")), "networks", "ours"
        ),
        "lpf_learned_published": MethodEntry(
            "LPF-Learned, as published", _published, "published networks"
        ),
        "vae_only": MethodEntry(
            "VAE-Only (factors averaged)", _factors(ensemble=False), "networks"
        ),
        "vae_only_ensemble": MethodEntry("VAE-Only, ensemble", _factors(ensemble=True), "networks"),
        "deterministic_average": MethodEntry(
            "Classifier, averaged",
            lambda name, shared: ClassifierAverage(name, shared.items),
            "items",
        ),
        "deterministic_ensemble_average": MethodEntry(
            "Classifier ensemble, averaged",
            lambda name, shared: ClassifierAverage(name, shared.items, ensemble=True),
            "items",
        ),
        "spn_only": MethodEntry(
            "SPN-Only (classifier in the circuit)",
            lambda name, shared: CircuitOnly(name, shared.items, shared.circuit),
            "items",
        ),
        "edl_aggregated": MethodEntry(
            "EDL-Aggregated", lambda name, shared: Evidential(name, individual=False)
        ),
        "edl_individual": MethodEntry(
            "EDL-Individual", lambda name, shared: Evidential(name, individual=True)
        ),
        "edl_individual_broken": MethodEntry(
            "EDL-Individual, with its fault",
            lambda name, shared: Evidential(name, individual=True, faulty=True),
        ),
        "logistic_mean": MethodEntry(
            "Logistic regression, mean embedding", lambda name, shared: LogisticMean(name)
        ),
        "lexical_regression": MethodEntry(
            "Words, regression", lambda name, shared: LexicalRegression(name)
        ),
        "deep_sets": MethodEntry("DeepSets", lambda name, shared: DeepSets(name)),
        "attention_pooling": MethodEntry(
            "Attention pooling", lambda name, shared: AttentionPooling(name)
        ),
        TRANSFORMER: MethodEntry(
            "BERT-style (MiniLM's top layer)",
            lambda name, shared: FineTunedTransformer(name, shared.checkpoint, shared.transformer),
        ),
        "relational_graph": MethodEntry("R-GCN", lambda name, shared: RelationalGraph(name)),
        "majority_vote": MethodEntry(
            "Majority vote",
            lambda name, shared: Voting(name, shared.items, weighted=False),
            "items",
        ),
        "confidence_vote": MethodEntry(
            "Confidence-weighted vote",
            lambda name, shared: Voting(name, shared.items, weighted=True),
            "items",
        ),
        "stacking": MethodEntry(
            "Stacking", lambda name, shared: Stacking(name, shared.items), "item folds"
        ),
        "dawid_skene": MethodEntry(
            "Dawid-Skene", lambda name, shared: DawidSkene(name, shared.items), "item folds"
        ),
        "prior": MethodEntry(
            "Class shares", lambda name, shared: Prior(name), standing="reference"
        ),
        "perfect_reader": MethodEntry(
            "Perfect reader", lambda name, shared: PerfectReader(name), "truth", "reference"
        ),
        "oracle": MethodEntry(
            "Oracle", lambda name, shared: Oracle(name), "test labels", "reference"
        ),
    }
)


def needs_of(name: str) -> Needs | None:
    """What the method of this name needs besides the data; None for nothing, and for a name that is
    not in ``METHODS``."""
    return METHODS[name].needs if name in METHODS else None


def make_methods(shared: Shared, names: Sequence[str] = tuple(METHODS)) -> list[Method]:
    """The methods of these names, ready to be fitted. ConfigError for an unknown name, or for a
    method whose model is missing."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise ConfigError(
            f"unknown methods {unknown}; choose from {list(METHODS)}.", field="methods"
        )
    return [METHODS[name].build(name, shared) for name in names]
