"""The methods that LPF is compared with, used the way the classifier itself is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lpf.classifier import methods
from lpf.classifier.baseline_learning import FittedBaseline, learn_baseline
from lpf.classifier.entities import EntityLike, read_entities
from lpf.classifier.entity_classifier import EntityClassifier
from lpf.classifier.features import Memory, choose_reader
from lpf.classifier.labels import Prior
from lpf.classifier.learning import Holdout, chosen_seeds, require_torch, whole_number
from lpf.classifier.lesson import Lesson
from lpf.errors import ConfigError, TrainingError
from lpf.index.copies import DEFAULT_SIMILARITY, checked_similarity
from lpf.reading import Reader
from lpf.types import FloatArray

if TYPE_CHECKING:
    from lpf.baselines import Temperature, TransformerConfig


@dataclass(eq=False, repr=False)
class BaselineClassifier(EntityClassifier):
    """One of the methods that ``lpf evaluate`` compares LPF with, on the X and y that
    ``LPFClassifier`` takes. It cannot be saved: it is there to be compared with.

    ``method`` is one of ``method_names()``. With ``temperature`` its probabilities get the
    temperature that validation entities call for; the prior, a reference, stays as it is.
    ``random_state`` draws the validation entities and all that the method draws. Methods over a
    classifier of single items try as many of these as there are ``seeds``; ``vae_only`` starts from
    the seeds themselves; others train one network. ``checkpoint`` (a folder or a name on the hub)
    and ``transformer`` (its budget) are for the method ``transformer``. The rest is as in
    ``LPFClassifier``.

    After ``fit``: ``classes_``, ``temperature_`` (None without) and ``cautions_``.
    """

    method: str
    temperature: bool = False
    seeds: Sequence[int] | str = "seven"
    validation_share: float = 0.15
    reader: str | Reader | None = None
    prior: Prior = None
    copy_similarity: float | None = DEFAULT_SIMILARITY
    random_state: int = 42
    checkpoint: str | Path | None = None
    transformer: TransformerConfig | None = None

    classes_: NDArray[Any] = field(init=False)
    temperature_: Temperature | None = field(init=False)
    cautions_: tuple[str, ...] = field(init=False)
    _fitted: FittedBaseline | None = field(init=False, default=None)
    _memory: Memory = field(init=False, default_factory=Memory)

    @staticmethod
    def method_names() -> tuple[str, ...]:
        """All that ``method`` can be. Needs torch."""
        require_torch()
        return methods.method_names()

    def fit(
        self,
        X: Iterable[EntityLike],
        y: Iterable[Any],
        groups: Iterable[Any] | None = None,
        validation: Sequence[Any] | None = None,
    ) -> Self:
        """Learns from entities and their labels.

        ``validation`` is (X, y) or (X, y, groups); without it ``validation_share`` of the entities
        is held back, however few there are, and never a part of one of ``groups``. Raises
        EvidenceError, DatasetError, ConfigError or TrainingError, and what was learned before
        stays.
        """
        require_torch()
        from lpf.training import make_examples

        recipe, tempered = self._recipe(), self._is_tempered()
        holdout = Holdout(self.validation_share, recipe.seed)
        similarity = checked_similarity(self.copy_similarity)
        lesson = Lesson.of(X, y, groups, validation, self.prior)
        reader = choose_reader(self.reader, lesson.with_claim)
        features = self._memory.features(reader, lesson.entities)
        examples = make_examples(holdout.applied(lesson.dataset), features, similarity)
        return self._keep(
            learn_baseline(recipe, lesson, examples, reader.reader_id, tempered=tempered)
        )

    def predict_proba(self, X: Iterable[EntityLike]) -> FloatArray:
        """[E, V], columns as in ``classes_``. An entity without evidence gets the prior."""
        fitted = self._require_fitted()
        entities = read_entities(X)
        features = self._features(entities, fitted.with_claim, fitted.reader_id)
        return fitted.distribution(entities, features, checked_similarity(self.copy_similarity))

    def _keep(self, fitted: FittedBaseline) -> Self:
        self._fitted = fitted
        self.classes_ = fitted.classes.array
        self.temperature_, self.cautions_ = fitted.temperature, fitted.cautions
        return self

    def _require_fitted(self) -> FittedBaseline:
        if self._fitted is None:
            raise TrainingError(
                "this BaselineClassifier is not fitted. Nothing was answered; call fit(X, y) first."
            )
        learned = (self._fitted.name, self._fitted.is_tempered)
        if learned != (self.method, self._is_tempered()):
            raise TrainingError(
                f"this BaselineClassifier was fitted with method={learned[0]!r} and temperature="
                f"{learned[1]}, which were changed since. Nothing was answered; fit it again."
            )
        return self._fitted

    def _recipe(self) -> methods.Recipe:
        return methods.Recipe(
            self.method,
            chosen_seeds(self.seeds),
            whole_number("random_state", self.random_state),
            self.checkpoint,
            self.transformer,
        )

    def _is_tempered(self) -> bool:
        if not isinstance(self.temperature, bool | np.bool_):
            raise ConfigError(f"temperature: must be True or False, got {self.temperature!r}.")
        return bool(self.temperature)
