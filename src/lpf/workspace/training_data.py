"""The labelled evidence of a workspace as a data set, with its stored features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.datasets.dataset_file import NO_LABEL, Exclusions
from lpf.errors import TrainingError
from lpf.index import FeatureSource
from lpf.index.copies import checked_similarity
from lpf.model.artefact import Artefact
from lpf.reading import Reader
from lpf.schema import Schema
from lpf.storage.evidence import EvidenceStore, RowNumbers, StoredEvidence
from lpf.storage.facts import FactStore
from lpf.types import Float32Array
from lpf.workspace.wiring import Wiring

if TYPE_CHECKING:
    from lpf.training import Examples

Progress = Callable[[int, int], None]
# Entity ID and predicate name.
Question = tuple[str, str]

NAME = "own evidence"
LEAST_CONFIDENCE = 0.5  # below this, a fact supports the other values rather than its own
PAGE = 1000
_TIE = (
    "entity was left out, since its items support two values equally often",
    "entities were left out, since their items support two values equally often",
)
_STRANGE = (
    "label is no value of its predicate in the schema and was ignored",
    "labels are no values of their predicates in the schema and were ignored",
)


@dataclass(frozen=True)
class _Collected:
    """The data set, the row numbers [N] of its items in the store, and if any has a claim."""

    dataset: Dataset
    rows: RowNumbers
    has_claims: bool


def own_examples(
    workspace: Wiring,
    predicates: Sequence[str] = (),
    progress: Progress | None = None,
    onto: Artefact | None = None,
) -> tuple[Examples, Reader]:
    """The labelled evidence of a workspace about ``predicates`` (none given: all), without splits.

    An entity's label is its newest fact with a confidence of at least 0.5, else the value that most
    of its items support; each item's own label is the value that it supports. An entity with
    labelled evidence about several predicates becomes one entity per predicate. Features come from
    the store; missing ones are read now and stored. The reader is returned too: that of the model
    ``onto``, or (None) as the evidence and the settings say. TrainingError if nothing is labelled.
    """
    from lpf.training import make_examples

    collected = _collect(workspace, predicates)
    reader = workspace.reader_for_training(collected.has_claims, onto)
    source = FeatureSource(workspace.evidence, reader.reader_id, reader.width, lambda: reader)
    source.read_missing(progress)
    features = _features(workspace.evidence, source.number, collected, reader.width)
    similarity = checked_similarity(workspace.settings.index.copy_similarity)
    return make_examples(collected.dataset, features, similarity), reader


def known_labels(
    evidence: EvidenceStore, facts: FactStore, schema: Schema
) -> tuple[dict[Question, str], tuple[str, ...]]:
    """The label of each entity for each predicate, as ``own_examples`` has them, and of entities
    with a known fact and no evidence as well; then what was left out, as sentences."""
    exclusions = Exclusions()
    votes = _votes(evidence, schema, {predicate.name for predicate in schema}, exclusions)
    labelled = {question: counts for question, counts in votes.items() if counts}
    known = _known_values(facts, schema, None, exclusions)
    return _labels(labelled, known, exclusions) | known, exclusions.sentences


def _collect(workspace: Wiring, predicates: Sequence[str]) -> _Collected:
    names = {workspace.schema[name].name for name in predicates}
    wanted = names or {predicate.name for predicate in workspace.schema}
    exclusions = Exclusions()
    votes = _votes(workspace.evidence, workspace.schema, wanted, exclusions)
    known = _known_values(workspace.facts, workspace.schema, votes, exclusions)
    labels = _labels(votes, known, exclusions)
    if not labels:
        raise _nothing_labelled(workspace, sorted(names))
    stored = _by_question(workspace.evidence, labels)
    several = len({predicate for _, predicate in labels}) > 1
    entities = [
        _entity(workspace.schema, question, labels[question], items, several)
        for question, items in stored.items()
    ]
    dataset = Dataset(NAME, workspace.schema, tuple(entities), exclusions.sentences)
    every = [item for items in stored.values() for item in items]
    has_claims = any(item.evidence.claim is not None for item in every)
    return _Collected(dataset, np.array([item.row_id for item in every], np.int64), has_claims)


def _votes(
    store: EvidenceStore, schema: Schema, wanted: set[str], exclusions: Exclusions
) -> dict[Question, Counter[str]]:
    """For every question with evidence, the number of items that support each value."""
    votes: dict[Question, Counter[str]] = {}
    for item in _all(store):
        evidence = item.evidence
        if evidence.predicate not in wanted:
            continue
        counts = votes.setdefault((evidence.entity_id, evidence.predicate), Counter())
        value = evidence.supports_value
        if value is not None and _fits(schema, evidence.predicate, value):
            counts[value] += 1
        elif value is not None:
            exclusions.note(_STRANGE, f"{value!r} of {evidence.evidence_id}")
    return votes


def _known_values(
    facts: FactStore,
    schema: Schema,
    questions: Collection[Question] | None,
    exclusions: Exclusions,
) -> dict[Question, str]:
    """The values of known facts about these questions (None: about all)."""
    known: dict[Question, str] = {}
    for entity_id, values in facts.table(LEAST_CONFIDENCE):
        for predicate, value in values.items():
            if questions is not None and (entity_id, predicate) not in questions:
                continue
            if _fits(schema, predicate, value):
                known[entity_id, predicate] = value
            else:
                exclusions.note(_STRANGE, f"{value!r} known of {entity_id}")
    return known


def _labels(
    votes: Mapping[Question, Counter[str]], known: Mapping[Question, str], exclusions: Exclusions
) -> dict[Question, str]:
    """The label of each question, in the order of ingestion."""
    labels: dict[Question, str] = {}
    for question, counts in votes.items():
        first, second, *_ = [*counts.most_common(2), ("", 0), ("", 0)]
        if question in known:
            labels[question] = known[question]
        elif not first[1]:
            exclusions.note(NO_LABEL, question[0])
        elif first[1] == second[1]:
            exclusions.note(_TIE, question[0])
        else:
            labels[question] = first[0]
    return labels


def _by_question(
    store: EvidenceStore, labels: Mapping[Question, str]
) -> dict[Question, list[StoredEvidence]]:
    stored: dict[Question, list[StoredEvidence]] = {}
    for item in _all(store):
        question = item.evidence.entity_id, item.evidence.predicate
        if question in labels:
            stored.setdefault(question, []).append(item)
    return stored


def _entity(
    schema: Schema, question: Question, value: str, items: Sequence[StoredEvidence], several: bool
) -> DatasetEntity:
    entity_id, predicate = question
    claims = {item.evidence.claim for item in items}
    return DatasetEntity(
        f"{entity_id} · {predicate}" if several else entity_id,
        {predicate: value},
        tuple(_item(schema, item) for item in items),
        claim=claims.pop() if len(claims) == 1 else None,
        # Training and test data must not share an entity, whatever the predicate.
        group_id=entity_id if several else None,
    )


def _item(schema: Schema, stored: StoredEvidence) -> DatasetItem:
    evidence = stored.evidence
    value = evidence.supports_value
    is_label = value is not None and _fits(schema, evidence.predicate, value)
    return DatasetItem(
        evidence.evidence_id,
        evidence.text_content,
        {evidence.predicate: value} if value is not None and is_label else {},
        evidence.source,
        evidence.credibility,
        evidence.timestamp,
        evidence.report_id,
    )


def _features(store: EvidenceStore, reader: int, collected: _Collected, width: int) -> Float32Array:
    """The stored vectors of the data set's items, [N, width]."""
    places = {row: place for place, row in enumerate(collected.rows.tolist())}
    features = np.full((len(places), width), np.nan, np.float32)
    for rows, vectors in store.vectors(reader):
        for row, vector in zip(rows.tolist(), vectors, strict=True):
            if row in places:
                features[places[row]] = vector
    lacking = np.flatnonzero(np.isnan(features[:, 0]))
    if len(lacking):
        raise TrainingError(
            f"{len(lacking):,} items were erased while the data were being collected. "
            "Nothing was trained; run the command again."
        )
    return features


def _all(store: EvidenceStore) -> Iterator[StoredEvidence]:
    last = 0
    while page := store.page(limit=PAGE, after_row=last):
        yield from page
        last = page[-1].row_id


def _fits(schema: Schema, predicate: str, value: str) -> bool:
    return predicate in schema and value in schema[predicate].index


def _nothing_labelled(workspace: Wiring, names: Sequence[str]) -> TrainingError:
    about = f" of {', '.join(names)}" if names else ""
    return TrainingError(
        f"{workspace.folder} has no labelled evidence{about}. Nothing was trained. Ingest evidence "
        "with a column supports_value, add known facts about its entities with 'lpf facts add', or "
        "name a data set or a domain to train on."
    )
