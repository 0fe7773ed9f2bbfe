"""Texts of others on a page: whatever they contain, they are shown, and they are only text.

IDs, texts, sources and values come from others. ``shown`` escapes them for HTML, SVG and attributes
alike, and makes characters visible that could hide or reorder what is read.
"""

from __future__ import annotations

import re
from html import escape

# The same characters as on the terminal, except tab and newline: control characters, all that
# changes the direction of writing, ends a line or has no width, and lone surrogates.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def shown(plain: str) -> str:
    """Plain text for HTML, SVG or an attribute in double quotes; hidden characters as escapes such
    as ``\\x1b``."""
    return escape(HIDDEN.sub(_escape, plain), quote=True)


def beginning(plain: str, characters: int) -> str:
    """The text on one line, and only its beginning with an ellipsis if it is longer."""
    line = " ".join(plain[: 4 * characters].split())
    if len(line) <= characters and len(plain) <= 4 * characters:
        return line
    return f"{line[: characters - 1].rstrip()}…"


def isolated(plain: str) -> str:
    """An ID, value or source inside a sentence, as HTML: one written from right to left leaves the
    words around it in their order."""
    return f"<bdi>{shown(plain)}</bdi>"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
