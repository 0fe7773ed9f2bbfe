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
from lpf.explain import Metadata, Recombination, UnreadItems, combination_of
from lpf.items import Items
from lpf.storage import write_atomically
from lpf.training import Examples
from lpf.types import FloatArray

FORMAT = 1  # of the stored document, and part of its file name
METHOD = "lpf_robust"
ORDERS = ("information", "credibility", "diversity", "uncertainty", "random")
ITEMS = 10  # that may be read about each entity
DRAWN = 48  # items that stand in for an unread one
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
    after them come the stand-ins of ``unread``. ``group`` [E, T] is the group of each item."""

    combination: Recombination
    used: NDArray[np.bool_]
    credibility: FloatArray
    source: NDArray[np.int64]
    sigma: FloatArray
    unread: UnreadItems
    group: NDArray[np.intp]
    generator: np.random.Generator

    @classmethod
    def of(
        cls, fitted: FittedLpf, test: Examples, others: Examples, generator: np.random.Generator
    ) -> Reading:
        shape = (len(test.dataset), int(test.segments.counts[0]))
        own, read = test.items, others.items
        about = metadata(test)
        unread = UnreadItems.of(about, metadata(others), read, DRAWN, generator)
        items = _together(own, unread.stand_ins)
        combination = combination_of(items, fitted.engine, fitted.predicate, fitted.options)
        factors = fitted.engine.factors(test.items, fitted.predicate, fitted.options)
        least = fitted.engine.min_credibility(fitted.predicate, fitted.options)
        numbers = {name: number for number, name in enumerate(dict.fromkeys(about.sources))}
        return cls(
            combination,
            np.asarray(~(items.credibility < least)),
            test.credibility.reshape(shape),
            np.array([numbers[name] for name in about.sources]).reshape(shape),
            factors.mean_sigma.reshape(shape),
            unread,
            unread.group.reshape(shape),
            generator,
        )

    def in_order(self, order: str) -> FloatArray:
        """The answers after 0 to T items, [E, T + 1, V]. Ties are broken at random."""
        scores: Mapping[str, Scores] = {
            "information": self._information,
            "credibility": lambda read: self.credibility,
            "diversity": self._diversity,
            "uncertainty": lambda read: self.sigma,
            "random": lambda read: np.zeros(self.group.shape),
        }
        read = np.zeros(self.group.shape, np.bool_)
        answers = [self.answers(self._rows(read))]
        for _ in range(self.group.shape[1]):
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
        bits = self.unread.expected_bits(self.answers, self._rows(read), self.group.size)
        return np.asarray(bits[self.group, np.arange(len(read))[:, None]])

    def _diversity(self, read: NDArray[np.bool_]) -> FloatArray:
        """The sources that were read least often come first."""
        same = self.source[:, :, None] == self.source[:, None, :]
        return np.asarray(-(same & read[:, None, :]).sum(axis=2).astype(np.float64))


def metadata(examples: Examples) -> Metadata:
    items = list(examples.dataset.items)
    return Metadata(
        [one.source for one in items], ["text"] * len(items), [one.credibility for one in items]
    )


def _together(own: Items, stand_ins: Items) -> Items:
    """The stand-ins are copies of none of an entity's own items."""
    return Items(
        np.concatenate([own.features, stand_ins.features]),
        [*own.ids, *stand_ins.ids],
        None,
        np.concatenate([own.credibility, stand_ins.credibility]),
        np.concatenate([own.groups, stand_ins.groups]),
    )
