"""A language model as one of the methods that are compared: it learns nothing, and is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lpf.baselines.language_models.answers import LanguageModelAnswers, make_answers
from lpf.baselines.language_models.asking import ask_all
from lpf.baselines.language_models.config import EndpointConfig
from lpf.baselines.language_models.prompts import make_prompts
from lpf.baselines.language_models.replies import KeptReplies
from lpf.errors import ConfigError
from lpf.schema import Predicate
from lpf.training.examples import Examples
from lpf.types import FloatArray


@dataclass(frozen=True)
class ZeroShot:
    """A model with its question. ``ask`` and ``predict_proba`` send evidence to the endpoint."""

    name: str
    config: EndpointConfig
    predicate: Predicate
    meanings: Mapping[str, str]
    folder: Path | None

    def prompts(self, examples: Examples) -> list[str]:
        """What would be sent, one an entity. Nothing is."""
        found = examples.dataset.schema[self.predicate.name].values
        if found != self.predicate.values:
            raise ConfigError(
                f"{self.name}: was made for values {list(self.predicate.values)} of "
                f"{self.predicate.name!r}, and these data have {list(found)}. Nothing was asked."
            )
        return make_prompts(examples, self.predicate, self.meanings)

    def ask(self, examples: Examples) -> LanguageModelAnswers:
        """Asks about every entity that is not kept on disk. ConfigError for more entities than the
        limit; LanguageModelError where the endpoint refuses, or answers nothing at all."""
        self._refuse_many(len(examples.dataset))
        prompts = self.prompts(examples)
        kept = None if self.folder is None else KeptReplies(self.folder, self.config)
        replies = ask_all(self.config, prompts, kept)
        return make_answers(prompts, replies, self.predicate.values, self.config.prices)

    def predict_proba(self, examples: Examples) -> FloatArray:
        """[E, V]. Rows that failed are uniform and cannot be told from here: see ``ask``, which
        with a folder asks nothing twice."""
        return self.ask(examples).probabilities

    def _refuse_many(self, entities: int) -> None:
        if entities > self.config.limit:
            raise ConfigError(
                f"{self.name}: {entities:,} entities were given and endpoint.limit is "
                f"{self.config.limit}. Nothing was asked; draw some of them (sampled), or raise "
                "the limit."
            )


@dataclass(frozen=True)
class LanguageModel:
    """Zero-shot: told the question, its values and the evidence of one entity at a time.

    ``meanings`` says of values what they stand for; what the question is about is the predicate's
    description. In ``folder`` replies are kept, so that an interrupted run goes on and the same
    answers come again, which temperature 0 alone does not promise. Making and fitting it sends
    nothing.
    """

    name: str
    config: EndpointConfig
    meanings: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> ZeroShot:
        """Looks at the schema alone. UnknownValueError for a meaning of what is no value."""
        question = train.dataset.schema[predicate]
        for value in self.meanings:
            question.position(value)
        return ZeroShot(self.name, self.config, question, self.meanings, self.folder)
