"""Verdicts without labels as a method: it is fitted to nothing, and gets no temperature."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.baselines.interface import FittedMethod
from lpf.engine import Engine
from lpf.errors import DatasetError
from lpf.model.runtime import Runtime
from lpf.model.zero_label import ZeroLabelNumbers
from lpf.schema import Predicate, Schema
from lpf.training.examples import Examples
from lpf.types import FloatArray

ZERO_LABEL = "zero_label"


@dataclass(frozen=True)
class ZeroLabelAnswers:
    """What a workspace made with ``lpf init --claims`` answers."""

    engine: Engine
    predicate: str

    def predict_proba(self, examples: Examples) -> FloatArray:
        without = [entity.entity_id for entity in examples.dataset if entity.claim is None]
        if without:
            raise DatasetError(
                f"dataset {examples.dataset.name!r}: {len(without):,} entities have no claim "
                f"(first: {without[0]}), which the method {ZERO_LABEL!r} needs.",
                hint="Leave the method out.",
            )
        return self.engine.answer(examples.items, self.predicate).distribution


@dataclass(frozen=True)
class ZeroLabel:
    """The stance reader's own verdicts. Labels and their shares are not used: the prior is the
    package's. Values that stand for no verdict are refused (``model.zero_label``)."""

    name: str
    reader_id: str
    is_reference: bool = True

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        numbers = ZeroLabelNumbers.installed()
        values = train.dataset.schema[predicate].values
        model = numbers.model(predicate, values, self.reader_id, train.features.shape[1])
        prior = tuple(numbers.head(values).silent.tolist())
        schema = Schema((Predicate(predicate, values, prior),))
        return ZeroLabelAnswers(Engine(Runtime(*model), schema), predicate)
