"""The tables of options in the documentation are those of the declarations.

After a change of an option run ``python tests/docs/test_option_tables.py`` to rewrite them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lpf.options import DeclaredOption, QueryOptions, options_of
from lpf.training.config import TrainingConfig

DOCS = Path(__file__).parent.parent.parent / "docs"
KINDS = {kind.__name__: kind for kind in (QueryOptions, TrainingConfig)}
TABLE = re.compile(r"<!-- options: (?P<name>\w+) -->\n\n(?P<table>(?:\|.*\n)+)")


def rendered(kind: type) -> str:
    rows = ["| option | default | what it does |", "|---|---|---|"]
    return "\n".join([*rows, *map(row, options_of(kind).values())]) + "\n"


def row(declared: DeclaredOption) -> str:
    value = "\\|".join(declared.choices) or declared.option.metavar or value_name(declared)
    option = f"`{declared.flag} {value}`" if value else f"`{declared.flag}`"
    if declared.off_flag is not None:
        option += f", `{declared.off_flag}`"
    return f"| {option} | {declared.default_text} | {declared.option.help} |"


def value_name(declared: DeclaredOption) -> str:
    names: dict[type, str] = {int: "N", float: "X", str: "TEXT", bool: ""}
    return names[declared.kind]


def pages() -> list[Path]:
    return [page for page in sorted(DOCS.glob("*.md")) if TABLE.search(page.read_text())]


def test_every_kind_of_options_has_its_table() -> None:
    found = {match["name"] for page in pages() for match in TABLE.finditer(page.read_text())}
    assert found == set(KINDS)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_tables_are_those_of_the_declarations(page: Path) -> None:
    for match in TABLE.finditer(page.read_text()):
        assert match["table"] == rendered(KINDS[match["name"]]), f"run {__file__}"


def rewrite() -> None:
    for page in pages():
        text = TABLE.sub(
            lambda match: f"<!-- options: {match['name']} -->\n\n{rendered(KINDS[match['name']])}",
            page.read_text(),
        )
        page.write_text(text)


if __name__ == "__main__":
    rewrite()
