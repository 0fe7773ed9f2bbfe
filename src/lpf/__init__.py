"""Latent Posterior Factors: several noisy texts about one entity, one calibrated answer.

Names are loaded when first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpf.version import __version__

if TYPE_CHECKING:
    from lpf.classifier import BaselineClassifier, LPFClassifier
    from lpf.engine import Answers, Engine, Facts, Items
    from lpf.errors import LPFError
    from lpf.evaluation.evaluation import Evaluation
    from lpf.evaluation.evaluator import evaluate
    from lpf.model.artefact import load_model, save_model
    from lpf.reading import open_reader
    from lpf.results import QueryResult
    from lpf.schema import Predicate, Relation, Schema
    from lpf.types import Evidence, QueryOptions
    from lpf.workspace import Workspace

_HOMES = {
    "Answers": "lpf.engine",
    "BaselineClassifier": "lpf.classifier",
    "Engine": "lpf.engine",
    "Evaluation": "lpf.evaluation.evaluation",
    "Facts": "lpf.engine",
    "Items": "lpf.engine",
    "LPFClassifier": "lpf.classifier",
    "LPFError": "lpf.errors",
    "evaluate": "lpf.evaluation.evaluator",
    "load_model": "lpf.model.artefact",
    "save_model": "lpf.model.artefact",
    "open_reader": "lpf.reading",
    "Predicate": "lpf.schema",
    "Relation": "lpf.schema",
    "Schema": "lpf.schema",
    "Evidence": "lpf.types",
    "QueryOptions": "lpf.types",
    "QueryResult": "lpf.results",
    "Workspace": "lpf.workspace",
}

__all__ = [
    "Answers",
    "BaselineClassifier",
    "Engine",
    "Evaluation",
    "Evidence",
    "Facts",
    "Items",
    "LPFClassifier",
    "LPFError",
    "Predicate",
    "QueryOptions",
    "QueryResult",
    "Relation",
    "Schema",
    "Workspace",
    "__version__",
    "evaluate",
    "load_model",
    "open_reader",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lpf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
