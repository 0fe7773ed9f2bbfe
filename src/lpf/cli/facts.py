"""``lpf facts``: add, correct, withdraw and list known facts, and learn from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    LARGEST_ID,
    MOST_LISTED,
    AsJson,
    WorkspaceFolder,
    command,
    group,
    open_workspace,
    parse_time,
    print_document,
    warn_if_cut,
)
from lpf.cli.options import (
    Columns,
    DateFormat,
    FileEncoding,
    Sheet,
    file_fields_as_given,
    file_options,
)
from lpf.cli.safe_output import one_line

if TYPE_CHECKING:
    from lpf.storage.facts import Fact
    from lpf.workspace.circuit import LearnedCircuit

app = group("facts", "Known facts: add, correct, withdraw, list, learn from.")

FactId = Annotated[
    int, typer.Argument(min=1, max=LARGEST_ID, metavar="ID", help="Fact number, as listed.")
]
Confidence = Annotated[float | None, typer.Option(help="Confidence in [0, 1].")]
At = Annotated[str | None, typer.Option(help="When it was true; UTC unless it has a zone.")]
Source = Annotated[str | None, typer.Option(help="Source of the fact.")]
Limit = Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Most facts to list.")]


@command(app, "lpf facts add facts.csv", "lpf facts add facts.xlsx --date-format DD/MM/YYYY")
def add(
    file: Annotated[Path, typer.Argument(help="File: JSONL, CSV, Excel or Parquet.")],
    predicate: Annotated[str | None, typer.Option(help="Predicate of rows that name none.")] = None,
    columns: Columns = None,
    date_format: DateFormat = None,
    encoding: FileEncoding = None,
    sheet: Sheet = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Add the facts of a file: all of them, or none if one is refused.

    A row needs entity_id, value, timestamp and, unless the schema has only one or --predicate is
    given, predicate. It may have confidence and source.
    """
    from lpf.ingest import FactFile, NewEntities

    options = file_options(columns, encoding, sheet, date_format, predicate)
    with open_workspace(workspace) as space, file_fields_as_given():
        facts = FactFile(file, options, space.schema)
        given, entities = list(facts.facts()), NewEntities(space.database)
        entities.look_at(fact.entity_id for fact in given)
        added = space.facts.add(given)
    counts = {"read": len(given), "added": len(added), "unchanged": len(given) - len(added)}
    if as_json:
        read_as = list(facts.read_as)
        document = {"file": str(file), **counts, "read_as": read_as, "notes": entities.notes()}
        print_document(document)
        return
    typer.echo(f"{len(given):,} read, {len(added):,} added, {counts['unchanged']:,} unchanged.")
    if facts.read_as:
        typer.echo(f"read as: {', '.join(facts.read_as)}")
    _show_notes(entities.notes())


@command(app, "lpf facts set C0001 audit_outcome clean --confidence 0.97", name="set")
def set_fact(
    entity: Annotated[str, typer.Argument(help="Entity ID.")],
    predicate: Annotated[str, typer.Argument(help="Predicate name.")],
    value: Annotated[str, typer.Argument(help="Value.")],
    confidence: Confidence = 1.0,
    at: At = None,
    source: Source = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Add one fact, true as of now unless --at is given."""
    from lpf.ingest import NewEntities
    from lpf.storage.facts import NewFact

    stated = parse_time(at, "--at") or datetime.now(UTC)
    sure = 1.0 if confidence is None else confidence
    fact = NewFact(entity, predicate, value, stated, sure, source, where="the fact")
    with open_workspace(workspace) as space:
        entities = NewEntities(space.database)
        entities.look_at([entity])
        added = space.facts.add([fact])
    notes = entities.notes()
    _show_facts(added, as_json, if_none="The store has this fact already.", notes=notes)


@command(app, "lpf facts list --entity C0001", name="list")
def list_facts(
    entity: Annotated[str | None, typer.Option(help="Only facts about this entity.")] = None,
    predicate: Annotated[str | None, typer.Option(help="Only facts about this predicate.")] = None,
    limit: Limit = 100,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the facts in force."""
    with open_workspace(workspace) as space:
        facts = space.facts.page(entity, predicate, limit)
    warn_if_cut(len(facts), limit)
    _show_facts(facts, as_json, if_none="No facts found.")


@command(app, "lpf facts history C0001 audit_outcome")
def history(
    entity: Annotated[str, typer.Argument(help="Entity ID.")],
    predicate: Annotated[str | None, typer.Argument(help="Predicate name; by default all.")] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show all facts of an entity, including corrected and withdrawn ones."""
    with open_workspace(workspace) as space:
        facts = space.facts.history(entity, predicate)
    _show_facts(facts, as_json, if_none="No facts found.")


@command(app, "lpf facts correct 17 --value qualified")
def correct(
    fact_id: FactId,
    value: Annotated[str | None, typer.Option(help="Correct value.")] = None,
    confidence: Confidence = None,
    at: At = None,
    source: Source = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Replace a wrong fact by a correct one; the history shows both."""
    changes: dict[str, Any] = {"value": value, "confidence": confidence, "source": source}
    with open_workspace(workspace) as space:
        written = space.facts.correct(fact_id, timestamp=parse_time(at, "--at"), **changes)
    _show_facts([written], as_json)


@command(app, "lpf facts withdraw 17")
def withdraw(fact_id: FactId, workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """Withdraw a fact without a replacement."""
    with open_workspace(workspace) as space:
        withdrawn = space.facts.withdraw(fact_id)
    if withdrawn is not None:
        _show_facts([withdrawn], as_json)
        return
    note = (
        f"fact {fact_id} was damaged, so it cannot be shown; it is withdrawn now. Add it again "
        "with 'lpf facts set' if you know what it said."
    )
    if as_json:
        print_document({"facts": [], "notes": [note]})
    else:
        typer.echo(f"note: {note}", err=True)


@command(app, "lpf facts learn")
def learn(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """Learn from known facts and labelled evidence how predicates are related.

    Later answers use it. An entity's newest fact counts; without one, the value that most of its
    labelled items support. If it fails, the relations learned before stay in use.
    """
    with open_workspace(workspace) as space:
        learned = space.learn_circuit()
    if as_json:
        information = [
            {
                "between": list(one.between),
                "nats": one.nats,
                "entities": one.entities,
                "cells": one.cells,
                "has_few": one.has_few,
            }
            for one in learned.relations
        ]
        print_document(
            {
                "entities": learned.entities,
                "information": information,
                "notes": list(learned.notes),
                "warnings": list(learned.warnings),
            }
        )
        return
    _show_learned(learned)


def _show_learned(learned: LearnedCircuit) -> None:
    from lpf.cli.terminal import console, count

    typer.echo(f"Learned from {count(learned.entities, 'entity', 'entities')}.")
    for one in learned.relations:
        first, second = map(one_line, one.between)
        both = count(one.entities, "entity", "entities")
        typer.echo(
            f"  {first} and {second} share {one.nats / log(2):.3f} bits of information ({both} "
            "with both)"
        )
    for note in learned.notes:
        typer.echo(f"note: {one_line(note)}", err=True)
    for warning in learned.warnings:
        typer.echo(f"warning: {one_line(warning)}", err=True)
    if learned.found_nothing:
        console().print(
            "No relation was found: too few entities have values of two related predicates, or "
            "the schema relates none. What is known of one predicate does not change another yet."
        )


def _show_facts(
    facts: Sequence[Fact], as_json: bool, if_none: str = "", notes: Sequence[str] | None = None
) -> None:
    if as_json:
        more = {} if notes is None else {"notes": list(notes)}
        print_document({"facts": [_document(fact) for fact in facts], **more})
        return
    if facts:
        _show_table(facts)
    else:
        typer.echo(if_none)
    _show_notes(notes or ())


def _show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        typer.echo(f"note: {one_line(note)}", err=True)


def _document(fact: Fact) -> dict[str, Any]:
    from lpf.storage.values import iso, to_micros

    plain = {name: getattr(fact, name) for name in fact.__slots__}
    return {
        name: iso(to_micros(value)) if isinstance(value, datetime) else value
        for name, value in plain.items()
    }


def _show_table(facts: Sequence[Fact]) -> None:
    from lpf.cli.terminal import console, table

    names = ("id", "entity", "predicate", "value", "confidence", "dated", "source", "state")
    rows, right = map(_row, facts), ("id", "confidence")
    console().print(
        table(names, rows, right=right, flexible="source", optional=("source", "dated"))
    )


def _row(fact: Fact) -> list[str]:
    from lpf.cli.terminal import number, when

    return [
        str(fact.fact_id),
        fact.entity_id,
        fact.predicate,
        fact.value,
        number(fact.confidence),
        when(fact.timestamp).removesuffix(" 00:00"),
        fact.source or "",
        _state(fact),
    ]


def _state(fact: Fact) -> str:
    if fact.superseded_at is None:
        return ""
    return "withdrawn" if fact.superseded_by is None else f"see {fact.superseded_by}"
