"""Latent Posterior Factors: several noisy texts about one entity in, one calibrated answer out.

Names are imported when first used, so ``import lpf`` is fast, and only what needs torch imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpf.version import __version__

if TYPE_CHECKING:
    from lpf.classifier import BaselineClassifier, LPFClassifier
    from lpf.datasets import Dataset, read_dataset
    from lpf.errors import LPFError
    from lpf.evaluation.evaluation import Evaluation
    from lpf.evaluation.evaluator import evaluate
    from lpf.model.artefact import load_model
    from lpf.reading import open_reader
    from lpf.results import QueryResult
    from lpf.schema import Predicate, Relation, Schema
    from lpf.storage.facts import NewFact
    from lpf.training.config import TrainingConfig
    from lpf.types import Evidence, QueryOptions
    from lpf.workspace import Workspace

# The module that defines each public name.
_HOMES = {
    "BaselineClassifier": "lpf.classifier",
    "Dataset": "lpf.datasets",
    "Evaluation": "lpf.evaluation.evaluation",
    "Evidence": "lpf.types",
    "LPFClassifier": "lpf.classifier",
    "LPFError": "lpf.errors",
    "NewFact": "lpf.storage.facts",
    "Predicate": "lpf.schema",
    "QueryOptions": "lpf.types",
    "QueryResult": "lpf.results",
    "Relation": "lpf.schema",
    "Schema": "lpf.schema",
    "TrainingConfig": "lpf.training.config",
    "Workspace": "lpf.workspace",
    "evaluate": "lpf.evaluation.evaluator",
    "load_model": "lpf.model.artefact",
    "open_reader": "lpf.reading",
    "read_dataset": "lpf.datasets",
}

__all__ = [
    "BaselineClassifier",
    "Dataset",
    "Evaluation",
    "Evidence",
    "LPFClassifier",
    "LPFError",
    "NewFact",
    "Predicate",
    "QueryOptions",
    "QueryResult",
    "Relation",
    "Schema",
    "TrainingConfig",
    "Workspace",
    "__version__",
    "evaluate",
    "load_model",
    "open_reader",
    "read_dataset",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lpf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
