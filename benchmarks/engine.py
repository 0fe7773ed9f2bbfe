"""The engine alone: one question, a thousand questions, and the memory used by many items."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

from benchmarks.measure import Row, paired_ratio
from lpf.combine import Segments
from lpf.engine import Engine, Items
from lpf.factors import ConversionConfig, Converter
from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.layout import fresh_tensors
from lpf.model.runtime import Runtime
from lpf.schema import Predicate, Schema
from lpf.types import QueryOptions

VALUES = ("low", "medium", "high")
ITEMS, SAMPLES, QUERIES = 5, 16, 1000
OPTIONS = QueryOptions(mode="paper", sampler="orthogonal", n_samples=SAMPLES)


def run() -> list[Row]:
    engine = Engine(model(), Schema((Predicate("level", VALUES),)))
    return [
        one_query_against_numpy(engine),
        *one_query_against_literal(engine),
        *many(engine),
        memory(),
    ]


def model() -> Runtime:
    config = ModelConfig((PredicateHead("level", VALUES),))
    return Runtime(config, fresh_tensors(config, [0]), "benchmark")


def features(count: int) -> np.ndarray:
    drawn = np.random.default_rng(0).standard_normal((count, 384), dtype=np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


def one_query() -> Items:
    ids = tuple(f"E{i}" for i in range(ITEMS))
    return Items(features(ITEMS), ids, keys=np.arange(ITEMS, dtype=np.uint64) * np.uint64(977))


class BareNumPy:
    """The same matrices in as few NumPy calls as possible: no checks, no keys, no contributions,
    random points drawn beforehand. A lower bound for anything written in NumPy."""

    def __init__(self, runtime: Runtime) -> None:
        tensors = {name: array[0] for name, array in runtime.tensors.items()}
        self.weights = [tensors[f"encoder.trunk.{i}.weight"] for i in (0, 1)]
        self.biases = [tensors[f"encoder.trunk.{i}.bias"] for i in (0, 1)]
        both = ("encoder.mu", "encoder.log_sigma")
        self.weights.append(np.hstack([tensors[f"{name}.weight"] for name in both]))
        self.biases.append(np.hstack([tensors[f"{name}.bias"] for name in both]))
        embedding = tensors["decoder.embedding.level"]
        first = tensors["decoder.trunk.0.weight"]
        self.weights += [np.ascontiguousarray(first[:64]), tensors["decoder.trunk.1.weight"]]
        self.biases += [
            tensors["decoder.trunk.0.bias"] + embedding @ first[64:],
            tensors["decoder.trunk.1.bias"],
        ]
        self.weights.append(tensors["decoder.head.level.weight"])
        self.biases.append(tensors["decoder.head.level.bias"])
        generator = np.random.default_rng(0)
        self.points = generator.standard_normal((ITEMS, SAMPLES, 64)).astype(np.float32)

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        (w0, w1, w2, w3, w4, w5), (b0, b1, b2, b3, b4, b5) = self.weights, self.biases
        hidden = np.maximum(inputs @ w0 + b0, 0)
        hidden = np.maximum(hidden @ w1 + b1, 0)
        output = hidden @ w2 + b2
        mu, sigma = output[:, :64], np.exp(output[:, 64:])
        z = (mu[:, None] + sigma[:, None] * self.points).reshape(-1, 64)
        hidden = np.maximum(z @ w3 + b3, 0)
        hidden = np.maximum(hidden @ w4 + b4, 0)
        logits = hidden @ w5 + b5
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        phi = weights.reshape(len(inputs), SAMPLES, -1).mean(axis=1)
        mean_sigma = sigma.mean(axis=1)
        credibility = 1 / (1 + mean_sigma) / (1 + np.exp(2 * mean_sigma))
        scores = (credibility[:, None] * np.log(phi + 1e-12)).sum(axis=0)
        answer = np.exp(scores - scores.max())
        return answer / answer.sum()


def literal_numpy(runtime: Runtime, inputs: np.ndarray) -> np.ndarray:
    """The same loop over items and samples, hand-written in NumPy on ready-made matrices."""
    bare, generator, scores = BareNumPy(runtime), np.random.default_rng(0), np.zeros(3)
    (w0, w1, w2, w3, w4, w5), (b0, b1, b2, b3, b4, b5) = bare.weights, bare.biases
    for row in inputs:
        output = np.maximum(np.maximum(row @ w0 + b0, 0) @ w1 + b1, 0) @ w2 + b2
        mu, sigma = output[:64], np.exp(output[64:])
        drawn = []
        for _ in range(SAMPLES):
            z = mu + sigma * generator.standard_normal(64, dtype=np.float32)
            logits = np.maximum(np.maximum(z @ w3 + b3, 0) @ w4 + b4, 0) @ w5 + b5
            weights = np.exp(logits - logits.max())
            drawn.append(weights / weights.sum())
        weight = 1 / (1 + sigma.mean()) / (1 + np.exp(2 * sigma.mean()))
        scores += weight * np.log(np.mean(drawn, axis=0) + 1e-12)
    answer = np.exp(scores - scores.max())
    return answer / answer.sum()


class LiteralNetworks(torch.nn.Module):
    """Encoder and decoder written directly from the paper's description."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = _layers(384, 256, 128)
        self.mu, self.log_sigma = torch.nn.Linear(128, 64), torch.nn.Linear(128, 64)
        self.embedding = torch.nn.Embedding(1, 32)
        self.decoder = _layers(96, 128, 64)
        self.heads = torch.nn.ModuleDict({"level": torch.nn.Linear(64, 3)})
        self.index = {"level": torch.tensor(0)}

    def encode(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.trunk(features)
        return self.mu(hidden), torch.exp(self.log_sigma(hidden))

    def decode(self, z: torch.Tensor, predicate: str) -> dict[str, float]:
        joined = torch.cat([z, self.embedding(self.index[predicate])])
        logits = self.heads[predicate](self.decoder(joined))
        return dict(zip(VALUES, torch.softmax(logits, dim=0).tolist(), strict=True))


def _layers(*widths: int) -> torch.nn.Sequential:
    parts: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(widths):
        parts += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU(), torch.nn.Dropout(0.2)]
    return torch.nn.Sequential(*parts)


class Literal:
    """Algorithms 1, 2 and 4 as written, on the paper's own stack (PyTorch, eager): one item after
    the other, one decoder pass per sample, distributions as dictionaries."""

    def __init__(self) -> None:
        self.networks = LiteralNetworks().eval()

    @torch.no_grad()
    def __call__(self, inputs: np.ndarray) -> dict[str, float]:
        scores = dict.fromkeys(VALUES, 0.0)
        for row in torch.tensor(inputs):
            mu, sigma = self.networks.encode(row)
            samples = [mu + sigma * torch.randn(64) for _ in range(SAMPLES)]
            drawn = [self.networks.decode(z, "level") for z in samples]
            phi = {value: float(np.mean([one[value] for one in drawn])) for value in VALUES}
            total = sum(phi.values()) + 1e-8
            spread = float(sigma.mean())
            weight = 1 / (1 + spread) / (1 + np.exp(2 * spread))
            for value in VALUES:
                scores[value] += weight * np.log(phi[value] / total + 1e-12)
        top = max(scores.values())
        weights = {value: np.exp(score - top) for value, score in scores.items()}
        return {value: weight / sum(weights.values()) for value, weight in weights.items()}


def one_query_against_numpy(engine: Engine) -> Row:
    items, bare = one_query(), BareNumPy(engine.runtime)
    paired = paired_ratio(
        lambda: engine.answer(items, "level", OPTIONS),
        lambda: bare(items.features),
        repeats=41,
        inner_candidate=200,
        inner_reference=200,
    )
    ratio = 1 / paired.ratio
    return Row(
        "one query, K=5 M=16",
        paired.candidate_seconds * 1e6,
        "us",
        "a bare NumPy pass of the same matrices",
        ratio,
        "<= 1.6x its time",
        ratio <= 1.6,
    )


def one_query_against_literal(engine: Engine) -> list[Row]:
    items, literal = one_query(), Literal()
    references = {
        "Algorithm 1 taken literally in PyTorch, one decode per sample": (
            lambda: literal(items.features),
            30.0,
        ),
        "the same loop hand-written in NumPy": (
            lambda: literal_numpy(engine.runtime, items.features),
            None,
        ),
    }
    return [_literal_row(engine, items, name, *case) for name, case in references.items()]


def _literal_row(
    engine: Engine, items: Items, name: str, call: Callable[[], object], goal: float | None
) -> Row:
    paired = paired_ratio(
        lambda: engine.answer(items, "level", OPTIONS),
        call,
        repeats=21,
        inner_candidate=100,
        inner_reference=5,
    )
    return Row(
        "one query, K=5 M=16",
        paired.candidate_seconds * 1e6,
        "us",
        name,
        paired.ratio,
        "" if goal is None else f">= {goal:.0f}x faster",
        None if goal is None else paired.ratio >= goal,
    )


def flops(items: int, samples: int) -> float:
    """Floating-point operations of the networks' matrix products alone."""
    encoder = 384 * 256 + 256 * 128 + 128 * 128
    decoder = 64 * 128 + 128 * 64 + 64 * 3
    return 2.0 * items * (encoder + samples * decoder)


def flops_done(items: int, samples: int) -> float:
    """The operations that are carried out: mirror pairs share their first product, and each item's
    mean is decoded as well."""
    encoder = 384 * 256 + 256 * 128 + 128 * 128
    mean = 64 * 128 + 128 * 64 + 64 * 3
    decoder = samples // 2 * 64 * 128 + samples * (128 * 64 + 64 * 3)
    return 2.0 * items * (encoder + mean + decoder)


def many(engine: Engine) -> list[Row]:
    total = QUERIES * ITEMS
    items = Items(
        features(total),
        tuple(map(str, range(total))),
        np.arange(total, dtype=np.uint64),
        segments=Segments.of_counts([ITEMS] * QUERIES),
    )
    matrix = np.random.default_rng(0).standard_normal((2048, 2048)).astype(np.float32)
    paired = paired_ratio(
        lambda: engine.answer(items, "level", OPTIONS),
        lambda: matrix @ matrix,
        repeats=31,
        inner_candidate=10,
        inner_reference=10,
        settle=0.3,
    )
    rows = []
    for label, count in (("as written", flops), ("really done", flops_done)):
        share = paired.ratio * count(total, SAMPLES) / (2.0 * 2048**3)
        rows.append(
            Row(
                f"{QUERIES} queries at once, K=5 M=16, products {label}",
                count(total, SAMPLES) / paired.candidate_seconds / 1e9,
                "GFLOP/s",
                "the machine's 2048 x 2048 float32 product, all cores",
                share,
                ">= 0.50 of its rate",
                share >= 0.5,
            )
        )
    return rows


def memory() -> Row:
    """Peak of NumPy's allocations; the peak of the process would be hidden by torch's."""
    converter = Converter(model(), "level", ConversionConfig("orthogonal", 64))
    inputs, keys = features(10_000), np.arange(10_000, dtype=np.uint64)
    tracemalloc.start()
    converter.from_features(inputs, keys)
    added = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return Row(
        "10,000 items at M=64, memory added", added, "MB", "one array of all samples' activations",
        added / (10_000 * 64 * 128 * 4 / 2**20), "< 500 MB", added < 500,
    )  # fmt: skip
