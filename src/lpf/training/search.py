"""The seed search: all seeds trained together, kept by what they depend on, taken up again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lpf.model.initialise import fresh_tensors
from lpf.training.checkpoints import (
    CHECKPOINT,
    read_checkpoint,
    read_result,
    result_of,
    write_checkpoint,
    write_result,
)
from lpf.training.history import SeedHistory, ranked
from lpf.training.settings import TrainingConfig
from lpf.training.stage_one import StageOne, StageOneState
from lpf.types import Float32Array

CHECKPOINT_SECONDS = 15.0
# Told after each epoch: how many are over, at most how many there are, and the state.
Watcher = Callable[[int, int, StageOneState], None]


@dataclass(frozen=True)
class SearchResult:
    """Every seed's history and the weights of its best epoch, with the leading axis of seeds."""

    histories: tuple[SeedHistory, ...]
    tensors: dict[str, Float32Array]

    @property
    def order(self) -> list[int]:
        """Positions of the seeds, best first."""
        return ranked(self.histories)


def search_seeds(
    stage: StageOne, folder: Path | None = None, watcher: Watcher | None = None
) -> SearchResult:
    """Trains, or goes on where an interrupted search in ``folder`` stopped, or reads what a search
    that is done found. An interrupt leaves a checkpoint behind."""
    if folder is not None and (kept := read_result(folder)) is not None:
        return SearchResult(*kept)
    state = stage.begin(fresh_tensors(stage.model, stage.seeds))
    if folder is not None:
        state = read_checkpoint(folder, state)
    try:
        stage.run(state, _watching(stage.config, folder, watcher))
    except KeyboardInterrupt:
        # Mid-epoch weights are of no use; what the last checkpoint holds is.
        raise KeyboardInterrupt(_told(folder, state)) from None
    if folder is not None:
        write_result(folder, state)
    return SearchResult(*result_of(state))


def search_id(**depends_on: object) -> str:
    """A name for a search: the hash of all it depends on."""
    document = json.dumps(depends_on, sort_keys=True, default=str)
    return hashlib.sha256(document.encode()).hexdigest()[:16]


def _watching(
    config: TrainingConfig, folder: Path | None, watcher: Watcher | None
) -> Callable[[StageOneState], None]:
    last = time.monotonic()

    def watch(state: StageOneState) -> None:
        nonlocal last
        if watcher is not None:
            watcher(state.epoch, config.max_epochs, state)
        due = time.monotonic() - last >= CHECKPOINT_SECONDS
        if folder is not None and due and not state.is_done:
            write_checkpoint(folder, state)
            last = time.monotonic()

    return watch


def _told(folder: Path | None, state: StageOneState) -> str:
    if folder is None:
        return "interrupted; nothing was kept."
    if not (folder / CHECKPOINT).exists():
        return "interrupted before the first checkpoint; the same command begins anew."
    return f"interrupted in epoch {state.epoch + 1}; the same command goes on from its checkpoint."
