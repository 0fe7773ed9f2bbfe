"""Runs a language model on some of the test entities and scores all methods on the same entities.

Every question costs money, so only a sample is used. The model's probabilities are used as they
come: a temperature would need answers for the validation entities too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lpf.baselines.language_models import (
    MODEL_PRESETS,
    EndpointConfig,
    LanguageModel,
    LanguageModelAnswers,
    sampled,
)
from lpf.errors import ConfigError
from lpf.evaluation.evaluation import Evaluation
from lpf.evaluation.measures import SCORES, plain
from lpf.evaluation.spec_datasets import DataSources
from lpf.evaluation.specs import EvalSpec
from lpf.evaluation.workbench import Workbench
from lpf.metrics import LabelArray

if TYPE_CHECKING:
    from lpf.evaluation.evaluator import Evaluator

SAMPLING = 501
DEFAULT_LIMIT = 50  # as in the paper
MEASURES = ("accuracy", "macro_f1", "nll", "brier", "ece", "mean_confidence")


@dataclass(frozen=True)
class LanguageModelRun:
    """``beside`` holds the measures of the other methods on the same entities."""

    name: str
    answers: LanguageModelAnswers
    labels: LabelArray
    entity_ids: tuple[str, ...]
    beside: dict[str, dict[str, float | None]]

    @property
    def measures(self) -> dict[str, float | None]:
        """A failed answer counts as wrong, with the log loss of a uniform distribution."""
        rows = self.answers.probabilities
        scores = {name: SCORES[name](rows, self.labels) for name in MEASURES}
        scores["accuracy"] = self.answers.accuracy(self.labels)
        measures = plain(scores)
        if self.answers.failed.any():  # a uniform row would count as the first value
            measures |= dict.fromkeys(("macro_f1", "ece"))
        return measures

    def to_dict(self) -> dict[str, Any]:
        return {
            "asked": len(self.labels),
            "failed": int(self.answers.failed.sum()),
            **self.measures,
            "costs": self.answers.costs.to_dict(),
            "beside": self.beside,
        }


def endpoint_config(
    model: str,
    base_url: str | None,
    api_key_env: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> EndpointConfig:
    """The endpoint of a model by its name, with its price if it is one of the paper's models.
    ConfigError without an address."""
    if base_url is None:
        raise ConfigError(
            f"{model!r} needs the address of a server that speaks OpenAI's protocol. Nothing was "
            "sent.",
            field="endpoint",
            hint="Give one, such as http://localhost:8000/v1.",
        )
    preset = MODEL_PRESETS.get(model)
    prices = None if preset is None else preset.prices
    return EndpointConfig(base_url, model, api_key_env, limit=limit, prices=prices)


def run_language_model(
    evaluator: Evaluator, evaluation: Evaluation, config: EndpointConfig, folder: Path
) -> LanguageModelRun:
    """Sends the evidence of up to ``config.limit`` test entities to the endpoint; with folds, those
    of the first fold. Replies are stored in ``folder``, and no question is sent twice."""
    seed = evaluator.plan.seeds[0]
    train_spec = evaluator.cells_of(evaluator.methods[0], seed)[0].train_spec
    bench = Workbench(train_spec, folder, sources=DataSources({evaluator.digest: evaluator.source}))
    generator = np.random.default_rng([seed, SAMPLING])
    test = sampled(bench.test_examples(EvalSpec()), bench.predicate, config.limit, generator)
    method = LanguageModel(f"llm:{config.model}", config, folder=folder / "replies")
    answers = method.fit(bench.train, bench.validation, bench.predicate, seed).ask(test)
    entity_ids = tuple(entity.entity_id for entity in test.dataset)
    labels = test.dataset.labels(bench.predicate).astype(np.int64)
    return LanguageModelRun(
        method.name, answers, labels, entity_ids, _other_methods(evaluation, frozenset(entity_ids))
    )


def _other_methods(
    evaluation: Evaluation, entity_ids: frozenset[str]
) -> dict[str, dict[str, float | None]]:
    """The measures of each method in its first repetition."""
    measures = {}
    for method, runs in evaluation.runs.items():
        if runs[0].error is None:
            first = runs[0].select(entity_ids)
            rows, labels = first.answers, first.labels.astype(np.int64)
            measures[method] = plain({name: SCORES[name](rows, labels) for name in MEASURES})
    return measures
