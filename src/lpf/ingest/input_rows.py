"""What every file format gives: rows with their numbers, and columns with the names of fields."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from lpf.errors import ConfigError, InputFileError
from lpf.types import Evidence

TEXT_NAMES = ("text", "text_content")
CLAIM_NAMES = ("claim", "question")  # a question is read like a claim
EVIDENCE_COLUMNS = frozenset(Evidence.__slots__) - {"embedding_id"} | {*TEXT_NAMES, *CLAIM_NAMES}
FACT_COLUMNS = frozenset({"entity_id", "predicate", "value", "timestamp", "confidence", "source"})
# Of a table with labelled items: what a row says about its entity.
LABEL_COLUMNS = frozenset({"label", "split", "group_id"})
FIELDS = EVIDENCE_COLUMNS | FACT_COLUMNS
MAPPABLE = FIELDS | LABEL_COLUMNS
MIN_SIMILARITY = 0.75
# Bytes of one row. A longer one is not loaded: a file may be a single line of gigabytes.
LONGEST_ROW = 16 * 1024 * 1024


@dataclass(frozen=True)
class FileOptions:
    """How to read a file, where its content does not say.

    ``date_format`` is a form such as ``DD/MM/YYYY`` or ``%d/%m/%Y``. ``columns`` maps columns of
    the file to fields. ``encoding`` is for JSONL and CSV, ``sheet`` for Excel. ``predicate`` is
    that of rows and labels that name none. ConfigError for a field or an encoding that does not
    exist.
    """

    date_format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    sheet: str | None = None
    predicate: str | None = None

    def __post_init__(self) -> None:
        for column, name in self.columns.items():
            if name not in MAPPABLE:
                raise ConfigError(
                    f"{column}={name}: {name!r} is not a field. Nothing was read.",
                    field="map",
                    hint=f"Fields are {', '.join(sorted(MAPPABLE))}.",
                )
        if self.encoding is not None:
            _check_encoding(self.encoding)

    @property
    def given(self) -> tuple[str, ...]:
        """What was given about the form of the file, by the names that errors use."""
        named = {
            "date_format": self.date_format,
            "map": self.columns or None,
            "encoding": self.encoding,
            "sheet": self.sheet,
        }
        return tuple(name for name, value in named.items() if value is not None)

    def refuse(self, what: str, *names: str) -> None:
        """ConfigError if one of ``names`` was given (by default any), which ``what`` has no use
        for."""
        for name in self.given:
            if not names or name in names:
                raise ConfigError(
                    f"does not apply to {what}. Nothing was read.",
                    field=name,
                    hint="Leave it out.",
                )


def _check_encoding(name: str) -> None:
    try:
        is_text = "a".encode(codecs.lookup(name).name) is not None
    except (LookupError, TypeError, ValueError):  # also codecs of bytes, and a NUL in the name
        is_text = False
    if not is_text:
        raise ConfigError(
            f"{name!r} is not the name of a text encoding. Nothing was read.",
            field="encoding",
            hint="Names are for example utf-8, utf-16, cp1252 and latin-1.",
        )


@dataclass(frozen=True, slots=True)
class InputRow:
    """``line`` is the line where the row starts, from 1 (in Parquet and Excel: the row number).
    ``error`` says why it could not be parsed; then ``values`` is empty."""

    line: int
    values: Mapping[str, object]
    error: str = ""


@dataclass(frozen=True)
class InputFile:
    """An opened file. Each call of ``rows`` starts from the first row.

    ``name`` is the path as given. ``columns`` is None if every row names its own; ``total``, the
    number of rows, is None if it is not known before reading. ``read_as`` says what was assumed
    about the file, such as a separator, ``notes`` what else a user should know. ``text_dates`` is
    False if dates cannot be texts. ``may_break`` is True if a damaged file may fail after some of
    its rows; in other files damage concerns single rows.
    """

    name: str
    rows: Callable[[], Iterator[InputRow]]
    columns: tuple[str, ...] | None = None
    total: int | None = None
    read_as: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unit: str = "line"  # "row" for rows in memory, Parquet and Excel
    text_dates: bool = True
    may_break: bool = False

    def require(self, *needed: Sequence[str]) -> None:
        """InputFileError if the columns are known and some of ``needed`` are missing. Each of
        ``needed`` is a column name with its aliases."""
        if self.columns is None:
            return
        missing = [names[0] for names in needed if not set(names) & set(self.columns)]
        if missing:
            raise InputFileError(
                f"{self.name}: the columns {missing} are missing; the file has "
                f"{list(self.columns)}. Nothing was read.",
                hint=f"If a column has another name, add --map COLUMN={missing[0]}.",
            )


def similar_fields(columns: Iterable[str], fields: Collection[str]) -> dict[str, str]:
    """Map each column name that is similar to one of ``fields`` to that field."""
    similar = {}
    for column in columns:
        matches = get_close_matches(_normal(column), fields, 1, MIN_SIMILARITY)
        if matches:
            similar[column] = matches[0]
    return similar


def field_names(header: Sequence[str], mapping: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names of a header's columns: the field that ``mapping`` gives, or the field whose name it
    is whatever the case and the blanks (``Entity ID``), or the name itself."""
    given = {_normal(column): name for column, name in (mapping or {}).items()}
    names = []
    for column in header:
        normal = _normal(column)
        plain = normal if normal in MAPPABLE else column.strip()
        names.append(given.get(normal, plain))
    return tuple(names)


def columns_of(
    place: str, header: Sequence[str], mapping: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Like ``field_names``. InputFileError if a column of ``mapping`` is missing, or two columns
    have the same name."""
    present = {_normal(column) for column in header}
    absent = [column for column in mapping or {} if _normal(column) not in present]
    if absent:
        raise InputFileError(
            f"{place}: has no columns {absent}, only {[name.strip() for name in header]}. Nothing "
            "was read.",
            field="map",
        )
    columns = field_names(header, mapping)
    twice = sorted({name for name in columns if name and columns.count(name) > 1})
    if twice:
        raise InputFileError(
            f"{place}: repeated columns {twice}. Nothing was read; give each field one column."
        )
    return columns


def renamed(row: InputRow, mapping: Mapping[str, str]) -> InputRow:
    """The row with the columns of ``mapping`` renamed to fields."""
    if not mapping or row.error:
        return row
    given = {_normal(column): name for column, name in mapping.items()}
    values: dict[str, object] = {}
    for column, value in row.values.items():
        name = given.get(_normal(column), column)
        if name in values:
            return InputRow(row.line, {}, f"two columns are read as {name}")
        values[name] = value
    return InputRow(row.line, values)


def _normal(column: str) -> str:
    return column.strip().lower().replace(" ", "_").replace("-", "_")
