"""Kinds of corrupted evidence for test entities, used by the robustness study.

The same level and seed give the same data, and what is missing at 30 % is also missing at 50 %.
The exact answer to corrupted evidence is not known: an entity whose evidence changed loses its
``truth``, so that the perfect reader refuses it. Other entities are returned unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from lpf.datasets import Dataset
from lpf.domains import generate_test, load_domain, preset
from lpf.errors import ConfigError
from lpf_paper import corruption
from lpf_paper.corruption import REWORDINGS, Changed, Task

MOST_ATTACKS = 10
PERTURBATION_SEED = 11


@dataclass(frozen=True)
class Kind:
    """``about`` says what is done. ``levels`` are those a study uses, ``most`` is the highest one
    allowed. A level is a share, or a whole number if the kind ``counts``. A kind that ``borrows``
    items of other entities cannot be used if entities have claims."""

    about: str
    change: Callable[[Task], Changed]
    levels: tuple[float, ...]
    most: float = 1.0
    counts: bool = False
    borrows: bool = False


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "missing": Kind(
            "A share of all items is dropped; an entity keeps at least one.",
            corruption.missing,
            (0.1, 0.3, 0.5, 0.7, 0.9),
            most=0.9,
        ),
        "flipped": Kind(
            "A share of all items is replaced by items of entities with another value.",
            corruption.flipped,
            (0.1, 0.2, 0.3, 0.4, 0.5),
            borrows=True,
        ),
        "noise": Kind(
            "The texts of a share of all items are replaced by words drawn from all texts.",
            corruption.noise,
            (0.1, 0.3, 0.5, 0.7),
        ),
        "contradiction": Kind(
            "A share of the entities gets one more item, which supports another value.",
            corruption.contradiction,
            (0.25, 0.5, 1.0),
            borrows=True,
        ),
        "copies": Kind(
            "Copies of one item of each entity are added, reworded and not marked as copies.",
            corruption.copies,
            (1, 2, 4),
            most=len(REWORDINGS),
            counts=True,
        ),
        "foreign": Kind(
            "The texts of a share of all items are replaced by texts about something else.",
            corruption.foreign,
            (0.1, 0.3, 0.5, 0.7),
        ),
        "adversarial": Kind(
            "Each entity gets new items of credibility 1 that all support one wrong value.",
            corruption.adversarial,
            (1,),
            most=MOST_ATTACKS,
            counts=True,
            borrows=True,
        ),
    }
)


def perturbed(
    dataset: Dataset,
    kind: str,
    level: float,
    seed: int,
    *,
    predicate: str,
    foreign: Sequence[str] = (),
) -> Dataset:
    """The data set with its evidence changed as ``KINDS[kind]`` says. Any entity may be changed, so
    pass test entities only. Their order, labels, facts and fields stay.

    Level 0 changes nothing. A share is of all items (or entities), rounded to a whole number;
    "missing" takes fewer if it would take an entity's last item. Values of ``predicate`` are
    contradicted; ``foreign`` are the texts for the kind of that name. Raises ConfigError if an
    argument is out of range, DatasetError if no item can be borrowed.
    """
    _check(kind, level, seed, foreign)
    if level == 0:
        return dataset
    changed = KINDS[kind].change(Task(dataset, kind, level, seed, predicate, tuple(foreign)))
    entities = tuple(
        replace(entity, evidence=changed[entity.entity_id], truth=None)
        if entity.entity_id in changed
        else entity
        for entity in dataset
    )
    note = f"{kind} at level {level:g}, seed {seed}: {len(changed):,} of {len(dataset):,} entities."
    return replace(dataset, entities=entities, exclusions=(*dataset.exclusions, note))


@dataclass(frozen=True)
class Perturbation:
    """A ``DatasetChange``: ``KINDS[kind]`` at ``level``, with the seed that all studies share."""

    kind: str
    level: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", float(self.level))  # 1 and 1.0 must have one key

    @property
    def content(self) -> tuple[str | float, ...]:
        return ("perturbation", self.kind, self.level)

    def apply(self, dataset: Dataset, predicate: str) -> Dataset:
        return perturbed(
            dataset,
            self.kind,
            self.level,
            PERTURBATION_SEED,
            predicate=predicate,
            foreign=_texts_of_another_domain(dataset),
        )


def _texts_of_another_domain(dataset: Dataset) -> tuple[str, ...]:
    other = "materials" if dataset.name != "materials" else "legal"
    foreign = generate_test(
        load_domain(other), preset("paper"), seed=PERTURBATION_SEED, entities=100
    )
    return tuple(item.text for item in foreign.items)


def _check(kind: str, level: float, seed: int, foreign: Sequence[str]) -> None:
    if kind not in KINDS:
        raise ConfigError(f"unknown perturbation {kind!r}; choose from {list(KINDS)}.")
    most, counts = KINDS[kind].most, KINDS[kind].counts
    if not 0.0 <= level <= most or (counts and level != int(level)):
        raise ConfigError(
            f"perturbation {kind!r}: level must be a {'whole number' if counts else 'share'} from "
            f"0 to {most:g}, got {level!r}. Nothing was changed."
        )
    if seed < 0:
        raise ConfigError(f"perturbation: seed must be 0 or above, got {seed}.")
    if kind == "foreign" and not foreign:
        raise ConfigError("perturbation 'foreign': no foreign texts were given.")
