"""From entities to probabilities, sets and uncertainty, with a trained model. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.entities import PREDICATE, Entity
from lpf.classifier.labels import Classes
from lpf.combine.uncertainty import Uncertainty, decompose
from lpf.engine import Answers, Engine, Items
from lpf.errors import TrainingError
from lpf.factors.keys import content_key
from lpf.index.copies import copy_groups
from lpf.items import Segments
from lpf.metrics.prediction_sets import never_empty, sets, surprise
from lpf.model.artefact import Artefact
from lpf.reading.words import wordless
from lpf.schema import Schema
from lpf.types import Float32Array, FloatArray, QueryOptions


@dataclass(frozen=True)
class FittedModel:
    """What ``LPFClassifier.fit`` learned. ``with_claim`` is True if evidence is read with a
    claim."""

    classes: Classes
    schema: Schema
    artefact: Artefact
    with_claim: bool
    warnings: tuple[str, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Without the engine, which cannot be pickled and is built from the rest."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

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
                "this model was fitted without the learned aggregator. Nothing was answered; fit "
                "again with variant='learned'.",
                field="variant",
            )
        return self.engine.answer(items, PREDICATE, options)

    def used(self, items: Items, options: QueryOptions) -> NDArray[np.intp]:
        """Positions of the items that are not below the threshold chosen with the model."""
        rows = self.engine.countable(items, PREDICATE, options)
        return np.arange(len(items)) if rows is None else rows


@dataclass(frozen=True)
class EntityBatch:
    """Entities to answer about, with the features of all their items [N, width], of which the
    first ``text_width`` are not those of words. An entity without evidence gets the prior with
    every variant; the engine does not see it."""

    entities: Sequence[Entity]
    features: Float32Array
    text_width: int
    copy_similarity: float | None

    def distribution(self, fitted: FittedModel, options: QueryOptions) -> FloatArray:
        """[E, V]."""
        answers = np.tile(fitted.prior, (len(self.entities), 1))
        if self._has_evidence.any():
            answers[self._has_evidence] = self._answers(fitted, options).distribution
        return answers

    def sets(self, fitted: FittedModel, options: QueryOptions, by_value: bool) -> NDArray[np.bool_]:
        """Prediction sets with the coverage of ``options``, [E, V]."""
        assert options.coverage is not None  # the caller gives one
        held = fitted.engine.held_out(PREDICATE, "coverage")
        surprises = surprise(self.distribution(fitted, options))
        members = never_empty(sets(surprises, held.cutoffs(options.coverage, by_value)), surprises)
        members[~self._has_evidence] = True
        return members

    def decisions(
        self, fitted: FittedModel, options: QueryOptions
    ) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Which entities get an answer with the ``max_risk`` of ``options`` [E], and the most
        probable class of each [E]."""
        assert options.max_risk is not None  # the caller gives one
        held = fitted.engine.held_out(PREDICATE, "max_risk")
        distribution = self.distribution(fitted, options)
        best, cutoff = distribution.argmax(axis=1), held.deferral_cutoff(options.max_risk)
        if cutoff is None:
            return np.zeros(len(best), bool), best
        sure = surprise(distribution).min(axis=1) < cutoff
        return np.asarray(sure & held.seen[best] & self._has_evidence), best

    def uncertainty(self, fitted: FittedModel, options: QueryOptions) -> Uncertainty:
        """Each field [E]. The prior is all aleatoric: it is the same in every draw."""
        answers = np.tile(fitted.prior, (len(self.entities), 1))
        of_prior = decompose(answers, answers[None])
        parts = {field.name: getattr(of_prior, field.name) for field in fields(Uncertainty)}
        if self._has_evidence.any():
            of_evidence = self._answers(fitted, options).uncertainty
            for name, values in parts.items():
                values[self._has_evidence] = getattr(of_evidence, name)
        return Uncertainty(**parts)

    def _answers(self, fitted: FittedModel, options: QueryOptions) -> Answers:
        used = fitted.used(self.items, options)
        every = len(used) == len(self.items)
        return fitted.answer(self.items if every else self.items.select(used), options)

    @cached_property
    def _has_evidence(self) -> NDArray[np.bool_]:
        """[E]."""
        return np.array([bool(entity.evidence) for entity in self.entities], bool)

    @cached_property
    def items(self) -> Items:
        """Items of the entities with evidence. Copies are found as in ``training.make_examples``,
        which cannot be called here because its package imports torch."""
        filled = [entity for entity in self.entities if entity.evidence]
        segments = Segments.of_counts([len(entity.evidence) for entity in filled])
        every = [item for entity in filled for item in entity.evidence]
        credibility = [np.nan if item.credibility is None else item.credibility for item in every]
        groups = [np.empty(0, np.int64)]
        for entity, start in zip(filled, segments.offsets, strict=False):
            rows = self.features[start : start + len(entity.evidence), : self.text_width]
            groups.append(_copies(entity, rows, self.copy_similarity))
        return Items(
            self.features,
            [item.evidence_id for item in every],
            credibility=np.array(credibility, np.float64),
            groups=np.concatenate(groups),
            segments=segments,
            wordless=wordless(item.text_content for item in every),
        )


def _copies(entity: Entity, features: Float32Array, similarity: float | None) -> NDArray[np.int64]:
    return copy_groups(
        [content_key(item.text_content, entity.claim) for item in entity.evidence],
        [item.report_id for item in entity.evidence],
        features,
        similarity,
    )
