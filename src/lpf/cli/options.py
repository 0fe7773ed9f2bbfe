"""Command-line options built from the declarations in ``lpf.options``.

``@with_options(QueryOptions)`` gives a command one option per declared field. The options
that the user gave are passed to the command as ``given``, by field name. Errors about a field are
translated to the option, or to the key in ``lpf.toml`` the value came from.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lpf import options
from lpf.cli.common import parse_time
from lpf.errors import ConfigError, LPFError
from lpf.options import DeclaredOption, QueryOptions, options_of

if TYPE_CHECKING:
    from lpf.ingest import FileOptions

GIVEN = "given"
MOST_DIGITS = 18
WIDEST_CHOICES = 30  # columns; more are listed in the help text
Command = Callable[..., None]

AsyncAudit = Annotated[
    bool, typer.Option("--async-audit", help="Answer before the record is on disk.")
]

AskedBy = Annotated[
    str | None,
    typer.Option(
        "--asked-by",
        metavar="NAME",
        help="Who asks, for the record. By default LPF_USER, the settings, or user and host.",
        show_default=False,
    ),
]

DateFormat = Annotated[
    str | None,
    typer.Option(
        "--date-format", metavar="FORM", help="Form of dates, such as DD/MM/YYYY or %d/%m/%Y."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="COLUMN=FIELD", help="Read a column as a field; may be repeated."
    ),
]
FileEncoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="Encoding of a text file, such as cp1252."),
]
Sheet = Annotated[
    str | None, typer.Option("--sheet", metavar="NAME", help="Sheet of an Excel file.")
]


def file_options(
    columns: Sequence[str] | None,
    encoding: str | None,
    sheet: str | None,
    date_format: str | None = None,
    predicate: str | None = None,
) -> FileOptions:
    """How to read a file. ConfigError for an option that cannot be used, by its flag."""
    from lpf.ingest import FileOptions
    from lpf.ingest.cell_values import date_pattern

    mapping: dict[str, str] = {}
    for pair in columns or ():
        column, equals, name = pair.rpartition("=")
        if not equals or not column.strip():
            raise ConfigError(
                f"must be COLUMN=FIELD, such as Customer=entity_id, got {pair!r}. Nothing was "
                "read.",
                field="--map",
            )
        mapping[column] = name.strip()
    with file_fields_as_given():
        if date_format is not None:
            date_pattern(date_format)
        return FileOptions(date_format, mapping, encoding, sheet, predicate)


@contextmanager
def file_fields_as_given() -> Iterator[None]:
    """Rename the field in errors about how a file is read: ``date_format`` becomes
    ``--date-format``."""
    try:
        yield
    except LPFError as error:
        if error.field in ("date_format", "map", "encoding", "sheet"):
            error.field = f"--{error.field.replace('_', '-')}"
        raise


def with_options(kind: type, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Replace the command's parameter ``given`` by one option per declared option of ``kind``."""
    declared = {name: one for name, one in options_of(kind).items() if name not in without}

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**arguments: Any) -> None:
            given = {name: _taken(one, arguments) for name, one in declared.items()}
            arguments[GIVEN] = {name: value for name, value in given.items() if value is not None}
            function(**arguments)

        signature = inspect.signature(function, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name == GIVEN:
                for one in declared.values():
                    parameters += _parameters(one)
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return decorate


def _parameters(declared: DeclaredOption) -> Iterator[inspect.Parameter]:
    """The option, and its earlier spelling, which is not shown in the help."""
    text, metavar = declared.option.help, declared.option.metavar
    if len("|".join(declared.choices)) > WIDEST_CHOICES:
        text, metavar = f"{text.removesuffix('.')}: {_listed(declared.choices)}.", "NAME"
    if declared.default_text:
        text += f" [dim]\\[default: {declared.default_text}][/dim]"
    shown = typer.Option(
        declared.flag if declared.off_flag is None else f"{declared.flag}/{declared.off_flag}",
        help=text,
        metavar=metavar,
        rich_help_panel=declared.option.group or None,
        show_default=False,
    )
    yield _parameter(declared.name, _kind(declared), shown)
    old = declared.option.old_name
    if old is not None:
        kind = str if declared.option.old_values else _kind(declared)
        yield _parameter(old, kind, typer.Option(f"--{old.replace('_', '-')}", hidden=True))


def _listed(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _parameter(name: str, kind: Any, option: Any) -> inspect.Parameter:
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _kind(declared: DeclaredOption) -> Any:
    """What Typer parses and checks; times and lists are parsed here."""
    if declared.choices:
        return Literal[declared.choices]
    is_text = declared.kind in (datetime, tuple) or declared.option.is_time
    return str if is_text else declared.kind


def _taken(declared: DeclaredOption, arguments: dict[str, Any]) -> Any:
    """Take the value of an option, under either name, out of the command's arguments."""
    value, option = arguments.pop(declared.name), declared.option
    if option.old_name is not None:
        earlier = arguments.pop(option.old_name)
        if value is not None and earlier is not None:
            raise ConfigError(
                f"is the earlier name of {declared.flag}; give only one of them.",
                field=f"--{option.old_name}",
            )
        value = option.old_values.get(earlier, earlier) if value is None else value
    if value is None:
        return None
    if declared.kind is datetime:
        return parse_time(value, declared.flag)
    if declared.option.is_time:
        return options.parse_time(value, declared.flag)
    if declared.kind is tuple:
        return whole_numbers(value, declared.flag, "whole numbers such as 256,128")
    return value


def whole_numbers(text: str, option: str, form: str) -> tuple[int, ...]:
    """Parse ``1,2,3``. ``form`` says in the error what is expected."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and len(part) <= MOST_DIGITS for part in parts):
        raise ConfigError(f"must be {form}, got {text[:80]!r}. Nothing was done.", field=option)
    return tuple(map(int, parts))


@contextmanager
def fields_as_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """Rename the field in errors to the flag of the command, by ``flags``."""
    try:
        yield
    except LPFError as error:
        error.field = flags.get(error.field or "", error.field)
        raise


@contextmanager
def fields_as_given(kind: type, given: Mapping[str, Any]) -> Iterator[None]:
    """Rename the field in errors as the user wrote it: ``options.top_k`` becomes ``--top-k``, or
    ``lpf.toml: query.top_k`` if the value came from there."""
    try:
        yield
    except LPFError as error:
        where, _, name = (error.field or "").rpartition(".")
        if where in ("", "options", "training") and name in options_of(kind):
            in_file = kind is QueryOptions and name not in given
            flag = options_of(kind)[name].flag
            error.field = f"lpf.toml: query.{name}" if in_file else flag
        raise
