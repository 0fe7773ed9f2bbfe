"""The result of an evaluation: the predictions of every method, scored and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from lpf.baselines import TRANSFORMER
from lpf.datasets import Dataset
from lpf.errors import ConfigError, MissingPackageError
from lpf.evaluation.comparisons import Comparison, Loss, compare
from lpf.evaluation.measures import SubsetScores, by_group
from lpf.evaluation.method_names import CHOSEN, standing_of, title_of
from lpf.evaluation.plan import EvaluationPlan
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.summaries import Summary, summarise

if TYPE_CHECKING:
    import pandas as pd

    from lpf.evaluation.language_model_run import LanguageModelRun

# The method that others are compared with: what ``lpf train`` would save, else LPF's networks.
OURS = (CHOSEN, "lpf_robust")
FRAME_MEASURES = ("accuracy", "nll", "brier", "ece", "ece_null", "macro_f1", "runtime_ms")

Measure = Literal["nll", "brier", "accuracy"]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What ``lpf.evaluate`` returns.

    ``runs`` has one ``Predictions`` per seed for each method. ``folds`` is 0 if the data set's own
    splits were used. ``warnings`` are sentences about the data. ``unshared_ids`` are the test
    entities that share no text, claim or group with training or validation entities; None if
    nothing is shared. ``language_model`` is None unless one was requested.
    """

    plan: EvaluationPlan
    dataset: Dataset
    predicate: str
    folds: int
    warnings: tuple[str, ...]
    runs: dict[str, list[Predictions]]
    unshared_ids: frozenset[str] | None
    language_model: LanguageModelRun | None = None
    _scores: dict[str, Summary] = field(default_factory=dict, compare=False)
    _comparisons: dict[tuple[str, Loss], dict[str, Comparison]] = field(
        default_factory=dict, compare=False
    )

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.runs)

    @property
    def ours(self) -> str | None:
        """The LPF method that others are compared with; None if it was not evaluated."""
        return next((name for name in OURS if name in self.runs), None)

    @cached_property
    def test_entities(self) -> int:
        return len(next(iter(self.runs.values()))[0].labels)

    def scores(self, method: str) -> Summary:
        """Every measure of one method: mean and sd over seeds, and 95 % interval."""
        self._require_known(method)
        if method not in self._scores:
            self._scores[method] = summarise(self.runs[method], groups=self.group_of)
        return self._scores[method]

    def to_frame(self) -> pd.DataFrame:
        """One row per method, lowest NLL first: means, standard deviations over seeds (``_sd``),
        ends of the 95 % intervals (``_low``, ``_high``), number of ``runs`` and ``error``."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingPackageError(
                "to_frame needs the package pandas.", hint="Install it: `pip install pandas`."
            ) from error
        rows = {name: self._frame_row(name) for name in self.ranked()}
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.index.name = "method"
        return frame

    def _frame_row(self, method: str) -> dict[str, Any]:
        summary = self.scores(method)
        row: dict[str, Any] = {"title": self.title(method)}
        for measure in FRAME_MEASURES:
            spread = summary.spreads.get(measure)
            row[measure] = None if spread is None else spread.mean
            if measure in ("accuracy", "nll", "brier", "ece"):
                row[f"{measure}_sd"] = None if spread is None else spread.sd
                row[f"{measure}_low"] = None if spread is None else spread.low
                row[f"{measure}_high"] = None if spread is None else spread.high
        row["runs"] = summary.runs
        row["error"] = None if summary.runs else "; ".join(summary.notes)
        return row

    def summary(self) -> str:
        """The verdict, a table and the warnings as text."""
        from lpf.evaluation.conclusions import summary_text

        return summary_text(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        best = next(iter(self.ranked()), None)
        return (
            f"<Evaluation of {self.dataset.name!r}: {len(self.runs)} methods, "
            f"{self.test_entities:,} test entities, {len(self.plan.seeds)} seeds, best by NLL: "
            f"{best}>"
        )

    def compare(self, a: str, b: str, measure: Measure = "nll") -> Comparison:
        """Method ``a`` against method ``b`` on the same entities and seeds.

        ``difference`` is the mean of ``a`` less that of ``b``, with a 95 % interval and a p-value;
        ``adjusted`` is the p-value after Holm's correction over all methods that ``a`` can be
        compared with. For NLL and Brier score, below 0 means that ``a`` is better; for accuracy,
        above 0.
        """
        self._require_known(a)
        self._require_known(b)
        if a == b:
            raise ConfigError(f"{a!r} cannot be compared with itself.", field="b")
        losses: dict[str, Loss] = {"nll": "nll", "brier": "brier", "accuracy": "error"}
        if measure not in losses:
            raise ConfigError(
                f"unknown measure {measure!r}; choose from {list(losses)}.", field="measure"
            )
        by_name = self._compared(a, losses[measure])
        comparison = (
            by_name[b]
            if b in by_name
            else compare(self.runs[a], {b: self.runs[b]}, losses[measure], groups=self.group_of)[0]
        )
        return comparison.as_accuracy() if measure == "accuracy" else comparison

    def comparisons(self) -> list[Comparison]:
        """``ours`` against each other method by NLL; empty without it."""
        return [] if self.ours is None else list(self._compared(self.ours, "nll").values())

    def _compared(self, method: str, measure: Loss) -> dict[str, Comparison]:
        """``method`` against all others that are not references, by name."""
        if (method, measure) not in self._comparisons:
            others = {
                name: runs
                for name, runs in self.runs.items()
                if name != method and standing_of(name) != "reference"
            }
            comparisons = compare(self.runs[method], others, measure, groups=self.group_of)
            self._comparisons[method, measure] = {each.name: each for each in comparisons}
        return self._comparisons[method, measure]

    @cached_property
    def group_of(self) -> dict[str, str]:
        """The group of each entity that has one: entities of a group are resampled together."""
        return {
            entity.entity_id: entity.group_id
            for entity in self.dataset
            if entity.group_id is not None
        }

    def nll(self, method: str) -> float:
        """Mean over seeds; infinite if there are no predictions, so that it ranks last."""
        spread = self.scores(method).spreads.get("nll")
        return float("inf") if spread is None else spread.mean

    def ranked(self) -> list[str]:
        """Methods by NLL, lowest first; references such as ``prior`` last."""
        return sorted(
            self.runs, key=lambda name: (standing_of(name) == "reference", self.nll(name))
        )

    def unshared_scores(self, method: str) -> Summary | None:
        """Scores on the test entities that share nothing with training entities; None if all or
        none of them do."""
        if self.unshared_ids is None or not self.unshared_ids:
            return None
        unshared = [one.select(self.unshared_ids) for one in self.runs[method]]
        return summarise(unshared, groups=self.group_of)

    def answered(self, method: str) -> list[Predictions]:
        """The repetitions that did not fail."""
        return [one for one in self.runs[method] if one.error is None]

    def subset_scores(
        self, method: str, by: Callable[[Predictions], list[SubsetScores]] = by_group
    ) -> list[SubsetScores]:
        """Scores by subset, by default by the protected field, as means over repetitions; empty
        without that field or without predictions."""
        runs = [by(one) for one in self.answered(method)]
        return [_mean_scores(alike) for alike in zip(*runs, strict=True)]

    def title(self, method: str) -> str:
        """The name for people; a transformer that was chosen by ``model`` is called by its name."""
        if method == TRANSFORMER and self.plan.model is not None:
            return f"Fine-tuned {self.plan.model}"
        return title_of(method)

    def _require_known(self, method: str) -> None:
        if method not in self.runs:
            raise ConfigError(
                f"unknown method {method!r}; choose from {list(self.runs)}.", field="method"
            )


def numbers_of(scores: SubsetScores) -> dict[str, float]:
    return {name: value for name, value in vars(scores).items() if isinstance(value, int | float)}


def _mean_scores(repetitions: Sequence[SubsetScores]) -> SubsetScores:
    """One subset over repetitions, which have the same entities."""
    numbers = [numbers_of(one) for one in repetitions]
    means: dict[str, Any] = {name: fmean(one[name] for one in numbers) for name in numbers[0]}
    return replace(repetitions[0], **{**means, "entities": repetitions[0].entities})
