"""Stage 1: encoder and decoder, all seeds in one pass.

    L = mean cross-entropy + β · KL(q(z|e) ‖ N(0, I))     KL summed over the latent dimensions

Each step draws one reparameterised sample per item, as in the paper. The loss is summed over the
seeds, so each trains as if it were alone; a seed that stops early is removed from all tensors.
Validation decodes at the posterior's mean, as robust mode does when it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lpf.model.config import ModelConfig
from lpf.model.networks import decode, encode, to_numpy
from lpf.training.config import TrainingConfig
from lpf.training.history import Epoch, SeedHistory
from lpf.training.material import Material
from lpf.training.members import CHUNK_ROWS, Masks, Members, Tensors, generators, shuffled
from lpf.types import Float32Array

STAGE = 1
UNLABELLED = -1


@dataclass(frozen=True)
class Losses:
    """Per member, [S]: cross-entropy (mean over predicates), KL, accuracy, and mean σ."""

    cross_entropy: Tensor
    kl: Tensor
    accuracy: Tensor
    mean_sigma: Tensor

    def total(self, beta: float) -> Tensor:
        return self.cross_entropy + beta * self.kl


@dataclass
class StageOneState:
    """A run between two epochs. ``members`` are the seeds at the positions ``active``, which still
    train; everything else has one entry per seed, finished or not."""

    seeds: tuple[int, ...]
    members: Members
    best: Tensors
    best_loss: list[float]
    epochs: list[list[Epoch]]
    active: list[int]
    finished: list[bool]
    epoch: int = 0

    @property
    def is_done(self) -> bool:
        return not self.active


# Called after each epoch with its number, the largest number of epochs, and the state.
EpochCallback = Callable[[int, int, StageOneState], None]
# Called after each epoch with the validation probabilities by predicate, [S, m, V].
ValidationCallback = Callable[[Mapping[str, Tensor]], None]


@dataclass(frozen=True)
class StageOne:
    """One search over seeds. ``patience=None`` means the patience of ``config``."""

    model: ModelConfig
    material: Material
    config: TrainingConfig
    seeds: tuple[int, ...]
    patience: int | None = None
    on_validation: ValidationCallback | None = field(default=None, compare=False)

    def begin(
        self, tensors: Mapping[str, Float32Array], trained: Sequence[str] | None = None
    ) -> StageOneState:
        """``trained`` names the tensors that are trained; None means all."""
        members = Members.of(
            tensors,
            list(tensors) if trained is None else trained,
            self.config.learning_rate,
            self.config.weight_decay,
        )
        count = len(self.seeds)
        best = {name: tensor.detach().clone() for name, tensor in members.parameters.items()}
        return StageOneState(
            self.seeds,
            members,
            best,
            [float("inf")] * count,
            [[] for _ in range(count)],
            list(range(count)),
            [False] * count,
        )

    def run(self, state: StageOneState, on_epoch: EpochCallback | None = None) -> StageOneState:
        """Train until every seed has stopped."""
        while not state.is_done:
            self.one_epoch(state)
            if on_epoch is not None:
                on_epoch(state.epoch, self.config.max_epochs, state)
        return state

    def one_epoch(self, state: StageOneState) -> None:
        material = self.material.member(state.active)
        trained = self._train(state, material)
        validated = self._validate(state.members, material)
        state.epoch += 1
        self._record(state, trained, validated)
        self._drop_finished(state)

    def _train(self, state: StageOneState, material: Material) -> Losses:
        """One pass over the training rows; running means of the losses."""
        seeds = [state.seeds[place] for place in state.active]
        drawn_by = generators(seeds, STAGE, state.epoch)
        order = shuffled(material.train, drawn_by, material.sampling)
        sums = torch.zeros(4, len(seeds))
        for rows, masks, start in self._batches(order, drawn_by):
            losses = self._losses(state.members, material, rows, masks, start)
            state.members.step(losses.total(self.config.beta).sum())
            sums += rows.shape[1] * _stacked(losses).detach()
        return Losses(*(sums / order.shape[1]))

    def _batches(
        self, order: Tensor, drawn_by: list[torch.Generator]
    ) -> Iterator[tuple[Tensor, Masks, int]]:
        """Rows [S, b], the masks of their chunk, and where in the chunk they begin."""
        size = self.config.batch_size
        chunk = max(1, CHUNK_ROWS // size) * size
        sites = dropout_sites(self.model, len(self.material.labels))
        for first in range(0, order.shape[1], chunk):
            part = order[:, first : first + chunk]
            masks = Masks(drawn_by, part.shape[1], sites, self.model.encoder.latent_width)
            for start in range(0, part.shape[1], size):
                yield part[:, start : start + size], masks, start

    def _losses(
        self, members: Members, material: Material, rows: Tensor, masks: Masks, start: int
    ) -> Losses:
        noise = masks.batch(start, start + rows.shape[1])
        features = material.read(rows)
        mu, sigma = encode(members.parameters, self.model, features, masks.dropout)
        z = mu + sigma * noise
        logits = {
            name: decode(members.parameters, self.model, z, name, masks.dropout)
            for name in material.labels
        }
        return self._mean_losses(material, rows, logits, mu, sigma, None)

    def _validate(self, members: Members, material: Material) -> Losses:
        with torch.no_grad():
            features = material.read(material.validation)
            mu, sigma = encode(members.parameters, self.model, features)
            logits = {
                name: decode(members.parameters, self.model, mu, name) for name in material.labels
            }
            if self.on_validation is not None:
                self.on_validation({name: torch.softmax(x, 2) for name, x in logits.items()})
            weight = material.validation_weight
            return self._mean_losses(material, material.validation, logits, mu, sigma, weight)

    def _mean_losses(
        self,
        material: Material,
        rows: Tensor,
        logits: Mapping[str, Tensor],
        mu: Tensor,
        sigma: Tensor,
        weight: Tensor | None,
    ) -> Losses:
        if weight is None:
            weight = torch.ones(rows.shape)
        shares = weight / weight.sum(dim=1, keepdim=True)
        scored = [
            _scored(values, material.labels[name][rows], weight) for name, values in logits.items()
        ]
        cross_entropy = torch.stack([one for one, _ in scored]).mean(dim=0)
        accuracy = torch.stack([one for _, one in scored]).mean(dim=0)
        return Losses(
            cross_entropy,
            (self._divergence(mu, sigma) * shares).sum(dim=1),
            accuracy,
            (sigma.mean(dim=2) * shares).sum(dim=1),
        )

    def _divergence(self, mu: Tensor, sigma: Tensor) -> Tensor:
        """KL of each item, [S, n]; zero for a deterministic encoder."""
        if self.model.encoder.deterministic:
            return torch.zeros(mu.shape[:2])
        return 0.5 * (mu**2 + sigma**2 - 1.0 - 2.0 * torch.log(sigma)).sum(dim=2)

    def _record(self, state: StageOneState, trained: Losses, validated: Losses) -> None:
        beta = self.config.beta
        columns = zip(
            trained.total(beta).tolist(),
            *_stacked(trained)[:3].tolist(),
            validated.total(beta).tolist(),
            *_stacked(validated).tolist(),
            strict=True,
        )
        for slot, (place, row) in enumerate(zip(state.active, columns, strict=True)):
            epoch = Epoch(*row)
            state.epochs[place].append(epoch)
            if epoch.validation_loss < state.best_loss[place]:
                state.best_loss[place] = epoch.validation_loss
                for name, tensor in state.members.parameters.items():
                    state.best[name][place] = tensor.detach()[slot]

    def _drop_finished(self, state: StageOneState) -> None:
        patience = self.config.patience if self.patience is None else self.patience
        last = state.epoch >= self.config.max_epochs
        keep = []
        for slot, place in enumerate(state.active):
            history = SeedHistory(state.seeds[place], tuple(state.epochs[place]), False)
            patient = state.epoch - history.best_epoch < patience
            state.finished[place] = not patient
            if patient and not last:
                keep.append(slot)
        if len(keep) < len(state.active):
            state.active = [state.active[slot] for slot in keep]
            if keep:
                state.members = state.members.keep(keep)


def histories_of(state: StageOneState) -> tuple[SeedHistory, ...]:
    return tuple(
        SeedHistory(seed, tuple(epochs), finished)
        for seed, epochs, finished in zip(state.seeds, state.epochs, state.finished, strict=True)
    )


def best_tensors(state: StageOneState) -> dict[str, Float32Array]:
    return to_numpy(state.best)


def dropout_sites(model: ModelConfig, predicates: int) -> list[tuple[int, float]]:
    """Width and rate of each dropout, in the order in which the networks apply them."""
    encoder = [(width, model.encoder.dropout) for width in model.encoder.hidden]
    decoder = [(width, model.decoder.dropout) for width in model.decoder.hidden]
    return encoder + predicates * decoder


def _scored(logits: Tensor, labels: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and accuracy [S] over the labelled rows [S, n]."""
    counted = weight * (labels != UNLABELLED)
    total = counted.sum(dim=1).clamp_min(1.0)
    targets = labels.clamp_min(0)
    logs = torch.log_softmax(logits, dim=2).gather(2, targets[:, :, None])[:, :, 0]
    right = (logits.argmax(dim=2) == targets).to(logits.dtype)
    return -(logs * counted).sum(dim=1) / total, (right * counted).sum(dim=1) / total


def _stacked(losses: Losses) -> Tensor:
    return torch.stack([losses.cross_entropy, losses.kl, losses.accuracy, losses.mean_sigma])
