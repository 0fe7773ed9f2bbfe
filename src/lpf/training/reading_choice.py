"""Which reading answers: the networks, or a linear one. Held-out entities decide, the same by
which networks stopped and a penalty was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpf.calibration import CalibrationFit
from lpf.model.runtime import Runtime
from lpf.training.examples import Examples
from lpf.training.fitting import robust_fit
from lpf.training.linear import LinearLearner, LinearRecipe
from lpf.training.linear_choice import LinearTrials


@dataclass(frozen=True)
class ReadingChoice:
    """The NLL of held-out entities under each, a mean over the predicates, robust mode fitted to
    others than those judged where they are few. ``linear`` goes by predicate."""

    networks_nll: float
    linear_nll: float
    linear: Mapping[str, LinearRecipe]

    @property
    def is_linear(self) -> bool:
        return self.linear_nll < self.networks_nll

    def told(self) -> str:
        """In a sentence."""
        ours, theirs = sorted((self.linear_nll, self.networks_nll))
        kept, left = ("linear", "networks") if self.is_linear else ("networks", "linear")
        sentence = f"reading: {kept}, held-out NLL {ours:.4f} against {theirs:.4f} of the {left}"
        if not self.is_linear:
            return sentence
        return "; ".join([sentence, *(_told(name, one) for name, one in self.linear.items())])


def choose_reading(
    networks: Runtime,
    train: Examples,
    validation: Examples,
    predicates: tuple[str, ...],
    seeds: Sequence[int],
) -> tuple[Runtime, ReadingChoice]:
    """The better of ``networks`` and a linear reading with one member for each of ``seeds``."""
    learner = LinearLearner(train)
    trials = LinearTrials(validation, [learner], [np.arange(len(validation.dataset))])
    recipes = {name: trials.recipe(name) for name in predicates}
    linear = learner.runtime(recipes, seeds, networks.config.reader_id)
    schema = validation.dataset.schema
    losses = [
        mean_nll([robust_fit(runtime, schema[name], validation) for name in predicates])
        for runtime in (networks, linear)
    ]
    choice = ReadingChoice(losses[0], losses[1], recipes)
    return (linear if choice.is_linear else networks), choice


def mean_nll(fits: Sequence[CalibrationFit]) -> float:
    """Over the predicates, by which readings are compared."""
    losses = [
        one.nll_after if one.nll_cross_fitted is None else one.nll_cross_fitted for one in fits
    ]
    return sum(losses) / len(losses)


def _told(name: str, recipe: LinearRecipe) -> str:
    whose = "the items' own labels" if recipe.source == "items" else "the entities' labels"
    return f"{name}: read by {whose}, penalty {recipe.penalty:g}"
