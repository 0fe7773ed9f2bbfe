"""Evaluation of methods on data sets: training, testing, scores and comparisons.

``evaluate`` compares methods on one data set. Below it, a ``Cell`` is one method on one
``TrainSpec`` and one ``EvalSpec``; a ``Runner`` computes cells and stores their ``Predictions``;
``summarise`` and ``compare`` turn these into numbers. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpf.evaluation.comparisons import Comparison, Loss, compare
    from lpf.evaluation.conclusions import best_without_lpf, verdict
    from lpf.evaluation.document import evaluation_document
    from lpf.evaluation.evaluation import Evaluation
    from lpf.evaluation.evaluator import Evaluator, evaluate
    from lpf.evaluation.language_model_run import LanguageModelRun, endpoint_config
    from lpf.evaluation.measures import (
        NULL_DRAWS,
        SubsetScores,
        by_count,
        by_credibility,
        by_group,
        by_label,
        confusion_of,
        measure,
        reliability_of,
        risk_coverage_of,
    )
    from lpf.evaluation.method_names import CHOSEN, LANGUAGE_MODEL, Standing, standing_of, title_of
    from lpf.evaluation.model_cache import ModelCache, StudyModel
    from lpf.evaluation.plan import DEFAULT_METHODS, EvaluationPlan
    from lpf.evaluation.predictions import Costs, Predictions
    from lpf.evaluation.result_store import ResultStore
    from lpf.evaluation.runner import Progress, Runner
    from lpf.evaluation.specs import (
        GENERATION,
        Cell,
        DatasetChange,
        DomainData,
        EvalSpec,
        FileData,
        Setting,
        Settings,
        TrainSpec,
    )
    from lpf.evaluation.summaries import DRAWS, Spread, Summary, summarise
    from lpf.evaluation.variants import DEFAULT_ENSEMBLE
    from lpf.evaluation.workbench import Workbench

_NAMES = {
    "comparisons": ("Comparison", "Loss", "compare"),
    "document": ("evaluation_document",),
    "evaluation": ("Evaluation",),
    "evaluator": ("Evaluator", "evaluate"),
    "language_model_run": ("LanguageModelRun", "endpoint_config"),
    "measures": (
        "NULL_DRAWS",
        "SubsetScores",
        "by_count",
        "by_credibility",
        "by_group",
        "by_label",
        "confusion_of",
        "measure",
        "reliability_of",
        "risk_coverage_of",
    ),
    "method_names": ("CHOSEN", "LANGUAGE_MODEL", "Standing", "standing_of", "title_of"),
    "model_cache": ("ModelCache", "StudyModel"),
    "plan": ("DEFAULT_METHODS", "EvaluationPlan"),
    "predictions": ("Costs", "Predictions"),
    "result_store": ("ResultStore",),
    "runner": ("Progress", "Runner"),
    "specs": (
        "GENERATION",
        "Cell",
        "DatasetChange",
        "DomainData",
        "EvalSpec",
        "FileData",
        "Setting",
        "Settings",
        "TrainSpec",
    ),
    "summaries": ("DRAWS", "Spread", "Summary", "summarise"),
    "variants": ("DEFAULT_ENSEMBLE",),
    "conclusions": ("best_without_lpf", "verdict"),
    "workbench": ("Workbench",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "CHOSEN",
    "DEFAULT_ENSEMBLE",
    "DEFAULT_METHODS",
    "DRAWS",
    "GENERATION",
    "LANGUAGE_MODEL",
    "NULL_DRAWS",
    "Cell",
    "Comparison",
    "Costs",
    "DatasetChange",
    "DomainData",
    "EvalSpec",
    "Evaluation",
    "EvaluationPlan",
    "Evaluator",
    "FileData",
    "LanguageModelRun",
    "Loss",
    "ModelCache",
    "Predictions",
    "Progress",
    "ResultStore",
    "Runner",
    "Setting",
    "Settings",
    "Spread",
    "Standing",
    "StudyModel",
    "SubsetScores",
    "Summary",
    "TrainSpec",
    "Workbench",
    "best_without_lpf",
    "by_count",
    "by_credibility",
    "by_group",
    "by_label",
    "compare",
    "confusion_of",
    "endpoint_config",
    "evaluate",
    "evaluation_document",
    "measure",
    "reliability_of",
    "risk_coverage_of",
    "standing_of",
    "summarise",
    "title_of",
    "verdict",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"lpf.evaluation.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lpf.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
