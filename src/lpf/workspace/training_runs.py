"""A training run in a workspace: from labelled data to a trained model.

``Workspace.train`` calls ``run_training`` and saves the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.errors import ConfigError, TrainingError
from lpf.reading.fitted_words import without_words
from lpf.workspace.circuit import read_circuit
from lpf.workspace.models import PreviousModel
from lpf.workspace.training_sources import SEARCHES, PreparedData, TrainingSource, prepare
from lpf.workspace.wiring import Wiring

if TYPE_CHECKING:
    from lpf.datasets import Dataset
    from lpf.training import Trained, TrainingConfig
    from lpf.training.stage_one import EpochCallback
    from lpf.training.trainer import StatusCallback
    from lpf.workspace.training_data import Progress

# Writes a report on a trained model into a folder and returns its path; the text is the name of
# the data set.
Reporter = Callable[["Trained", Path, str], Path]


@dataclass(frozen=True)
class TrainingPlan:
    """How to train. None means the defaults of ``lpf.training``.

    ``single`` trains that one seed instead of the best of several; ``grid`` first tries the paper's
    grid of learning rates and widths. ``onto`` is a model that gets a head for one more predicate
    and is otherwise not changed. ``name`` is the name on the model's card.
    """

    config: TrainingConfig | None = None
    seeds: tuple[int, ...] | None = None
    single: int | None = None
    grid: bool = False
    name: str | None = None
    onto: str | None = None

    def __post_init__(self) -> None:
        if self.onto is not None and (self.grid or self.single is not None or self.seeds):
            raise ConfigError(
                "onto: a new head uses the seeds and widths of its model; leave out seeds, single "
                "and grid. Nothing was trained."
            )
        if self.single is not None and self.seeds is not None:
            raise ConfigError(
                "seeds: give either a single seed or a list of seeds, not both. Nothing was "
                "trained."
            )


@dataclass(frozen=True)
class TrainingCallbacks:
    """Functions that are called as training proceeds: ``on_texts`` with the number of texts read
    and of all texts, ``on_epoch`` after every epoch, ``on_status`` with each step that begins,
    ``on_pairs`` with the number of texts that the reader was tuned on and of all in all passes."""

    on_texts: Progress | None = None
    on_epoch: EpochCallback | None = None
    on_status: StatusCallback | None = None
    on_pairs: Progress | None = None

    def status(self, step: str) -> None:
        if self.on_status is not None:
            self.on_status(step)


@dataclass(frozen=True)
class GridResult:
    """One configuration of the grid, and its best seed's results on validation items."""

    learning_rate: float
    latent_width: int
    hidden: tuple[int, ...]
    seed: int
    accuracy: float
    loss: float


@dataclass(frozen=True)
class TrainingRun:
    """A trained model and what it was trained on. ``few`` is True if there were too few entities to
    hold any back, ``claims_read`` if texts were read together with their claims, ``learned_prior``
    if the priors are those of a learned circuit."""

    trained: Trained
    dataset: Dataset
    predicates: tuple[str, ...]
    config: TrainingConfig
    few: bool
    tried: tuple[GridResult, ...] = ()
    claims_read: bool = False
    learned_prior: bool = False


@dataclass(frozen=True)
class TrainingOutcome:
    """A model that was trained and saved. ``active`` is True if it answers from now on, ``report``
    is the path of its report, ``earlier`` the model that answered before."""

    version: str
    active: bool
    run: TrainingRun
    report: Path | None = None
    earlier: PreviousModel | None = None

    @property
    def trained(self) -> Trained:
        return self.run.trained


def run_training(
    workspace: Wiring, source: TrainingSource, plan: TrainingPlan, callbacks: TrainingCallbacks
) -> TrainingRun:
    """Read the texts and train. Searches over seeds are stored in the workspace, so the same run
    again finds their results."""
    require_torch()
    config = _config(plan)
    began = time.monotonic()
    callbacks.status("reading the texts")
    circuit = read_circuit(workspace.folder)
    onto = None if plan.onto is None else workspace.models.load(plan.onto)
    prepared = prepare(workspace, source, callbacks.on_texts, onto)
    # Parameters are fitted, and answers scored, with the prior that answers will have.
    prepared = prepared.with_priors_of(circuit)
    tried: tuple[GridResult, ...] = ()
    if plan.grid:
        config, tried = _search_grid(workspace, prepared, config, plan, callbacks)
    trained = _train(workspace, prepared, config, plan, callbacks, time.monotonic() - began)
    if plan.name is not None:
        trained = replace(trained, card=replace(trained.card, name=plan.name))
    return TrainingRun(
        trained,
        prepared.examples.dataset,
        prepared.predicates,
        config,
        prepared.few,
        tried,
        prepared.reader.uses_claim,
        circuit is not None,
    )


def require_torch() -> None:
    """TrainingError if torch is not installed; only training needs it."""
    if find_spec("torch") is None:
        raise TrainingError(
            "training needs the package torch, which is not installed. Nothing was trained. "
            "Install it: pip install 'lpf[train]'"
        )


def _config(plan: TrainingPlan) -> TrainingConfig:
    from lpf.training import TrainingConfig

    config = plan.config or TrainingConfig()
    if plan.single is None:
        return config
    # The user asked for this seed's network, so no linear model may replace it.
    return replace(config, members=1, model="networks")


def _seeds(plan: TrainingPlan) -> tuple[int, ...]:
    from lpf.training import SEVEN_SEEDS

    if plan.single is not None:
        return (plan.single,)
    return SEVEN_SEEDS if plan.seeds is None else plan.seeds


def _train(
    workspace: Wiring,
    prepared: PreparedData,
    config: TrainingConfig,
    plan: TrainingPlan,
    callbacks: TrainingCallbacks,
    spent: float = 0.0,
) -> Trained:
    """``spent`` seconds of the budget are gone."""
    from lpf.training import Trainer, train_small

    if plan.onto is not None:
        return _train_head(workspace, plan.onto, prepared, config, callbacks)
    data = prepared.examples, prepared.reader.reader_id, prepared.predicates
    on_epoch, on_status = callbacks.on_epoch, callbacks.on_status
    if prepared.few:
        return train_small(*data, config, _seeds(plan), on_epoch=on_epoch, on_status=on_status)
    folder = workspace.folder / SEARCHES
    trainer = Trainer(
        *data,
        config,
        _seeds(plan),
        folder,
        on_epoch,
        on_status,
        prepared.reader,
        spent,
        callbacks.on_texts,
        callbacks.on_pairs,
    )
    return trainer.run()


def _train_head(
    workspace: Wiring,
    version: str,
    prepared: PreparedData,
    config: TrainingConfig,
    callbacks: TrainingCallbacks,
) -> Trained:
    from lpf.training import train_head

    artefact = workspace.models.load(version)
    known = {head.name for head in artefact.config.predicates}
    new = [name for name in prepared.predicates if name not in known]
    if len(new) != 1:
        raise ConfigError(
            f"onto: one predicate is added at a time, but the data have {new or 'none'} that "
            f"{version} does not answer yet. Nothing was trained; name one with --predicate."
        )
    if prepared.few or without_words(artefact.config.reader_id) != prepared.reader.reader_id:
        why = "that needs 60 labelled entities" if prepared.few else "it uses another reader"
        raise TrainingError(
            f"onto: cannot train a head for model {version}: {why}. Nothing was trained; train a "
            "new model instead."
        )
    callbacks.status(f"training a head for {new[0]}")
    return train_head(artefact, prepared.examples, new[0], config, callbacks.on_epoch)


def _search_grid(
    workspace: Wiring,
    prepared: PreparedData,
    config: TrainingConfig,
    plan: TrainingPlan,
    callbacks: TrainingCallbacks,
) -> tuple[TrainingConfig, tuple[GridResult, ...]]:
    """The configuration whose best seed has the highest validation accuracy, then the lowest loss;
    among equals the first. Only it is trained further, with aggregator and linear model."""
    configs = grid(config)
    tried = []
    for number, one in enumerate(configs, 1):
        callbacks.status(f"configuration {number} of {len(configs)}: {_describe(one)}")
        alone = replace(one, aggregator=None, model="networks")
        tried.append(_grid_result(one, _train(workspace, prepared, alone, plan, callbacks)))
    best = min(range(len(tried)), key=lambda place: (-tried[place].accuracy, tried[place].loss))
    callbacks.status(f"the best of the grid: {_describe(configs[best])}")
    return configs[best], tuple(tried)


def grid(config: TrainingConfig) -> list[TrainingConfig]:
    """``config`` with every learning rate, latent width and hidden widths of the paper's grid."""
    from lpf.training.config import HIDDEN_WIDTHS, LATENT_WIDTHS, LEARNING_RATES

    return [
        replace(config, learning_rate=rate, latent_width=latent, hidden=hidden)
        for rate, latent, hidden in product(LEARNING_RATES, LATENT_WIDTHS, HIDDEN_WIDTHS)
    ]


def _describe(config: TrainingConfig) -> str:
    hidden = ",".join(map(str, config.hidden))
    return f"learning rate {config.learning_rate:g}, latent {config.latent_width}, hidden {hidden}"


def _grid_result(config: TrainingConfig, trained: Trained) -> GridResult:
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
