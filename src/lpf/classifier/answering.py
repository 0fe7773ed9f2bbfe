"""From entities to answers under a model that is there. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.entities import PREDICATE, Entity
from lpf.classifier.labels import Classes
from lpf.combine.combined import Segments
from lpf.engine import Answers, Engine, Items
from lpf.errors import TrainingError
from lpf.factors.keys import content_key
from lpf.index.copies import copy_groups
from lpf.model.artefact import Artefact
from lpf.schema import Schema
from lpf.types import Float32Array, FloatArray, QueryOptions
from lpf.uncertainty.decompose import Uncertainty, decompose


@dataclass(frozen=True)
class Fitted:
    """What was learned. ``with_claim`` is whether evidence is read against a claim."""

    classes: Classes
    schema: Schema
    artefact: Artefact
    with_claim: bool
    cautions: tuple[str, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Without the engine, which is made of the rest and cannot be pickled."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.artefact.runtime(), self.schema)

    @property
    def prior(self) -> FloatArray:
        """[V]."""
        return np.array(self.schema[PREDICATE].prior)

    def answer(self, items: Items, options: QueryOptions) -> Answers:
        if options.variant == "learned" and self.artefact.config.aggregator is None:
            raise TrainingError(
                "variant: this model was fitted without the learned aggregator. Nothing was "
                "answered; fit again with variant='learned'."
            )
        return self.engine.answer(items, PREDICATE, options)


@dataclass(frozen=True)
class Question:
    """Entities with the features of their items [N, width]; those without evidence get the prior,
    whatever the variant, and are kept from the engine."""

    entities: Sequence[Entity]
    features: Float32Array
    copy_similarity: float | None

    @cached_property
    def filled(self) -> NDArray[np.bool_]:
        """Which entities have evidence, [E]."""
        return np.array([bool(entity.evidence) for entity in self.entities], bool)

    @cached_property
    def items(self) -> Items:
        """Of the entities with evidence; copies as in training (``training.make_examples``, which
        cannot be used here, since its room imports torch)."""
        filled = [entity for entity in self.entities if entity.evidence]
        segments = Segments.of_counts([len(entity.evidence) for entity in filled])
        every = [item for entity in filled for item in entity.evidence]
        unknown = [np.nan if item.credibility is None else item.credibility for item in every]
        groups = [np.empty(0, np.int64)]
        for entity, start in zip(filled, segments.offsets, strict=False):
            rows = self.features[start : start + len(entity.evidence)]
            groups.append(_copies(entity, rows, self.copy_similarity))
        return Items(
            self.features,
            [item.evidence_id for item in every],
            credibility=np.array(unknown, np.float64),
            groups=np.concatenate(groups),
            segments=segments,
        )

    def distribution(self, fitted: Fitted, options: QueryOptions) -> FloatArray:
        """[E, V]."""
        answers = np.tile(fitted.prior, (len(self.entities), 1))
        if self.filled.any():
            answers[self.filled] = fitted.answer(self.items, options).distribution
        return answers

    def uncertainty(self, fitted: Fitted, options: QueryOptions) -> Uncertainty:
        """Each field [E]. The prior is all aleatoric: no draw of anything changes it."""
        answers = np.tile(fitted.prior, (len(self.entities), 1))
        parts = {
            one.name: getattr(decompose(answers, answers[None]), one.name)
            for one in fields(Uncertainty)
        }
        if self.filled.any():
            found = fitted.answer(self.items, options).uncertainty
            for name, values in parts.items():
                values[self.filled] = getattr(found, name)
        return Uncertainty(**parts)


def _copies(entity: Entity, features: Float32Array, similarity: float | None) -> NDArray[np.int64]:
    return copy_groups(
        [content_key(item.text_content, entity.claim) for item in entity.evidence],
        [item.report_id for item in entity.evidence],
        features,
        similarity,
    )
