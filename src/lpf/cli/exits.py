"""How a command ends other than well: what is said of it, and the exit code.

Standard output that cannot show, or cannot take, what is written to it.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from lpf.errors import LPFError

PLAIN = "lpf.plain"
# As wide as what they stand for, so that columns stay in line.
STAND_INS = str.maketrans("█▉▊▋▌▍▎▏░━·…→—αΦσ", "#####   --..>-aPs") | {ord("∞"): "inf"}


def enable_ascii_fallback() -> None:
    """A terminal without bars and dots gets ASCII ones, and ``?`` for what has no likeness."""
    codecs.register_error(PLAIN, _stand_in)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=PLAIN)


def silence_stdout() -> None:
    """What could not be written must not be tried again, and fail again, when the program ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass  # a stream in memory: nothing is written when the program ends


def flush_output() -> None:
    """Now, while a failure can still be told of."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end].translate(STAND_INS)
    return lost.encode("ascii", "replace").decode("ascii"), error.end


EXIT_CHECK_FAILED = 1
THE_CALL_IS_WRONG = 2
THE_PROGRAM_IS_WRONG = 3
INTERRUPTED = 130
EXIT_SIGPIPE = 141
REPORT_IT = (
    "this is a fault of lpf, not of the call. Please report it with what standard error says."
)
# What a full or failing device says, without naming a file.
DEVICE_ERRORS = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EBADF})
# Older versions of Typer raise Click's errors, newer ones their own; the parent of the one that is
# exported is right for all of them.
USAGE_ERROR = cast(type[Exception], typer.BadParameter.__mro__[1])

AS_DOCUMENT = "lpf.as_json"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what to say of it and what else belongs into the document."""

    def __init__(self, message: str, **also: Any) -> None:
        super().__init__(message)
        self.also = also


class PartlyFailedError(Exception):
    """Some of what was asked for failed, which the document says in full."""

    def __init__(self, kind: str, message: str, **also: Any) -> None:
        super().__init__(message)
        self.kind, self.also = kind, also


class Application(typer.Typer):
    """Can be interrupted also while its commands are put together."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except KeyboardInterrupt as error:
            with suppress(typer.Exit):
                _end_interrupted(error, "--json" in sys.argv)
            sys.exit(INTERRUPTED)


class Program(TyperGroup):
    """All commands. With ``--json`` every end is one document on standard output."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        enable_ascii_fallback()
        as_json = "--json" in args  # now: parsing takes the words away
        with _told_plainly(as_json):
            context = super().make_context(info_name, args, *more, **extra)
        context.meta[AS_DOCUMENT] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        with _told_plainly(ctx.meta[AS_DOCUMENT]):
            return super().invoke(ctx)


@contextmanager
def _told_plainly(as_json: bool) -> Iterator[None]:
    """What is raised on purpose becomes a message and exit code 2, what is raised otherwise a
    traceback and exit code 3. A call that Typer refuses is a document beside its own words."""
    try:
        yield
        flush_output()
    except (typer.Exit, typer.Abort):
        raise
    except USAGE_ERROR as error:
        if as_json:
            message = cast(typer.BadParameter, error).format_message()
            _print_error("UsageError", message, {})
        raise
    except BrokenPipeError:
        silence_stdout()
        raise typer.Exit(EXIT_SIGPIPE) from None
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # as Rich ends where help is cut off
            raise typer.Exit(EXIT_SIGPIPE) from None
        raise
    except KeyboardInterrupt as error:
        _end_interrupted(error, as_json)
    except Exception as error:
        kind, message, code = described(error)
        if code == THE_PROGRAM_IS_WRONG:
            traceback.print_exception(error)
        _end(kind, message, code, as_json, getattr(error, "also", {}))


def described(error: Exception) -> tuple[str, str, int]:
    """Its kind, what to say of it, and the exit code."""
    if isinstance(error, PartlyFailedError):
        return error.kind, str(error), THE_CALL_IS_WRONG
    if isinstance(error, LPFError):
        return type(error).__name__, str(error), THE_CALL_IS_WRONG
    # Only what concerns a file the user can name, or a full disk; all else is a fault of ours.
    if isinstance(error, OSError) and error.filename:
        return "FileError", f"{error.filename}: {error.strerror}.", THE_CALL_IS_WRONG
    if isinstance(error, OSError) and error.errno in DEVICE_ERRORS:
        message = f"output: {error.strerror}. What was done before stays done."
        return "FileError", message, THE_CALL_IS_WRONG
    return "InternalError", f"{type(error).__name__}: {error}: {REPORT_IT}", THE_PROGRAM_IS_WRONG


def _end_interrupted(error: KeyboardInterrupt, as_json: bool) -> NoReturn:
    message = str(error) or "interrupted."
    _end("Interrupted", message, INTERRUPTED, as_json, getattr(error, "also", {}))


def _end(kind: str, message: str, code: int, as_json: bool, also: Mapping[str, Any]) -> NoReturn:
    if as_json:
        _print_error(kind, message, also)
    with suppress(OSError):
        typer.echo(f"lpf: {message}", err=True)
    raise typer.Exit(code)


def _print_error(kind: str, message: str, also: Mapping[str, Any]) -> None:
    document = {"error": {"kind": kind, "message": message}, **also}
    try:
        typer.echo(json.dumps(document, allow_nan=False, indent=2))
    except OSError:
        silence_stdout()
