"""Typed access to the fields of a JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lpf.datasets.dataset import SPLITS, Split
from lpf.storage.values import name_problem, text_problem

SPLIT_ALIASES: Mapping[str, Split] = {
    **{split: split for split in SPLITS},
    **dict.fromkeys(("val", "dev", "valid"), "validation"),
}
_LONGEST_SHOWN = 80


def shortened(value: object) -> str:
    """Return the repr of a value, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


class FieldError(Exception):
    """A field cannot be used. Callers turn it into a DatasetError with file and line."""

    def __init__(self, name: str, problem: str, hint: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True)
class JsonObject:
    """A JSON object and its ``path`` in the line, such as "" or "evidence[2].".

    Methods raise FieldError if a field is missing or of the wrong type.
    """

    values: Mapping[str, object]
    path: str = ""

    def error(self, name: str, problem: str, hint: str) -> FieldError:
        return FieldError(self.path + name, problem, hint)

    def text(self, name: str) -> str | None:
        """Return a text unchanged; None if it is null, absent or blank."""
        value = self.values.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        problem = text_problem(value)
        if problem:
            raise self.error(name, problem, "Give a text.")
        return str(value)

    def identifier(self, name: str) -> str | None:
        """Return a text without surrounding blanks; an integer is converted to text."""
        value = self.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        text = self.text(name)
        return None if text is None else text.strip()

    def required_text(self, name: str) -> str:
        return self._required(self.text(name), name)

    def required_identifier(self, name: str) -> str:
        return self._required(self.identifier(name), name)

    def share(self, name: str) -> float | None:
        value = self.values.get(name)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= 1:  # type: ignore[operator]
            raise self.error(
                name, f"must be a number in [0, 1], got {shortened(value)}", "Use null if none."
            )
        return float(value)  # type: ignore[arg-type]

    def moment(self, name: str) -> datetime | None:
        """Return a time in UTC. Without a time zone it is UTC; a date alone means midnight."""
        text = self.text(name)
        if text is None:
            return None
        try:
            moment = datetime.fromisoformat(text.strip())
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise self.error(
                name,
                f"is not a time in ISO 8601, got {shortened(text)}",
                "Write it as 2026-01-25T15:42:33Z or 2026-01-25.",
            ) from error

    def split(self, name: str) -> Split | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or value not in SPLIT_ALIASES:
            known = ", ".join(map(repr, SPLIT_ALIASES))
            raise self.error(
                name, f"is not a split, got {shortened(value)}", f"Use one of {known}, or null."
            )
        return SPLIT_ALIASES[value]

    def table(self, name: str) -> Mapping[str, Any] | None:
        """Return a JSON object; None if it is null or absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            raise self.error(
                name, f"must be an object, got {shortened(value)}", "Write it in braces."
            )
        return value

    def texts(self, name: str) -> dict[str, str]:
        """Return an object of identifiers; null values are left out."""
        inner = JsonObject(self.table(name) or {}, f"{self.path}{name}.")
        for key in inner.values:
            problem = name_problem(key)
            if problem:
                raise self.error(name, f"the name {shortened(key)} {problem}", "Name a predicate.")
        values = {key: inner.identifier(key) for key in inner.values}
        return {key: value for key, value in values.items() if value is not None}

    def objects(self, name: str) -> list[JsonObject]:
        """Return a list of JSON objects."""
        entries = self.values.get(name)
        if not isinstance(entries, list):
            problem = (
                "is missing" if entries is None else f"must be a list, got {shortened(entries)}"
            )
            raise self.error(name, problem, "Write a list of objects in brackets.")
        for number, entry in enumerate(entries):
            if not isinstance(entry, dict):
                raise self.error(
                    f"{name}[{number}]",
                    f"must be an object, got {shortened(entry)}",
                    "Write it in braces.",
                )
        return [
            JsonObject(entry, f"{self.path}{name}[{number}].")
            for number, entry in enumerate(entries)
        ]

    def _required(self, value: str | None, name: str) -> str:
        if value is None:
            problem = "is missing" if self.values.get(name) is None else "is empty"
            raise self.error(name, problem, "Every entity and every evidence item needs it.")
        return value
