"""Numbers quoted from the full run are those that were kept of it.

A comment ``<!-- digest: TABLE: column, ... -->`` before a table says where its numbers come from;
rows are named as in the digest, by title or by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
DIGEST = DOCS / "results.json"
PAGES = (DOCS.parent / "README.md", DOCS / "results.md")
QUOTED = re.compile(r"<!-- digest: ([a-z0-9-]+): ([a-z0-9_, ]+) -->\n\n((?:\|.*\n)+)")
DIGITS = 1e-4  # of a number are lost where the digest is written


def tables() -> dict[str, dict]:
    studies = json.loads(DIGEST.read_text())["studies"].values()
    return {name: table for study in studies for name, table in study["tables"].items()}


def quoted() -> Iterator[object]:
    for page in PAGES:
        for table, columns, lines in QUOTED.findall(page.read_text()):
            rows = [line.strip("|").split("|") for line in lines.splitlines()[2:]]
            name = f"{page.name}:{table}"
            yield pytest.param(table, columns.split(", "), rows, id=name)


def plain(cell: str) -> str:
    return cell.replace("*", "").strip()


def number_of(shown: str) -> tuple[float, float]:
    """The number, and half of its last digit."""
    digits, percent = re.fullmatch(r"([+-]?[\d,]*\.?\d*)( %)?", shown).groups()
    scale = 0.01 if percent else 1.0
    decimals = len(digits.partition(".")[2])
    return float(digits.replace(",", "")) * scale, 0.5 * 10**-decimals * scale


@pytest.mark.parametrize(("table", "columns", "rows"), list(quoted()))
def test_a_quoted_table_says_what_was_measured(
    table: str, columns: list[str], rows: list[list[str]]
) -> None:
    found = tables()[table]
    known = {key: row for row in found["rows"] for key in (row[0], row[1])}
    for title, *cells in ([plain(cell) for cell in row] for row in rows):
        assert title in known, title
        for column, shown in zip(columns, cells, strict=True):
            measured = known[title][found["columns"].index(column)]
            measured = measured[0] if isinstance(measured, list) else measured
            if not shown:
                assert measured is None, (title, column)
                continue
            number, half = number_of(shown)
            assert abs(number - measured) <= half * 1.01 + DIGITS * abs(measured), (title, column)


def test_every_study_has_its_place_in_the_page() -> None:
    page = (DOCS / "results.md").read_text()
    for study in json.loads(DIGEST.read_text())["studies"]:
        assert f"`{study.replace('-', '_')}`" in page, study


def test_tables_are_quoted() -> None:
    assert len(list(quoted())) >= 6
