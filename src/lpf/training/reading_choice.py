"""Which reading answers: the networks, or a linear one. Validation entities decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lpf.model.runtime import Runtime
from lpf.training.examples import Examples
from lpf.training.fitting import robust_fit
from lpf.training.linear import LinearReading, Source


@dataclass(frozen=True)
class LinearRecipe:
    """How a predicate is read linearly."""

    source: Source
    penalty: float


@dataclass(frozen=True)
class ReadingChoice:
    """The NLL of validation entities under each, a mean over the predicates, robust mode fitted to
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
        sentence = f"reading: {kept}, validation NLL {ours:.4f} against {theirs:.4f} of the {left}"
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
    reading = LinearReading(train, validation, predicates)
    linear = reading.runtime(seeds, networks.config.reader_id)
    choice = ReadingChoice(
        _mean_nll(networks, validation, predicates),
        _mean_nll(linear, validation, predicates),
        {name: LinearRecipe(one.source, one.penalty) for name, one in reading.heads.items()},
    )
    return (linear if choice.is_linear else networks), choice


def _mean_nll(runtime: Runtime, validation: Examples, predicates: Sequence[str]) -> float:
    schema = validation.dataset.schema
    fits = [robust_fit(runtime, schema[name], validation) for name in predicates]
    losses = [
        one.nll_after if one.nll_cross_fitted is None else one.nll_cross_fitted for one in fits
    ]
    return sum(losses) / len(losses)


def _told(name: str, recipe: LinearRecipe) -> str:
    whose = "the items' own labels" if recipe.source == "items" else "the entities' labels"
    return f"{name}: read by {whose}, penalty {recipe.penalty:g}"
