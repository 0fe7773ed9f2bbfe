"""Answers with every item's factor, weight and contribution.

Stored predictions do not hold this, and computing it needs the model. So a trace is computed once
per training set and stored as JSON with the results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lpf.baselines import FittedLpf
from lpf.combine import Combined, RobustParameters
from lpf.datasets import DatasetEntity, DatasetItem
from lpf.domains import perfect_answers
from lpf.engine import Answers
from lpf.evaluation import EvalSpec, TrainSpec
from lpf.items import jensen_shannon
from lpf.storage import write_atomically
from lpf.training import Examples
from lpf.types import FloatArray

FORMAT = 1  # of the stored document, and part of its file name
METHOD = "lpf_robust"
DRAWS = 100

Row = tuple[float, ...]


@dataclass(frozen=True)
class TracedItem:
    """``potential`` [V] is what the text says by itself, ``epsilon`` the chance that it says
    nothing, ``exponent`` its weight, ``contributions`` [V] what it adds to the logarithm of each
    value's probability, up to a constant."""

    evidence_id: str
    text: str
    source: str | None
    credibility: float | None
    potential: Row
    epsilon: float
    exponent: float
    contributions: Row

    @property
    def says(self) -> int:
        """The answer of this item alone."""
        return int(np.argmax(self.potential))


@dataclass(frozen=True)
class TracedAnswer:
    """``truth`` and ``answer`` are positions of values. ``base`` [V] and what the items
    contribute add up to the logarithm of ``distribution`` [V], up to a constant. ``conflict`` is
    the items' Jensen-Shannon divergence in [0, 1], ``doubt`` the parts of the entropy, ``perfect``
    [V] the answer of a perfect reader of the same texts, if the data was generated."""

    entity_id: str
    truth: int
    distribution: Row
    base: Row
    conflict: float
    doubt: Mapping[str, float]
    perfect: Row | None
    items: tuple[TracedItem, ...]

    @property
    def answer(self) -> int:
        return int(np.argmax(self.distribution))

    @property
    def confidence(self) -> float:
        return max(self.distribution)

    @property
    def is_right(self) -> bool:
        return self.answer == self.truth

    @property
    def rival(self) -> int:
        """The value the answer is compared with: the truth if it is wrong, else the runner-up."""
        if not self.is_right:
            return self.truth
        others = [value for value in range(len(self.distribution)) if value != self.answer]
        return max(others, key=lambda value: self.distribution[value])

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TracedAnswer:
        perfect = plain["perfect"]
        return cls(
            **{
                **plain,
                **{name: tuple(plain[name]) for name in ("distribution", "base")},
                "perfect": None if perfect is None else tuple(perfect),
                "items": tuple(_item_from(one) for one in plain["items"]),
            }
        )


@dataclass(frozen=True)
class Trace:
    """All test entities of a training set, and the fitted ``parameters``."""

    predicate: str
    values: tuple[str, ...]
    parameters: Mapping[str, float]
    answers: tuple[TracedAnswer, ...]

    @property
    def errors(self) -> tuple[TracedAnswer, ...]:
        """Most confident first."""
        wrong = [one for one in self.answers if not one.is_right]
        return tuple(sorted(wrong, key=lambda one: -one.confidence))

    @property
    def right(self) -> tuple[TracedAnswer, ...]:
        """Most confident first."""
        right = [one for one in self.answers if one.is_right]
        return tuple(sorted(right, key=lambda one: -one.confidence))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Trace:
        answers = tuple(TracedAnswer.from_dict(one) for one in plain["answers"])
        return cls(plain["predicate"], tuple(plain["values"]), plain["parameters"], answers)


def stored_trace(train_spec: TrainSpec, folder: Path) -> Trace:
    """The stored trace, or a new one, which takes seconds if the model is cached."""
    path = trace_path(train_spec, folder)
    if not path.is_file():
        write_atomically(path, json.dumps(trace(train_spec, folder), allow_nan=False).encode())
    return Trace.from_dict(json.loads(path.read_bytes()))


def trace_path(train_spec: TrainSpec, folder: Path) -> Path:
    return folder / "traces" / f"{train_spec.key}-{FORMAT}.json"


def trace(train_spec: TrainSpec, folder: Path) -> dict[str, Any]:
    """The robust ensemble's answers for the data set's own test entities, as plain data."""
    from lpf.evaluation import Workbench

    bench = Workbench(train_spec, folder)
    fitted = bench.fitted(METHOD)
    assert isinstance(fitted, FittedLpf)  # every variant of LPF is
    return traced(fitted, bench.test_examples(EvalSpec()))


def traced(method: FittedLpf, examples: Examples) -> dict[str, Any]:
    options = replace(method.options, uncertainty_samples=DRAWS)
    answers = method.engine.answer(examples.items, method.predicate, options)
    assert isinstance(answers.parameters, RobustParameters)  # METHOD is robust
    labels = examples.dataset.labels(method.predicate)
    known = all(entity.truth is not None for entity in examples.dataset)
    perfect = perfect_answers(examples.dataset) if known else None
    return {
        "predicate": method.predicate,
        "values": list(answers.values),
        "parameters": answers.parameters.to_dict(),
        "answers": [
            {
                **_answer(answers, place, entity),
                "truth": int(labels[place]),
                "perfect": None if perfect is None else perfect[place].tolist(),
            }
            for place, entity in enumerate(examples.dataset)
        ],
    }


def _answer(answers: Answers, place: int, entity: DatasetEntity) -> dict[str, Any]:
    combined, factors, doubt = answers.combined, answers.factors, answers.uncertainty
    assert isinstance(combined, Combined)
    assert factors is not None
    assert doubt is not None  # draws were requested
    begin, end = combined.segments.offsets[place : place + 2].tolist()
    rows = range(begin, end)
    parts = doubt.item(place)
    return {
        "entity_id": entity.entity_id,
        "distribution": answers.distribution[place].tolist(),
        "base": combined.base[place].tolist(),
        "conflict": jensen_shannon(factors.potential[begin:end]) if rows else 0.0,
        "doubt": {name: parts[name] for name in ("entropy", "aleatoric", "epistemic")},
        "items": [
            _item(combined, factors.potential, row, item)
            for row, item in zip(rows, entity.evidence, strict=True)
        ],
    }


def _item(combined: Combined, potential: FloatArray, row: int, item: DatasetItem) -> dict[str, Any]:
    return {
        "evidence_id": item.evidence_id,
        "text": item.text,
        "source": item.source,
        "credibility": item.credibility,
        "potential": potential[row].tolist(),
        "epsilon": float(combined.parts["epsilon"][row]),
        "exponent": float(combined.parts["exponent"][row]),
        "contributions": combined.contributions[row].tolist(),
    }


def _item_from(plain: Mapping[str, Any]) -> TracedItem:
    rows = {name: tuple(plain[name]) for name in ("potential", "contributions")}
    return TracedItem(**{**plain, **rows})
