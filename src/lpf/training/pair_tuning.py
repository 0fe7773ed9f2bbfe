"""Tune the stance reader to labelled entities: all its layers, or the upper ones.

The network answers about whole entities, as robust mode does with ρ = 1: the logits of an entity
are the mean of its items' logits. Items with labels of their own are learned from one by one as
well. The head starts as a regression on the untuned reader's hidden vectors, so tuning starts from
what the reader knows already. The epoch with the lowest NLL on validation entities is kept.

The number of steps is planned from the time that is left and the speed of the first ones. With a
``folder``, the state is saved every minute; the same call continues a run that was stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax

from lpf.model.linear_shape import LinearHead
from lpf.training.pair_encoder import (
    PairBatch,
    PairEncoder,
    load_pair_encoder,
    pair_encoder_tensors,
)
from lpf.training.softmax_regression import (
    RegressionRows,
    Scaling,
    SoftmaxRegression,
    fit_regression,
)
from lpf.types import Float32Array, FloatArray

Pair = tuple[Sequence[int], Sequence[int]]  # token ids of a claim and of a passage
TuningProgress = Callable[[float, str], None]  # the share done, and what is being done

RATE = 6e-5
WARM_UP = 0.1
WEIGHT_DECAY = 0.01
LONGEST_GRADIENT = 1.0
BATCH_TOKENS = 1600
MOST_ITEMS = 8  # of an entity in one step, drawn anew each time
MOST_EPOCHS = 4
FEWEST_EPOCHS = 0.25  # with time for less, nothing is tuned
ITEM_LABEL_WEIGHT = 0.5
HEAD_PENALTY = 0.1
SPEED_STEPS = 4  # timed before the plan is made
SAVE_SECONDS = 60
ANSWER_BATCH = 32


@dataclass(frozen=True)
class TuningData:
    """Entities for tuning: ``pairs`` [N] of claim and text (one passage per item), entity e has the
    rows offsets[e] .. offsets[e+1]. ``labels`` [E] and ``item_labels`` [N] are positions of values,
    -1 for none."""

    pairs: Sequence[Pair]
    offsets: NDArray[np.intp]
    labels: NDArray[np.intp]
    item_labels: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class TuningPlan:
    """``layers`` are trained, counted from the top; None trains all. ``seconds`` is the limit."""

    seconds: float
    layers: int | None = None
    rate: float = RATE
    seed: int = 0


@dataclass(frozen=True)
class Tuned:
    """The tuned tensors, whose head has one row per value, and the NLL on validation entities
    before tuning and after each epoch."""

    tensors: Mapping[str, Float32Array]
    losses: tuple[float, ...]
    epochs: float
    seconds: float


@dataclass
class PairTuning:
    """One tuning run on ``train``, judged on ``validation``. ``hidden`` [N, H] are the untuned
    reader's hidden vectors of the training items."""

    tensors: Mapping[str, Float32Array]
    values: int
    train: TuningData
    validation: TuningData
    hidden: Float32Array
    plan: TuningPlan
    folder: Path | None = None
    progress: TuningProgress | None = None
    _losses: list[float] = field(default_factory=list)

    def run(self) -> Tuned | None:
        """None if the time is too short to learn from a quarter of the entities."""
        start = time.monotonic()
        torch.manual_seed(self.plan.seed)
        network = self._network()
        trained = self._trained(network)
        optimiser = torch.optim.AdamW(trained, lr=self.plan.rate, weight_decay=WEIGHT_DECAY)
        best = self._judged(network, 0.0)
        kept = {name: value.clone() for name, value in network.state_dict().items()}
        steps, per_epoch = self._planned(network, optimiser, start)
        if steps < FEWEST_EPOCHS * per_epoch:
            return None
        network.load_state_dict(kept)  # the timed steps do not count
        optimiser = torch.optim.AdamW(trained, lr=self.plan.rate, weight_decay=WEIGHT_DECAY)
        done = 0
        for number, batch in enumerate(self._batches(steps)):
            for group in optimiser.param_groups:
                group["lr"] = self.plan.rate * _schedule(number / steps)
            self._step(network, optimiser, batch)
            done = number + 1
            self._report(done / steps)
            if done % per_epoch == 0 or done == steps:
                loss = self._judged(network, done / per_epoch)
                if loss < best:
                    best = loss
                    kept = {name: one.clone() for name, one in network.state_dict().items()}
        network.load_state_dict(kept)
        return Tuned(
            pair_encoder_tensors(network),
            tuple(self._losses),
            done / per_epoch,
            time.monotonic() - start,
        )

    def _network(self) -> PairEncoder:
        """The untuned network with a head for the values, fitted to its hidden vectors."""
        network = load_pair_encoder(self.tensors)
        head = first_head(self.hidden, self.train, self.values)
        network.stance = nn.Linear(head.weight.shape[0], self.values)
        with torch.no_grad():
            network.stance.weight.copy_(torch.from_numpy(head.weight.T))
            network.stance.bias.copy_(torch.from_numpy(head.bias))
        return network

    def _trained(self, network: PairEncoder) -> list[nn.Parameter]:
        network.freeze_embeddings()
        if self.plan.layers is not None:
            network.requires_grad_(False)
            upper = network.layers[len(network.layers) - self.plan.layers :]
            for part in (*upper, network.hidden, network.stance):
                part.requires_grad_(True)
        return [one for one in network.parameters() if one.requires_grad]

    def _planned(
        self, network: PairEncoder, optimiser: torch.optim.AdamW, start: float
    ) -> tuple[int, int]:
        """Steps that fit into the time, and steps per epoch."""
        per_epoch = sum(1 for _ in self._epoch(0))
        timed = iter(self._epoch(0))
        self._step(network, optimiser, next(timed))  # the first one allocates memory
        begin = time.monotonic()
        count = 0
        for batch in timed:
            self._step(network, optimiser, batch)
            count += 1
            if count == SPEED_STEPS:
                break
        per_step = (time.monotonic() - begin) / max(1, count)
        # Judging an epoch costs about a third of the steps of as many items.
        judging = per_step * per_epoch * len(self.validation.pairs) / len(self.train.pairs) / 3
        left = self.plan.seconds - (time.monotonic() - start)
        epochs = left / (per_step * per_epoch + judging)
        return int(min(epochs, MOST_EPOCHS) * per_epoch), per_epoch

    def _batches(self, steps: int) -> Iterator[list[tuple[int, NDArray[np.intp]]]]:
        epoch = 0
        while True:
            for batch in self._epoch(epoch):
                yield batch
                steps -= 1
                if steps == 0:
                    return
            epoch += 1

    def _epoch(self, epoch: int) -> Iterator[list[tuple[int, NDArray[np.intp]]]]:
        """Batches of entities with the rows of their items, similar in length."""
        generator = np.random.default_rng([self.plan.seed, epoch])
        data = self.train
        known = np.flatnonzero((data.labels >= 0) & (np.diff(data.offsets) > 0))
        order = generator.permutation(known)
        drawn = [
            (int(entity), _some(data.offsets[entity], data.offsets[entity + 1], generator))
            for entity in order
        ]
        sizes = np.array([sum(_length(data.pairs[row]) for row in rows) for _, rows in drawn])
        pool = 30 * max(1, BATCH_TOKENS // max(1, int(sizes.mean())))
        batches: list[list[tuple[int, NDArray[np.intp]]]] = []
        for begin in range(0, len(drawn), pool):
            part = sorted(range(begin, min(begin + pool, len(drawn))), key=sizes.__getitem__)
            current: list[tuple[int, NDArray[np.intp]]] = []
            tokens = 0
            for place in part:
                if current and tokens + sizes[place] > BATCH_TOKENS:
                    batches.append(current)
                    current, tokens = [], 0
                current.append(drawn[place])
                tokens += int(sizes[place])
            batches.append(current)
        for place in generator.permutation(len(batches)):
            yield batches[place]

    def _step(
        self,
        network: PairEncoder,
        optimiser: torch.optim.AdamW,
        batch: list[tuple[int, NDArray[np.intp]]],
    ) -> None:
        network.train()
        rows = np.concatenate([rows for _, rows in batch])
        owner = torch.from_numpy(np.repeat(np.arange(len(batch)), [len(one) for _, one in batch]))
        with torch.autocast("cpu", torch.bfloat16):
            _, logits = network(PairBatch.of([self.train.pairs[row] for row in rows]))
        logits = logits.float()
        labels = torch.from_numpy(self.train.labels[[entity for entity, _ in batch]])
        loss = cross_entropy(_means(logits, owner, len(batch)), labels)
        own = torch.from_numpy(self.train.item_labels[rows])
        entity_labels = labels[owner]
        if bool(((own >= 0) & (own != entity_labels)).any()):
            known = own >= 0
            loss = loss + ITEM_LABEL_WEIGHT * cross_entropy(logits[known], own[known])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), LONGEST_GRADIENT)
        optimiser.step()

    def _judged(self, network: PairEncoder, epochs: float) -> float:
        logits = item_logits(network, self.validation.pairs)
        loss = entity_nll(logits, self.validation)
        self._losses.append(loss)
        self._report(None, f"NLL on validation entities after {epochs:.1f} epochs: {loss:.3f}")
        return loss

    def _report(self, share: float | None, text: str = "") -> None:
        if self.progress is not None and share is not None:
            self.progress(share, text)


def first_head(hidden: Float32Array, data: TuningData, values: int) -> LinearHead:
    """A regression on the mean hidden vector of each labelled entity, for unscaled features."""
    scaling = Scaling.of(hidden)
    scaled = scaling.apply(hidden)
    counts = np.diff(data.offsets)
    owner = np.repeat(np.arange(len(data)), counts)
    sums = np.zeros((len(data), scaled.shape[1]))
    np.add.at(sums, owner, scaled)
    means = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
    known = np.flatnonzero((data.labels >= 0) & (counts > 0))
    rows = RegressionRows(means[known], data.labels[known], np.ones(len(known)))
    empty = SoftmaxRegression.empty(scaled.shape[1], values)
    return fit_regression(rows, HEAD_PENALTY, empty).unscaled(scaling)


def item_logits(network: PairEncoder, pairs: Sequence[Pair]) -> FloatArray:
    """Logits of each pair [N, V], without dropout."""
    network.eval()
    logits = torch.empty(len(pairs), network.stance.out_features)
    order = sorted(range(len(pairs)), key=lambda place: _length(pairs[place]))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for begin in range(0, len(order), ANSWER_BATCH):
            places = order[begin : begin + ANSWER_BATCH]
            logits[places] = network(PairBatch.of([pairs[place] for place in places]))[1].float()
    return np.asarray(logits.double().numpy())


def entity_nll(logits: FloatArray, data: TuningData) -> float:
    counts = np.diff(data.offsets)
    owner = torch.from_numpy(np.repeat(np.arange(len(data)), counts))
    means = _means(torch.from_numpy(logits), owner, len(data))
    known = np.flatnonzero((data.labels >= 0) & (counts > 0))
    logs = log_softmax(means[known], dim=1).numpy()
    return float(-logs[np.arange(len(known)), data.labels[known]].mean())


def _means(logits: Tensor, owner: Tensor, count: int) -> Tensor:
    sums = torch.zeros(count, logits.shape[1], dtype=logits.dtype).index_add(0, owner, logits)
    sizes = torch.bincount(owner, minlength=count).clamp(min=1)
    return sums / sizes[:, None]


def _some(begin: int, end: int, generator: np.random.Generator) -> NDArray[np.intp]:
    rows = np.arange(begin, end)
    if len(rows) <= MOST_ITEMS:
        return rows
    return np.sort(generator.choice(rows, MOST_ITEMS, replace=False))


def _length(pair: Pair) -> int:
    return len(pair[0]) + len(pair[1]) + 3


def _schedule(share: float) -> float:
    return min((share + 1e-3) / WARM_UP, (1.0 - share) / (1.0 - WARM_UP))
