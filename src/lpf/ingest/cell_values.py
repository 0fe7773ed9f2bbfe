"""Cells as people write them: ``13/05/2026``, ``80 %``, ``0,8`` and ``High``.

Each is read in one way only, and what was assumed is noted with the first place where it
mattered. Where two readings are possible the file is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, time

from lpf.errors import ConfigError, InputFileError
from lpf.ingest.input_rows import InputFile

DATE_FIELD = "timestamp"
_TIME = (
    r"(?:[ T,]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?\s*(?P<half>[AaPp][Mm])?)?"
)
_YEAR_LAST = re.compile(
    rf"(?P<first>\d{{1,2}})(?P<mark>[./-])(?P<second_part>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}){_TIME}",
    re.ASCII,
)
_YEAR_FIRST = re.compile(
    rf"(?P<year>\d{{4}})(?P<mark>[./])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}}){_TIME}",
    re.ASCII,
)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+", re.ASCII)
_PERCENT = re.compile(r"(?P<number>[^%]*[^%\s])\s*%")
# Longer ones first: YYYY before YY.
_WORDS = (
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("DD", "%d"),
    ("MM", "%m"),
    ("HH", "%H"),
    ("mm", "%M"),
    ("SS", "%S"),
)
_LONGEST_SHOWN = 40


def date_pattern(form: str) -> str:
    """The pattern of ``datetime.strptime`` for a form such as ``DD/MM/YYYY``; a pattern with ``%``
    is kept. ConfigError if it has no day, month and year."""
    pattern = form
    if "%" not in form:
        for word, directive in _WORDS:
            pattern = pattern.replace(word, directive)
    try:
        moment = datetime(2026, 5, 13)
        usable = datetime.strptime(moment.strftime(pattern), pattern).date() == moment.date()
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"must be a form of a date such as DD/MM/YYYY or %d/%m/%Y, got {form!r}. Nothing was "
            "read.",
            field="date_format",
        )
    return pattern


class CellReader:
    """Reads the cells of one file. ``notes`` says what was assumed, each with its first place.

    ``pattern`` is the form of all dates that are texts, if it was given; ``day_first`` the order of
    day and month in ``03/04/2026``, None if no such date occurs.
    """

    def __init__(self, date_format: str | None = None, day_first: bool | None = None) -> None:
        self._pattern = None if date_format is None else date_pattern(date_format)
        self._day_first = day_first
        self._notes: dict[str, str] = {}

    @classmethod
    def of(cls, file: InputFile, date_format: str | None = None) -> CellReader:
        """Find the order of day and month from all dates of the file. InputFileError if the dates
        contradict each other, or if none of them settles it; and, for a file that may break off in
        the middle, if it does: before anything is made of its first rows."""
        order = _DateOrder(file)
        has_dates = file.columns is None or DATE_FIELD in file.columns
        open_order = date_format is None and has_dates and file.text_dates
        if open_order or file.may_break:
            for row in file.rows():
                order.see(row.values.get(DATE_FIELD), row.line)
        if not open_order:
            return cls(date_format)
        reader = cls(day_first=order.day_first())
        if order.reason is not None:
            name = "day" if reader._day_first else "month"
            reader._notes["dates"] = f"dates {name} first ({order.reason})"
        return reader

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes.values())

    def note(self, kind: str, assumption: str) -> None:
        """Keep what was assumed, the first time for each kind."""
        self._notes.setdefault(kind, assumption)

    def number(self, text: str, place: str) -> float | None:
        """A number, from ``0.8``, ``0,8`` or ``80 %``; None if the text is none of these."""
        percent = _PERCENT.fullmatch(text.strip())
        digits = text.strip() if percent is None else percent["number"].strip()
        comma = _DECIMAL_COMMA.fullmatch(digits) is not None
        try:
            number = float(digits.replace(",", ".") if comma else digits)
        except ValueError:
            return None
        if comma:
            self.note("comma", f"decimal comma ({_shown(text)} at {place})")
        if percent is None:
            return number
        self.note("percent", f"percent as a share of 1 ({_shown(text)} at {place})")
        return number / 100.0

    def moment(self, text: str) -> datetime | None:
        """A time, from ISO 8601, from the given form, or from day, month and year; None if the text
        is none of these."""
        text = text.strip()
        if self._pattern is not None:
            try:
                return datetime.strptime(text, self._pattern)
            except ValueError:
                return None
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return self._numbers(text)

    def one_of(self, given: str, names: Iterable[str], place: str) -> str:
        """``given``, or the one name that differs from it in case only."""
        known = list(names)
        if given in known:
            return given
        same = [name for name in known if name.casefold() == given.casefold()]
        if len(same) != 1:
            return given
        self.note("case", f"names in any case ({_shown(given)} as {same[0]!r} at {place})")
        return same[0]

    def _numbers(self, text: str) -> datetime | None:
        found = _YEAR_FIRST.fullmatch(text)
        if found is not None:
            return _moment(found, found["month"], found["day"])
        found = _YEAR_LAST.fullmatch(text)
        if found is None:
            return None
        day_first = True if found["mark"] == "." else self._day_first
        if day_first is None:
            return None
        pair = found["first"], found["second_part"]
        day, month = pair if day_first else pair[::-1]
        return _moment(found, month, day)


class _DateOrder:
    """What the dates of a file say about the order of day and month. Dates with dots are always
    written with the day first."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._day: str | None = None
        self._month: str | None = None
        self._open: str | None = None

    def see(self, value: object, line: int) -> None:
        found = _YEAR_LAST.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None:
            return
        place = f"{found[0]} at {self._file.unit} {line}"
        if found["mark"] == "." or int(found["first"]) > 12:
            self._day = self._day or place
        elif int(found["second_part"]) > 12:
            self._month = self._month or place
        else:
            self._open = self._open or place

    @property
    def reason(self) -> str | None:
        return self._day or self._month

    def day_first(self) -> bool | None:
        """InputFileError if the order is not settled; None if there are no such dates."""
        if self._day and self._month:
            raise self._error(
                f"some dates have the day first ({self._day}), others the month ({self._month})"
            )
        if self.reason is None and self._open:
            raise self._error(
                f"{self._open} can be read with the day or the month first, and no other date of "
                "the file settles it"
            )
        return None if self.reason is None else self._day is not None

    def _error(self, problem: str) -> InputFileError:
        return InputFileError(
            f"{problem} ({self._file.name}). Nothing was read.",
            field=DATE_FIELD,
            hint="Give the form with --date-format, such as DD/MM/YYYY or MM/DD/YYYY, or write "
            "dates as 2026-05-13.",
        )


def _moment(found: re.Match[str], month: str, day: str) -> datetime | None:
    hour = int(found["hour"] or 0)
    half = (found["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    try:
        clock = time(hour, int(found["minute"] or 0), int(found["second"] or 0))
        return datetime.combine(datetime(int(found["year"]), int(month), int(day)), clock)
    except ValueError:
        return None


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "...")
