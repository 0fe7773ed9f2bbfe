"""Outcomes: what turned out to be true of entities, from known facts or from a file.

An outcome becomes known at a moment: when its fact was recorded, or on the date that the file
gives. A fact that corrects another is known since the first of them was recorded, with the
corrected value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lpf.ingest import FactFile, FileOptions
from lpf.schema import Schema
from lpf.storage.facts import Fact, FactStore, NewFact
from lpf.storage.values import from_micros, now_micros, to_micros

FACTS_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Outcome:
    """``entity_id`` turned out to have ``value``. ``known_at`` is in microseconds since 1970. An
    answer that used one of ``facts`` (their IDs) did not predict it."""

    entity_id: str
    predicate: str
    value: str
    known_at: int
    facts: frozenset[int] = frozenset()


Outcomes = dict[tuple[str, str], Outcome]


def outcomes_from_facts(
    facts: FactStore, predicates: Iterable[str], min_confidence: float
) -> Outcomes:
    """The newest fact of each entity and predicate, unless it was withdrawn or has a confidence
    below ``min_confidence``; by (entity_id, predicate)."""
    found: Outcomes = {}
    for predicate in predicates:
        history: dict[str, list[Fact]] = {}
        for fact in _all_facts(facts, predicate):
            history.setdefault(fact.entity_id, []).append(fact)
        for entity_id, own in history.items():
            current = [one for one in own if one.superseded_at is None]
            if not current:
                continue
            newest = max(current, key=lambda one: (one.timestamp, one.fact_id))
            if newest.confidence >= min_confidence:
                found[entity_id, predicate] = _outcome(newest, own)
    return found


def outcomes_from_file(
    path: str | Path,
    schema: Schema,
    min_confidence: float,
    options: FileOptions | None = None,
    now: int | None = None,
) -> tuple[Outcomes, tuple[str, ...]]:
    """The outcomes of a JSONL, CSV, Excel or Parquet file with the columns of a facts file, and
    what was assumed about the file. The column ``timestamp`` (or ``date``) is optional: an outcome
    without one is known since ``now``. Of several rows about one entity and predicate the newest
    counts, of equally new ones the last, unless its confidence is below ``min_confidence``.
    InputFileError names invalid rows."""
    moment = now_micros() if now is None else now
    file = FactFile(path, options, schema, from_micros(moment), undone="Nothing was computed")
    newest: dict[tuple[str, str], NewFact] = {}
    for row in file.facts():
        key = (row.entity_id, row.predicate)
        if key not in newest or newest[key].timestamp <= row.timestamp:
            newest[key] = row
    found = {
        key: Outcome(*key, row.value, to_micros(row.timestamp))
        for key, row in newest.items()
        if row.confidence >= min_confidence
    }
    unsure = len(newest) - len(found)
    left_out = f"without {unsure:,} less sure than {min_confidence:g}"
    return found, (*file.read_as, left_out) if unsure else file.read_as


def _all_facts(facts: FactStore, predicate: str) -> Iterator[Fact]:
    after = 0
    while page := facts.page(
        predicate=predicate, limit=FACTS_AT_ONCE, after_fact=after, superseded=True
    ):
        yield from page
        after = page[-1].fact_id


def _outcome(newest: Fact, history: list[Fact]) -> Outcome:
    """With all facts that it corrects, directly or not."""
    corrected = {one.superseded_by: one for one in history if one.superseded_by is not None}
    chain = [newest]
    while (earlier := corrected.get(chain[-1].fact_id)) is not None:
        chain.append(earlier)
    known_at = min(to_micros(one.recorded_at) for one in chain)
    names = frozenset(one.fact_id for one in chain)
    return Outcome(newest.entity_id, newest.predicate, newest.value, known_at, names)
