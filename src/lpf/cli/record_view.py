"""Records of the ledger on the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lpf.cli.safe_output import one_line
from lpf.cli.terminal import (
    FittedTable,
    distribution,
    indented,
    number,
    percent,
    print_pairs,
    print_table,
    table,
)
from lpf.explain.how_sure import how_sure_then
from lpf.results import NO_ANSWER

PRIOR = "prior"  # the method of an answer without any evidence
SHOWN_ABOVE = frozenset(
    {"record_id", "kind", "entity_id", "predicate", "top_value", "format", "comment"}
    | {"comment_words"}
)
MINUTE = len("2026-01-25T15:42")


def show_records(output: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """One line per record; a star marks those with a checkpoint."""
    if not records:
        output.print("There is no record yet.")
        return
    names = ["record", "", "time", "entity", "predicate", "answer", "confidence", "method"]
    optional, rows = ["method", "time"], [_row(record) for record in records]
    if any(_who(record) for record in records):  # earlier versions did not record it
        names, optional = [*names, "asked by"], ["asked by", *optional]
        rows = [[*row, _who(record)] for row, record in zip(rows, records, strict=True)]
    body = table(names, rows, right=("confidence",), optional=optional)
    output.print(body)
    if any(record["checkpoint"] for record in records):
        output.print("* a signed checkpoint covers all records up to this one", style="dim")


def show_record(output: Console, record: Mapping[str, Any]) -> None:
    """One record with its context."""
    answer = ", ".join(filter(None, _answer(record)))
    title = f"{record['entity_id']} · {record['predicate']}: {answer}"
    output.print(Text(one_line(f"{record['record_id']}  {title}"), style="bold"))
    output.print(indented(distribution(_in_schema_order(record), output.width)))
    output.print()
    if record.get("evidence_chain"):
        print_table(output, "Evidence", _items(record, record["context"]["values"]))
        output.print()
    for one in record.get("related", ()):
        values = record["context"]["related"][one["predicate"]]["values"]
        print_table(output, f"Related evidence: {one['predicate']}", _items(one, values))
        output.print()
    print_pairs(output, _pairs(record))


def show_other_record(output: Console, record: Mapping[str, Any]) -> None:
    """A record that is no answer, such as a review: what it says, field by field."""
    said = record.get("top_value")
    title = f"{record['record_id']}  {record['entity_id']} · {record['predicate']}: "
    title += _kind(record) if said is None else f"{_kind(record)}, {said}"
    output.print(Text(one_line(title), style="bold"))
    pairs = [
        (name.replace("_", " "), value if isinstance(value, str) else _json(value))
        for name, value in record.items()
        if name not in SHOWN_ABOVE
    ]
    words = record.get("comment_words")
    if words is not None:
        pairs += [("comment", words["comment"])] if words["comment"] else []
        pairs += [("reason", reason) for reason in words["reasons"] if reason]
    elif "comment" in record:
        pairs.append(("comment", "erased"))
    print_pairs(output, pairs)


def _who(record: Mapping[str, Any]) -> str:
    return str(record.get("asked_by", record.get("reviewer", "")))


def _kind(record: Mapping[str, Any]) -> str:
    return str(record["kind"]).replace("_", " ")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _row(record: Mapping[str, Any]) -> list[str]:
    if "kind" in record:
        said, how, confidence = record.get("top_value"), _kind(record), ""
        answer = how if said is None else f"{said} ({how})"
    else:
        (answer, confidence), how = _answer(record), record["method"]
    return [
        record["record_id"],
        "*" if record["checkpoint"] else "",
        _to_minute(record["timestamp"]),
        record["entity_id"],
        record["predicate"],
        answer,
        confidence,
        how,
    ]


def _answer(record: Mapping[str, Any]) -> tuple[str, str]:
    """Top value and confidence. Records of older versions hold those of the prior where there is
    no answer."""
    if record["method"] == PRIOR:
        return "", NO_ANSWER  # a narrow table shortens names, never numbers
    return record["top_value"], percent(record["confidence"])


def _in_schema_order(record: Mapping[str, Any]) -> dict[str, float]:
    """A record's own keys are sorted; its context has the values in the schema's order."""
    return {value: record["distribution"][value] for value in record["context"]["values"]}


def _items(record: Mapping[str, Any], values: Sequence[str]) -> FittedTable:
    """What each item says, and the salted hash of its text."""
    factors = record["factors"]
    rows = [
        [evidence_id, _factor(values, factors, place), commitment]
        for place, (evidence_id, commitment) in enumerate(record["evidence_chain"])
    ]
    names = ("item", "weight" if "weight" in factors else "says", "salted hash of its text")
    return table(names, rows, flexible=names[-1])


def _factor(values: Sequence[str], factors: Mapping[str, Any], place: int) -> str:
    if "weight" in factors:
        return number(factors["weight"][place])
    potential = factors["potential"][place]
    best = max(range(len(values)), key=potential.__getitem__)
    return f"{values[best]} {100 * potential[best]:.0f} %"


def _pairs(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    context = record["context"]
    pairs = [
        ("answered", record["timestamp"]),
        ("as of", record["as_of"]),
        *([("asked by", record["asked_by"])] if "asked_by" in record else []),
        *_query_text(record),
        ("method", f"{record['method']} ({record['query_type']})"),
        *[("fact", _fact(fact)) for fact in record.get("facts", ())],
        *[("how sure", line) for line in how_sure_then(record)],
        *[("note", note) for note in record.get("notes", ())],
        *[(name, str(version)) for name, version in context["versions"].items()],
        ("options", _options(context["hyperparameters"])),
        ("leaf", record["leaf"]),
        ("took", f"{record['execution_time_ms']} ms"),
    ]
    if record["checkpoint"]:
        pairs.append(("checkpoint", "signed up to this record"))
    return pairs


def _query_text(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    if "query_text" not in record:
        return []
    words = record["query_words"]
    return [("query text", "erased" if words is None else words)]


def _fact(fact: Mapping[str, Any]) -> str:
    belief = "certain" if fact["role"] == "hard" else f"{percent(fact['strength'])} sure"
    return f"{fact['predicate']} = {fact['value']}, {belief}, dated {_to_minute(fact['timestamp'])}"


def _options(options: Mapping[str, Any]) -> str:
    given = {name: value for name, value in options.items() if value is not None}
    return ", ".join(f"{name} {value}" for name, value in given.items())


def _to_minute(timestamp: str) -> str:
    return timestamp[:MINUTE].replace("T", " ")
