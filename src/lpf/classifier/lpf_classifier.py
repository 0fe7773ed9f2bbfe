"""``LPFClassifier``: fit, predict, explain, save and load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lpf.classifier import explaining, saving
from lpf.classifier.answering import EntityBatch, FittedModel
from lpf.classifier.base import EntityClassifier
from lpf.classifier.entities import EntityLike, read_entities
from lpf.classifier.features import TextFeatureCache, choose_reader
from lpf.classifier.fitting import (
    FitPlan,
    Holdout,
    TrainingInput,
    chosen_seeds,
    is_few,
    learn,
    require_torch,
    whole_number,
)
from lpf.classifier.labels import Prior
from lpf.combine.uncertainty import Uncertainty
from lpf.errors import ConfigError, TrainingError
from lpf.explain import AnswerExplanation, Changes
from lpf.index.copies import DEFAULT_SIMILARITY, checked_similarity
from lpf.model.artefact import Artefact, ModelCard
from lpf.model.config import AggregatorConfig
from lpf.options import Sampler, WeightForm
from lpf.reading import Reader
from lpf.reading.fitted_words import words_width
from lpf.types import FloatArray, Mode, QueryOptions, Variant

if TYPE_CHECKING:
    from lpf.training import TrainingConfig
    from lpf.training.config import Balance, ModelKind, Unfamiliar


@dataclass(eq=False, repr=False)
class LPFClassifier(EntityClassifier):
    """Classifies entities by their evidence, with scikit-learn's interface.

    X is a list of entities. An entity is a list of evidence, or ``{"claim": text, "evidence":
    [...]}``. Evidence is a text, ``lpf.Evidence``, or a dict with ``text`` and optionally
    ``credibility``, ``source``, ``timestamp``, ``report_id`` and ``supports_value``.

    One network is trained per seed in ``seeds`` (a list, "seven" or "fifteen"); the best
    ``members`` of them form the model. ``random_state`` draws the validation entities and the
    samples of paper mode. ``reader`` is a reader or a name for ``open_reader``. ``prior`` is a
    dict by class, or a sequence in the order of ``classes_``; None takes the class shares of y.
    Parameters from ``hidden`` to ``model`` are those of ``TrainingConfig``, from ``sampler`` to
    ``without_claim_prior`` those of ``QueryOptions``. The aggregator is trained only for the
    variant ``learned``.

    After ``fit``: ``classes_``, ``card_`` (the model card) and ``warnings_`` (what to know before
    relying on the probabilities).
    """

    variant: Variant = "spn"
    mode: Mode = "robust"
    seeds: Sequence[int] | str = "seven"
    members: int = 5
    validation_share: float = 0.15
    reader: str | Reader | None = None
    prior: Prior = None
    copy_similarity: float | None = DEFAULT_SIMILARITY
    random_state: int = 42
    hidden: Sequence[int] = (256, 128)
    latent_width: int = 64
    deterministic: bool = False
    dropout: float = 0.2
    learning_rate: float = 1e-3
    batch_size: int = 64
    beta: float = 0.01
    patience: int = 15
    max_epochs: int = 100
    weight_decay: float = 0.0
    balance: Balance = "auto"
    model: ModelKind = "best"
    unfamiliar: Unfamiliar = "less"
    budget: float = 600.0
    aggregator: AggregatorConfig | None = None
    aggregator_epochs: int = 30
    aggregator_learning_rate: float = 1e-3
    sampler: Sampler | None = None
    n_samples: int | None = None
    temperature: float | None = None
    alpha: float | None = None
    weight_form: WeightForm | None = None
    without_claim_prior: bool = False
    verbose: bool = False

    classes_: NDArray[Any] = field(init=False)
    card_: ModelCard = field(init=False)
    warnings_: tuple[str, ...] = field(init=False)
    _fitted: FittedModel | None = field(init=False, default=None)
    _feature_cache: TextFeatureCache = field(init=False, default_factory=TextFeatureCache)

    def fit(
        self,
        X: Iterable[EntityLike],
        y: Iterable[Any],
        groups: Iterable[Any] | None = None,
        validation: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from entities and their labels.

        ``validation`` is (X, y) or (X, y, groups). Without it ``validation_share`` of the entities
        is held out; fewer than 60 entities are trained in folds instead. Entities of one group in
        ``groups`` are never split between training and validation. Raises EvidenceError,
        DatasetError, ConfigError or TrainingError; an earlier fit then stays in place.
        """
        require_torch()
        self._options()
        plan = self._plan()
        given = TrainingInput.of(X, y, groups, validation, self.prior)
        dataset = given.dataset
        if self.variant == "learned" and is_few(dataset):
            raise _too_few_for_aggregator(len(dataset))
        reader = choose_reader(self.reader, given.with_claim)
        if plan.on_status is not None:
            plan.on_status("reading the texts")
        features = self._feature_cache.features(reader, given.entities)
        trained = learn(dataset, features, reader, plan)
        artefact = Artefact("unsaved", trained.config, trained.card, trained.tensors, trained.tuned)
        return self._set_fitted(
            FittedModel(given.classes, dataset.schema, artefact, given.with_claim, trained.warnings)
        )

    def predict_proba(self, X: Iterable[EntityLike]) -> FloatArray:
        """Class probabilities [E, V], columns as in ``classes_``. An entity without evidence gets
        the prior."""
        fitted = self._require_fitted()
        return self._batch(X, fitted).distribution(fitted, self._options())

    def predict_set(
        self, X: Iterable[EntityLike], coverage: float = 0.9, *, by_value: bool = False
    ) -> NDArray[np.bool_]:
        """Prediction sets [E, V], columns as in ``classes_``: at least the share ``coverage`` of
        entities like the held-out ones have their class in their set; with ``by_value``, of those
        of each class by itself. An entity without evidence has all classes in its set. ConfigError
        if the classifier does not know how sure it is: fit it again."""
        fitted = self._require_fitted()
        options = replace(self._options(), coverage=coverage)
        return self._batch(X, fitted).sets(fitted, options, by_value)

    def predict_selective(
        self, X: Iterable[EntityLike], max_risk: float = 0.05
    ) -> NDArray[np.object_]:
        """The most probable class of each entity [E], or None where it is deferred: with 95 %
        confidence at most the share ``max_risk`` of the classes that are given is wrong. All are
        deferred if that cannot be reached. ConfigError as for ``predict_set``."""
        fitted = self._require_fitted()
        options = replace(self._options(), max_risk=max_risk)
        answered, best = self._batch(X, fitted).decisions(fitted, options)
        chosen = fitted.classes.array.astype(object)[best]
        chosen[~answered] = None
        return np.asarray(chosen)

    def explain(self, X: Iterable[EntityLike]) -> list[AnswerExplanation]:
        """Why each answer is what it is, one explanation per entity of X, as from
        ``Workspace.explain``: ``print`` shows it. Items are called E1, E2 and so on by their place,
        unless they came as ``lpf.Evidence`` with an ID."""
        fitted = self._require_fitted()
        return explaining.explanations(self._batch(X, fitted), fitted, self._options())

    def what_if(self, entity: EntityLike, changes: Changes | None = None) -> AnswerExplanation:
        """The answer about one entity if ``changes`` were so, taken apart: items left out, added or
        weighted otherwise. Facts cannot be assumed."""
        fitted = self._require_fitted()
        batch = self._batch([entity], fitted)
        supposing = changes or Changes()
        (known,) = batch.entities
        new = {"claim": known.claim, "evidence": list(supposing.add)}
        added = self._batch([new], fitted).features
        return explaining.what_if(batch, fitted, self._options(), supposing, added)

    def uncertainty(self, X: Iterable[EntityLike], samples: int = 32) -> Uncertainty:
        """How far each answer is open, and why: each field is an array [E], in nats. ``samples``
        latent codes are drawn per item."""
        if samples < 1:
            raise ConfigError(f"must be at least 1, got {samples!r}.", field="samples")
        fitted = self._require_fitted()
        return self._batch(X, fitted).uncertainty(fitted, self._options(samples))

    def save(self, folder: str | Path) -> None:
        """Write the fitted classifier for ``load``, without pickle. A classifier saved there before
        is replaced; its model's folder stays."""
        saving.save(Path(folder), self._require_fitted(), self.get_params())

    @classmethod
    def load(cls, folder: str | Path, reader: Reader | None = None) -> Self:
        """Load a saved classifier. ``reader`` is needed if it was fitted with a reader object
        rather than a name."""
        fitted, parameters = saving.load(Path(folder))
        loaded = cls(**parameters)
        if reader is not None:
            loaded.reader = reader
        return loaded._set_fitted(fitted)

    def _set_fitted(self, fitted: FittedModel) -> Self:
        self._fitted = fitted
        self.classes_ = fitted.classes.array
        self.card_, self.warnings_ = fitted.artefact.card, fitted.warnings
        return self

    def _require_fitted(self) -> FittedModel:
        if self._fitted is None:
            raise self._not_fitted("Call fit(X, y) first, or LPFClassifier.load(folder).")
        return self._fitted

    def _batch(self, X: Iterable[EntityLike], fitted: FittedModel) -> EntityBatch:
        entities = read_entities(X)
        model = fitted.artefact
        reader_id = model.config.reader_id
        features = self._features(entities, fitted.with_claim, reader_id, model)
        text_width = features.shape[1] - words_width(reader_id)
        similarity = checked_similarity(self.copy_similarity)
        return EntityBatch(entities, features, text_width, similarity)

    def _options(self, uncertainty_samples: int = 0) -> QueryOptions:
        return QueryOptions(
            variant=self.variant,
            mode=self.mode,
            sampler=self.sampler,
            n_samples=self.n_samples,
            temperature=self.temperature,
            alpha=self.alpha,
            weight_form=self.weight_form,
            without_claim_prior=self.without_claim_prior,
            seed=whole_number("random_state", self.random_state),
            uncertainty_samples=uncertainty_samples,
        )

    def _plan(self) -> FitPlan:
        return FitPlan(
            self._config(),
            chosen_seeds(self.seeds),
            Holdout(self.validation_share, whole_number("random_state", self.random_state)),
            checked_similarity(self.copy_similarity),
            print if self.verbose else None,
        )

    def _config(self) -> TrainingConfig:
        from lpf.training import StageTwoConfig, TrainingConfig

        aggregator = self.aggregator or AggregatorConfig()
        return TrainingConfig(
            hidden=tuple(self.hidden),
            latent_width=self.latent_width,
            deterministic=self.deterministic,
            dropout=self.dropout,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            beta=self.beta,
            patience=self.patience,
            max_epochs=self.max_epochs,
            weight_decay=self.weight_decay,
            balance=self.balance,
            members=self.members,
            aggregator=aggregator if self.variant == "learned" else None,
            stage_two=StageTwoConfig(
                epochs=self.aggregator_epochs, learning_rate=self.aggregator_learning_rate
            ),
            model=self.model,
            unfamiliar=self.unfamiliar,
            budget=self.budget,
        )


def _too_few_for_aggregator(count: int) -> TrainingError:
    return TrainingError(
        f"'learned' cannot be trained on {count} entities with evidence, which are too few to hold "
        "some out for validation. Nothing was trained; use variant='spn', label 60 or more, or "
        "give validation entities.",
        field="variant",
    )
