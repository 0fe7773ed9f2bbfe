"""Methods on labelled data: which cells to run, their stored results, scores and comparisons.

Names are loaded when first used, because most of them need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpf.evaluation.claim_only import CLAIM_ONLY
    from lpf.evaluation.comparisons import Comparison, Loss, compare
    from lpf.evaluation.evaluation import Evaluation, EvaluationPlan
    from lpf.evaluation.evaluator import Evaluator
    from lpf.evaluation.measures import (
        NULL_DRAWS,
        SubsetScores,
        by_credibility,
        by_label,
        confusion_of,
        reliability_of,
        risk_coverage_of,
    )
    from lpf.evaluation.method_names import LANGUAGE_MODEL, Standing, standing_of, title_of
    from lpf.evaluation.model_cache import CHOSEN, ModelCache
    from lpf.evaluation.predictions import Predictions
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

_HOMES = {
    "CHOSEN": "lpf.evaluation.model_cache",
    "CLAIM_ONLY": "lpf.evaluation.claim_only",
    "DEFAULT_ENSEMBLE": "lpf.evaluation.variants",
    "DRAWS": "lpf.evaluation.summaries",
    "GENERATION": "lpf.evaluation.specs",
    "LANGUAGE_MODEL": "lpf.evaluation.method_names",
    "NULL_DRAWS": "lpf.evaluation.measures",
    "Cell": "lpf.evaluation.specs",
    "Comparison": "lpf.evaluation.comparisons",
    "DatasetChange": "lpf.evaluation.specs",
    "DomainData": "lpf.evaluation.specs",
    "EvalSpec": "lpf.evaluation.specs",
    "Evaluation": "lpf.evaluation.evaluation",
    "EvaluationPlan": "lpf.evaluation.evaluation",
    "Evaluator": "lpf.evaluation.evaluator",
    "FileData": "lpf.evaluation.specs",
    "Loss": "lpf.evaluation.comparisons",
    "ModelCache": "lpf.evaluation.model_cache",
    "Predictions": "lpf.evaluation.predictions",
    "Progress": "lpf.evaluation.runner",
    "ResultStore": "lpf.evaluation.result_store",
    "Runner": "lpf.evaluation.runner",
    "Setting": "lpf.evaluation.specs",
    "Settings": "lpf.evaluation.specs",
    "Spread": "lpf.evaluation.summaries",
    "Standing": "lpf.evaluation.method_names",
    "SubsetScores": "lpf.evaluation.measures",
    "Summary": "lpf.evaluation.summaries",
    "TrainSpec": "lpf.evaluation.specs",
    "Workbench": "lpf.evaluation.workbench",
    "by_credibility": "lpf.evaluation.measures",
    "by_label": "lpf.evaluation.measures",
    "compare": "lpf.evaluation.comparisons",
    "confusion_of": "lpf.evaluation.measures",
    "reliability_of": "lpf.evaluation.measures",
    "risk_coverage_of": "lpf.evaluation.measures",
    "standing_of": "lpf.evaluation.method_names",
    "summarise": "lpf.evaluation.summaries",
    "title_of": "lpf.evaluation.method_names",
}

__all__ = [
    "CHOSEN",
    "CLAIM_ONLY",
    "DEFAULT_ENSEMBLE",
    "DRAWS",
    "GENERATION",
    "LANGUAGE_MODEL",
    "NULL_DRAWS",
    "Cell",
    "Comparison",
    "DatasetChange",
    "DomainData",
    "EvalSpec",
    "Evaluation",
    "EvaluationPlan",
    "Evaluator",
    "FileData",
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
    "SubsetScores",
    "Summary",
    "TrainSpec",
    "Workbench",
    "by_credibility",
    "by_label",
    "compare",
    "confusion_of",
    "reliability_of",
    "risk_coverage_of",
    "standing_of",
    "summarise",
    "title_of",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
