"""Single cells of the paper's tables, for the tests that compute its numbers again."""

from __future__ import annotations

from collections.abc import Iterator

from lpf_paper.printed import Printed, printed_slugs, printed_table

DOMAINS = ("academic", "compliance", "construction", "finance", "healthcare", "legal", "materials")
Cell = tuple[str, str, str]


def cell(slug: str, row: str, column: str) -> Printed:
    printed = printed_table(slug).value(row, column)
    assert printed is not None, (slug, row, column)
    return printed


def number(slug: str, row: str, column: str) -> float:
    return cell(slug, row, column).value


def agrees(exact: float, printed: Printed) -> bool:
    return abs(exact - printed.value) <= printed.half_step + 1e-9


def cells() -> Iterator[tuple[Cell, Printed]]:
    for slug in printed_slugs():
        for row, held in printed_table(slug).rows.items():
            for column, printed in held.items():
                yield (slug, row, column), printed


def assert_doubted(found: set[Cell]) -> None:
    undoubted = {place for place in found if not cell(*place).doubts}
    assert not undoubted


def matrix(slug: str) -> list[list[int]]:
    table = printed_table(slug)
    return [[round(number(slug, row, column)) for column in table.columns] for row in table.columns]


def errors(rows: list[list[int]]) -> int:
    return sum(map(sum, rows)) - sum(row[i] for i, row in enumerate(rows))
