"""``BaselineClassifier``: the methods of ``lpf.baselines`` with the interface of ``LPFClassifier``.

``BaselineRecipe`` says which method is trained and how, ``FittedBaseline`` holds the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.base import EntityClassifier
from lpf.classifier.entities import PREDICATE, Entity, EntityLike, read_entities
from lpf.classifier.features import TextFeatureCache, choose_reader
from lpf.classifier.fitting import (
    Holdout,
    TrainingInput,
    chosen_seeds,
    dataset_item,
    require_torch,
    whole_number,
)
from lpf.classifier.labels import Classes, Prior
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.datasets.splits import LEAST_IN_TRAIN
from lpf.errors import ConfigError, DatasetError, TrainingError
from lpf.index.copies import DEFAULT_SIMILARITY, checked_similarity
from lpf.metrics.scores import checked_probabilities
from lpf.reading import Reader
from lpf.schema import Schema
from lpf.types import Float32Array, FloatArray

if TYPE_CHECKING:
    from lpf.baselines import FittedMethod, Method, Temperature, TransformerConfig
    from lpf.baselines.tempered import Tempered
    from lpf.training import Examples


LPF_PREFIX = "lpf_"  # of the names of LPF's own methods
NOT_IN_X = ("truth", "test labels")  # what some references need
TRANSFORMER = "transformer"
LEAST = {"train": LEAST_IN_TRAIN, "validation": 1}  # entities of each class


@dataclass(frozen=True)
class BaselineRecipe:
    """A method's name and settings. ``len(seeds)`` item classifiers are tried; a
    variational model starts from the seeds themselves. ``seed`` is for everything else."""

    name: str
    seeds: tuple[int, ...]
    seed: int
    checkpoint: str | Path | None
    transformer: TransformerConfig | None

    def __post_init__(self) -> None:
        _check_name(self.name)
        given = {"checkpoint": self.checkpoint, "transformer": self.transformer}
        for setting, value in given.items():
            if value is not None and self.name != TRANSFORMER:
                raise ConfigError(
                    f"is only for the method {TRANSFORMER!r}, but the method is {self.name!r}. "
                    "Nothing was trained; leave it out.",
                    field=setting,
                )

    def require_enough(self, train: Dataset) -> None:
        """DatasetError if there are too few entities for a method that learns from folds."""
        from lpf.baselines import needs_of
        from lpf.baselines.item_models import FOLDS

        count = len({entity.group_id or entity.entity_id for entity in train})
        if needs_of(self.name) == "item folds" and count < FOLDS:
            raise DatasetError(
                f"the training entities have {count} groups, but {self.name!r} needs at least "
                f"{FOLDS}. Nothing was trained; label more, or choose another method.",
                field="X",
            )

    def build(self, examples: Examples, reader_id: str) -> Method:
        """The method, ready to be fitted on ``examples``, which must be in splits."""
        from lpf.baselines import ItemModels, Shared, TransformerConfig, make_methods, needs_of
        from lpf.training import Trainer, TrainingConfig

        model = None
        if needs_of(self.name) == "networks":
            config = TrainingConfig(aggregator=None, model="networks")
            trainer = Trainer(examples, reader_id, (PREDICATE,), config, self.seeds)
            model = trainer.run().runtime()
        shared = Shared(
            model,
            items=ItemModels(searched=len(self.seeds)),
            checkpoint=self.checkpoint,
            transformer=self.transformer or TransformerConfig(),
        )
        return make_methods(shared, [self.name])[0]


def method_names() -> tuple[str, ...]:
    from lpf.baselines import METHODS

    return tuple(
        name
        for name, entry in METHODS.items()
        if not name.startswith(LPF_PREFIX) and entry.needs not in NOT_IN_X
    )


def _check_name(name: object) -> None:
    from lpf.baselines import needs_of

    known = method_names()
    if name in known:
        return
    why = f"unknown method {name!r}"
    if isinstance(name, str) and needs_of(name) in NOT_IN_X:
        why = f"{name!r} needs the true probabilities of generated data, which X does not have"
    elif isinstance(name, str) and name.startswith(LPF_PREFIX):
        why = f"{name!r} is LPF itself: use LPFClassifier(variant=..., mode=...)"
    raise ConfigError(f"{why}. Nothing was trained; choose from {list(known)}.", field="method")


@dataclass(frozen=True)
class FittedBaseline:
    """What ``BaselineClassifier.fit`` learned. ``method`` applies ``temperature`` itself."""

    name: str
    is_tempered: bool
    classes: Classes
    schema: Schema
    method: FittedMethod
    temperature: Temperature | None
    reader_id: str
    with_claim: bool
    warnings: tuple[str, ...]

    def distribution(
        self, entities: Sequence[Entity], features: Float32Array, copy_similarity: float | None
    ) -> FloatArray:
        """[E, V], from the features of all items. The prior for entities without evidence."""
        from lpf.training import make_examples

        answers = np.tile(np.array(self.schema[PREDICATE].prior), (len(entities), 1))
        filled = np.array([bool(entity.evidence) for entity in entities], bool)
        if filled.any():
            dataset = _without_labels(entities, self.schema)
            examples = make_examples(dataset, features, copy_similarity)
            answers[filled] = checked_probabilities(self.method.predict_proba(examples))
        return answers


def learn_baseline(
    recipe: BaselineRecipe,
    given: TrainingInput,
    examples: Examples,
    reader_id: str,
    *,
    tempered: bool,
) -> FittedBaseline:
    """``examples`` are those of ``given``, in splits. The prior gets no temperature."""
    from lpf.training.threads import one_thread

    _require_enough_per_class(examples.dataset, given.classes)
    train, validation = examples.split("train"), examples.split("validation")
    assert train is not None  # both were checked above
    assert validation is not None
    recipe.require_enough(train.dataset)
    with nullcontext() if recipe.name == TRANSFORMER else one_thread():
        method = recipe.build(examples, reader_id)
        fitted = method.fit(train, validation, PREDICATE, recipe.seed)
        temperature = None
        if tempered and not method.is_reference:
            scaled = _tempered(fitted, validation, recipe.seed)
            fitted, temperature = scaled, scaled.temperature
    return FittedBaseline(
        recipe.name,
        tempered,
        given.classes,
        given.dataset.schema,
        fitted,
        temperature,
        reader_id,
        given.with_claim,
        _warnings(examples.dataset, temperature is not None),
    )


def _tempered(fitted: FittedMethod, validation: Examples, seed: int) -> Tempered:
    from lpf.baselines import with_temperature
    from lpf.baselines.tempered import TEMPERING

    generator = np.random.default_rng([seed, TEMPERING])
    return with_temperature(fitted, validation, PREDICATE, generator=generator)


def _require_enough_per_class(dataset: Dataset, classes: Classes) -> None:
    """DatasetError if the training or validation entities have too few of a class."""
    labels = dataset.labels(PREDICATE)
    splits = np.array([entity.split for entity in dataset])
    for split, least in LEAST.items():
        counts = np.bincount(labels[splits == split], minlength=len(classes.labels))
        for label, count in zip(classes.labels, counts.tolist(), strict=True):
            if count < least:
                raise DatasetError(
                    f"{count} of the {counts.sum()} {split} entities are of the class {label!r}, "
                    f"but at least {least} are needed. Nothing was trained; label more, set "
                    "another validation_share, or give validation entities.",
                    field="X",
                )


def _without_labels(entities: Sequence[Entity], schema: Schema) -> Dataset:
    """The entities with evidence, without labels of any kind."""
    unlabelled = tuple(
        DatasetEntity(f"X[{place}]", {}, tuple(_items(entity, place)), entity.claim)
        for place, entity in enumerate(entities)
        if entity.evidence
    )
    return Dataset("X", schema, unlabelled)


def _items(entity: Entity, place: int) -> list[DatasetItem]:
    return [
        dataset_item(item, f"X[{place}][{number}]", {})
        for number, item in enumerate(entity.evidence)
    ]


def _warnings(dataset: Dataset, tempered: bool) -> tuple[str, ...]:
    from lpf.training.training_warnings import data_warnings, prior_warnings, size_warnings

    warnings = list(data_warnings(dataset))
    if tempered:
        warnings += size_warnings(PREDICATE, len(dataset.positions("validation")))
    train = dataset.labels(PREDICATE)[dataset.positions("train")]
    warnings += prior_warnings(dataset.schema[PREDICATE], train)
    return tuple(warnings)


@dataclass(eq=False, repr=False)
class BaselineClassifier(EntityClassifier):
    """One of the methods that ``lpf evaluate`` compares LPF with, on the same X and y as
    ``LPFClassifier``. It is meant for comparisons and cannot be saved.

    ``method`` is one of ``method_names()``. With ``temperature`` its probabilities are scaled with
    a temperature fitted on the validation entities; the method ``prior`` is not scaled.
    ``random_state`` draws the validation entities and seeds the method. Methods that use a
    classifier of single items try one per seed in ``seeds``; ``vae_only`` starts from the seeds
    themselves; others train one network. ``checkpoint`` (a folder, or a name on the hub) and
    ``transformer`` (its budget) are for the method ``transformer``. The rest is as in
    ``LPFClassifier``.

    After ``fit``: ``classes_``, ``temperature_`` (None without one) and ``warnings_``.
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
    warnings_: tuple[str, ...] = field(init=False)
    _fitted: FittedBaseline | None = field(init=False, default=None)
    _feature_cache: TextFeatureCache = field(init=False, default_factory=TextFeatureCache)

    @staticmethod
    def method_names() -> tuple[str, ...]:
        """The names that ``method`` can have. Needs torch."""
        require_torch()
        return method_names()

    def fit(
        self,
        X: Iterable[EntityLike],
        y: Iterable[Any],
        groups: Iterable[Any] | None = None,
        validation: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from entities and their labels.

        ``validation`` is (X, y) or (X, y, groups). Without it ``validation_share`` of the entities
        is held out, however few there are; a group in ``groups`` is never split. Raises
        EvidenceError, DatasetError, ConfigError or TrainingError; an earlier fit then stays in
        place.
        """
        require_torch()
        from lpf.training import make_examples

        recipe, tempered = self._recipe(), self._is_tempered()
        holdout = Holdout(self.validation_share, recipe.seed)
        similarity = checked_similarity(self.copy_similarity)
        given = TrainingInput.of(X, y, groups, validation, self.prior)
        reader = choose_reader(self.reader, given.with_claim)
        features = self._feature_cache.features(reader, given.entities)
        examples = make_examples(holdout.applied(given.dataset), features, similarity)
        return self._set_fitted(
            learn_baseline(recipe, given, examples, reader.reader_id, tempered=tempered)
        )

    def predict_proba(self, X: Iterable[EntityLike]) -> FloatArray:
        """Class probabilities [E, V], columns as in ``classes_``. An entity without evidence gets
        the prior."""
        fitted = self._require_fitted()
        entities = read_entities(X)
        features = self._features(entities, fitted.with_claim, fitted.reader_id)
        return fitted.distribution(entities, features, checked_similarity(self.copy_similarity))

    def _set_fitted(self, fitted: FittedBaseline) -> Self:
        self._fitted = fitted
        self.classes_ = fitted.classes.array
        self.temperature_, self.warnings_ = fitted.temperature, fitted.warnings
        return self

    def _require_fitted(self) -> FittedBaseline:
        if self._fitted is None:
            raise self._not_fitted("Call fit(X, y) first.")
        learned = (self._fitted.name, self._fitted.is_tempered)
        if learned != (self.method, self._is_tempered()):
            raise TrainingError(
                f"this BaselineClassifier was fitted with method={learned[0]!r} and temperature="
                f"{learned[1]}, which were changed since. Nothing was answered; fit it again."
            )
        return self._fitted

    def _recipe(self) -> BaselineRecipe:
        return BaselineRecipe(
            self.method,
            chosen_seeds(self.seeds),
            whole_number("random_state", self.random_state),
            self.checkpoint,
            self.transformer,
        )

    def _is_tempered(self) -> bool:
        if not isinstance(self.temperature, bool | np.bool_):
            raise ConfigError(
                f"must be True or False, got {self.temperature!r}.", field="temperature"
            )
        return bool(self.temperature)
