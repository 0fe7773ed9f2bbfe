"""The search over seeds: all seeds train together, and the result is stored.

An interrupted search continues from its last checkpoint; a finished one is read from disk.

    <search>/checkpoint.safetensors   between two epochs: weights, optimiser, best weights
    <search>/search.safetensors       finished: the best weights of every seed
    <search>/search.json              finished: every seed's history
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lpf.errors import TrainingError
from lpf.model.layout import fresh_tensors
from lpf.model.networks import to_numpy
from lpf.storage.atomic_files import private_folder, write_atomically
from lpf.training.history import Epoch, SeedHistory, ranked
from lpf.training.members import Tensors
from lpf.training.stage_one import (
    EpochCallback,
    StageOne,
    StageOneState,
    best_tensors,
    histories_of,
)
from lpf.types import Float32Array

CHECKPOINT, WEIGHTS, RESULT = "checkpoint.safetensors", "search.safetensors", "search.json"
FORMAT = "lpf-search/1"
CHECKPOINT_SECONDS = 15.0


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
    stage: StageOne, folder: Path | None = None, on_epoch: EpochCallback | None = None
) -> SearchResult:
    """Train all seeds, or read or continue the search in ``folder``. An interrupt leaves a
    checkpoint there."""
    if folder is not None and (stored := read_result(folder)) is not None:
        return stored
    state = stage.begin(fresh_tensors(stage.model, stage.seeds))
    if folder is not None:
        state = read_checkpoint(folder, state)
    try:
        stage.run(state, _with_checkpoints(folder, on_epoch))
    except KeyboardInterrupt:
        # The weights in memory are those of an unfinished epoch, so they are not saved.
        raise KeyboardInterrupt(_interrupted(folder, state)) from None
    if folder is not None:
        write_result(folder, state)
    return SearchResult(histories_of(state), best_tensors(state))


def search_id(**depends_on: object) -> str:
    """A name for a search: the hash of everything it depends on."""
    document = json.dumps(depends_on, sort_keys=True, default=str)
    return hashlib.sha256(document.encode()).hexdigest()[:16]


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
        "moments": state.members.moments,
        "best": state.best,
    }
    tensors = {
        f"{part}:{name}": tensor.detach().contiguous()
        for part, named in parts.items()
        for name, tensor in named.items()
    }
    private_folder(folder)
    write_atomically(folder / CHECKPOINT, save(tensors, {"state": json.dumps(numbers)}))


def read_checkpoint(folder: Path, begun: StageOneState) -> StageOneState:
    """``begun`` with everything from the checkpoint; unchanged if there is none."""
    path = folder / CHECKPOINT
    if not path.is_file():
        return begun
    numbers, tensors = _read_tensors(path)
    if numbers["seeds"] != list(begun.seeds):
        raise TrainingError(
            f"{path} belongs to other seeds. Nothing was trained; remove the file and try again."
        )
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

    private_folder(folder)
    histories = [history.to_dict() for history in histories_of(state)]
    write_atomically(folder / WEIGHTS, save(to_numpy(state.best)))
    document = {"format": FORMAT, "seeds": histories}
    write_atomically(folder / RESULT, json.dumps(document, indent=1).encode())
    (folder / CHECKPOINT).unlink(missing_ok=True)


def read_result(folder: Path) -> SearchResult | None:
    """The result of a finished search, or None."""
    from safetensors.numpy import load

    if not (folder / RESULT).is_file():
        return None
    document = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    if document.get("format") != FORMAT:
        raise TrainingError(
            f"{folder / RESULT}: the format is {document.get('format')!r}, this version reads "
            f"{FORMAT!r}. Nothing was trained; remove the folder to start the search again."
        )
    histories = tuple(map(SeedHistory.from_dict, document["seeds"]))
    return SearchResult(histories, load((folder / WEIGHTS).read_bytes()))


def _read_tensors(path: Path) -> tuple[dict[str, Any], Tensors]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            numbers = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TrainingError(
            f"{path} is damaged ({error}). Nothing was trained; remove it to start again."
        ) from error
    if numbers.get("format") != FORMAT:
        raise TrainingError(
            f"{path} was written by another version. Nothing was trained; remove it to start again."
        )
    return numbers, tensors


def _with_checkpoints(folder: Path | None, on_epoch: EpochCallback | None) -> EpochCallback:
    last = time.monotonic()

    def after_epoch(epoch: int, most: int, state: StageOneState) -> None:
        nonlocal last
        if on_epoch is not None:
            on_epoch(epoch, most, state)
        due = time.monotonic() - last >= CHECKPOINT_SECONDS
        if folder is not None and due and not state.is_done:
            write_checkpoint(folder, state)
            last = time.monotonic()

    return after_epoch


def _interrupted(folder: Path | None, state: StageOneState) -> str:
    if folder is None:
        return "interrupted; nothing was stored."
    if not (folder / CHECKPOINT).exists():
        return "interrupted before the first checkpoint; the same command starts again."
    return (
        f"interrupted in epoch {state.epoch + 1}; the same command continues from its checkpoint."
    )
