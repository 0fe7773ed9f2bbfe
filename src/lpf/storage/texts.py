"""What both databases can keep as a text, and give back as it was."""

from __future__ import annotations

# PostgreSQL's indexes take entries of some 2,700 bytes, SQLite's of any length. What one of them
# would refuse neither may take; two names stand in one entry.
LONGEST_NAME = 512
# Leaves room for the number that makes an evidence id of it.
LONGEST_ENTITY = LONGEST_NAME - 12
LONGEST_SHOWN = 80


def unkeepable(text: object) -> str | None:
    """What is wrong with a text that must hold something; None if nothing is."""
    if not isinstance(text, str):
        return f"must be a text, got {_shown(text)}"
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


def unusable_name(text: object) -> str | None:
    """What is wrong with a text that things go by: it must also have no blanks around it, which
    nobody sees."""
    problem = unkeepable(text)
    if problem is None and str(text) != str(text).strip():
        return f"has blanks around it: {_shortened(str(text))!r}"
    return problem


def too_long(text: str, name: str) -> str | None:
    """What is wrong with the length of a text that things go by; ``name`` is its field's."""
    longest = LONGEST_ENTITY if name == "entity_id" else LONGEST_NAME
    length = len(text.encode())
    if length <= longest:
        return None
    return f"is {length} bytes long, at most {longest} are allowed"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _shown(value: object) -> str:
    """Something small as it is; of the rest only what it is, since it may hold a whole text."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a value of type {type(value).__name__}"
