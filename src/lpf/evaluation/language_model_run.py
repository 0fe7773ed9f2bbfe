"""A language model on some of the entities that other methods were asked about.

Every question costs money, so few are asked; the others' answers about the same few stand beside.
It answers as it comes: a temperature would need the validation entities asked as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lpf.baselines.language_models import (
    MODEL_PRESETS,
    EndpointConfig,
    LanguageModel,
    LanguageModelAnswers,
    sampled,
)
from lpf.errors import ConfigError
from lpf.evaluation.evaluation import Evaluation, only
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.measures import SCORES, plain
from lpf.evaluation.specs import EvalSpec
from lpf.evaluation.workbench import Workbench
from lpf.metrics import LabelArray

SAMPLING = 501
MEASURES = ("accuracy", "macro_f1", "nll", "brier", "ece", "mean_confidence")


@dataclass(frozen=True)
class LanguageModelRun:
    """``beside`` are the measures of other methods on the same entities."""

    name: str
    answers: LanguageModelAnswers
    labels: LabelArray
    entity_ids: tuple[str, ...]
    beside: dict[str, dict[str, float | None]]

    @property
    def measures(self) -> dict[str, float | None]:
        """A failed answer is wrong, and costs the log loss of knowing nothing."""
        rows = self.answers.probabilities
        found = {name: SCORES[name](rows, self.labels) for name in MEASURES}
        found["accuracy"] = self.answers.accuracy(self.labels)
        told = plain(found)
        if self.answers.failed.any():  # a uniform row would be taken for the first value
            told |= dict.fromkeys(("macro_f1", "ece"))
        return told

    def to_dict(self) -> dict[str, Any]:
        return {
            "asked": len(self.labels),
            "failed": int(self.answers.failed.sum()),
            **self.measures,
            "costs": self.answers.costs.to_dict(),
            "beside": self.beside,
        }


def endpoint_config(
    model: str, base_url: str | None, api_key_env: str | None, limit: int
) -> EndpointConfig:
    """Of a model by name; those of the paper bring their prices."""
    if base_url is None:
        raise ConfigError(
            f"endpoint: {model!r} needs the address of a server that speaks OpenAI's protocol. "
            "Nothing was asked; give it, such as http://localhost:8000/v1."
        )
    preset = MODEL_PRESETS.get(model)
    prices = None if preset is None else preset.prices
    return EndpointConfig(base_url, model, api_key_env, limit=limit, prices=prices)


def run_language_model(
    evaluator: Evaluator, evaluation: Evaluation, config: EndpointConfig, folder: Path
) -> LanguageModelRun:
    """Sends the evidence of up to ``config.limit`` entities to the endpoint. With folds, they are
    those of the first."""
    seed = evaluator.plan.seeds[0]
    train_spec = evaluator.cells_of(evaluator.methods[0], seed)[0].train_spec
    bench = Workbench(train_spec, folder)
    generator = np.random.default_rng([seed, SAMPLING])
    asked = sampled(bench.test_examples(EvalSpec()), bench.predicate, config.limit, generator)
    method = LanguageModel(f"llm:{config.model}", config, folder=folder / "replies")
    fitted = method.fit(bench.train, bench.validation, bench.predicate, seed)
    answers = fitted.ask(asked)
    names = tuple(entity.entity_id for entity in asked.dataset)
    labels = asked.dataset.labels(bench.predicate).astype(np.int64)
    return LanguageModelRun(method.name, answers, labels, names, _beside(evaluation, names))


def _beside(evaluation: Evaluation, names: tuple[str, ...]) -> dict[str, dict[str, float | None]]:
    chosen = frozenset(names)
    found = {}
    for method, runs in evaluation.runs.items():
        if runs[0].error is None:
            first = only(runs[0], chosen)
            rows, labels = first.answers, first.labels.astype(np.int64)
            found[method] = plain({name: SCORES[name](rows, labels) for name in MEASURES})
    return found
