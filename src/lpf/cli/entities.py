"""``lpf entities`` and ``lpf rank``: all entities, with what is stored about them, or ranked by an
answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.batch import answers_file
from lpf.cli.common import (
    MOST_LISTED,
    AsJson,
    WorkspaceFolder,
    command,
    exit_check_failed,
    open_workspace,
    print_document,
    progress,
)
from lpf.cli.exits import FileName
from lpf.cli.options import AskedBy, AsyncAudit, fields_as_given, with_options
from lpf.cli.safe_output import one_line, quoted
from lpf.errors import ConfigError, LPFError
from lpf.options import QueryOptions

if TYPE_CHECKING:
    from lpf.workspace.entities import EntitySummary, LastAnswer, Ranking

STANDARD = "-"
FAILED_SHOWN = 20


def register(app: typer.Typer) -> None:
    command(app, "lpf entities --limit 50", "lpf entities --like acme --json")(entities)
    command(
        app,
        "lpf rank compliance_level --value high --limit 20",
        "lpf rank compliance_level ranked.xlsx --value low",
    )(with_options(QueryOptions, without=("query_text",))(rank))


def entities(
    like: Annotated[
        str | None, typer.Option(help="Only entities whose ID contains this, or is like it.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=MOST_LISTED, help="Most entities to list.")
    ] = 100,
    after: Annotated[
        str, typer.Option(metavar="ID", help="Start after this entity: the next page.")
    ] = "",
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """List entities with their number of items and facts, and the last recorded answers."""
    with open_workspace(workspace) as space:
        found = space.entities(limit + 1, after, like)
    listed = found[:limit]
    following = listed[-1].entity_id if len(found) > limit else None
    if as_json:
        print_document({"entities": [_document(one) for one in listed], "next_after": following})
        return
    _show_entities(listed)
    if following is not None:
        typer.echo(f"There are more: add --after {quoted(following)} for the next page.", err=True)


def rank(
    predicate: Annotated[
        str | None, typer.Argument(help="Predicate; optional if the schema has only one.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[OUT]",
            parser=FileName,
            help="Also write all ranked answers: .csv, .xlsx, .parquet or .jsonl.",
        ),
    ] = None,
    *,
    value: Annotated[
        str | None,
        typer.Option(help="Rank by the probability of this value; by default the last one."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=1, max=MOST_LISTED, help="Most entities to list; OUT always has all."),
    ] = 20,
    given: Mapping[str, Any],
    async_audit: AsyncAudit = False,
    asked_by: AskedBy = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Ask the same question about every entity and rank them by the probability of a value.

    Every answer is recorded in the ledger, as lpf batch does.
    """
    from lpf.workspace.answer_files import AnswerWriter, answer_format

    if target == STANDARD:
        raise ConfigError(
            "the table itself goes to standard output.", field="OUT", hint="Use --json."
        )
    form = None if target is None else answer_format(target)
    # The workspace is closed, and so everything is recorded, before the answers appear.
    with ExitStack() as stack:
        file = None
        if target is not None:
            file = stack.enter_context(answers_file(target, held_back=True))
        space = stack.enter_context(open_workspace(workspace, asked_by))
        with fields_as_given(QueryOptions, given), progress("answering") as report:
            try:
                ranking = space.rank(
                    predicate,
                    value,
                    limit if target is None else None,
                    replace(space.settings.query, **given),
                    "async" if async_audit else "sync",
                    report,
                )
            except LPFError as error:
                error.field = "--value" if error.field == "value" else error.field
                raise
        if file is not None and form is not None:
            name = space.predicate(predicate)
            with closing(AnswerWriter(form, file, space.schema, [name], ranked=True)) as writer:
                for result in ranking.results:
                    writer.write(result)
    listed = replace(ranking, results=ranking.results[:limit])
    _show_ranking(listed, target, as_json)
    for name, reason in list(ranking.failed.items())[:FAILED_SHOWN]:
        typer.echo(f"warning: {one_line(name)} is left out: {one_line(reason)}", err=True)
    if len(ranking.failed) > FAILED_SHOWN:
        typer.echo(f"warning: and {len(ranking.failed) - FAILED_SHOWN:,} more", err=True)
    if ranking.failed:
        exit_check_failed()


def _document(one: EntitySummary) -> dict[str, Any]:
    return {
        "entity_id": one.entity_id,
        "items": one.items,
        "facts": one.facts,
        "answers": {name: _answer(answer) for name, answer in one.answers.items()},
    }


def _answer(answer: LastAnswer) -> dict[str, Any]:
    return {
        "record_id": answer.record_id,
        "value": answer.value,
        "confidence": answer.confidence,
        "asked_at": answer.asked_at.isoformat().replace("+00:00", "Z"),
    }


def _show_entities(listed: Sequence[EntitySummary]) -> None:
    from lpf.cli.terminal import console, table

    if not listed:
        typer.echo("No entities found.")
        return
    names = ("entity", "predicate", "items", "facts", "answer", "confidence", "asked", "record")
    rows = [row for one in listed for row in _rows(one)]
    right, optional = ("items", "facts", "confidence"), ("asked", "facts")
    console().print(table(names, rows, right=right, optional=optional))


def _rows(one: EntitySummary) -> list[list[str]]:
    """One row per predicate; the entity is named in the first."""
    from lpf.cli.terminal import percent, when

    rows: list[list[str]] = []
    for predicate in one.predicates:
        answer = one.answers.get(predicate)
        confidence = None if answer is None else answer.confidence
        rows.append(
            [
                "" if rows else one.entity_id,
                predicate,
                f"{one.items.get(predicate, 0):,}",
                f"{one.facts.get(predicate, 0):,}",
                "" if answer is None else answer.value or "no answer",
                "" if confidence is None else percent(confidence),
                "" if answer is None else when(answer.asked_at),
                "" if answer is None else answer.record_id,
            ]
        )
    return rows


def _show_ranking(ranking: Ranking, target: str | None, as_json: bool) -> None:
    from lpf.cli.terminal import console, count, percent, table

    if as_json:
        ranked = [
            {"rank": place, "probability": ranking.share(result), **result.to_dict()}
            for place, result in enumerate(ranking.results, 1)
        ]
        counts = {"asked": ranking.asked, "without_answer": ranking.without_answer}
        failed = [{"entity_id": name, "error": error} for name, error in ranking.failed.items()]
        document = {"value": ranking.value, **counts, "failed": failed, "file": target}
        print_document({**document, "ranked": ranked})
        return
    names = ("rank", "entity", ranking.value, "answer", "confidence", "items", "record")
    rows = [
        [
            str(place),
            result.entity_id,
            percent(ranking.share(result)),
            result.top_value or "",
            percent(result.confidence or 0.0),
            f"{len(result.evidence_chain):,}",
            result.record_id or "",
        ]
        for place, result in enumerate(ranking.results, 1)
    ]
    right = ("rank", ranking.value, "confidence", "items")
    console().print(table(names, rows, right=right, optional=("items",)))
    words = f"{count(ranking.asked, 'entity', 'entities')} asked and recorded"
    if ranking.without_answer:
        words += f", {ranking.without_answer:,} without an answer"
    answered = ranking.asked - ranking.without_answer
    rest = "" if len(rows) == answered else f"; the first {len(rows):,} are listed"
    typer.echo(f"{words}{rest}.")
