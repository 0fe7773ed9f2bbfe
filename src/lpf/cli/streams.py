"""Standard output that cannot show, or cannot take, what is written to it."""

from __future__ import annotations

import codecs
import io
import os
import sys

PLAIN = "lpf.plain"
# As wide as what they stand for, so that columns stay in line.
STAND_INS = str.maketrans("█▉▊▋▌▍▎▏░━·…→—αΦσ", "#####   --..>-aPs") | {ord("∞"): "inf"}


def show_what_can_be_shown() -> None:
    """A terminal without bars and dots gets ASCII ones, and ``?`` for what has no likeness."""
    codecs.register_error(PLAIN, _stand_in)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=PLAIN)


def give_up_output() -> None:
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
