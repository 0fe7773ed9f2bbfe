"""Tuning: the pair encoder is trained further on a user's labels.

AdamW at a low rate with a warm-up and a decay to 0, bfloat16 products, one thread. Tuning starts
from the best regression on untuned features, so the first gradients already come from what the
untuned reader gets wrong. The stances must stay close to the untuned ones: they are features, and
relevance depends on them.

The state is saved about once a minute; a run that was stopped continues with the same result.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lpf.errors import TrainingError
from lpf.reading.stance import STANCE_WIDTH
from lpf.storage.atomic_files import atomic_file, private_folder
from lpf.training.pair_encoder import (
    PairBatch,
    load_pair_encoder,
    pair_encoder_tensors,
)
from lpf.training.threads import one_thread
from lpf.training.tuning_data import Places, TuningData, TuningHead
from lpf.types import Float32Array

STATE = "state.pt"
FORMAT = "lpf-tuning/1"
SAVE_SECONDS = 60.0
TIMED_BATCHES = 4  # after one that is not counted

# oneDNN keeps what it prepared for each shape of a batch, by default for 1,024 of them: that took
# half of the memory. It reads this when it is first used.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")

# Called with the pairs that are done and those in all passes.
TuningProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class TuningSettings:
    """What a tuned reader depends on, besides data and untuned weights. Word and position
    embeddings are not tuned: words that few texts have keep the meaning they came with.
    ``agreement`` is the weight of the divergence between untuned and tuned stances."""

    rate: float = 6e-5
    head_rate: float = 6e-4
    passes: int = 1
    warm_up: float = 0.1
    weight_decay: float = 0.01
    agreement: float = 0.1
    dropout: float = 0.1
    batch_tokens: int = 1600
    seed: int = 0


class Tuning:
    """Tunes the network with the given ``tensors`` on ``data``. The state is kept in ``folder``
    (None: nowhere)."""

    def __init__(
        self,
        tensors: Mapping[str, Float32Array],
        data: TuningData,
        settings: TuningSettings,
        folder: Path | None = None,
    ) -> None:
        self.data, self.settings, self.folder = data, settings, folder
        with torch.random.fork_rng():  # torch draws weights that are then replaced
            self.network = load_pair_encoder(tensors, dropout=settings.dropout)
            self.heads = nn.ModuleList(_linear(one) for one in data.heads)
        self.network.freeze_embeddings()
        tuned = [one for one in self.network.parameters() if one.requires_grad]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": tuned, "lr": settings.rate, "share": 1.0},
                {
                    "params": list(self.heads.parameters()),
                    "lr": settings.head_rate,
                    "share": settings.head_rate / settings.rate,
                },
            ],
            weight_decay=settings.weight_decay,
        )
        self.done, self.seconds = 0, 0.0  # pairs, and the time that they took
        self._read()

    @property
    def pairs(self) -> int:
        """In all passes."""
        return self.settings.passes * len(self.data.pairs)

    def run(self, progress: TuningProgress | None = None) -> dict[str, Float32Array]:
        """Tune, from the saved state if there is one, and return the tensors."""
        saved = time.monotonic()
        with one_thread():
            for rows in self._batches():
                began = time.monotonic()
                self.step(rows)
                self.done += len(rows)
                self.seconds += time.monotonic() - began
                if progress is not None:
                    progress(self.done, self.pairs)
                if time.monotonic() - saved >= SAVE_SECONDS:
                    self.save()
                    saved = time.monotonic()
        return pair_encoder_tensors(self.network)

    def _batches(self) -> Iterator[Places]:
        """Those that are not done yet. Dropout depends on the position too."""
        position = 0
        for number in range(self.settings.passes):
            generator = np.random.default_rng([self.settings.seed, number])
            for rows in self.data.batches(self.settings.batch_tokens, generator):
                if position >= self.done:
                    with torch.random.fork_rng():
                        torch.manual_seed(self.settings.seed * 1_000_003 + position)
                        yield rows
                position += len(rows)

    def step(self, rows: Places) -> float:
        """One step of the optimiser; returns the loss before it."""
        share = self._rate_share(self.done)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate * group["share"] * share
        loss = self.loss(rows)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for group in self.optimiser.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], 1.0)
        self.optimiser.step()
        return float(loss.detach())

    def loss(self, rows: Places) -> Tensor:
        """Of whole entities at ``rows``: cross-entropy per unit, and the divergence of stances."""
        batch = PairBatch.of([self.data.pairs[row] for row in rows])
        with torch.autocast("cpu", torch.bfloat16):
            self.network.eval()  # no dropout of embeddings, which are not tuned
            states = self.network.embedded(batch)
            self.network.train()
            hidden, stances = self.network.head(self.network.upper(states, batch), batch)
        hidden, stances = hidden.float(), stances.float()
        features = torch.cat([hidden, stances], dim=1)
        untuned = torch.from_numpy(self.data.stances[rows])
        divergence = functional.kl_div(
            stances.log_softmax(1), untuned.log_softmax(1), reduction="batchmean", log_target=True
        )
        losses = [
            _head_loss(one, head, features, rows)
            for one, head in zip(self.data.heads, self.heads, strict=True)
        ]
        return torch.stack(losses).mean() + self.settings.agreement * divergence

    def _rate_share(self, position: int) -> float:
        share, warm = position / self.pairs, self.settings.warm_up
        return min((share + 1e-4) / warm, (1.0 - share) / (1.0 - warm))

    def _state(self) -> dict[str, Any]:
        """Without the weights that are not tuned."""
        tuned = {name for name, one in self.network.named_parameters() if one.requires_grad}
        network = self.network.state_dict()
        return {
            "network": {name: network[name] for name in network if name in tuned},
            "heads": self.heads.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.network.load_state_dict(state["network"], strict=False)
        self.heads.load_state_dict(state["heads"])
        self.optimiser.load_state_dict(state["optimiser"])

    def save(self) -> None:
        """Write the state to the folder, if there is one."""
        if self.folder is None:
            return
        numbers = {"format": FORMAT, "settings": json.dumps(asdict(self.settings))}
        counts = {"done": self.done, "seconds": self.seconds}
        private_folder(self.folder)
        with atomic_file(self.folder / STATE) as file:
            torch.save({**self._state(), **numbers, **counts}, file)

    def _read(self) -> None:
        path = None if self.folder is None else self.folder / STATE
        if path is None or not path.is_file():
            return
        try:
            state = torch.load(path, weights_only=True)
            if state["format"] != FORMAT:
                raise ValueError(f"the format is {state['format']!r}")
            self._restore(state)
            self.done, self.seconds = state["done"], state["seconds"]
        except Exception as error:  # torch raises many classes for a damaged file
            raise TrainingError(
                f"{path} cannot be used ({error}). Nothing was trained; remove it to start again."
            ) from error


def estimated_seconds(
    tensors: Mapping[str, Float32Array], data: TuningData, settings: TuningSettings
) -> float:
    """How long all passes will take, from a few timed steps."""
    tuning = Tuning(tensors, data, settings)
    batches = data.batches(settings.batch_tokens, np.random.default_rng(settings.seed))
    sizes = [len(rows) * int(data.lengths[rows].max()) for rows in batches]
    seconds = 0.0
    with one_thread(), torch.random.fork_rng():
        for number, rows in enumerate(batches[: TIMED_BATCHES + 1]):
            began = time.monotonic()
            tuning.step(rows)
            if number:  # the first one also prepares
                seconds += time.monotonic() - began
    timed = sum(sizes[1 : TIMED_BATCHES + 1])
    return settings.passes * seconds / timed * sum(sizes) if timed else 0.0


def _head_loss(one: TuningHead, head: nn.Module, features: Tensor, rows: Places) -> Tensor:
    """Mean cross-entropy of the units that the items at ``rows`` belong to; 0 if there are none."""
    places = np.flatnonzero(one.units[rows] >= 0)
    if not len(places):
        return features.sum() * 0.0
    units, numbers = np.unique(one.units[rows][places], return_inverse=True)
    weights = torch.from_numpy(one.weights[rows][places])[:, None]
    logits = head(features[torch.from_numpy(places)]) * weights
    pooled = torch.from_numpy(one.offsets[units]).index_add(0, torch.from_numpy(numbers), logits)
    losses = functional.cross_entropy(
        pooled, torch.from_numpy(one.labels[units]).long(), reduction="none"
    )
    shares = torch.from_numpy(one.unit_weights[units])
    return (shares * losses).sum() / shares.sum()


def _linear(head: TuningHead) -> nn.Linear:
    """The bias of a pooled unit is weighted as its logits are."""
    weight, bias = head.start
    layer = nn.Linear(STANCE_WIDTH, len(bias))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight.T))
        layer.bias.copy_(torch.tensor(bias))
    return layer
