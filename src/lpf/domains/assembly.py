"""Ids and texts for entities that were drawn: what turns numbers into a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from lpf.datasets.dataset import DatasetEntity, DatasetItem, Split
from lpf.domains.declaration import Domain
from lpf.domains.parameters import GeneratorParameters
from lpf.domains.perfect_reader import POSTERIOR, POSTERIOR_WITH_FACTS
from lpf.domains.records import NOT_BORDERLINE, Records
from lpf.domains.slots import Filling
from lpf.domains.streams import stream
from lpf.domains.symbols import Symbols
from lpf.domains.wordings import Cell, SentencePool
from lpf.schema import Schema
from lpf.types import FloatArray

REFERENCE = datetime(2025, 1, 1, tzinfo=UTC)  # of a domain without years
# How often another wording is tried where an entity has the drawn one already.
_TRIES = 20


@dataclass(frozen=True)
class Part:
    """Entities drawn together, before splits and texts. ``first`` is the number of the first."""

    path: tuple[str, ...]
    first: int
    records: Records
    symbols: Symbols
    posterior: FloatArray
    with_facts: FloatArray


def reference_date(domain: Domain, fields: Mapping[str, Any]) -> datetime:
    """The moment an entity is judged at: the end of the year after its own, so that notes of the
    last two years speak of that year or were written after it."""
    if domain.dated_by is None:
        return REFERENCE
    return datetime(int(fields[domain.dated_by]) + 2, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Assembly:
    """Turns what was drawn into entities with ids and texts."""

    domain: Domain
    parameters: GeneratorParameters
    seed: int
    prefix: str

    @property
    def schema(self) -> Schema:
        return self.domain.schema(self.parameters.shares)

    def bare(self, part: Part) -> Iterator[DatasetEntity]:
        """The entities without their texts, which depend on the split."""
        domain, records = self.domain, part.records
        for place, fields in enumerate(records.fields):
            related = domain.related.values[records.related[place]]
            group = part.first + place - place % len(domain.years) if domain.years else None
            yield DatasetEntity(
                entity_id=self._entity_id(part.first + place),
                labels={domain.predicate: domain.values[records.values[place]]},
                evidence=(),
                group_id=None if group is None else self._entity_id(group),
                facts={domain.related.predicate: related} if records.known[place] else {},
                fields=fields,
                truth=self._truth(part, place),
            )

    def entities(
        self, part: Part, splits: Sequence[Split | None], first_item: int
    ) -> list[DatasetEntity]:
        made = []
        number = first_item
        for place, (entity, split) in enumerate(zip(self.bare(part), splits, strict=True)):
            assert split is not None  # every entity was assigned one
            items = self._items(part, place, entity, split, number)
            made.append(replace(entity, split=split, evidence=items))
            number += len(items)
        return made

    def _items(
        self, part: Part, place: int, entity: DatasetEntity, split: Split, number: int
    ) -> tuple[DatasetItem, ...]:
        symbols = part.symbols
        count = int(symbols.counts[place])
        ids = [self._evidence_id(entity.entity_id, number + i) for i in range(count)]
        origins = symbols.origins[place, :count].tolist()
        texts = self._texts(part, place, entity, split)
        reference = reference_date(self.domain, entity.fields)
        made = []
        for i, (origin, text) in enumerate(zip(origins, texts, strict=True)):
            aspect = self.domain.aspects[symbols.aspects[place, i]]
            shown = self.domain.symbols[symbols.symbols[place, i]]
            copy_of = ids[origin] if origin != i else None
            made.append(
                DatasetItem(
                    evidence_id=ids[i],
                    text=text,
                    source=aspect.sources[symbols.sources[place, i]],
                    credibility=float(symbols.credibility[place, i]),
                    timestamp=reference - timedelta(days=int(symbols.age_days[place, i])),
                    # Items of one report name its first; most reports have only one item.
                    report_id=ids[origin] if origins.count(origin) > 1 else None,
                    truth={"aspect": aspect.name, "symbol": list(shown), "copy_of": copy_of},
                )
            )
        return tuple(made)

    def _texts(self, part: Part, place: int, entity: DatasetEntity, split: Split) -> list[str]:
        """A text an item. A copy says the sentence of its original in other words."""
        symbols = part.symbols
        generator = stream(self.seed, *part.path, "texts", place)
        texts_of = [field.name for field in self.domain.fields if field.is_text]
        words = {name: str(entity.fields[name]) for name in texts_of}
        used: set[str] = set()
        made: list[tuple[SentencePool, Filling]] = []
        texts = []
        for i, origin in enumerate(symbols.origins[place, : symbols.counts[place]].tolist()):
            aspect = self.domain.aspects[symbols.aspects[place, i]]
            cell = aspect.cells[symbols.symbols[place, i]]
            sentence, filling = made[origin] if origin < i else (None, Filling(words, generator))
            sentence, wording = self._wording(cell, split, sentence, used, generator)
            made.append((sentence, filling))
            used.add(wording)
            texts.append(filling.text(wording))
        return texts

    def _wording(
        self,
        cell: Cell,
        split: Split,
        sentence: SentencePool | None,
        used: set[str],
        generator: np.random.Generator,
    ) -> tuple[SentencePool, str]:
        """One that the entity does not have yet, as long as there are others: of the sentence, if
        one is given, else of any of the cell."""
        for attempt in range(2 * _TRIES):
            if sentence is not None and attempt < _TRIES:
                drawn = sentence, sentence.draw(generator)
            else:
                drawn = cell.draw(split, self.parameters.unseen, generator)
            if drawn[1] not in used:
                break
        return drawn

    def _truth(self, part: Part, place: int) -> Mapping[str, Any]:
        domain, records = self.domain, part.records
        towards = int(records.towards[place])
        return {
            POSTERIOR: _by_value(domain, part.posterior[place]),
            POSTERIOR_WITH_FACTS: _by_value(domain, part.with_facts[place]),
            "borderline_towards": None if towards == NOT_BORDERLINE else domain.values[towards],
            "related": domain.related.values[records.related[place]],
            "score": float(records.ranks[place]),
        }

    def _entity_id(self, number: int) -> str:
        return f"{self.prefix}{self.domain.letter}{number:04d}"

    def _evidence_id(self, entity_id: str, number: int) -> str:
        return f"{entity_id}_{self.domain.evidence_letter}{number:03d}"


def _by_value(domain: Domain, chances: FloatArray) -> dict[str, float]:
    return dict(zip(domain.values, map(float, chances), strict=True))
