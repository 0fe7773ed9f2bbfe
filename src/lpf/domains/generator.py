"""Generates data sets of a domain, with the exact answers of the perfect reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from lpf.datasets.dataset import Dataset, DatasetEntity, DatasetItem, Split
from lpf.datasets.splits import assign_splits
from lpf.domains.declaration import Domain
from lpf.domains.evidence_model import EvidenceModel
from lpf.domains.parameters import GeneratorParameters
from lpf.domains.perfect_reader import POSTERIOR, POSTERIOR_WITH_FACTS, posteriors, with_fact
from lpf.domains.records import NOT_BORDERLINE, Records, draw_records, stream, uniforms
from lpf.domains.symbols import Symbols, draw_symbols, draws_needed
from lpf.domains.wordings import Filling, SentencePool, WordingCell
from lpf.errors import ConfigError
from lpf.schema import Schema
from lpf.storage.atomic_files import write_atomically
from lpf.types import FloatArray

REFERENCE = datetime(2025, 1, 1, tzinfo=UTC)  # for domains without years
# How often another wording is drawn if the entity already has it.
_TRIES = 20


@dataclass(frozen=True)
class DrawnEntities:
    """Entities before splits and texts. ``first`` is the number of the first entity."""

    path: tuple[str, ...]
    first: int
    records: Records
    symbols: Symbols
    posterior: FloatArray
    with_facts: FloatArray


def reference_date(domain: Domain, fields: Mapping[str, Any]) -> datetime:
    """Return the reference date of an entity: the end of the year after its own, so that evidence
    of the last two years is about its year or later."""
    if domain.dated_by is None:
        return REFERENCE
    return datetime(int(fields[domain.dated_by]) + 2, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Assembly:
    """Builds entities with ids and texts from what was drawn."""

    domain: Domain
    parameters: GeneratorParameters
    seed: int
    prefix: str

    @property
    def schema(self) -> Schema:
        return self.domain.schema(self.parameters.shares)

    def bare(self, part: DrawnEntities) -> Iterator[DatasetEntity]:
        """Yield the entities without texts, which depend on the split."""
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
        self, part: DrawnEntities, splits: Sequence[Split | None], first_item: int
    ) -> list[DatasetEntity]:
        entities = []
        number = first_item
        for place, (entity, split) in enumerate(zip(self.bare(part), splits, strict=True)):
            assert split is not None  # every entity was assigned one
            items = self._items(part, place, entity, split, number)
            entities.append(replace(entity, split=split, evidence=items))
            number += len(items)
        return entities

    def _items(
        self, part: DrawnEntities, place: int, entity: DatasetEntity, split: Split, number: int
    ) -> tuple[DatasetItem, ...]:
        symbols = part.symbols
        count = int(symbols.counts[place])
        ids = [self._evidence_id(entity.entity_id, number + i) for i in range(count)]
        origins = symbols.origins[place, :count].tolist()
        texts = self._texts(part, place, entity, split)
        reference = reference_date(self.domain, entity.fields)
        items = []
        for i, (origin, text) in enumerate(zip(origins, texts, strict=True)):
            aspect = self.domain.aspects[symbols.aspects[place, i]]
            shown = self.domain.symbols[symbols.symbols[place, i]]
            copy_of = ids[origin] if origin != i else None
            items.append(
                DatasetItem(
                    evidence_id=ids[i],
                    text=text,
                    source=aspect.sources[symbols.sources[place, i]],
                    credibility=float(symbols.credibility[place, i]),
                    timestamp=reference - timedelta(days=int(symbols.age_days[place, i])),
                    # A report is named by its first item; None if it has only one.
                    report_id=ids[origin] if origins.count(origin) > 1 else None,
                    truth={"aspect": aspect.name, "symbol": list(shown), "copy_of": copy_of},
                )
            )
        return tuple(items)

    def _texts(
        self, part: DrawnEntities, place: int, entity: DatasetEntity, split: Split
    ) -> list[str]:
        """Return one text per item. A copy is another wording of its original's sentence."""
        symbols = part.symbols
        generator = stream(self.seed, *part.path, "texts", place)
        text_fields = [field.name for field in self.domain.fields if field.is_text]
        words = {name: str(entity.fields[name]) for name in text_fields}
        used: set[str] = set()
        drawn: list[tuple[SentencePool, Filling]] = []
        texts = []
        for i, origin in enumerate(symbols.origins[place, : symbols.counts[place]].tolist()):
            aspect = self.domain.aspects[symbols.aspects[place, i]]
            cell = aspect.cells[symbols.symbols[place, i]]
            sentence, filling = drawn[origin] if origin < i else (None, Filling(words, generator))
            sentence, wording = self._wording(cell, split, sentence, used, generator)
            drawn.append((sentence, filling))
            used.add(wording)
            texts.append(filling.text(wording))
        return texts

    def _wording(
        self,
        cell: WordingCell,
        split: Split,
        sentence: SentencePool | None,
        used: set[str],
        generator: np.random.Generator,
    ) -> tuple[SentencePool, str]:
        """Draw a wording that the entity does not have yet, if possible: of ``sentence`` if given,
        else of any sentence of the cell."""
        for attempt in range(2 * _TRIES):
            if sentence is not None and attempt < _TRIES:
                drawn = sentence, sentence.draw(generator)
            else:
                drawn = cell.draw(split, self.parameters.unseen, generator)
            if drawn[1] not in used:
                break
        return drawn

    def _truth(self, part: DrawnEntities, place: int) -> Mapping[str, Any]:
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


def _by_value(domain: Domain, probabilities: FloatArray) -> dict[str, float]:
    return dict(zip(domain.values, map(float, probabilities), strict=True))


def generate(
    domain: Domain,
    parameters: GeneratorParameters,
    *,
    seed: int,
    extra_test: int = 0,
    prefix: str | None = None,
) -> Dataset:
    """Generate ``parameters.entities`` entities and ``extra_test`` additional test entities.

    The former are split 70/15/15 by group and stratified by value. ``prefix`` is prepended to every
    id. The same arguments give the same data set on every machine.
    """
    _check_number("seed", seed, 0)
    _check_number("extra_test", extra_test, 0)
    part = _draw_entities(domain, parameters, parameters.entities, seed, "main", 1)
    assembly = Assembly(domain, parameters, seed, prefix or "")
    bare = Dataset(domain.name, assembly.schema, tuple(assembly.bare(part)))
    splits = [entity.split for entity in assign_splits(bare, domain.predicate, seed=seed)]
    entities = assembly.entities(part, splits, first_item=1)
    if extra_test:
        more = _draw_entities(domain, parameters, extra_test, seed, "extra", len(entities) + 1)
        items = sum(len(entity.evidence) for entity in entities)
        entities += assembly.entities(more, ["test"] * extra_test, first_item=items + 1)
    return replace(bare, entities=tuple(entities))


def generate_test(
    domain: Domain,
    parameters: GeneratorParameters,
    *,
    seed: int,
    entities: int,
    prefix: str | None = None,
) -> Dataset:
    """Generate test entities only, different from those of ``generate`` with the same seed."""
    _check_number("seed", seed, 0)
    _check_number("entities", entities, 1)
    part = _draw_entities(domain, parameters, entities, seed, "test", 1)
    assembly = Assembly(domain, parameters, seed, prefix or "")
    test_entities = assembly.entities(part, ["test"] * entities, first_item=1)
    return Dataset(domain.name, assembly.schema, tuple(test_entities))


def evidence_model(domain: Domain, parameters: GeneratorParameters) -> EvidenceModel:
    """Return the evidence model of a domain; ConfigError if the parameters do not fit it."""
    shares = parameters.shares or domain.shares
    if len(shares) != len(domain.values):
        raise ConfigError(
            f"must be {len(domain.values)} numbers, one for each of {list(domain.values)}, "
            f"got {list(shares)}. Nothing was generated.",
            field="generator.shares",
        )
    return EvidenceModel(parameters, shares)


def _check_number(name: str, number: int, least: int) -> None:
    if number < least:
        raise ConfigError(
            f"must be at least {least}, got {number}. Nothing was generated.", field=name
        )


def _draw_entities(
    domain: Domain, parameters: GeneratorParameters, count: int, seed: int, name: str, first: int
) -> DrawnEntities:
    model = evidence_model(domain, parameters)
    path = (domain.name, name)
    records = draw_records(domain, model, count, seed=seed, path=path)
    sources = [len(aspect.sources) for aspect in domain.aspects]
    width = draws_needed(parameters, len(sources))
    uniform = uniforms(seed, (*path, "evidence"), range(count), width)
    symbols = draw_symbols(model, records.values, records.towards, sources, uniform)
    posterior = posteriors(
        model, symbols.symbols, symbols.credibility, symbols.age_days, symbols.original
    )
    known = with_fact(posterior, domain.table, records.related, records.known)
    return DrawnEntities(path, first, records, symbols, posterior, known)


SOURCE = "generator"


def known_facts(domain: Domain, dataset: Dataset) -> Iterator[dict[str, str]]:
    """Yield one row per known fact, dated with the reference date of its entity."""
    for entity in dataset:
        moment = reference_date(domain, entity.fields).isoformat()
        for predicate, value in entity.facts.items():
            yield {
                "entity_id": entity.entity_id,
                "predicate": predicate,
                "value": value,
                "timestamp": moment,
                "source": SOURCE,
            }


def write_facts(path: str | Path, domain: Domain, dataset: Dataset) -> int:
    """Write the known facts as JSONL for ``lpf facts add``; returns their number."""
    lines = [json.dumps(row) + "\n" for row in known_facts(domain, dataset)]
    write_atomically(Path(path), "".join(lines).encode())
    return len(lines)
