"""The seed search: all seeds trained together, kept by what they depend on, taken up again.

A search on disk, so that one that was interrupted goes on where it stopped.

<search>/checkpoint.safetensors   between two epochs: weights, optimiser, best weights
<search>/search.safetensors       done: the best weights of every seed
<search>/search.json              done: what happened, by seed
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lpf.errors import TrainingError
from lpf.model.layout import fresh_tensors
from lpf.model.networks import to_numpy
from lpf.storage.atomic_files import write_atomically
from lpf.training.config import TrainingConfig
from lpf.training.history import Epoch, SeedHistory, ranked
from lpf.training.members import Tensors
from lpf.training.stage_one import StageOne, StageOneState, best_tensors, histories_of
from lpf.types import Float32Array

CHECKPOINT, WEIGHTS, RESULT = "checkpoint.safetensors", "search.safetensors", "search.json"
FORMAT = "lpf-search/1"


def write_checkpoint(folder: Path, state: StageOneState) -> None:
    from safetensors.torch import save

    numbers = {
        "format": FORMAT,
        "seeds": list(state.seeds),
        "active": state.active,
        "finished": state.finished,
        "epoch": state.epoch,
        "steps": state.members.steps,
        "best_loss": state.best_loss,
        "epochs": [[asdict(epoch) for epoch in epochs] for epochs in state.epochs],
    }
    parts: dict[str, Mapping[str, Tensor]] = {
        "parameters": state.members.parameters,
        "moments": state.members.moments(),
        "best": state.best,
    }
    tensors = {
        f"{part}:{name}": tensor.detach().contiguous()
        for part, named in parts.items()
        for name, tensor in named.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / CHECKPOINT, save(tensors, {"state": json.dumps(numbers)}))


def read_checkpoint(folder: Path, begun: StageOneState) -> StageOneState:
    """``begun`` brought to where the search stopped; unchanged where there is no checkpoint."""
    path = folder / CHECKPOINT
    if not path.is_file():
        return begun
    numbers, tensors = _opened(path)
    if numbers["seeds"] != list(begun.seeds):
        raise TrainingError(f"{path}: is of other seeds. Nothing was trained; remove it.")
    parts: dict[str, Tensors] = {"parameters": {}, "moments": {}, "best": {}}
    for key, tensor in tensors.items():
        part, name = key.split(":", 1)
        parts[part][name] = tensor
    members = begun.members.keep(numbers["active"])
    with torch.no_grad():
        for name, tensor in members.parameters.items():
            tensor.copy_(parts["parameters"][name])
    members.set_moments(parts["moments"], numbers["steps"])
    begun.members, begun.best = members, parts["best"]
    begun.active, begun.finished = numbers["active"], numbers["finished"]
    begun.epoch, begun.best_loss = numbers["epoch"], numbers["best_loss"]
    begun.epochs = [[Epoch(**epoch) for epoch in epochs] for epochs in numbers["epochs"]]
    return begun


def write_result(folder: Path, state: StageOneState) -> None:
    from safetensors.numpy import save

    folder.mkdir(parents=True, exist_ok=True)
    histories = [history.to_dict() for history in histories_of(state)]
    write_atomically(folder / WEIGHTS, save(to_numpy(state.best)))
    document = {"format": FORMAT, "seeds": histories}
    write_atomically(folder / RESULT, json.dumps(document, indent=1).encode())
    (folder / CHECKPOINT).unlink(missing_ok=True)


def read_result(
    folder: Path,
) -> tuple[tuple[SeedHistory, ...], dict[str, Float32Array]] | None:
    """What a search that is done found; None where it is not."""
    from safetensors.numpy import load

    if not (folder / RESULT).is_file():
        return None
    document = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    if document.get("format") != FORMAT:
        raise TrainingError(
            f"{folder / RESULT}: format is {document.get('format')!r}, this version reads "
            f"{FORMAT!r}. Nothing was trained; remove the folder to search again."
        )
    histories = tuple(map(SeedHistory.from_dict, document["seeds"]))
    return histories, load((folder / WEIGHTS).read_bytes())


def result_of(state: StageOneState) -> tuple[tuple[SeedHistory, ...], dict[str, Float32Array]]:
    return histories_of(state), best_tensors(state)


def _opened(path: Path) -> tuple[dict[str, Any], Tensors]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            numbers = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(
            f"{path}: is damaged ({error}). Nothing was trained; remove it to begin anew."
        ) from error
    if numbers.get("format") != FORMAT:
        raise TrainingError(f"{path}: is of another version. Remove it to begin anew.")
    return numbers, tensors


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
