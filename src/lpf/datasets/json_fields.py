"""Fields of a JSON object as values of the right type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lpf.datasets.dataset import SPLITS, Split
from lpf.storage.values import name_problem, text_problem

SPLIT_NAMES: Mapping[str, Split] = {
    **{split: split for split in SPLITS},
    **dict.fromkeys(("val", "dev", "valid"), "validation"),
}
_LONGEST_SHOWN = 80


def shown(value: object) -> str:
    """As it stands in Python, cut where it is long: it may be a whole text."""
    told = repr(value)
    return told if len(told) <= _LONGEST_SHOWN else told[:_LONGEST_SHOWN] + "..."


class FieldError(Exception):
    """Within this room: a field of the line at hand cannot be used."""

    def __init__(self, name: str, problem: str, remedy: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object and where it stands in its line: ``path`` is "" or such as "evidence[2].".
    FieldError names the field that is missing or of the wrong type."""

    values: Mapping[str, object]
    path: str = ""

    def error(self, name: str, problem: str, remedy: str) -> FieldError:
        return FieldError(self.path + name, problem, remedy)

    def text(self, name: str) -> str | None:
        """A text as it stands; None where it is null, absent or blank."""
        value = self.values.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        problem = text_problem(value)
        if problem:
            raise self.error(name, problem, "Give a text.")
        return str(value)

    def identifier(self, name: str) -> str | None:
        """The same without the blanks around it; a whole number is the text of its digits."""
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
                name, f"must be a number in [0, 1], got {shown(value)}", "Use null if none."
            )
        return float(value)  # type: ignore[arg-type]

    def moment(self, name: str) -> datetime | None:
        """In UTC. One without a zone is in UTC, a date alone is its midnight."""
        text = self.text(name)
        if text is None:
            return None
        try:
            moment = datetime.fromisoformat(text.strip())
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise self.error(
                name,
                f"is not a time in ISO 8601, got {shown(text)}",
                "Write it as 2026-01-25T15:42:33Z or 2026-01-25.",
            ) from error

    def split(self, name: str) -> Split | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or value not in SPLIT_NAMES:
            known = ", ".join(map(repr, SPLIT_NAMES))
            raise self.error(
                name, f"is no split, got {shown(value)}", f"Use one of {known}, or null."
            )
        return SPLIT_NAMES[value]

    def table(self, name: str) -> Mapping[str, Any] | None:
        """Any JSON object; None where it is null or absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            raise self.error(name, f"must be an object, got {shown(value)}", "Write it in braces.")
        return value

    def texts(self, name: str) -> dict[str, str]:
        """An object whose values are identifiers; those that are null are left out."""
        inner = Record(self.table(name) or {}, f"{self.path}{name}.")
        for key in inner.values:
            problem = name_problem(key)
            if problem:
                raise self.error(name, f"the name {shown(key)} {problem}", "Name a predicate.")
        found = {key: inner.identifier(key) for key in inner.values}
        return {key: value for key, value in found.items() if value is not None}

    def records(self, name: str) -> list[Record]:
        """A list of objects."""
        entries = self.values.get(name)
        if not isinstance(entries, list):
            problem = "is missing" if entries is None else f"must be a list, got {shown(entries)}"
            raise self.error(name, problem, "Write a list of objects in brackets.")
        for number, entry in enumerate(entries):
            if not isinstance(entry, dict):
                raise self.error(
                    f"{name}[{number}]",
                    f"must be an object, got {shown(entry)}",
                    "Write it in braces.",
                )
        return [
            Record(entry, f"{self.path}{name}[{number}].") for number, entry in enumerate(entries)
        ]

    def _required(self, value: str | None, name: str) -> str:
        if value is None:
            problem = "is missing" if self.values.get(name) is None else "is empty"
            raise self.error(name, problem, "Every entity and every item of evidence needs it.")
        return value
