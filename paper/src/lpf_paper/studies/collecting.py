"""Evidence read one item after the other, in several orders: what each item does to the answer.

Every order sees what is known of an unread item: its source and its credibility. "information" also
knows what items of the same kind said about other entities, by the validation entities' items.
"uncertainty" may look at how unsure the encoder is of each unread text, as the paper proposes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.baselines import FittedLpf
from lpf.evaluation import DomainData, EvalSpec, TrainSpec
from lpf.explain import Kinds, Recombination, combination_of, outlook_of_items
from lpf.items import Items
from lpf.storage import write_atomically
from lpf.training import Examples
from lpf.types import FloatArray

FORMAT = 1  # of the stored document, and part of its file name
METHOD = "lpf_robust"
ORDERS = ("information", "credibility", "diversity", "uncertainty", "random")
ITEMS = 10  # that may be read about each entity
DRAWN = 32  # of a kind, for its expected information
RANDOM_ORDERS = 3

Places = NDArray[np.intp]
Scores = Callable[[NDArray[np.bool_]], FloatArray]  # [E, T] from what is read [E, T]


@dataclass(frozen=True)
class Collected:
    """Answers after 0 to T items, by order: if they are ``right`` [D, E, T + 1], and ``confidence``
    [D, E, T + 1]. A random order is drawn D times."""

    right: Mapping[str, FloatArray]
    confidence: Mapping[str, FloatArray]

    def to_dict(self) -> dict[str, Any]:
        return {
            name: {order: np.round(rows, 5).tolist() for order, rows in getattr(self, name).items()}
            for name in ("right", "confidence")
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Collected:
        return cls(
            *(
                {order: np.array(rows) for order, rows in plain[name].items()}
                for name in ("right", "confidence")
            )
        )


def stored_collection(train_spec: TrainSpec, entities: int, folder: Path) -> Collected:
    """The stored run, or a new one, which takes a minute if the model is cached."""
    path = run_path(train_spec, entities, folder)
    if not path.is_file():
        collected = collect(train_spec, entities, folder)
        write_atomically(path, json.dumps(collected.to_dict(), allow_nan=False).encode())
    return Collected.from_dict(json.loads(path.read_bytes()))


def run_path(train_spec: TrainSpec, entities: int, folder: Path) -> Path:
    return folder / "collecting" / f"{train_spec.key}-{entities}-{FORMAT}.json"


def collect(train_spec: TrainSpec, entities: int, folder: Path) -> Collected:
    """New test entities of the training data's domain, with ITEMS items each."""
    from lpf.evaluation import Workbench

    data = train_spec.data
    assert isinstance(data, DomainData)  # the study is about domains
    bench = Workbench(train_spec, folder)
    fitted = bench.fitted(METHOD)
    assert isinstance(fitted, FittedLpf)  # every variant of LPF is
    more = DomainData(data.domain, data.preset, data.seed, (*data.changes, f"items={ITEMS}"))
    test = bench.test_examples(EvalSpec(more, entities))
    return collected_in_orders(fitted, test, bench.validation, train_spec.seed)


def collected_in_orders(
    fitted: FittedLpf, test: Examples, others: Examples, seed: int, orders: Sequence[str] = ORDERS
) -> Collected:
    """``test`` entities must have equally many items; ``others`` are those whose items have been
    read before."""
    reading = Reading.of(fitted, test, others, np.random.default_rng(seed))
    labels = np.array(test.dataset.labels(fitted.predicate))
    right: dict[str, FloatArray] = {}
    confidence: dict[str, FloatArray] = {}
    for order in orders:
        runs = [reading.in_order(order) for _ in range(RANDOM_ORDERS if order == "random" else 1)]
        answers = np.stack(runs)
        right[order] = (answers.argmax(axis=-1) == labels[:, None]).astype(np.float64)
        confidence[order] = answers.max(axis=-1)
    return Collected(right, confidence)


@dataclass(frozen=True, eq=False)
class Reading:
    """E entities with T unread items each. Row e·T + t of the combination is item t of entity e;
    ``pools`` are rows of items of other entities, and ``kind`` [E, T] the pool of each item."""

    combination: Recombination
    used: NDArray[np.bool_]
    credibility: FloatArray
    source: NDArray[np.int64]
    sigma: FloatArray
    kind: NDArray[np.int64]
    pools: Sequence[Places]
    generator: np.random.Generator

    @classmethod
    def of(
        cls, fitted: FittedLpf, test: Examples, others: Examples, generator: np.random.Generator
    ) -> Reading:
        shape = (len(test.dataset), int(test.segments.counts[0]))
        known = list(others.dataset.items)
        kinds = Kinds.of(
            [one.source for one in known],
            ["text"] * len(known),
            [one.credibility for one in known],
        )
        unread = list(test.dataset.items)
        like = [kinds.most_like(one.source, "text", one.credibility) for one in unread]
        pools: dict[bytes, Places] = {places.tobytes(): places for places in like}
        numbers = {name: number for number, name in enumerate(pools)}
        items = _together(test, others)
        combination = combination_of(items, fitted.engine, fitted.predicate, fitted.options)
        factors = fitted.engine.factors(test.items, fitted.predicate, fitted.options)
        least = fitted.engine.min_credibility(fitted.predicate, fitted.options)
        names = {name: number for number, name in enumerate({one.source for one in unread})}
        return cls(
            combination,
            np.asarray(~(items.credibility < least)),
            test.credibility.reshape(shape),
            np.array([names[one.source] for one in unread]).reshape(shape),
            factors.mean_sigma.reshape(shape),
            np.array([numbers[places.tobytes()] for places in like]).reshape(shape),
            [len(unread) + _some(places, generator) for places in pools.values()],
            generator,
        )

    def in_order(self, order: str) -> FloatArray:
        """The answers after 0 to T items, [E, T + 1, V]. Ties are broken at random."""
        scores: Mapping[str, Scores] = {
            "information": self._information,
            "credibility": lambda read: self.credibility,
            "diversity": self._diversity,
            "uncertainty": lambda read: self.sigma,
            "random": lambda read: np.zeros(self.kind.shape),
        }
        read = np.zeros(self.kind.shape, np.bool_)
        answers = [self.answers(self._rows(read))]
        for _ in range(self.kind.shape[1]):
            tie = self.generator.random(read.shape)
            wanted = np.where(read, -np.inf, scores[order](read))
            best = wanted == wanted.max(axis=1, keepdims=True)
            chosen = np.where(best, tie, -1.0).argmax(axis=1)
            read[np.arange(len(read)), chosen] = True
            answers.append(self.answers(self._rows(read)))
        return np.stack(answers, axis=1)

    def answers(self, selections: Sequence[Places]) -> FloatArray:
        """Items below the least credibility were read, but do not count."""
        return self.combination.answers([rows[self.used[rows]] for rows in selections])

    def _rows(self, read: NDArray[np.bool_]) -> list[Places]:
        width = read.shape[1]
        return [place * width + np.flatnonzero(one) for place, one in enumerate(read)]

    def _information(self, read: NDArray[np.bool_]) -> FloatArray:
        rows = self._rows(read)
        gains = np.stack([outlook_of_items(self.answers, rows, one).gain for one in self.pools])
        return np.asarray(gains[self.kind, np.arange(len(read))[:, None]])

    def _diversity(self, read: NDArray[np.bool_]) -> FloatArray:
        """The sources that were read least often come first."""
        same = self.source[:, :, None] == self.source[:, None, :]
        return np.asarray(-(same & read[:, None, :]).sum(axis=2).astype(np.float64))


def _together(test: Examples, others: Examples) -> Items:
    """The items of other entities are copies of none of an entity's own."""
    own, pool = test.items, others.items
    return Items(
        np.concatenate([own.features, pool.features]),
        [*own.ids, *pool.ids],
        None,
        np.concatenate([own.credibility, pool.credibility]),
        np.concatenate([own.groups, np.full(len(pool), -1, np.int64)]),
    )


def _some(places: Places, generator: np.random.Generator) -> Places:
    return places if len(places) <= DRAWN else generator.choice(places, DRAWN, replace=False)
