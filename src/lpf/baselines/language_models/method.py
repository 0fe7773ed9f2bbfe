"""A zero-shot language model as one of the methods, its answers, and the models of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.baselines.language_models.asking import Replies, TokenCosts, ask_all
from lpf.baselines.language_models.client import EndpointConfig, Prices, Reply, StoredReplies
from lpf.baselines.language_models.prompting import (
    Stated,
    Unreadable,
    distribution,
    make_prompts,
    parse_answer,
)
from lpf.errors import ConfigError
from lpf.schema import Predicate
from lpf.training.examples import Examples
from lpf.types import FloatArray


@dataclass(frozen=True)
class LanguageModelAnswers:
    """``probabilities`` [E, V], ``failed`` [E], and per entity what the model stated or which
    problem occurred.

    A failed row is uniform, with log loss log V. Its first value would sometimes be right by
    chance, so use ``right``, ``confidence_and_hits`` and ``accuracy`` of this class, which count
    failed answers as wrong, and not the rows alone.
    """

    probabilities: FloatArray
    failed: NDArray[np.bool_]
    stated: tuple[Stated | None, ...]
    problems: tuple[str | None, ...]
    costs: TokenCosts

    def right(self, labels: metrics.LabelArray) -> NDArray[np.bool_]:
        """[E], given the positions [E] of the true values."""
        return self.confidence_and_hits(labels)[1]

    def confidence_and_hits(
        self, labels: metrics.LabelArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Like ``metrics.confidence_and_hits``, with failed answers as wrong."""
        confidence, right = metrics.confidence_and_hits(self.probabilities, labels)
        return confidence, right & ~self.failed

    def accuracy(self, labels: metrics.LabelArray) -> float:
        """Over all entities, including failed ones, which the paper left out."""
        return float(self.right(labels).mean())


def make_answers(
    prompts: Sequence[str], replies: Replies, values: Sequence[str], prices: Prices | None
) -> LanguageModelAnswers:
    by_prompt = replies.by_prompt
    read = {prompt: _read(reply, values) for prompt, reply in by_prompt.items()}
    answered = [read[prompt] for prompt in prompts]
    stated = tuple(one if isinstance(one, Stated) else None for one in answered)
    unread = sum(
        isinstance(read[prompt], Unreadable) and reply.text is not None
        for prompt, reply in by_prompt.items()
    )
    return LanguageModelAnswers(
        probabilities=np.array([distribution(one, values) for one in stated]),
        failed=np.array([one is None for one in stated]),
        stated=stated,
        problems=tuple(one.problem if isinstance(one, Unreadable) else None for one in answered),
        costs=TokenCosts.of(list(by_prompt.values()), replies.kept, unread, prices),
    )


def _read(reply: Reply, values: Sequence[str]) -> Stated | Unreadable:
    if reply.text is None:
        return Unreadable(f"the call failed: {reply.problem}")
    found = parse_answer(reply.text, values)
    if isinstance(found, Unreadable) and reply.cut_off:
        return Unreadable(f"{found.problem}; it was cut off at max_tokens")
    return found


@dataclass(frozen=True)
class ZeroShot:
    """A fitted ``LanguageModel``. ``ask`` and ``predict_proba`` send evidence to the endpoint."""

    name: str
    config: EndpointConfig
    predicate: Predicate
    meanings: Mapping[str, str]
    folder: Path | None

    def prompts(self, examples: Examples) -> list[str]:
        """What would be sent, one prompt per entity. Nothing is sent."""
        found = examples.dataset.schema[self.predicate.name].values
        if found != self.predicate.values:
            raise ConfigError(
                f"{self.name} was fitted for the values {list(self.predicate.values)} of "
                f"{self.predicate.name!r}, and this data has {list(found)}. Nothing was asked."
            )
        return make_prompts(examples, self.predicate, self.meanings)

    def ask(self, examples: Examples) -> LanguageModelAnswers:
        """Asks about every entity without a stored reply. ConfigError for more entities than the
        limit; LanguageModelError if the endpoint refuses, or answers nothing at all."""
        self._require_within_limit(len(examples.dataset))
        prompts = self.prompts(examples)
        stored = None if self.folder is None else StoredReplies(self.folder, self.config)
        replies = ask_all(self.config, prompts, stored)
        return make_answers(prompts, replies, self.predicate.values, self.config.prices)

    def predict_proba(self, examples: Examples) -> FloatArray:
        """[E, V]. Failed rows are uniform and not marked here; see ``ask``, which with a folder
        sends nothing twice."""
        return self.ask(examples).probabilities

    def _require_within_limit(self, entities: int) -> None:
        if entities > self.config.limit:
            raise ConfigError(
                f"{self.name}: {entities:,} entities were given and endpoint.limit is "
                f"{self.config.limit}. Nothing was asked; draw some of them (sampled), or raise "
                "the limit."
            )


@dataclass(frozen=True)
class LanguageModel:
    """Zero-shot: gets the question, its values and the evidence of one entity at a time.

    ``meanings`` explains values; the predicate's description explains the question. Replies are
    stored in ``folder``, so that an interrupted run continues and repeated runs give the same
    answers, which temperature 0 alone does not guarantee. Creating and fitting it sends nothing.
    """

    name: str
    config: EndpointConfig
    meanings: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> ZeroShot:
        """Uses the schema only. UnknownValueError if ``meanings`` names an unknown value."""
        question = train.dataset.schema[predicate]
        for value in self.meanings:
            question.position(value)
        return ZeroShot(self.name, self.config, question, self.meanings, self.folder)


def sampled(
    examples: Examples, predicate: str, limit: int, generator: np.random.Generator
) -> Examples:
    """At most ``limit`` entities in their original order, each value of ``predicate`` in its share
    to within one entity; those without a value count as another value. A very rare value can be
    missing."""
    if limit < 1:
        raise ConfigError(f"must be 1 or above, got {limit!r}.", field="limit")
    labels = examples.dataset.labels(predicate)
    if limit >= len(labels):
        return examples
    values, counts = np.unique(labels, return_counts=True)
    chosen = [
        generator.permutation(np.flatnonzero(labels == value))[:quota]
        for value, quota in zip(values, _quotas(counts, limit), strict=True)
    ]
    return examples.select(np.sort(np.concatenate(chosen)))


def _quotas(counts: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """``limit`` divided in proportion to ``counts``, by largest remainders."""
    exact = counts * (limit / counts.sum())
    quotas: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    largest = np.argsort(quotas - exact, kind="stable")
    quotas[largest[: limit - quotas.sum()]] += 1
    return quotas


@dataclass(frozen=True)
class ModelPreset:
    """A model of the paper: its name at Groq, and its price in dollars of January 2026. Other
    endpoints may spell the name differently."""

    model: str
    prices: Prices

    def at(self, base_url: str, api_key_env: str | None = None) -> EndpointConfig:
        """Use ``dataclasses.replace`` to change other settings."""
        return EndpointConfig(base_url, self.model, api_key_env, prices=self.prices)


MODEL_PRESETS: Mapping[str, ModelPreset] = MappingProxyType(
    {
        preset.model: preset
        for preset in (
            ModelPreset("llama-3.3-70b-versatile", Prices(0.59, 0.79)),
            ModelPreset("qwen3-32b", Prices(0.18, 0.18)),
            ModelPreset("kimi-k2-instruct-0905", Prices(0.30, 0.30)),
            ModelPreset("gpt-oss-120b", Prices(0.80, 0.80)),
        )
    }
)
