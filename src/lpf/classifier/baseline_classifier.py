"""The methods that LPF is compared with, used the way the classifier itself is.

The methods of ``lpf.baselines`` that lists of evidence are enough for: names and the making.

A baseline from its data to its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.answering import Memory, choose_reader
from lpf.classifier.base import EntityClassifier
from lpf.classifier.entities import PREDICATE, Entity, EntityLike, read_entities
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
    from lpf.training import Examples


OF_LPF = "lpf_"  # how names of LPF's own variants begin
OVER_TRUTH = ("perfect_reader", "oracle")
OVER_FACTORS = ("vae_only", "vae_only_ensemble")
OVER_FOLDS = ("stacking", "dawid_skene")
OVER_CHECKPOINT = "transformer"


@dataclass(frozen=True)
class Recipe:
    """A method by name, and what it is made with. As many classifiers of single items are tried as
    there are ``seeds``; a variational model starts from the seeds themselves. ``seed`` draws
    everything else."""

    name: str
    seeds: tuple[int, ...]
    seed: int
    checkpoint: str | Path | None
    transformer: TransformerConfig | None

    def __post_init__(self) -> None:
        _check_name(self.name)
        given = {"checkpoint": self.checkpoint, "transformer": self.transformer}
        for setting, value in given.items():
            if value is not None and self.name != OVER_CHECKPOINT:
                raise ConfigError(
                    f"{setting}: is for the method {OVER_CHECKPOINT!r} alone, and this is "
                    f"{self.name!r}. Nothing was trained; leave it out."
                )

    def require_enough(self, train: Dataset) -> None:
        """DatasetError where a method that learns from folds would have too few for them."""
        from lpf.baselines.item_models import FOLDS

        found = len({entity.group_id or entity.entity_id for entity in train})
        if self.name in OVER_FOLDS and found < FOLDS:
            raise DatasetError(
                f"X: {found} training entities of different groups, and {self.name!r} needs "
                f"{FOLDS}. Nothing was trained; label more, or choose another method."
            )

    def made(self, examples: Examples, reader_id: str) -> Method:
        """Ready to be fitted on ``examples``, which must be in splits."""
        from lpf.baselines import ItemModels, Shared, TransformerConfig, make_methods
        from lpf.training import Trainer, TrainingConfig

        model = None
        if self.name in OVER_FACTORS:
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

    return tuple(n for n in METHODS if not n.startswith(OF_LPF) and n not in OVER_TRUTH)


def _check_name(name: object) -> None:
    known = method_names()
    if name in known:
        return
    why = "is not known"
    if name in OVER_TRUTH:
        why = "needs the truth that generated data carry, which X does not"
    elif isinstance(name, str) and name.startswith(OF_LPF):
        why = "is not among them: LPF itself is LPFClassifier(variant=..., mode=...)"
    raise ConfigError(
        f"method: {name!r} {why}. Nothing was trained; the methods are {list(known)}."
    )


LEAST = {"train": LEAST_IN_TRAIN, "validation": 1}  # entities of each class


@dataclass(frozen=True)
class FittedBaseline:
    """What was learned: ``answering`` has ``temperature`` in it, where one was fitted."""

    name: str
    is_tempered: bool
    classes: Classes
    schema: Schema
    answering: FittedMethod
    temperature: Temperature | None
    reader_id: str
    with_claim: bool
    cautions: tuple[str, ...]

    def distribution(
        self, entities: Sequence[Entity], features: Float32Array, copy_similarity: float | None
    ) -> FloatArray:
        """[E, V]; ``features`` are of all items. The prior for entities without evidence."""
        from lpf.training import make_examples

        answers = np.tile(np.array(self.schema[PREDICATE].prior), (len(entities), 1))
        filled = np.array([bool(entity.evidence) for entity in entities], bool)
        if filled.any():
            asked = _asked(entities, self.schema)
            examples = make_examples(asked, features, copy_similarity)
            answers[filled] = checked_probabilities(self.answering.predict_proba(examples))
        return answers


def learn_baseline(
    recipe: Recipe, lesson: TrainingInput, examples: Examples, reader_id: str, *, tempered: bool
) -> FittedBaseline:
    """``examples`` are those of the lesson, in splits. References are never tempered."""
    from lpf.baselines import with_temperature
    from lpf.baselines.run_methods import TEMPERING

    _require_both_sides(examples.dataset, lesson.classes)
    train, validation = examples.split("train"), examples.split("validation")
    assert train is not None  # both were checked above
    assert validation is not None
    recipe.require_enough(train.dataset)
    method = recipe.made(examples, reader_id)
    answering = method.fit(train, validation, PREDICATE, recipe.seed)
    temperature = None
    if tempered and not method.is_reference:
        generator = np.random.default_rng([recipe.seed, TEMPERING])
        scaled = with_temperature(answering, validation, PREDICATE, generator=generator)
        answering, temperature = scaled, scaled.temperature
    return FittedBaseline(
        recipe.name,
        tempered,
        lesson.classes,
        lesson.dataset.schema,
        answering,
        temperature,
        reader_id,
        lesson.with_claim,
        _cautions(examples.dataset, temperature is not None),
    )


def _require_both_sides(dataset: Dataset, classes: Classes) -> None:
    """DatasetError where train or validation has too few entities of a class."""
    labels = dataset.labels(PREDICATE)
    splits = np.array([entity.split for entity in dataset])
    for split, least in LEAST.items():
        counts = np.bincount(labels[splits == split], minlength=len(classes.labels))
        for label, count in zip(classes.labels, counts.tolist(), strict=True):
            if count < least:
                raise DatasetError(
                    f"X: {count} of the {counts.sum()} {split} entities are of the class "
                    f"{label!r}, and at least {least} must be. Nothing was trained; label more, "
                    "set another validation_share, or give validation entities."
                )


def _asked(entities: Sequence[Entity], schema: Schema) -> Dataset:
    """Those with evidence, as a stranger sees them: no label of any kind."""
    asked = tuple(
        DatasetEntity(f"X[{place}]", {}, tuple(_items(entity, place)), entity.claim)
        for place, entity in enumerate(entities)
        if entity.evidence
    )
    return Dataset("X", schema, asked)


def _items(entity: Entity, place: int) -> list[DatasetItem]:
    return [
        dataset_item(item, f"X[{place}][{number}]", {})
        for number, item in enumerate(entity.evidence)
    ]


def _cautions(dataset: Dataset, tempered: bool) -> tuple[str, ...]:
    from lpf.training.training_warnings import data_cautions, prior_cautions, size_cautions

    cautions = list(data_cautions(dataset))
    if tempered:
        cautions += size_cautions(PREDICATE, len(dataset.positions("validation")))
    train = dataset.labels(PREDICATE)[dataset.positions("train")]
    cautions += prior_cautions(dataset.schema[PREDICATE], train)
    return tuple(cautions)


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
        return method_names()

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
        lesson = TrainingInput.of(X, y, groups, validation, self.prior)
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

    def _recipe(self) -> Recipe:
        return Recipe(
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
