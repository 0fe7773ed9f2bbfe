"""From entities to answers under a model that is there. Needs no torch.

Texts to features, each text once.

Why an entity got its answer, item by item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.entities import PREDICATE, Entity
from lpf.classifier.labels import Classes
from lpf.combine.combined import Combined
from lpf.combine.uncertainty import Uncertainty, decompose
from lpf.engine import Answers, Engine, Items
from lpf.errors import ConfigError, EvidenceError, TrainingError
from lpf.factors.keys import content_key
from lpf.index.copies import copy_groups
from lpf.items import Segments
from lpf.model.artefact import Artefact
from lpf.reading import Reader, ReadRequest, open_reader
from lpf.schema import Schema
from lpf.types import Float32Array, FloatArray, QueryOptions


@dataclass(frozen=True)
class FittedModel:
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

    def distribution(self, fitted: FittedModel, options: QueryOptions) -> FloatArray:
        """[E, V]."""
        answers = np.tile(fitted.prior, (len(self.entities), 1))
        if self.filled.any():
            answers[self.filled] = fitted.answer(self.items, options).distribution
        return answers

    def uncertainty(self, fitted: FittedModel, options: QueryOptions) -> Uncertainty:
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


Key = tuple[str, bytes]

MOST_KEPT = 100_000  # texts: 150 MB of the default reader's features
DEFAULT_READER = "minilm"


class Memory:
    """Features of texts read before, by what they depend on; the oldest go first. A classifier
    shares it with its clones, so that cross-validation reads each text once. Texts are not kept,
    and a pickled memory comes back empty."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._rows: dict[Key, Float32Array] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> tuple[type[Memory], tuple[int]]:
        return Memory, (self._most,)

    def features(self, reader: Reader, entities: Sequence[Entity]) -> Float32Array:
        """Of all items, entity by entity, [N, width]."""
        requests = _requests(reader, entities)
        keys = [(reader.reader_id, content_key(one.text, one.claim)) for one in requests]
        with self._lock:
            rows = {key: self._rows[key] for key in keys if key in self._rows}
        missing = {k: one for k, one in zip(keys, requests, strict=True) if k not in rows}
        if missing:
            fresh = dict(zip(missing, reader.read_many(list(missing.values())), strict=True))
            self._keep(fresh)
            rows |= fresh
        return np.array([rows[key] for key in keys], np.float32).reshape(-1, reader.width)

    def _keep(self, fresh: dict[Key, Float32Array]) -> None:
        with self._lock:
            # A row alone: a view would hold on to all that was read with it.
            self._rows |= {key: row.copy() for key, row in fresh.items()}
            for key in list(self._rows)[: max(0, len(self._rows) - self._most)]:
                del self._rows[key]


def choose_reader(reader: str | Reader | None, with_claim: bool) -> Reader:
    """The reader itself where one is given, else the one of that name, opened once a process."""
    if isinstance(reader, str) or reader is None:
        return _opened(reader or DEFAULT_READER, with_claim)
    if reader.uses_claim != with_claim:
        uses = "needs a claim" if reader.uses_claim else "does not read claims"
        raise ConfigError(
            f"reader: {reader.reader_id} {uses}, which does not fit the entities. Nothing was "
            "read; give every entity a claim and a reader that uses it, or neither."
        )
    return reader


def claims_in(entities: Sequence[Entity], name: str = "X") -> bool:
    """Whether these entities are to be read against claims. EvidenceError where only some with
    evidence have one."""
    claimed = [e.claim is not None for e in entities if e.evidence]
    if any(claimed) and not all(claimed):
        raise EvidenceError(
            f"{name}: {claimed.count(False)} of {len(claimed)} entities with evidence have no "
            "claim. Nothing was read; give every entity a claim, or none."
        )
    return any(claimed)


def _requests(reader: Reader, entities: Sequence[Entity]) -> list[ReadRequest]:
    return [
        ReadRequest(item.text_content, entity.claim if reader.uses_claim else None)
        for entity in entities
        for item in entity.evidence
    ]


@lru_cache(maxsize=4)
def _opened(name: str, with_claim: bool) -> Reader:
    return open_reader(name, with_claim=with_claim)


_LONGEST_TEXT = 72


@dataclass(frozen=True)
class Explanation:
    """The answer about one entity with N items, and what each had to do with it.

    ``base`` [V] and ``contributions`` [N, V] add up to the logarithm of ``probabilities`` [V], but
    for a constant. ``weight`` [N] is the exponent an item entered with. The variant ``learned``
    weighs items and has no contributions: both arrays are None there. Items of one number in
    ``groups`` [N] are copies of each other, -1 stands alone.
    """

    classes: NDArray[Any]
    probabilities: FloatArray
    prior: FloatArray
    texts: tuple[str, ...]
    weight: FloatArray
    groups: NDArray[np.int64]
    base: FloatArray | None
    contributions: FloatArray | None

    def __str__(self) -> str:
        first, second = np.argsort(-self.probabilities, kind="stable")[:2]
        answer = f"{self.classes[first]}: {self.probabilities[first]:.3f}"
        lines = [f"{answer} (prior {self.prior[first]:.3f})"]
        strength, what = self.weight, "weight of each item:"
        if self.contributions is not None:
            strength = self.contributions[:, first] - self.contributions[:, second]
            what = f"log odds of {self.classes[first]} against {self.classes[second]}, by item:"
        order = np.argsort(-np.abs(strength), kind="stable").tolist()
        lines += [what] if order else ["no evidence"]
        return "\n".join([*lines, *(self._line(item, strength[item]) for item in order)])

    def _line(self, item: int, strength: float) -> str:
        text = " ".join(self.texts[item].split())
        cut = text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."
        copy = "" if self.groups[item] < 0 else f" [copies {self.groups[item]}]"
        return f"{strength:+8.3f}  {cut}{copy}"


def explain(question: Question, fitted: FittedModel, options: QueryOptions) -> Explanation:
    """Of a question about one entity."""
    texts = tuple(item.text_content for item in question.entities[0].evidence)
    if not texts:
        return _prior_alone(fitted)
    found, groups = fitted.answer(question.items, options), question.items.groups
    assert groups is not None  # a question's items always come with them
    made = found.combined
    return Explanation(
        fitted.classes.array,
        found.distribution[0],
        fitted.prior,
        texts,
        made.parts["exponent"] if isinstance(made, Combined) else made.weight,
        groups,
        made.base[0] if isinstance(made, Combined) else None,
        made.contributions if isinstance(made, Combined) else None,
    )


def _prior_alone(fitted: FittedModel) -> Explanation:
    prior = fitted.prior
    nobody, nothing = np.empty(0, np.int64), np.empty((0, len(prior)))
    return Explanation(
        fitted.classes.array, prior, prior, (), nothing[:, 0], nobody, np.log(prior), nothing
    )
