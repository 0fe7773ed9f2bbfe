"""How a command ends when something goes wrong: the message, the JSON document, the exit code.

Also handles a terminal without Unicode, a closed pipe and a full disk.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from lpf.cli.safe_output import json_text, safe_streams, visible
from lpf.errors import ConfigError, LPFError

EXIT_CHECK_FAILED = 1
EXIT_WRONG_CALL = 2
EXIT_INTERNAL_ERROR = 3
EXIT_NO_ANSWER = 4
EXIT_INTERRUPTED = 130
EXIT_SIGPIPE = 141

REPORT_IT = "this is a bug in lpf. Please report it with the traceback on standard error."
# What a full or failing device reports, without naming a file.
DEVICE_ERRORS = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EBADF})
# Older versions of Typer raise Click's errors, newer ones their own; this base class covers both.
USAGE_ERROR = cast(type[Exception], typer.BadParameter.__mro__[1])

AS_JSON = "lpf.as_json"
ASCII_FALLBACK = "lpf.ascii"
# As wide as what they replace, so that columns stay aligned.
REPLACEMENTS = str.maketrans("█▉▊▋▌▍▎▏░━·…→—αΦσ", "#####   --..>-aPs") | {ord("∞"): "inf"}


@dataclass(frozen=True)
class Failure:
    """How a command failed. ``details`` are added to the JSON document."""

    kind: str
    message: str
    code: int = EXIT_WRONG_CALL
    field: str | None = None
    hint: str | None = None
    details: Mapping[str, Any] = dataclass_field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "message": self.message,
            "field": self.field,
            "hint": self.hint,
        }


class InterruptedCommand(KeyboardInterrupt):
    """Ctrl-C, with a message and more fields for the JSON document."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class PartlyFailedError(Exception):
    """A command failed in part; ``details`` say in which."""

    def __init__(self, failure: Failure, **details: Any) -> None:
        super().__init__(failure.message)
        self.failure, self.details = failure, details


class InterruptibleTyper(typer.Typer):
    """Also handles Ctrl-C while the commands are being loaded."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except KeyboardInterrupt as error:
            with suppress(typer.Exit):
                _end(_interruption(error), "--json" in sys.argv)
            sys.exit(EXIT_INTERRUPTED)


class ErrorReportingGroup(TyperGroup):
    """The root of all commands. With ``--json`` every error is a document on standard output."""

    def main(self, *args: Any, **extra: Any) -> Any:
        enable_ascii_fallback()
        with safe_streams():
            return super().main(*args, **extra)

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        as_json = "--json" in args  # now: parsing empties the list
        with _errors_reported(as_json):
            _check_arguments(args)
            context = super().make_context(info_name, args, *more, **extra)
        context.meta[AS_JSON] = as_json
        context.color = True  # the stream shows escape sequences; they are not stripped before
        return context

    def invoke(self, ctx: Any) -> Any:
        with _errors_reported(ctx.meta[AS_JSON]):
            return super().invoke(ctx)


def _check_arguments(args: list[str]) -> None:
    """Raise ConfigError for an argument that no file, database or JSON document can hold."""
    for argument in args:
        if "\0" in argument or not (argument.isascii() or _is_unicode(argument)):
            raise ConfigError(
                "an argument is not valid UTF-8, or holds a NUL character. Nothing was done.",
                field=argument.partition("=")[0] if argument.startswith("--") else repr(argument),
                hint="A file with such a name must be renamed first.",
            )


def _is_unicode(argument: str) -> bool:
    from lpf.storage.seals import is_unicode  # most arguments are ASCII: no store is imported

    return is_unicode(argument)


@contextmanager
def _errors_reported(as_json: bool) -> Iterator[None]:
    """Errors raised on purpose become a message and exit code 2, all others a traceback and exit
    code 3. A call that Typer refuses is printed by Typer; with ``--json`` also as a document."""
    try:
        yield
        flush_output()
    except (typer.Exit, typer.Abort):
        raise
    except USAGE_ERROR as error:
        failure = _usage_failure(error)
        if as_json:
            _print_document(failure)
        if visible(failure.message) == failure.message:
            raise
        # Typer prints the message with a console of its own.
        raise USAGE_ERROR(visible(failure.message), getattr(error, "ctx", None)) from None
    except BrokenPipeError:
        silence_stdout()
        raise typer.Exit(EXIT_SIGPIPE) from None
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # how Rich exits if help is cut off
            raise typer.Exit(EXIT_SIGPIPE) from None
        raise
    except KeyboardInterrupt as error:
        _end(_interruption(error), as_json)
    except Exception as error:
        failure = failure_of(error)
        if failure.code == EXIT_INTERNAL_ERROR:
            traceback.print_exception(error)
        _end(failure, as_json)


def failure_of(error: Exception) -> Failure:
    """Classify an error: one that the user can fix, or a bug."""
    if isinstance(error, PartlyFailedError):
        first = error.failure
        return Failure(
            first.kind, first.message, field=first.field, hint=first.hint, details=error.details
        )
    if isinstance(error, LPFError):
        return Failure(type(error).__name__, str(error), field=error.field, hint=error.hint)
    # Only errors about a file the user can name, or a full disk; all others are bugs.
    if isinstance(error, OSError) and error.filename:
        return Failure("FileError", f"{error.filename}: {error.strerror}.")
    if isinstance(error, OSError) and error.errno in DEVICE_ERRORS:
        return Failure("FileError", f"output: {error.strerror}. What was done before stays done.")
    message = f"{type(error).__name__}: {error}: {REPORT_IT}"
    return Failure("InternalError", message, EXIT_INTERNAL_ERROR)


def _usage_failure(error: Exception) -> Failure:
    """The field is the option or argument that Typer refused, if it names one."""
    options = getattr(getattr(error, "param", None), "opts", None)
    field = options[0] if options else getattr(error, "option_name", None)
    message = cast(typer.BadParameter, error).format_message()
    return Failure("UsageError", message, field=field)


def _interruption(error: KeyboardInterrupt) -> Failure:
    message, details = str(error) or "interrupted.", getattr(error, "details", {})
    return Failure("Interrupted", message, EXIT_INTERRUPTED, details=details)


def _end(failure: Failure, as_json: bool) -> NoReturn:
    if as_json:
        _print_document(failure)
    with suppress(OSError):
        typer.echo(f"lpf: {_indented(failure.message)}", err=True)
    raise typer.Exit(failure.code)


def _indented(message: str) -> str:
    """Further lines are indented, so that a newline in a name cannot look like another message."""
    first, *rest = message.split("\n")
    return "\n".join([first, *(line if line.startswith("  ") else f"  {line}" for line in rest)])


def _print_document(failure: Failure) -> None:
    document = {"error": failure.document(), **failure.details}
    try:
        typer.echo(json_text(document, indent=2))
    except OSError:
        silence_stdout()


def enable_ascii_fallback() -> None:
    """On a terminal that only has ASCII, print ASCII bars and dots, and ``?`` for other
    characters."""
    codecs.register_error(ASCII_FALLBACK, _replace_characters)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=ASCII_FALLBACK)


def silence_stdout() -> None:
    """Discard what could not be written, so that it does not fail again when Python exits."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass  # a stream in memory: nothing is written when Python exits


def flush_output() -> None:
    """Write out now, while a failure can still be reported."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    replaced = error.object[error.start : error.end].translate(REPLACEMENTS)
    return replaced.encode("ascii", "replace").decode("ascii"), error.end
