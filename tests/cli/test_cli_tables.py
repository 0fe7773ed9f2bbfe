"""Lists at the widths of real terminals."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from lpf.cli.record_view import show_records
from lpf.cli.terminal import table


def record(**changed: Any) -> dict[str, Any]:
    fields = {
        "record_id": "INF00000001",
        "checkpoint": False,
        "timestamp": "2026-01-25T15:42:33.000000Z",
        "entity_id": "C0001",
        "predicate": "compliance_level",
        "top_value": "medium",
        "confidence": 0.99999,
        "method": "spn",
    }
    return {**fields, **changed}


def listed(width: int, *records: dict[str, Any]) -> list[str]:
    output = io.StringIO()
    show_records(Console(width=width, file=output, highlight=False), records)
    return output.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 66, 72, 80, 100])
def test_a_list_of_records_never_loses_what_it_is_about(width: int) -> None:
    signed = record(method="canonical", checkpoint=True)
    heading, first, second, legend = listed(width, signed, record(entity_id="C0002"))
    assert {"record", "entity", "answer", "confidence"} <= set(heading.split())
    for line, entity in ((first, "C0001"), (second, "C0002")):
        for part in ("INF00000001", entity, "medium", "> 99.99 %"):
            assert part in line
    assert max(map(len, (heading, first, second))) <= width
    assert legend.startswith("* ")


def test_the_legend_is_shown_only_with_a_star() -> None:
    assert len(listed(80, record())) == 2


def test_optional_columns_are_dropped_in_order_if_there_is_no_room() -> None:
    made = table(("a", "b", "c"), [["x" * 10] * 3], optional=("c", "a"))

    def kept(width: int) -> list[str]:
        return [column.heading for column, _ in made.fitted(width)]

    assert (kept(34), kept(33), kept(21)) == (["a", "b", "c"], ["a", "b"], ["b"])


@pytest.mark.parametrize("width", [60, 70, 80])
def test_texts_are_cut_before_item_ids(lpf, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for words in (("list", "--entity", "C0002"), ("search", "an inquiry", "--entity", "C0002")):
        _, *lines = lpf("evidence", *words).stdout.splitlines()
        assert sorted(line.split("C0002")[1].split()[0] for line in lines) == [
            "_E001",
            "_E002",
            "_E003",
        ]
        assert max(map(len, lines)) <= width


def test_ids_are_shortened_last() -> None:
    made = table(("item", "entity"), [["C0001_E001_original", "a-company-of-renown"]])
    assert [width for _, width in made.fitted(40)] == [19, 19]
    assert [width for _, width in made.fitted(20)] == [9, 9]


def test_facts_keep_their_numbers_at_60_columns(lpf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lpf("facts", "set", "C0001", "outcome", "clean", "--confidence", "0.75", "--at", "2026-01-01")
    lpf("facts", "withdraw", 1)
    _, line = lpf("facts", "history", "C0001").stdout.splitlines()
    for part in ("1 ", "C0001", "outcome", "clean", "0.75", "withdrawn"):
        assert part in line
