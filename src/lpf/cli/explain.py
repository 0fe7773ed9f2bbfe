"""``lpf explain``: why an answer is what it is, and what if something were different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    check_page,
    command,
    open_workspace,
    print_document,
    warn_of_damage,
)
from lpf.cli.exits import EXIT_NO_ANSWER
from lpf.cli.options import AskedBy, fields_as_flags, fields_as_given, with_options
from lpf.errors import ConfigError
from lpf.options import QueryOptions

if TYPE_CHECKING:
    from lpf.explain import AnswerExplanation, Changes
    from lpf.results import QueryResult
    from lpf.review import AnswerFeedback
    from lpf.storage.seals import DamagedItem
    from lpf.workspace import Workspace


FLAGS = {
    "drop": "--drop",
    "weights": "--weight",
    "credibility": "--credibility",
    "facts": "--fact",
    "add": "--add",
}


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf explain S10",
        "lpf explain INF00000001 --json",
        "lpf explain S10 --drop S10_E001 --credibility S10_E002=0.9",
        'lpf explain S10 --add "The last delivery was complete."',
    )(with_options(QueryOptions)(explain))


def explain(
    asked: Annotated[str, typer.Argument(metavar="ENTITY|RECORD", help="Entity or record ID.")],
    predicate: Annotated[
        str | None, typer.Argument(help="Predicate name; not needed if the schema has only one.")
    ] = None,
    *,
    given: Mapping[str, Any],
    between: Annotated[
        str | None,
        typer.Option(metavar="VALUE,VALUE", help="Explain one value against another one."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="ID,...", help="What if these items were left out?")
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID=NUMBER", help="What if this item's weight were multiplied by this number?"
        ),
    ] = None,
    credibility: Annotated[
        list[str] | None,
        typer.Option(metavar="ID=NUMBER", help="What if this item had another credibility?"),
    ] = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(metavar="PREDICATE=VALUE", help="What if this were known for certain?"),
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="What if there were this text, too?")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the case file: one page to keep or print."),
    ] = None,
    asked_by: AskedBy = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show why an answer is what it is: what prior, facts and each item add to it in bits, the
    answer without each item, and what it would take to change it.

    With an entity, the question is asked and recorded. With a record, the recorded answer is
    explained from the record alone, and reviews of it are shown. With --drop, --weight,
    --credibility, --fact or --add, which may be repeated, the answer under these changes is
    compared with the real one; it is not recorded.
    """
    from lpf.explain import Changes, sentences
    from lpf.ledger.records import is_record_id

    with fields_as_flags(FLAGS):
        changes = Changes(
            _ids(drop or ()),
            {name: _number("--weight", name, text) for name, text in _pairs("--weight", weight)},
            {
                name: _number("--credibility", name, text)
                for name, text in _pairs("--credibility", credibility)
            },
            dict(_pairs("--fact", fact)),
            tuple(add or ()),
        )
    is_record = is_record_id(asked)
    if is_record and changes:
        raise ConfigError(
            "is about a record, which stays as it is. Nothing was computed.",
            field="what if",
            hint="Name the entity instead, to see what the answer would be now.",
        )
    if is_record and (predicate is not None or given):
        raise ConfigError(
            "a record has its predicate and its options already. Nothing was computed.",
            field="predicate" if predicate is not None else "options",
            hint="Give the record ID alone, or name the entity to ask again.",
        )
    if changes and given.keys() & {"coverage", "coverage_by_value", "max_risk"}:
        raise ConfigError(
            "sets and deferral are about real answers. Nothing was computed.", field="what if"
        )
    if html is not None and changes:
        raise ConfigError(
            "shows an answer that is on record, and what if is not. Nothing was computed.",
            field="--html",
        )
    if html is not None:
        check_page(html)
    with (
        open_workspace(workspace, asked_by) as space,
        fields_as_given(QueryOptions, given),
        fields_as_flags(FLAGS),
    ):
        options = replace(space.settings.query, **given)
        actual, result, feedback = None, None, None
        if is_record:
            found, feedback = space.explain_record(asked), space.reviews.of(asked)
            values = _values(between, found.values)
        else:
            # Before the question is asked, and recorded.
            values = _values(between, space.schema[space.predicate(predicate)].values)
            if changes:
                found = space.what_if(asked, predicate, changes, options)
                actual = space.what_if(asked, predicate, None, options)
            else:
                result = space.query(asked, predicate, options)
                found = space.explain_result(result)
        sure = _how_sure(space, asked, result, is_record=is_record)
        lines = [*(f"{line}." for line in sure), *sentences(found, values)]
        texts = {} if as_json else _texts(space, found, changes, is_record=is_record)
        if html is not None:
            _write_case_file(space, html, asked, result, found, values)
    if as_json:
        document = found.to_dict() | {"sentences": lines}
        document |= {} if feedback is None else {"feedback": feedback.to_dict()}
        document |= {} if html is None else {"html": str(html)}
        print_document(document if actual is None else {"now": actual.to_dict(), "then": document})
    else:
        _show(found, actual, values, lines, texts)
        _show_reviews(feedback)
        if html is not None:
            _say_written(html)
    if result is not None and (result.is_deferred or not result.has_answer):
        raise typer.Exit(EXIT_NO_ANSWER)


def _write_case_file(
    workspace: Workspace,
    path: Path,
    asked: str,
    result: QueryResult | None,
    found: AnswerExplanation,
    values: tuple[str, str] | None,
) -> None:
    """Of a live answer or, without a result, of the record ``asked``."""
    from lpf.report.case_content import case_of_record, case_of_result
    from lpf.report.case_file import case_file
    from lpf.storage.atomic_files import write_atomically

    if result is None:
        case = case_of_record(workspace, asked, between=values, explanation=found)
    else:
        case = case_of_result(workspace, result, between=values, explanation=found)
    write_atomically(path, case_file(case).encode())


def _show_reviews(feedback: AnswerFeedback | None) -> None:
    from lpf.cli.review_view import show_reviews
    from lpf.cli.terminal import console

    show_reviews(console(), feedback)


def _say_written(path: Path) -> None:
    from lpf.cli.safe_output import one_line
    from lpf.cli.terminal import console

    console().print(one_line(f"  case file  {path}"), markup=False)


def _how_sure(
    workspace: Workspace, asked: str, result: QueryResult | None, *, is_record: bool
) -> list[str]:
    """Nothing for what is only supposed."""
    from lpf.explain.how_sure import how_sure, how_sure_then

    if is_record:
        return how_sure_then(workspace.records.get(asked).fields)
    return [] if result is None else how_sure(result)


def _ids(lists: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for text in lists for name in text.split(",")]
    if "" in names:
        raise ConfigError(
            f"must be item IDs with commas between them, got {','.join(lists)!r}. Nothing was "
            "computed.",
            field="drop",
        )
    return tuple(names)


def _values(between: str | None, known: tuple[str, ...]) -> tuple[str, str] | None:
    if between is None:
        return None
    names = between.split(",")
    if len(names) != 2 or names[0] == names[1] or any(n not in known for n in names):
        raise ConfigError(
            f"must be two different values of {list(known)}, got {between!r}. Nothing was shown.",
            field="--between",
        )
    return names[0], names[1]


def _pairs(option: str, given: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in given or ():
        name, equals, value = text.rpartition("=") if option != "--fact" else text.partition("=")
        if not equals or not name or not value:
            raise ConfigError(
                f"must be NAME=VALUE, got {text!r}. Nothing was computed.", field=option
            )
        pairs.append((name, value))
    return pairs


def _number(option: str, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(
            f"{name!r} needs a number, got {text!r}. Nothing was computed.", field=option
        ) from error


def _texts(
    workspace: Workspace, found: AnswerExplanation, changes: Changes, *, is_record: bool
) -> dict[str, str]:
    """Texts by evidence ID; an erased one is missing. Those of a record are the versions that were
    read."""
    if is_record:
        from lpf.report.case_content import texts_of_record

        assert found.record_id is not None  # it was asked for by its ID
        return texts_of_record(workspace, found.record_id)
    damaged: list[DamagedItem] = []
    stored = workspace.evidence.get_many([item.name for item in found.items], damaged)
    warn_of_damage(damaged)
    texts = {name: one.evidence.text_content for name, one in stored.items()}
    texts |= {one.evidence_id: f"(not shown: {one.reason})" for one in damaged}
    return texts | {f"new-{place + 1}": text for place, text in enumerate(changes.add)}


def _show(
    found: AnswerExplanation,
    actual: AnswerExplanation | None,
    values: tuple[str, str] | None,
    lines: Sequence[str],
    texts: Mapping[str, str],
) -> None:
    from lpf.cli.explain_view import show_explanation
    from lpf.cli.terminal import console

    show_explanation(console(), found, actual, values, lines, texts)
