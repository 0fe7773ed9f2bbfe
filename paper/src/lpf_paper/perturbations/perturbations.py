"""Worse evidence for entities that were not trained on: what a robustness study does to it.

The same level and seed give the same data, and what is missing at 30 % is also missing at 50 %.
Nobody knows the exact answer to spoilt evidence: an entity that was changed has no ``truth`` any
more, so that the perfect reader refuses; one that was not is returned as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from lpf.datasets import Dataset
from lpf.domains import generate_test, load_domain, preset
from lpf.errors import ConfigError
from lpf_paper.perturbations import corruption as spoiling
from lpf_paper.perturbations.corruption import REWORDINGS, Changed, Task

MOST_ATTACKS = 10
PERTURBATION_SEED = 11


@dataclass(frozen=True)
class Kind:
    """``about`` says what is done; ``levels`` are those that a study goes through, ``most`` is the
    highest. A level is a share, or where it ``counts`` a whole number. A kind that ``borrows``
    items of other entities makes no sense where entities have claims."""

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
            spoiling.missing,
            (0.1, 0.3, 0.5, 0.7, 0.9),
            most=0.9,
        ),
        "flipped": Kind(
            "A share of all items is replaced by items of entities with another value.",
            spoiling.flipped,
            (0.1, 0.2, 0.3, 0.4, 0.5),
            borrows=True,
        ),
        "noise": Kind(
            "The texts of a share of all items are replaced by words drawn from all texts.",
            spoiling.noise,
            (0.1, 0.3, 0.5, 0.7),
        ),
        "contradiction": Kind(
            "A share of the entities gets one more item, which speaks for another value.",
            spoiling.contradiction,
            (0.25, 0.5, 1.0),
            borrows=True,
        ),
        "copies": Kind(
            "So many copies of one item of each entity are added, reworded and not marked.",
            spoiling.copies,
            (1, 2, 4),
            most=len(REWORDINGS),
            counts=True,
        ),
        "foreign": Kind(
            "The texts of a share of all items are replaced by texts about something else.",
            spoiling.foreign,
            (0.1, 0.3, 0.5, 0.7),
        ),
        "adversarial": Kind(
            "Each entity gets so many new items of credibility 1 that speak for one wrong value.",
            spoiling.adversarial,
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
    """The data set with its evidence changed as ``KINDS[kind]`` says. Every entity may be, so hand
    over those of the test alone. Their order, labels, facts and fields stay.

    Level 0 changes nothing. A share is one of all items (or entities), to the nearest whole number;
    "missing" takes fewer where it would take an entity's last item. ``predicate`` is whose values
    are contradicted, ``foreign`` the texts of the kind of that name. ConfigError for arguments out
    of range, DatasetError where nothing can be borrowed.
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
    made = generate_test(load_domain(other), preset("paper"), seed=PERTURBATION_SEED, entities=100)
    return tuple(item.text for item in made.items)


def _check(kind: str, level: float, seed: int, foreign: Sequence[str]) -> None:
    if kind not in KINDS:
        raise ConfigError(f"perturbation: {kind!r} is none; those are {list(KINDS)}.")
    most, counts = KINDS[kind].most, KINDS[kind].counts
    if not 0.0 <= level <= most or (counts and level != int(level)):
        raise ConfigError(
            f"perturbation {kind!r}: level must be a {'whole number' if counts else 'share'} from "
            f"0 to {most:g}, got {level!r}. Nothing was changed."
        )
    if seed < 0:
        raise ConfigError(f"perturbation: seed must be 0 or above, got {seed}.")
    if kind == "foreign" and not foreign:
        raise ConfigError("perturbation 'foreign': there are no foreign texts; give some.")
