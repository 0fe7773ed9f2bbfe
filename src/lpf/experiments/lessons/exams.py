"""Who is asked about: the lesson's own test entities or new ones, and what is done to their
evidence."""

from __future__ import annotations

from dataclasses import replace

from lpf.datasets import Dataset, DatasetEntity
from lpf.domains import generate_test, load_domain, preset
from lpf.errors import DatasetError
from lpf.experiments.cells import DomainData, Exam
from lpf.experiments.lessons.datasets import generator_parameters
from lpf.experiments.lessons.perturbations import perturbed
from lpf.experiments.lessons.ranking import best_items

PERTURBATION_SEED = 11


def exam_dataset(exam: Exam, lesson: Dataset, predicate: str) -> Dataset:
    """Who is asked about, with what was done to their evidence."""
    if exam.data is None:
        asked = lesson.select(lesson.positions("test").tolist())
    else:
        asked = _new_entities(exam.data, exam.entities, lesson, predicate)
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


def _new_entities(data: DomainData, entities: int, lesson: Dataset, predicate: str) -> Dataset:
    domain = load_domain(data.domain)
    made = generate_test(domain, generator_parameters(data), seed=data.seed, entities=entities)
    return _in_words_of(lesson, made, predicate, domain.predicate)


def _in_words_of(lesson: Dataset, asked: Dataset, predicate: str, other: str) -> Dataset:
    """Entities of another domain, their values renamed by place: the lowest is the lowest."""
    if other == predicate:
        return replace(asked, schema=lesson.schema)
    ours, theirs = lesson.schema[predicate].values, asked.schema[other].values
    if len(ours) != len(theirs):
        raise DatasetError(
            f"{predicate!r} has {len(ours)} values and {other!r} {len(theirs)}, so one cannot be "
            "asked in the words of the other. Nothing was asked."
        )
    words = dict(zip(theirs, ours, strict=True))
    entities = (_relabelled(one, predicate, words[one.labels[other]]) for one in asked)
    return replace(asked, schema=lesson.schema, entities=tuple(entities))


def _relabelled(entity: DatasetEntity, predicate: str, value: str) -> DatasetEntity:
    """What the generator knows of it speaks of its own values and is dropped."""
    return replace(
        entity,
        labels={predicate: value},
        evidence=tuple(replace(item, labels={}, truth=None) for item in entity.evidence),
        facts={},
        truth=None,
    )


def _foreign(asked: Dataset) -> tuple[str, ...]:
    """Texts of another domain than the one asked about."""
    other = "materials" if asked.name != "materials" else "legal"
    made = generate_test(load_domain(other), preset("paper"), seed=PERTURBATION_SEED, entities=100)
    return tuple(item.text for item in made.items)
