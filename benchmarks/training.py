"""The time of a search over fifteen seeds, against one seed with this code and in a plain loop."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.measure import Row, paired_ratio
from benchmarks.trained_model import VALUES, synthetic_features
from lpf.domains import generate, load_domain, preset
from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.layout import fresh_tensors
from lpf.reading import open_reader
from lpf.training import FIFTEEN_SEEDS, Trainer, TrainingConfig, make_examples, read_features
from lpf.training.material import make_material
from lpf.training.stage_one import StageOne

TRAIN, VALIDATION, EPOCHS = 3150, 675, 4  # as many items as a domain's 900 entities have
NEVER = 10**6


def run() -> list[Row]:
    one, fifteen = Search((42,)), Search(FIFTEEN_SEEDS)
    own = paired_ratio(fifteen, one, repeats=7)
    ordinary = paired_ratio(fifteen, ordinary_loop, repeats=7)
    seconds = own.candidate_seconds / EPOCHS
    return [
        Row("15 seeds together, one epoch", 1e3 * seconds, "ms", "one seed with the same code",
            1 / own.ratio, "<= 7.5", 1 / own.ratio <= 7.5),
        Row("15 seeds together, one epoch", 1e3 * seconds, "ms",
            "one seed in an ordinary PyTorch loop", 1 / ordinary.ratio, "", None),
        whole_search(),
    ]  # fmt: skip


class Search:
    """Stage 1 for a fixed number of epochs."""

    def __init__(self, seeds: tuple[int, ...]) -> None:
        features, labels = synthetic_data()
        config = TrainingConfig(max_epochs=EPOCHS)
        model = ModelConfig((PredicateHead("level", VALUES),), members=len(seeds), seeds=seeds)
        train = [np.arange(TRAIN)] * len(seeds)
        validation = [np.arange(TRAIN, TRAIN + VALIDATION)] * len(seeds)
        material = make_material(features, {"level": labels}, train, validation, config)
        self.stage = StageOne(model, material, config, seeds, patience=NEVER)

    def __call__(self) -> None:
        self.stage.run(self.stage.begin(fresh_tensors(self.stage.model, self.stage.seeds)))


def synthetic_data() -> tuple[np.ndarray, np.ndarray]:
    train, validation = synthetic_features(TRAIN, seed=1), synthetic_features(VALIDATION, seed=2)
    return (
        np.concatenate([train[0], validation[0]]),
        np.concatenate([train[1], validation[1]]).astype(np.intp),
    )


class Ordinary(nn.Module):
    """The paper's networks as an ordinary PyTorch module."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(384, 256), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.2),
        )  # fmt: skip
        self.mu, self.log_sigma = nn.Linear(128, 64), nn.Linear(128, 64)
        self.embedding = nn.Embedding(1, 32)
        self.decoder = nn.Sequential(
            nn.Linear(96, 128), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3),
        )  # fmt: skip

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(features)
        mu, sigma = self.mu(hidden), torch.exp(self.log_sigma(hidden)).clamp_min(1e-6)
        z = mu + sigma * torch.randn_like(mu)
        named = self.embedding(torch.zeros(len(z), dtype=torch.long))
        kl = 0.5 * (mu**2 + sigma**2 - 1 - 2 * torch.log(sigma)).sum(dim=1).mean()
        return self.decoder(torch.cat([z, named], dim=1)), kl


def ordinary_loop() -> None:
    features, labels = synthetic_data()
    inputs, targets = torch.from_numpy(features), torch.from_numpy(labels)
    model = Ordinary()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        model.train()
        for batch in torch.randperm(TRAIN).split(64):
            logits, kl = model(inputs[batch])
            loss = nn.functional.cross_entropy(logits, targets[batch]) + 0.01 * kl
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            model(inputs[TRAIN:])


def whole_search() -> Row:
    """Compliance with the paper's fifteen seeds, from generating the data to a fitted model."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        dataset = generate(load_domain("compliance"), preset("paper"), seed=42)
        reader = open_reader()
        examples = make_examples(dataset, read_features(dataset, reader))
        predicate = load_domain("compliance").predicate
        Trainer(
            examples, reader.reader_id, (predicate,), TrainingConfig(), FIFTEEN_SEEDS, Path(folder)
        ).run()
        seconds = time.perf_counter() - began
    return Row("a 15-seed compliance search, texts read, fitted", seconds, "s",
               "the paper's 12.5 hours", seconds / 45_000, "<= 240 s", seconds <= 240)  # fmt: skip
