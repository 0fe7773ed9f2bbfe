"""A transformer fine-tuned on an entity's texts joined by [SEP]: the paper's BERT.

The mean of its last states goes through a linear head. AdamW with a linear warm-up and decay; the
learning rate and the epoch are chosen by the validation NLL. Lower layers may stay as pretrained.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lpf.baselines.interface import FittedMethod, entity_labels, value_count
from lpf.baselines.networks import BestEpoch, seeded
from lpf.baselines.transformer_checkpoints import PretrainedTransformer, load_checkpoint
from lpf.errors import ConfigError, MissingPackageError
from lpf.training.examples import Examples
from lpf.training.members import generators
from lpf.types import FloatArray

TRANSFORMER = "transformer"  # the name of the method


class WholeTransformer(torch.nn.Module):
    """Token IDs and their mask [B, T] to states [B, T, width], through all layers."""

    def __init__(self, body: torch.nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.body(input_ids=tokens, attention_mask=mask).last_hidden_state
        return states


class TransformerLayers(torch.nn.Module):
    """Consecutive layers of a transformer: states to states. If ``embeddings`` are given, the input
    is token IDs."""

    def __init__(
        self, layers: Iterable[torch.nn.Module], embeddings: torch.nn.Module | None = None
    ) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = inputs if self.embeddings is None else self.embeddings(input_ids=inputs)
        added = (1.0 - mask[:, None, None, :].to(states.dtype)) * torch.finfo(states.dtype).min
        for layer in self.layers:
            found = layer(states, attention_mask=added)
            states = found[0] if isinstance(found, tuple) else found  # a tuple before version 5
        return states


def split_layers(
    body: torch.nn.Module, trained: int | None
) -> tuple[TransformerLayers | None, torch.nn.Module]:
    """The lower part, which is not trained, and the upper ``trained`` layers. With None all layers
    are trained.

    ConfigError for a transformer that is not built like BERT, whose layers cannot be separated.
    """
    if trained is None:
        return None, WholeTransformer(body)
    embeddings = getattr(body, "embeddings", None)
    layers = getattr(getattr(body, "encoder", None), "layer", None)
    if embeddings is None or not isinstance(layers, torch.nn.ModuleList):
        raise ConfigError(
            f"{type(body).__name__} is not built like BERT, so it cannot be trained in part. "
            "Nothing was trained.",
            field="trained_layers",
            hint="Pass None to train all layers.",
        )
    cut = max(0, len(layers) - trained)
    lower = TransformerLayers(layers[:cut], embeddings).requires_grad_(False)
    return lower.eval(), TransformerLayers(layers[cut:])


PURPOSE = 4  # separates these random draws from those of other networks with the same seed
WARM_UP = 0.1  # of all steps
WEIGHT_DECAY = 0.01
LONGEST_GRADIENT = 1.0
POOL = 8  # batches that are sorted by length together: little padding, and still shuffled
ANSWER_BATCH = 32

TokenRows = Sequence[Tensor]  # one per entity: tokens [T], or states [T, width]


@dataclass(frozen=True)
class TransformerConfig:
    """The budget: at most ``epochs`` for each of ``rates``, ``patience`` epochs without a better
    validation loss. ``trained_layers`` counts from the top; None trains all layers and the
    embeddings. The paper: all layers, rate 2e-5, 3 epochs, 512 tokens."""

    rates: tuple[float, ...] = (3e-4, 1e-3)
    epochs: int = 3
    patience: int = 1
    batch: int = 16
    max_tokens: int = 256
    trained_layers: int | None = 1

    def __post_init__(self) -> None:
        if not self.rates or min(self.rates) <= 0.0:
            raise ConfigError(f"rates: must be one or more above 0, got {self.rates}.")
        for name, least in (("epochs", 1), ("patience", 1), ("batch", 1), ("max_tokens", 3)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: must be {least} or more, got {getattr(self, name)}.")
        if self.trained_layers is not None and self.trained_layers < 0:
            raise ConfigError(f"trained_layers: must be 0 or more, got {self.trained_layers}.")


class TransformerClassifier(torch.nn.Module):
    """The trained part: inputs of ``body`` and their mask [B, T] to logits [B, V]."""

    def __init__(self, body: torch.nn.Module, width: int, values: int) -> None:
        super().__init__()
        self.body = body
        self.head = torch.nn.Linear(width, values)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        states = self.body(inputs, mask)
        weights = mask[:, :, None].to(states.dtype)
        logits: Tensor = self.head((states * weights).sum(dim=1) / weights.sum(dim=1))
        return logits


@dataclass(frozen=True)
class TrainedTransformer:
    """A fitted ``FineTunedTransformer``."""

    checkpoint: PretrainedTransformer
    lower: torch.nn.Module | None
    network: TransformerClassifier
    max_tokens: int

    def predict_proba(self, examples: Examples) -> FloatArray:
        rows = token_rows(self.checkpoint, examples, self.max_tokens)
        return _probabilities(self.network, rows, self.lower)


@dataclass(frozen=True)
class FineTunedTransformer:
    """``checkpoint`` is a folder or a name on the hub; None is the transformer behind the default
    reader. Reads texts and claims alone, never features."""

    name: str
    checkpoint: str | Path | None = None
    config: TransformerConfig = TransformerConfig()
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        loaded = load_checkpoint(self.checkpoint)
        lower, upper = split_layers(loaded.body, self.config.trained_layers)
        known, held = (
            TransformerInputs.of(loaded, lower, part, predicate, self.config.max_tokens)
            for part in (train, validation)
        )

        def fresh() -> TransformerClassifier:
            return TransformerClassifier(
                copy.deepcopy(upper), loaded.width, value_count(train, predicate)
            )

        tried = [
            _trained(fresh, known, held, seed, rate, self.config) for rate in self.config.rates
        ]
        _, network = min(tried, key=lambda each: each[0])
        return TrainedTransformer(loaded, lower, network, self.config.max_tokens)


@dataclass(frozen=True)
class TransformerInputs:
    """Entities as inputs of the trained layers, with the position of each one's value."""

    rows: TokenRows
    labels: Tensor

    @classmethod
    def of(
        cls,
        loaded: PretrainedTransformer,
        lower: torch.nn.Module | None,
        examples: Examples,
        predicate: str,
        limit: int,
    ) -> TransformerInputs:
        """Layers that are not trained are applied here, once for all epochs."""
        labels = torch.from_numpy(entity_labels(examples, predicate).astype(np.int64))
        rows = token_rows(loaded, examples, limit)
        return cls(rows if lower is None else _states(lower, rows), labels)


def token_rows(loaded: PretrainedTransformer, examples: Examples, limit: int) -> TokenRows:
    """Token IDs of each entity, [T]."""
    budget = loaded.budget(limit)
    return [torch.tensor(budget.row(entity, loaded)) for entity in examples.dataset]


def _trained(
    fresh: Callable[[], TransformerClassifier],
    known: TransformerInputs,
    held: TransformerInputs,
    seed: int,
    rate: float,
    config: TransformerConfig,
) -> tuple[float, TransformerClassifier]:
    """The validation NLL and weights of the best epoch under one rate."""
    best = BestEpoch(config.patience)
    with seeded(seed, PURPOSE):
        network = fresh()
        step = _stepper(network, rate, config.epochs * -(-len(known.rows) // config.batch))
        for epoch in range(config.epochs):
            network.train()
            for places in shuffled_batches(known.rows, config.batch, seed, epoch):
                logits = network(*padded([known.rows[place] for place in places]))
                step(cross_entropy(logits, known.labels[places]))
            if best.is_over(network, _loss(network, held), epoch):
                break
    best.restore(network)
    return best.loss, network


def _stepper(network: TransformerClassifier, rate: float, steps: int) -> Callable[[Tensor], None]:
    """One step of AdamW, with a rate that rises from 0 to ``rate`` and falls to 0."""
    trained = [each for each in network.parameters() if each.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=rate, weight_decay=WEIGHT_DECAY)
    warm = max(1, round(WARM_UP * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda done: min((done + 1) / warm, (steps - done) / max(1, steps - warm))
    )

    def step(loss: Tensor) -> None:
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained, LONGEST_GRADIENT)
        optimiser.step()
        schedule.step()

    return step


def shuffled_batches(rows: TokenRows, batch: int, seed: int, epoch: int) -> list[list[int]]:
    """Positions of all rows in batches of similar length, shuffled in each epoch."""
    (generator,) = generators([seed], PURPOSE, epoch)
    order = torch.randperm(len(rows), generator=generator).tolist()
    batches = []
    for start in range(0, len(order), POOL * batch):
        pool = sorted(order[start : start + POOL * batch], key=lambda place: len(rows[place]))
        batches += [pool[first : first + batch] for first in range(0, len(pool), batch)]
    mixed = torch.randperm(len(batches), generator=generator).tolist()
    return [batches[place] for place in mixed]


def padded(rows: TokenRows) -> tuple[Tensor, Tensor]:
    """Inputs [B, T, ...] and their mask [B, T]."""
    lengths = torch.tensor([len(row) for row in rows])
    inputs = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    return inputs, (torch.arange(inputs.shape[1]) < lengths[:, None]).to(torch.int64)


def _loss(network: TransformerClassifier, held: TransformerInputs) -> float:
    found = _probabilities(network, held.rows)
    return float(-np.log(found[np.arange(len(found)), held.labels.numpy()]).mean())


def _probabilities(
    network: TransformerClassifier, rows: TokenRows, lower: torch.nn.Module | None = None
) -> FloatArray:
    """[E, V], without dropout. ``rows`` are tokens if ``lower`` is given."""
    network.eval()
    answers = torch.empty(len(rows), network.head.out_features, dtype=torch.float64)
    with torch.no_grad():
        for places in _by_length(rows):
            inputs, mask = padded([rows[place] for place in places])
            if lower is not None:
                inputs = lower(inputs, mask)
            answers[places] = torch.softmax(network(inputs, mask).to(torch.float64), dim=1)
    return answers.numpy()


def _states(lower: torch.nn.Module, rows: TokenRows) -> TokenRows:
    """States of each row after the layers that are not trained, [T, width]."""
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    with torch.no_grad():
        for places in _by_length(rows):
            states = lower(*padded([rows[place] for place in places]))
            for place, row in zip(places, states, strict=True):
                found[place] = row[: len(rows[place])].clone()
    return found


def _by_length(rows: TokenRows) -> list[list[int]]:
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    return [order[start : start + ANSWER_BATCH] for start in range(0, len(order), ANSWER_BATCH)]


def require_loadable(model: str) -> None:
    """Loads a transformer by its folder or its name on the hub, which also downloads it, once for
    all folds. ConfigError if it cannot be loaded or fine-tuned."""
    config = TransformerConfig()
    try:
        loaded = load_checkpoint(model)
    except MissingPackageError:
        raise
    except ConfigError as error:
        raise ConfigError(
            f"{model!r} cannot be loaded{_where_it_is_not(model)}. Nothing was evaluated. "
            f"{_on_one_line(error)}",
            field="model",
        ) from error
    try:
        loaded.budget(config.max_tokens)
        split_layers(loaded.body, config.trained_layers)
    except ConfigError as error:
        raise ConfigError(
            f"{model!r} cannot be fine-tuned here. Nothing was evaluated. {_on_one_line(error)}",
            field="model",
            hint=f"Name one that is built like BERT and reads {config.max_tokens} tokens.",
        ) from error


def _where_it_is_not(model: str) -> str:
    """The loader's own message does not say that there is no such folder."""
    if Path(model).is_dir():
        return ""
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return ": there is no such folder, and HF_HUB_OFFLINE is set"
    return ": there is no such folder, and the hub did not provide it"


def _on_one_line(error: ConfigError) -> str:
    """The loader quotes messages of several lines."""
    return " ".join(str(error).split())
