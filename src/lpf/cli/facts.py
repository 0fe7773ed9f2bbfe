"""``lpf facts``: what is known for certain, or nearly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    command,
    group,
    moment,
    opened,
    print_document,
    tell_of_limit,
)

if TYPE_CHECKING:
    from lpf.storage.facts import Fact

app = group("facts", "Known facts: add, correct, withdraw, look at, learn from.")

FactId = Annotated[int, typer.Argument(metavar="ID", help="The fact's number, as listed.")]
Confidence = Annotated[float | None, typer.Option(help="How sure, in [0, 1].")]
At = Annotated[str | None, typer.Option(help="When it held; UTC without a zone.")]
Source = Annotated[str | None, typer.Option(help="Who says so.")]
Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]


@command(app, "lpf facts add facts.csv")
def add(
    file: Annotated[Path, typer.Argument(help="JSONL, CSV or Parquet.")],
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Add the facts of a file: all of them, or none if one is refused.

    A row needs entity_id, predicate, value and timestamp, and may have confidence and source.
    """
    from lpf.ingest import read_facts

    with opened(workspace) as space:
        given = list(read_facts(file))
        added = space.facts.add(given)
    counts = {"read": len(given), "added": len(added), "unchanged": len(given) - len(added)}
    if as_json:
        print_document({"file": str(file), **counts})
    else:
        typer.echo(f"{len(given):,} read, {len(added):,} added, {counts['unchanged']:,} known.")


@command(app, "lpf facts set C0001 audit_outcome clean --confidence 0.97", name="set")
def set_fact(
    entity: Annotated[str, typer.Argument(help="Of whom.")],
    predicate: Annotated[str, typer.Argument(help="What.")],
    value: Annotated[str, typer.Argument(help="Its value.")],
    confidence: Confidence = 1.0,
    at: At = None,
    source: Source = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Add one fact; it holds from now unless --at says when."""
    from lpf.storage.facts import NewFact

    stated = moment(at, "--at") or datetime.now(UTC)
    sure = 1.0 if confidence is None else confidence
    fact = NewFact(entity, predicate, value, stated, sure, source, where="the fact")
    with opened(workspace) as space:
        added = space.facts.add([fact])
    _tell(added, as_json, nothing="The store has this fact already.")


@command(app, "lpf facts list --entity C0001", name="list")
def list_facts(
    entity: Annotated[str | None, typer.Option(help="Only of this one.")] = None,
    predicate: Annotated[str | None, typer.Option(help="Only of this kind.")] = None,
    limit: Limit = 100,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the facts that count."""
    with opened(workspace) as space:
        found = space.facts.page(entity, predicate, limit)
    tell_of_limit(len(found), limit)
    _tell(found, as_json, nothing="There are no such facts.")


@command(app, "lpf facts history C0001 audit_outcome")
def history(
    entity: Annotated[str, typer.Argument(help="Of whom.")],
    predicate: Annotated[str | None, typer.Argument(help="What; all without.")] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show all facts of an entity, those that count no more as well."""
    with opened(workspace) as space:
        found = space.facts.history(entity, predicate)
    _tell(found, as_json, nothing="There are no facts about it.")


@command(app, "lpf facts correct 17 --value qualified")
def correct(
    fact_id: FactId,
    value: Annotated[str | None, typer.Option(help="The right value.")] = None,
    confidence: Confidence = None,
    at: At = None,
    source: Source = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Put another fact in the place of one that was wrong; both stay to be seen."""
    changes: dict[str, Any] = {"value": value, "confidence": confidence, "source": source}
    with opened(workspace) as space:
        written = space.facts.correct(fact_id, timestamp=moment(at, "--at"), **changes)
    _tell([written], as_json)


@command(app, "lpf facts withdraw 17")
def withdraw(fact_id: FactId, workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """Make a fact count no more, with nothing in its place."""
    with opened(workspace) as space:
        withdrawn = space.facts.withdraw(fact_id)
    _tell([withdrawn], as_json)


@command(app, "lpf facts learn")
def learn(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """Learn from the known facts how predicates hang together; answers use it from then on."""
    with opened(workspace) as space:
        learned = space.learn_circuit()
    if as_json:
        pairs = [{"between": pair, "nats": nats} for pair, nats in learned.information.items()]
        print_document({"entities": learned.entities, "information": pairs})
        return
    from lpf.cli.terminal import count

    typer.echo(f"Learned from the facts of {count(learned.entities, 'entity', 'entities')}.")
    for (first, second), nats in learned.information.items():
        typer.echo(f"  {first} and {second} share {nats:.3f} nats of information")
    if learned.found_nothing:
        typer.echo(
            "No dependence was found: too few entities have facts about two related predicates, "
            "or the schema relates none. Known facts of one say nothing about another yet."
        )


def _tell(facts: Sequence[Fact], as_json: bool, nothing: str = "") -> None:
    if as_json:
        print_document({"facts": [_document(fact) for fact in facts]})
    elif facts:
        _show(facts)
    else:
        typer.echo(nothing)


def _document(fact: Fact) -> dict[str, Any]:
    from lpf.storage.values import iso, to_micros

    plain = {name: getattr(fact, name) for name in fact.__slots__}
    return {
        name: iso(to_micros(value)) if isinstance(value, datetime) else value
        for name, value in plain.items()
    }


def _show(facts: Sequence[Fact]) -> None:
    from lpf.cli.terminal import console, table

    names = ("id", "entity", "predicate", "value", "sure", "held at", "source", "state")
    rows = map(_row, facts)
    made = table(names, rows, right=("id", "sure"), flexible="source", optional=("held at",))
    console().print(made)


def _row(fact: Fact) -> list[str]:
    from lpf.cli.terminal import number, when

    return [
        str(fact.fact_id),
        fact.entity_id,
        fact.predicate,
        fact.value,
        number(fact.confidence),
        when(fact.timestamp),
        fact.source or "",
        _state(fact),
    ]


def _state(fact: Fact) -> str:
    if fact.superseded_at is None:
        return ""
    return "withdrawn" if fact.superseded_by is None else f"see {fact.superseded_by}"
