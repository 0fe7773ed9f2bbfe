"""What both databases can keep as a text, and give back as it was."""

from __future__ import annotations


def unkeepable(text: object) -> str | None:
    """What is wrong with a text that must hold something; None if nothing is."""
    if not isinstance(text, str):
        return f"must be a text, got {text!r}"
    if not text.strip():
        return "is empty"
    if "\0" in text:
        return "holds the character NUL, which a database cannot keep in a text"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"is not valid Unicode ({error.reason} at {error.start})"
    return None
