"""From the words of a cell to entities with features: what is learned from, and who is asked."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from lpf.datasets import Dataset, Split, assign_splits, grouped_folds, read_dataset
from lpf.domains import (
    GeneratorParameters,
    generate,
    generate_test,
    load_domain,
    preset,
    with_settings,
)
from lpf.errors import DatasetError
from lpf.experiments.cells import DomainData, Exam, FileData, Lesson
from lpf.experiments.perturbations import perturbed
from lpf.experiments.ranking import best_items
from lpf.factors.keys import content_key
from lpf.reading import Reader, ReadRequest, open_reader
from lpf.schema import Predicate, Schema
from lpf.training import Examples, make_examples, read_features
from lpf.training.material import training_shares
from lpf.types import Float32Array

SPLIT_SEED, FOLD_SEED, PERTURBATION_SEED, FEW_SEED = 42, 7, 11, 45


def lesson_dataset(lesson: Lesson) -> tuple[Dataset, str]:
    """The data set in its three splits, and the predicate that it is about."""
    if isinstance(lesson.data, DomainData):
        domain = load_domain(lesson.data.domain)
        dataset = generate(domain, _parameters(lesson.data), seed=lesson.data.seed)
        predicate = domain.predicate
    else:
        dataset, predicate = file_dataset(lesson.data)
    return _at_most(dataset, lesson.entities, predicate, lesson.seed), predicate


def file_dataset(data: FileData) -> tuple[Dataset, str]:
    """A file in splits: its own, or those of a fold. Its prior is that of what is learned from."""
    _require_unchanged(data)
    dataset, predicate = labelled_file(Path(data.path), data.predicate)
    if data.folds:
        placed = _in_fold(dataset, predicate, data)
    else:
        placed = _in_given_splits(dataset, predicate)
    return _with_prior(placed, predicate), predicate


def _require_unchanged(data: FileData) -> None:
    """Answers are kept under the digest: they must come from that very file."""
    found = hashlib.sha256(Path(data.path).read_bytes()).hexdigest()
    if found != data.digest:
        raise DatasetError(
            f"{data.path}: was changed while it was evaluated. What was kept is of the file as it "
            "was; repeat the command to evaluate it as it is."
        )


def labelled_file(path: Path, predicate: str | None) -> tuple[Dataset, str]:
    """The entities that have a value of the predicate, the first one labelled where none is
    named."""
    dataset = read_dataset(path, predicate=predicate)
    if predicate is not None:
        return dataset, predicate
    predicate = next(iter(dataset.schema)).name
    if all(predicate in entity.labels for entity in dataset):
        return dataset, predicate
    return read_dataset(path, predicate=predicate), predicate


def has_own_test(dataset: Dataset) -> bool:
    """Whether the file says who is to be asked about, and leaves somebody to learn from."""
    splits = {entity.split for entity in dataset}
    return None not in splits and "test" in splits and len(splits) > 1


def exam_dataset(exam: Exam, lesson: Dataset, predicate: str) -> Dataset:
    """Who is asked about, with what was done to their evidence."""
    if exam.data is None:
        asked = lesson.select(lesson.positions("test").tolist())
    else:
        domain = load_domain(exam.data.domain)
        made = generate_test(
            domain, _parameters(exam.data), seed=exam.data.seed, entities=exam.entities
        )
        asked = _in_words_of(lesson, made, predicate, domain.predicate)
    if exam.perturbation is not None:
        asked = perturbed(
            asked,
            exam.perturbation,
            exam.level,
            PERTURBATION_SEED,
            predicate=predicate,
            foreign=_foreign(asked),
        )
    return asked if exam.top_k is None else best_items(asked, exam.top_k)


class Library:
    """Reads texts once: data sets are kept in a folder, single texts in memory, so that evidence
    to which something was done costs only what is new in it."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.folder, self.threads = folder, threads
        self._readers: dict[bool, Reader] = {}
        self._known: dict[tuple[str, bytes], Float32Array] = {}

    def examples(self, dataset: Dataset) -> Examples:
        """Of a data set as it was made."""
        reader = self.reader(dataset)
        features = read_features(dataset, reader, folder=self.folder)
        self._known.update(zip(self._keys(dataset, reader), features, strict=True))
        return make_examples(dataset, features)

    def altered(self, dataset: Dataset) -> Examples:
        """Of a data set most of whose texts were read before."""
        reader, keys = self.reader(dataset), self._keys(dataset, self.reader(dataset))
        requests = [
            ReadRequest(item.text, entity.claim) for entity in dataset for item in entity.evidence
        ]
        new = {key: one for key, one in zip(keys, requests, strict=True) if key not in self._known}
        if new:
            self._known.update(zip(new, reader.read_many(list(new.values())), strict=True))
        return make_examples(dataset, np.stack([self._known[key] for key in keys]))

    def reader(self, dataset: Dataset) -> Reader:
        """With its claim where entities have one: evidence for a claim cannot be read alone."""
        return self.opened(any(entity.claim is not None for entity in dataset))

    def opened(self, with_claim: bool) -> Reader:
        if with_claim not in self._readers:
            self._readers[with_claim] = open_reader(threads=self.threads, with_claim=with_claim)
        return self._readers[with_claim]

    def _keys(self, dataset: Dataset, reader: Reader) -> list[tuple[str, bytes]]:
        return [
            (reader.reader_id, content_key(item.text, entity.claim))
            for entity in dataset
            for item in entity.evidence
        ]


def _parameters(data: DomainData) -> GeneratorParameters:
    return with_settings(preset(data.preset), data.changes)


def _in_words_of(lesson: Dataset, asked: Dataset, predicate: str, other: str) -> Dataset:
    """Entities of another domain, their values renamed by place: the lowest is the lowest. What
    the generator knows of them speaks of their own values and is dropped."""
    if other == predicate:
        return replace(asked, schema=lesson.schema)
    ours, theirs = lesson.schema[predicate].values, asked.schema[other].values
    if len(ours) != len(theirs):
        raise DatasetError(
            f"{predicate!r} has {len(ours)} values and {other!r} {len(theirs)}, so one cannot be "
            "asked in the words of the other. Nothing was asked."
        )
    words = dict(zip(theirs, ours, strict=True))
    entities = tuple(
        replace(
            entity,
            labels={predicate: words[entity.labels[other]]},
            evidence=tuple(replace(item, labels={}, truth=None) for item in entity.evidence),
            facts={},
            truth=None,
        )
        for entity in asked
    )
    return replace(asked, schema=lesson.schema, entities=entities)


def _foreign(asked: Dataset) -> tuple[str, ...]:
    """Texts of another domain than the one asked about."""
    other = "materials" if asked.name != "materials" else "legal"
    made = generate_test(load_domain(other), preset("paper"), seed=PERTURBATION_SEED, entities=100)
    return tuple(item.text for item in made.items)


def _at_most(dataset: Dataset, entities: int | None, predicate: str, seed: int) -> Dataset:
    """As many training entities as asked for, each value in its share. Of one seed, fewer are
    among more."""
    train = dataset.positions("train")
    if entities is None or entities >= len(train):
        return dataset
    labels = dataset.labels(predicate)[train]
    order = np.random.default_rng([seed, FEW_SEED]).permutation(len(train))
    rank = np.empty(len(train))
    for value in np.unique(labels):  # the place of each within its value, as a share
        of_value = order[labels[order] == value]
        rank[of_value] = (np.arange(len(of_value)) + 0.5) / len(of_value)
    kept = set(train[np.argsort(rank, kind="stable")[:entities]].tolist())
    left_out = set(train.tolist()) - kept
    return dataset.select([place for place in range(len(dataset)) if place not in left_out])


def _in_given_splits(dataset: Dataset, predicate: str) -> Dataset:
    """Whoever is not asked about is learned from; part of them validate where none are said to."""
    if not has_own_test(dataset):
        raise DatasetError(
            f"dataset {dataset.name!r}: has no test entities, or nobody else. Nothing was "
            "evaluated; evaluate it with folds."
        )
    splits = {entity.split for entity in dataset}
    if splits == {"train", "validation", "test"}:
        return dataset
    learned: list[Split | None] = [
        "test" if entity.split == "test" else "train" for entity in dataset
    ]
    return assign_splits(dataset.in_splits(learned), predicate, seed=SPLIT_SEED)


def _in_fold(dataset: Dataset, predicate: str, data: FileData) -> Dataset:
    folds = grouped_folds(dataset, predicate, data.folds, FOLD_SEED)
    asked = set(folds[data.fold].tolist())
    splits: list[Split | None] = [
        "test" if place in asked else "train" for place in range(len(dataset))
    ]
    return assign_splits(dataset.in_splits(splits), predicate, seed=SPLIT_SEED + data.fold)


def _with_prior(dataset: Dataset, predicate: str) -> Dataset:
    """A file says nothing of how frequent values are; who is learned from does."""
    train = dataset.labels(predicate)[dataset.positions("train")]
    known = train[train >= 0]
    values = dataset.schema[predicate].values
    shares = training_shares(known, len(values), np.ones(len(known)))
    predicates = tuple(
        replace(one, prior=tuple(shares.tolist())) if one.name == predicate else one
        for one in dataset.schema
    )
    return replace(dataset, schema=Schema(predicates))


def flat(schema: Schema) -> Schema:
    """The same predicates, every value as likely as the next."""
    return Schema(tuple(Predicate(one.name, one.values) for one in schema))
