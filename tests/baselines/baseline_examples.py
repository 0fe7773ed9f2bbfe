"""Generated entities whose features encode what each text says, and a small model of them."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from lpf.baselines import FittedMethod, ItemModels, Method, Shared, TransformerConfig, make_methods
from lpf.baselines.networks import seeded
from lpf.datasets import Dataset
from lpf.domains import GeneratorParameters, generate, load_domain
from lpf.model.runtime import Runtime
from lpf.reading.export import installed_weights
from lpf.training import Examples, Trainer, TrainingConfig, make_examples

NOISE = 0.15
SMALL = TrainingConfig(hidden=(32, 16), latent_width=8, max_epochs=40, members=2, model="networks")
SMALL_BUDGET = TransformerConfig(
    rates=(1e-2,), epochs=3, patience=1, batch=16, max_tokens=96, trained_layers=None
)
SEEDS = (1, 2, 3)
SEED = 5


def examples_of(dataset: Dataset, seed: int = 0) -> Examples:
    """Features are the symbol behind each text as one-hot, with noise: a reader that understands
    every sentence and hears badly."""
    symbols = [tuple(item.truth["symbol"]) for item in dataset.items if item.truth is not None]
    known = sorted(set(symbols))
    clean = np.eye(len(known))[[known.index(symbol) for symbol in symbols]]
    noise = NOISE * np.random.default_rng(seed).standard_normal(clean.shape)
    return make_examples(dataset, (clean + noise).astype(np.float32), copy_similarity=None)


@cache
def generated(items_min: int | None = 1) -> Examples:
    parameters = GeneratorParameters(entities=240, items=4, items_min=items_min)
    dataset = generate(load_domain("compliance"), parameters, seed=3, extra_test=600)
    return examples_of(dataset)


def predicate() -> str:
    return next(iter(generated().dataset.schema)).name


def parts(items_min: int | None = 1) -> tuple[Examples, Examples, Examples]:
    """Train, validation and test."""
    everyone = generated(items_min)
    found = [everyone.split(split) for split in ("train", "validation", "test")]
    train, validation, test = found
    assert train is not None
    assert validation is not None
    assert test is not None
    return train, validation, test


@cache
def model() -> Runtime:
    return Trainer(generated(), "made up", (predicate(),), SMALL, SEEDS).run().runtime()


@cache
def published() -> Runtime:
    paper = TrainingConfig.paper()
    config = replace(paper, hidden=(32, 16), latent_width=8, max_epochs=20)
    return Trainer(generated(), "made up", (predicate(),), config, SEEDS[:1]).run().runtime()


def small_items() -> ItemModels:
    config = replace(SMALL, deterministic=True, aggregator=None)
    return ItemModels(config, searched=3)


@cache
def small_transformer() -> Path:
    """A folder with an untrained transformer: one narrow layer, and the default reader's
    vocabulary."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = Path(tempfile.mkdtemp(prefix="lpf-transformer-"))
    atexit.register(shutil.rmtree, folder)
    words = AutoTokenizer.from_pretrained(installed_weights(), local_files_only=True)
    words.save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(
        vocab_size=len(words), intermediate_size=64, max_position_embeddings=128, **sizes
    )
    with seeded(SEED):
        BertModel(config).save_pretrained(folder)
    return folder


def shared() -> Shared:
    return Shared(
        model(),
        published(),
        items=small_items(),
        checkpoint=small_transformer(),
        transformer=SMALL_BUDGET,
    )


def made(name: str) -> Method:
    return make_methods(shared(), [name])[0]


@cache
def fitted(time: int) -> dict[str, FittedMethod]:
    """Every method, fitted afresh for each ``time``."""
    train, validation, _ = parts()
    return {
        method.name: method.fit(train, validation, predicate(), SEED)
        for method in make_methods(shared())
    }


def reordered(examples: Examples, orders: Sequence[np.ndarray]) -> Examples:
    """The items of each entity as ``orders`` has them; fewer of them where it is shorter."""
    starts = examples.dataset.offsets[:-1]
    rows = np.concatenate(
        [start + order for start, order in zip(starts, orders, strict=True)]
    ).astype(np.intp)
    entities = [
        replace(entity, evidence=tuple(entity.evidence[place] for place in order))
        for entity, order in zip(examples.dataset, orders, strict=True)
    ]
    return Examples(
        replace(examples.dataset, entities=tuple(entities)),
        examples.features[rows],
        examples.credibility[rows],
        examples.groups[rows],
    )


def without_labels(examples: Examples) -> Examples:
    """The same entities as a stranger sees them."""
    entities = [
        replace(
            entity,
            labels={},
            truth=None,
            evidence=tuple(replace(item, labels={}, truth=None) for item in entity.evidence),
        )
        for entity in examples.dataset
    ]
    return replace(examples, dataset=replace(examples.dataset, entities=tuple(entities)))
