"""A training run in a workspace: from labelled data to a saved model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.errors import ConfigError, TrainingError
from lpf.workspace.models import PreviousModel
from lpf.workspace.training_sources import SEARCHES, Prepared, Source, prepare
from lpf.workspace.wiring import Wiring

if TYPE_CHECKING:
    from lpf.datasets import Dataset
    from lpf.training import Trained, TrainingConfig
    from lpf.training.search import Watcher
    from lpf.training.trainer import Telling
    from lpf.workspace.training_data import Progress

# Writes about a trained model into a folder and says where; the text is its data set's name.
Reporter = Callable[["Trained", Path, str], Path]


@dataclass(frozen=True)
class TrainingPlan:
    """How it is trained. None stands for the training room's own defaults. ``single`` trains and
    keeps that one seed in place of the best of several; ``grid`` tries the paper's grid of learning
    rates and widths first. ``onto`` is a model that gets a head for one more predicate, with all
    else as it is. ``name`` is what the model's card calls it."""

    config: TrainingConfig | None = None
    seeds: tuple[int, ...] | None = None
    single: int | None = None
    grid: bool = False
    name: str | None = None
    onto: str | None = None

    def __post_init__(self) -> None:
        if self.onto is not None and (self.grid or self.single is not None or self.seeds):
            raise ConfigError(
                "onto: a head is trained on the seeds and widths its model has; leave seeds, "
                "single and grid out. Nothing was trained."
            )
        if self.single is not None and self.seeds is not None:
            raise ConfigError(
                "seeds: a single seed is trained alone; give it or a list of seeds, not both. "
                "Nothing was trained."
            )


@dataclass(frozen=True)
class TrainingCallbacks:
    """Who is told of what goes on: texts read (done, in all), epochs of a search, and steps."""

    reading: Progress | None = None
    epochs: Watcher | None = None
    tell: Telling | None = None


@dataclass(frozen=True)
class GridResult:
    """One configuration of the grid, and what the best of its seeds got on validation items."""

    learning_rate: float
    latent_width: int
    hidden: tuple[int, ...]
    seed: int
    accuracy: float
    loss: float


@dataclass(frozen=True)
class TrainingRun:
    """What was trained, on what. ``few`` is whether it was too little to hold some of it back,
    ``claims_read`` whether texts were read against their claims."""

    trained: Trained
    dataset: Dataset
    predicates: tuple[str, ...]
    config: TrainingConfig
    few: bool
    tried: tuple[GridResult, ...] = ()
    claims_read: bool = False


@dataclass(frozen=True)
class TrainingOutcome:
    """A model that was trained and saved. ``active`` is whether it answers now, ``report`` the
    file that tells of it, ``earlier`` another model that answered until then."""

    version: str
    active: bool
    run: TrainingRun
    report: Path | None = None
    earlier: PreviousModel | None = None

    @property
    def trained(self) -> Trained:
        return self.run.trained


@dataclass(frozen=True)
class Run:
    """One run, from reading to fitting. Searches are kept in the workspace's folder, so that the
    same run again finds what is done."""

    workspace: Wiring
    source: Source = field(default_factory=Source)
    plan: TrainingPlan = field(default_factory=TrainingPlan)
    watching: TrainingCallbacks = field(default_factory=TrainingCallbacks)

    def __call__(self) -> TrainingRun:
        require_torch()
        config = self._config()
        self._say("reading the texts")
        prepared = prepare(self.workspace, self.source, self.watching.reading)
        tried: tuple[GridResult, ...] = ()
        if self.plan.grid:
            config, tried = self._best_of_grid(prepared, config)
        trained = self._named(self._trained(prepared, config))
        return TrainingRun(
            trained,
            prepared.examples.dataset,
            prepared.predicates,
            config,
            prepared.few,
            tried,
            self.workspace.reader.uses_claim,
        )

    def _config(self) -> TrainingConfig:
        from lpf.training import TrainingConfig

        config = self.plan.config or TrainingConfig()
        if self.plan.single is None:
            return config
        return replace(config, members=1, model="networks")  # that seed's, whatever else is there

    def _seeds(self) -> tuple[int, ...]:
        from lpf.training import SEVEN_SEEDS

        if self.plan.single is not None:
            return (self.plan.single,)
        return SEVEN_SEEDS if self.plan.seeds is None else self.plan.seeds

    def _head(self, version: str, prepared: Prepared, config: TrainingConfig) -> Trained:
        from lpf.training import train_head

        artefact = self.workspace.models.load(version)
        known = {head.name for head in artefact.config.predicates}
        new = [name for name in prepared.predicates if name not in known]
        if len(new) != 1:
            raise ConfigError(
                f"onto: one predicate is added at a time, and the data have {new or 'none'} that "
                f"{version} does not answer yet. Nothing was trained; name it with --predicate."
            )
        if prepared.few or artefact.config.reader_id != self.workspace.reader.reader_id:
            why = (
                "needs 60 labelled entities" if prepared.few else "reads texts with another reader"
            )
            raise TrainingError(
                f"onto: a head for model {version} cannot be trained: it {why}. Nothing was "
                "trained; train a model of its own instead."
            )
        self._say(f"training a head for {new[0]}")
        return train_head(artefact, prepared.examples, new[0], config, self.watching.epochs)

    def _trained(self, prepared: Prepared, config: TrainingConfig) -> Trained:
        from lpf.training import Trainer

        if self.plan.onto is not None:
            return self._head(self.plan.onto, prepared, config)
        folder = self.workspace.folder / SEARCHES
        reader_id, seeds, watching = self.workspace.reader.reader_id, self._seeds(), self.watching
        if prepared.few:
            from lpf.training.small_data import train_few

            return train_few(
                prepared.examples,
                reader_id,
                prepared.predicates,
                config,
                seeds,
                watching.epochs,
                watching.tell,
            )
        trainer = Trainer(
            prepared.examples,
            reader_id,
            prepared.predicates,
            config,
            seeds,
            folder,
            watching.epochs,
            watching.tell,
        )
        return trainer.run()

    def _best_of_grid(
        self, prepared: Prepared, config: TrainingConfig
    ) -> tuple[TrainingConfig, tuple[GridResult, ...]]:
        """By validation accuracy, then loss, of each one's best seed; then the first in the grid.
        The second stage is left to the one that is chosen: it has no part in the choice."""
        configs = grid(config)
        tried = []
        for number, one in enumerate(configs, 1):
            self._say(f"configuration {number} of {len(configs)}: {described(one)}")
            alone = replace(one, aggregator=None, model="networks")
            tried.append(_tried(one, self._trained(prepared, alone)))
        best = min(range(len(tried)), key=lambda place: _rank(tried[place]))
        self._say(f"the best of the grid: {described(configs[best])}")
        return configs[best], tuple(tried)

    def _named(self, trained: Trained) -> Trained:
        if self.plan.name is None:
            return trained
        return replace(trained, card=replace(trained.card, name=self.plan.name))

    def _say(self, what: str) -> None:
        if self.watching.tell is not None:
            self.watching.tell(what)


def require_torch() -> None:
    """TrainingError where it is not installed: answering does without."""
    if find_spec("torch") is None:
        raise TrainingError(
            "training needs the package torch, which is not installed. Nothing was trained. "
            "Install it: pip install 'lpf[train]'"
        )


def grid(config: TrainingConfig) -> list[TrainingConfig]:
    """``config`` with every learning rate, latent width and hidden widths of the paper's grid."""
    from lpf.training.config import HIDDEN_WIDTHS, LATENT_WIDTHS, LEARNING_RATES

    return [
        replace(config, learning_rate=rate, latent_width=latent, hidden=hidden)
        for rate, latent, hidden in product(LEARNING_RATES, LATENT_WIDTHS, HIDDEN_WIDTHS)
    ]


def described(config: TrainingConfig) -> str:
    hidden = ",".join(map(str, config.hidden))
    return f"learning rate {config.learning_rate:g}, latent {config.latent_width}, hidden {hidden}"


def _tried(config: TrainingConfig, trained: Trained) -> GridResult:
    from lpf.training.history import ranked

    best = trained.histories[ranked(trained.histories)[0]]
    return GridResult(
        config.learning_rate,
        config.latent_width,
        config.hidden,
        best.seed,
        best.best.validation_accuracy,
        best.best.validation_loss,
    )


def _rank(tried: GridResult) -> tuple[float, float]:
    return -tried.accuracy, tried.loss
