"""A search on disk, so that one that was interrupted goes on where it stopped.

<search>/checkpoint.safetensors   between two epochs: weights, optimiser, best weights
<search>/search.safetensors       done: the best weights of every seed
<search>/search.json              done: what happened, by seed
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lpf.errors import TrainingError
from lpf.model.networks import to_numpy
from lpf.storage.files import write_atomically
from lpf.training.history import Epoch, SeedHistory
from lpf.training.members import Tensors
from lpf.training.stage_one import StageOneState, best_tensors, histories_of
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
