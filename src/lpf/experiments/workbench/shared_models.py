"""Networks that several methods of a lesson share: trained once, and charged to each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from time import perf_counter

from lpf.baselines import ItemModels, Shared
from lpf.experiments.lessons.examples import LessonExamples
from lpf.experiments.workbench.models import ModelShelf, Recipe, StudyModel
from lpf.experiments.workbench.variants import DEFAULT_ENSEMBLE, OPTIONS, best_members
from lpf.training import Examples

# Trained to the letter of the paper, and nobody else's.
PUBLISHED = "lpf_learned_published"
# As ``lpf train`` leaves it: networks or a linear reading.
CHOSEN = "lpf_chosen"
OVER_FACTORS = "vae_only"
OVER_ITEMS = (
    "deterministic_average",
    "deterministic_ensemble_average",
    "spn_only",
    "majority_vote",
    "confidence_vote",
    "stacking",
    "dawid_skene",
)
OVER_FOLDS = ("stacking", "dawid_skene")


class SharedModels:
    """None is trained before a method asks for it. ``shelf`` keeps those of LPF."""

    def __init__(self, learned: LessonExamples, shelf: ModelShelf) -> None:
        self.learned, self.shelf = learned, shelf
        # As wide a search as LPF's own.
        self._items = ItemModels(searched=len(learned.lesson.seeds))

    @cached_property
    def model(self) -> StudyModel:
        return self._trained("networks")

    @cached_property
    def published(self) -> StudyModel:
        return self._trained("published")

    @cached_property
    def chosen(self) -> StudyModel:
        return self._trained("chosen")

    def variant_model(self, name: str) -> StudyModel:
        """The one that a variant of LPF answers with."""
        if name == CHOSEN:
            return self.chosen
        return self.published if name == PUBLISHED else self.model

    def shared(self, name: str) -> Shared:
        """What the method shares with others; no model for those that do without, which would be
        trained for nothing. The one trained to the letter is left to variants."""
        if not name.startswith(OVER_FACTORS):
            return Shared(items=self._items)
        return Shared(best_members(self.model.runtime, DEFAULT_ENSEMBLE), items=self._items)

    def seconds(self, name: str) -> float:
        """How long it took to train what the method shares, which is done here if not before."""
        if name in OPTIONS:
            return self.variant_model(name).seconds
        if name.startswith(OVER_FACTORS):
            return self.model.seconds
        classified = self._item_seconds if name in OVER_ITEMS else 0.0
        return classified + (self._fold_seconds if name in OVER_FOLDS else 0.0)

    def _trained(self, recipe: Recipe) -> StudyModel:
        learned = self.learned
        return self.shelf.model(
            learned.lesson, learned.examples, learned.reader_id, learned.predicate, recipe
        )

    @cached_property
    def _item_seconds(self) -> float:
        return self._timed(self._items.model)

    @cached_property
    def _fold_seconds(self) -> float:
        return self._timed(self._items.out_of_fold)

    def _timed(self, training: Callable[[Examples, Examples, str, int], object]) -> float:
        begin = perf_counter()
        learned = self.learned
        training(learned.train, learned.validation, learned.predicate, learned.lesson.seed)
        return perf_counter() - begin
