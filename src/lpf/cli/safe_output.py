"""Foreign text on the terminal: control characters are shown, never sent.

Texts, ids, names of files and columns and settings come from others. A control character in them
could clear the screen, hide a line or print a false answer. So while a command runs, standard
output and standard error escape all of them except newline and tab: ``ESC`` becomes ``\\x1b``.
Colours and progress bars of lpf are drawn by ``terminal.Output``, which escapes the texts and then
writes past this stream.

A newline cannot be escaped here, since lpf prints newlines too: where a foreign text must stay on
one line, use ``one_line``.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

# C0 except tab and newline, DEL and C1; then all that changes the direction of writing, ends a line
# or has no width, except the joiners that some scripts need; then lone surrogates.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
BREAKS = re.compile("[\t\n]+")
JSON_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with control characters, except newline and tab, as escapes such as ``\\x1b``."""
    return CONTROLS.sub(_escape, text)


def one_line(text: object) -> str:
    """Like ``visible``, and on one line: a newline is shown as ``\\n``, so that a text cannot look
    like more lines of output."""
    return BREAKS.sub(lambda match: repr(match[0])[1:-1], visible(str(text)))


def quoted(path: object) -> str:
    """A path or name as a word that a shell understands, for commands that a user may copy. With
    control characters it is in the form ``$'...'``."""
    text = str(path)
    if CONTROLS.search(text) or BREAKS.search(text):
        escaped = CONTROLS.sub(_shell_escape, text.replace("\\", "\\\\").replace("'", "\\'"))
        return f"$'{one_line(escaped)}'"
    return shlex.quote(text)


def _shell_escape(match: re.Match[str]) -> str:
    """A byte that is not UTF-8 is a surrogate in Python, and ``\\x`` in a shell is a byte."""
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(document: Any, indent: int | None = None) -> str:
    """JSON in ASCII, which every terminal and locale can show, without control characters."""
    return ascii_json(json.dumps(document, allow_nan=False, indent=indent))


def ascii_json(text: str) -> str:
    """JSON text with DEL, C1 and bidirectional controls as ``\\u`` escapes; its value is the
    same."""
    return JSON_CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class SafeStream:
    """A text stream that escapes control characters. ``rich_proxied_file`` is the stream itself:
    Rich writes there, past the escaping."""

    # The stream takes any text; what the terminal cannot show is replaced when it is written.
    encoding = "utf-8"

    def __init__(self, stream: IO[str]) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.rich_proxied_file.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def unprotected(stream: Any) -> Any:
    """The stream behind SafeStream, or behind a display of Rich."""
    while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = inner
    return stream


@contextmanager
def safe_streams() -> Iterator[None]:
    """Escape control characters on standard output and standard error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_protected, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _protected(stream: Any) -> Any:
    """None if the process was started without the stream."""
    return stream if stream is None or isinstance(stream, SafeStream) else SafeStream(stream)
