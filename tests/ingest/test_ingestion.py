"""Ingestion: what is added, what is rejected, and that repeating it changes nothing."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lpf
from ingest.parts import (
    ONE_PREDICATE,
    SCHEMA,
    HashReader,
    numbered_rows,
    row,
    write_csv,
    write_jsonl,
)
from lpf.errors import ConfigError, InputFileError, NonFiniteError
from lpf.factors.keys import content_key
from lpf.ingest import IngestOutcome, content_hash, edit_item, ingest, ingest_rows
from lpf.schema import Predicate, Schema
from lpf.storage.database import Database
from lpf.storage.evidence import DamagedItem, EvidenceStore
from lpf.storage.migrations import migrate
from lpf.storage.values import from_micros, now_micros
from lpf.types import Evidence


def take(rows: list, store: EvidenceStore, tmp_path: Path, **options: object) -> IngestOutcome:
    settings: dict = {"schema": SCHEMA, "reader": HashReader(), "rejects_folder": tmp_path / "bad"}
    settings |= options
    path = write_jsonl(tmp_path / "evidence.jsonl", rows)
    return ingest(path, store, settings.pop("schema"), settings.pop("reader"), **settings)


@contextmanager
def another_store(folder: Path) -> Iterator[EvidenceStore]:
    folder.mkdir()
    with Database(folder / "store.db") as database:
        migrate(database)
        yield EvidenceStore(database)


def contents(store: EvidenceStore) -> list:
    """Everything that must be equal after an interruption: all but salts and times."""
    return [
        (item.row_id, item.evidence, item.content_key, item.content_hash)
        for item in store.page(limit=100_000)
    ]


def random_name(length: int) -> str:
    """Letters that no database can compress."""
    return "".join(random.Random(length).choices(string.ascii_letters + string.digits, k=length))


def counts(outcome: IngestOutcome) -> tuple[int, int, int, int]:
    return outcome.read, outcome.added, outcome.unchanged, outcome.rejected


def test_rows_become_evidence_with_features(either_store: EvidenceStore, tmp_path: Path) -> None:
    full = row(
        evidence_id="E1",
        credibility=0.5,
        timestamp="2026-01-25T15:42:33+01:00",
        evidence_type="hybrid",
        source="audit",
        supports_value="low",
        claim="a claim",
        report_id=17,
    )
    outcome = take([full, row(text_content="другой")], either_store, tmp_path)
    assert counts(outcome) == (2, 2, 0, 0)
    assert (outcome.rejects_file, outcome.problems, outcome.ignored_columns) == (None, (), ())
    stored = either_store.get("E1")
    assert stored.evidence.timestamp.isoformat() == "2026-01-25T14:42:33+00:00"
    assert (stored.evidence.report_id, stored.evidence.supports_value) == ("17", "low")
    assert stored.content_key == content_key("a text", "a claim")
    reader = either_store.reader_number("hash-8", 8)
    vectors = either_store.vectors_after(reader, 0)[1]
    np.testing.assert_array_equal(vectors[0], HashReader().read("a text", "a claim"))
    assert len(either_store.candidates("C1", "level", reader)[0]) == 2


def test_ingesting_again_changes_nothing_and_reads_nothing(
    either_store: EvidenceStore, tmp_path: Path
) -> None:
    rows = [*numbered_rows(20), row(evidence_id="mine")]
    take(rows, either_store, tmp_path, batch=6)
    before, reader = contents(either_store), HashReader()
    outcome = take(rows, either_store, tmp_path, batch=6, reader=reader)
    assert counts(outcome) == (21, 0, 21, 0)
    assert contents(either_store) == before
    assert reader.texts_read == 0


def test_items_without_an_id_are_numbered_per_entity(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(text_content=f"t{n}") for n in range(3)] + [row(entity_id="C2")], store, tmp_path)
    take([row(text_content="t9"), row(text_content="t1")], store, tmp_path)
    ids = [item.evidence.evidence_id for item in store.page()]
    assert ids == ["C1_E001", "C1_E002", "C1_E003", "C2_E001", "C1_E004"]


def test_taken_and_erased_numbers_are_skipped(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="C1_E002", entity_id="C2")], store, tmp_path)
    take([row(text_content=f"t{n}") for n in range(3)], store, tmp_path)
    assert [item.evidence.evidence_id for item in store.page("C1")] == [
        "C1_E001",
        "C1_E003",
        "C1_E004",
    ]
    store.erase("C1_E004")
    take([row(text_content="t9")], store, tmp_path)
    assert store.page("C1")[-1].evidence.evidence_id == "C1_E005"


@pytest.mark.parametrize(
    "given_id", ["2026", "C1_E1234567890", "C1_E" + "9" * 400, "C2_E500", "C1_E\u0665", "C1_E-5"]
)
def test_ids_of_another_form_do_not_affect_numbering(
    store: EvidenceStore, tmp_path: Path, given_id: str
) -> None:
    take([row(evidence_id=given_id)], store, tmp_path)
    take([row(text_content="b"), row(evidence_id="Y", text_content="c")], store, tmp_path)
    assert store.page()[1].evidence.evidence_id == "C1_E001"


def test_numbering_continues_after_the_longest_number(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="C1_E999999999")], store, tmp_path)
    for text in ("b", "c"):
        take([row(text_content=text)], store, tmp_path)
    ids = [item.evidence.evidence_id for item in store.page()]
    assert ids[1:] == ["C1_E1000000000", "C1_E1000000001"]


def test_a_repeated_row_without_an_id_is_one_item(store: EvidenceStore, tmp_path: Path) -> None:
    assert counts(take([row(), row(), row(source="other")], store, tmp_path)) == (3, 2, 1, 0)
    two_ids = [row(evidence_id="A"), row(evidence_id="B")]
    assert counts(take(two_ids, store, tmp_path)) == (2, 2, 0, 0)


def test_an_id_with_different_content_is_a_new_version(
    store: EvidenceStore, tmp_path: Path
) -> None:
    take([row(evidence_id="E1", credibility=0.5)], store, tmp_path)
    corrected = [row(evidence_id="E1", text_content="corrected"), row(evidence_id="E2")]
    outcome = take(corrected, store, tmp_path)
    assert (counts(outcome), outcome.updated) == ((2, 1, 0, 0), 1)
    assert [one.evidence.text_content for one in store.versions("E1")] == ["a text", "corrected"]
    assert store.get("E1").evidence.credibility is None
    reader = store.reader_number("hash-8", 8)
    (_, vector) = store.vectors_after(reader, 0)[1]
    np.testing.assert_array_equal(vector, HashReader().read("corrected"))
    again = take(corrected, store, tmp_path)
    assert (counts(again), again.updated) == ((2, 0, 2, 0), 0)
    assert len(store.versions("E1")) == 2


def test_replaced_items_are_named(store: EvidenceStore, tmp_path: Path) -> None:
    """An ID generated for a row may be the ID of another item in a later file."""
    take([row(entity_id="D5")], store, tmp_path)
    given = row(entity_id="D5", evidence_id="D5_E001", text_content="another")
    outcome = take([given], store, tmp_path)
    assert outcome.updated == 1
    assert outcome.notes == ("1 item replaced by a new version: D5_E001",)
    assert take([given], store, tmp_path).notes == ()
    many = [row(evidence_id=f"M{number}") for number in range(8)]
    assert take(many, store, tmp_path).notes == ()
    (note,) = take([{**one, "source": "s"} for one in many], store, tmp_path, batch=3).notes
    assert note.startswith("8 items")
    assert note.endswith("M0, M1, M2, M3, M4, ...")


def test_updated_items_count_like_added_ones(store: EvidenceStore, tmp_path: Path) -> None:
    class CuttingReader(HashReader):
        def count_cut(self, items: Sequence) -> int:
            return sum(len(text) > 20 for text in items)

    take([row(evidence_id="E1"), row(evidence_id="E2")], store, tmp_path)
    changed = [
        row(evidence_id="E1", text_content="a text that is too long", claim="c"),
        row(evidence_id="E2", claim="c"),
        row(evidence_id="E3", claim="c"),
    ]
    outcome = take(changed, store, tmp_path, reader=CuttingReader())
    assert (outcome.updated, outcome.cut) == (2, 1)
    assert any(note.startswith("3 items have claims") for note in outcome.notes)


def test_a_row_without_an_id_does_not_bring_back_a_replaced_version(
    either_store: EvidenceStore, tmp_path: Path
) -> None:
    store, rows = either_store, [row(text_content="wrong"), row(text_content="right")]
    take(rows, store, tmp_path)
    (name,) = [
        one.evidence.evidence_id for one in store.page() if one.evidence.text_content == "wrong"
    ]
    edit_item(name, {"text_content": "corrected"}, store, SCHEMA, HashReader())
    assert counts(take(rows, store, tmp_path)) == (2, 0, 2, 0)
    assert store.count() == 2
    store.erase(name)
    again = take(rows, store, tmp_path)  # nothing is known of an erased text
    assert counts(again) == (2, 1, 1, 0)


@pytest.mark.parametrize(
    "change", ["text_content = 'swapped'", "credibility = 0.1", "version = 9223372036854775807"]
)
def test_a_damaged_item_is_replaced_by_a_corrected_row(
    store: EvidenceStore, tmp_path: Path, change: str
) -> None:
    take([row(evidence_id="E1"), row(evidence_id="E2")], store, tmp_path)
    store.database.connection.execute(f"UPDATE evidence SET {change} WHERE evidence_id = 'E1'")
    corrected = [row(evidence_id=name, text_content="corrected") for name in ("E1", "E2", "E3")]
    outcome = take(corrected, store, tmp_path)
    assert (counts(outcome), outcome.updated) == ((3, 1, 0, 0), 2)
    current = store.get("E1")
    assert (current.evidence.text_content, current.version) == ("corrected", 2)
    damaged: list[DamagedItem] = []
    assert store.versions("E1", damaged) == [current]
    assert [item.evidence_id for item in damaged] == ["E1"]
    edit_item("E1", {"credibility": 0.5}, store, SCHEMA, HashReader())
    assert store.get("E1").version == 3


def test_an_id_given_twice_with_different_content_is_rejected(
    store: EvidenceStore, tmp_path: Path
) -> None:
    """Which of them is right is unknown. Ingesting again must not swap them."""
    rows = [row(evidence_id="E2"), row(evidence_id="E2", credibility=0.1), row(evidence_id="E2")]
    for expected in ((3, 1, 1, 1), (3, 0, 2, 1)):
        outcome = take(rows, store, tmp_path, batch=1)
        assert (counts(outcome), outcome.updated) == (expected, 0)
    problem = str(outcome.problems[0])
    assert problem.startswith(f"{tmp_path}/evidence.jsonl, line 2: evidence_id: 'E2' ")


def test_an_id_of_an_item_about_another_entity_is_rejected(
    store: EvidenceStore, tmp_path: Path
) -> None:
    """Two files that number their items from 1 must not overwrite each other."""
    take([row(evidence_id=1), row(evidence_id=2)], store, tmp_path)
    others = [row(evidence_id=1, entity_id="C9"), row(evidence_id=2, predicate="outcome")]
    outcome = take(others, store, tmp_path)
    assert (counts(outcome), outcome.updated) == ((2, 0, 0, 2), 0)
    assert {problem.field for problem in outcome.problems} == {"evidence_id"}
    assert store.get("1").evidence.entity_id == "C1"


def test_an_item_replaced_by_another_process_meanwhile_is_not_a_failure(
    store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take([row(evidence_id="E1"), row(evidence_id="E2")], store, tmp_path)
    corrected = [row(evidence_id=name, text_content="corrected") for name in ("E1", "E2")]
    replace_items, calls = store.replace, iter([True])

    def overtaken(items: list, *given: object) -> None:
        if next(calls, False):
            replace_items(items[:1], None, None)
        replace_items(items, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "replace", overtaken)
    outcome = take(corrected, store, tmp_path)
    assert (counts(outcome), outcome.updated) == ((2, 0, 1, 0), 1)


def test_rows_that_look_like_edits_are_pointed_out(store: EvidenceStore, tmp_path: Path) -> None:
    seen = {"source": "audit", "timestamp": "2026-01-25"}
    first = [row(**seen), row(text_content="b", **seen), row(text_content="c")]
    assert take(first, store, tmp_path).notes == ()
    edited = [row(text_content="d"), row(text_content="a text, corrected", **seen)]
    (note,) = take(edited, store, tmp_path).notes
    assert "1 of the new items" in note
    assert "line 2" in note
    assert "evidence_id" in note
    assert "lpf evidence edit" in note
    more = [row(text_content=text, **seen) for text in ("e", "f")]
    (note,) = take(more, store, tmp_path).notes
    assert "2 of the new items" in note
    with_id = [row(evidence_id="C1_E001", text_content="a text, edited", **seen)]
    outcome = take(with_id, store, tmp_path)
    assert (outcome.added, outcome.updated) == (0, 1)
    assert not any("corrections" in note for note in outcome.notes)


def test_an_edit_of_a_dated_row_without_a_source_is_pointed_out(
    store: EvidenceStore, tmp_path: Path
) -> None:
    seen = {"timestamp": "2026-01-25"}
    take([row(**seen), row(text_content="b", source="audit", **seen)], store, tmp_path)
    (note,) = take([row(text_content="a text, corrected", **seen)], store, tmp_path).notes
    assert "1 of the new items" in note
    other = [row(text_content="c", source="press", **seen), row(text_content="d")]
    assert take(other, store, tmp_path).notes == ()


def test_an_erased_id_is_rejected(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="E1")], store, tmp_path)
    store.erase("E1")
    outcome = take([row(evidence_id="E1")], store, tmp_path)
    assert counts(outcome) == (1, 0, 0, 1)
    assert "was erased at 20" in outcome.problems[0].error
    assert store.count() == 0


@pytest.mark.parametrize(
    ("wrong", "field", "error"),
    [
        ({"entity_id": None}, "entity_id", "is missing"),
        ({"entity_id": ["C1"]}, "entity_id", "must be a text"),
        ({"text_content": "  "}, "text_content", "is empty"),
        ({"text_content": 7}, "text_content", "must be a text, got 7"),
        ({"text_content": "a\0b"}, "text_content", "NUL"),
        ({"text_content": "\ud800"}, "text_content", "not valid Unicode"),
        ({"text": "another text"}, "text", "give only one"),
        ({"predicate": None}, "predicate", "is missing"),
        ({"predicate": "size"}, "predicate", "'size' is not in the schema"),
        ({"supports_value": "huge"}, "supports_value", "'huge' is not a value of 'level'"),
        ({"credibility": 1.5}, "credibility", "got 1.5"),
        ({"credibility": float("nan")}, "credibility", "got nan"),
        ({"credibility": "high"}, "credibility", "must be a number, got 'high'"),
        ({"credibility": True}, "credibility", "must be a number, got True"),
        ({"timestamp": "yesterday"}, "timestamp", "must be a time in ISO 8601"),
        ({"timestamp": 1769355753}, "timestamp", "must be a time in ISO 8601"),
        ({"timestamp": "9999-12-31T23:59:59-05:00"}, "timestamp", "years 1900 to 9999"),
        ({"timestamp": "0205-01-25"}, "timestamp", "got '0205-01-25'"),
        ({"source": "  "}, "source", "is empty"),
        ({"text_content": None}, "text", "is missing"),
        ({"evidence_type": "image"}, "evidence_type", "must be one of"),
        ({"text_content": "UNREADABLE"}, "text_content", "cannot be read"),
    ],
)
def test_only_the_row_with_an_invalid_field_is_rejected(
    store: EvidenceStore, tmp_path: Path, wrong: dict, field: str, error: str
) -> None:
    rows = [row(text_content="before"), row(**wrong), row(text_content="after")]
    outcome = take(rows, store, tmp_path)
    assert counts(outcome) == (3, 2, 0, 1)
    (problem,) = outcome.problems
    assert (problem.line, problem.field) == (2, field)
    assert error in problem.error
    (line,) = outcome.rejects_file.read_text(encoding="utf-8").splitlines()
    entry = json.loads(line)
    assert list(entry) == ["file", "line", "field", "error", "row"]
    assert entry["row"].keys() == rows[1].keys()


def test_everything_that_is_wrong_with_a_row_is_reported(
    store: EvidenceStore, tmp_path: Path
) -> None:
    wrong = row(entity_id=None, credibility=7, timestamp="soon", supports_value="huge", source=" ")
    outcome = take([wrong], store, tmp_path)
    (problem,) = outcome.problems
    fields = ["entity_id", "credibility", "timestamp", "source", "supports_value"]
    assert [each["field"] for each in problem.errors] == fields
    for name in fields:
        assert f"{name}: " in str(problem)
    (line,) = outcome.rejects_file.read_text(encoding="utf-8").splitlines()
    assert [each["field"] for each in json.loads(line)["errors"]] == fields


LONG_PREDICATE = Schema((Predicate("p" * 513, ("low", "high")),))


@pytest.mark.parametrize(
    ("wrong", "length", "longest"),
    [
        ({"evidence_id": random_name(8000)}, 8000, 512),
        ({"entity_id": random_name(501)}, 501, 500),
        ({"source": "é" * 257}, 514, 512),
        ({"report_id": random_name(513)}, 513, 512),
        ({"predicate": "p" * 513}, 513, 512),
    ],
)
def test_a_name_too_long_for_an_index_is_rejected(
    either_store: EvidenceStore, tmp_path: Path, wrong: dict, length: int, longest: int
) -> None:
    schema = LONG_PREDICATE if "predicate" in wrong else SCHEMA
    rows = [row(**wrong)] + ([] if "predicate" in wrong else [row(text_content="b")])
    outcome = take(rows, either_store, tmp_path, schema=schema)
    (problem,) = outcome.problems
    assert problem.field == next(iter(wrong))
    assert problem.error == f"is {length} bytes long; at most {longest} are allowed"
    assert either_store.count() == len(rows) - 1


def test_names_of_the_maximum_length_are_accepted(
    either_store: EvidenceStore, tmp_path: Path
) -> None:
    schema = Schema((Predicate(random_name(512), ("low", "high")),))
    entity_id = random_name(500)
    given = {"source": random_name(512), "report_id": random_name(512), "predicate": None}
    rows = [row(entity_id=entity_id, evidence_id=random_name(512), **given)]
    rows += [row(entity_id=entity_id, text_content="b", **given)]
    assert take(rows, either_store, tmp_path, schema=schema).added == 2
    numbered = either_store.page(entity_id)[1].evidence.evidence_id
    again = [row(entity_id=entity_id, evidence_id=numbered, text_content="b", **given)]
    assert take(again, either_store, tmp_path, schema=schema).unchanged == 1


def test_a_number_with_too_many_digits_is_rejected_as_id(
    store: EvidenceStore, tmp_path: Path
) -> None:
    outcome = take([row(entity_id=10**400), row(entity_id=10**100)], store, tmp_path)
    assert counts(outcome) == (2, 1, 0, 1)
    assert "more than 512 bits" in outcome.problems[0].error


def test_rejects_are_in_the_order_of_the_file(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="E1")], store, tmp_path)
    conflict = row(evidence_id="E1", entity_id="C9")
    bad = [conflict, row(credibility=7), row(text_content="UNREADABLE"), conflict]
    outcome = take(bad, store, tmp_path)
    assert [problem.line for problem in outcome.problems] == [1, 2, 3, 4]


def test_the_outcome_has_the_first_problems_and_the_file_has_all(
    store: EvidenceStore, tmp_path: Path
) -> None:
    outcome = take([row(credibility=7)] * 45, store, tmp_path, batch=10)
    assert (outcome.rejected, len(outcome.problems)) == (45, 20)
    assert len(outcome.rejects_file.read_text().splitlines()) == 45
    assert outcome.rejects_file.name.startswith("evidence.jsonl.")
    assert outcome.rejects_file.name.endswith(".rejects.jsonl")


def test_strict_adds_all_rows_or_none(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="E1")], store, tmp_path)
    rows = [
        *numbered_rows(10),
        row(credibility=7),
        row(evidence_id="E1", entity_id="C9"),
        row(evidence_id="E5"),
        *numbered_rows(10),
        row(evidence_id="E5", text_content="b"),
    ]
    with pytest.raises(InputFileError) as caught:
        take(rows, store, tmp_path, strict=True, batch=4)
    message = str(caught.value)
    assert "3 of 24 rows are invalid. Nothing was added" in message
    for line in ("line 11: credibility", "line 12: evidence_id", "line 24: evidence_id"):
        assert f"evidence.jsonl, {line}" in message
    assert store.count() == 1
    assert not (tmp_path / "bad").exists()
    good = [rows[n] for n in range(24) if n not in (10, 11, 23)]
    assert counts(take(good, store, tmp_path, strict=True, batch=4)) == (21, 11, 10, 0)


def test_strict_lists_problems_in_the_order_of_lines(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="E1")], store, tmp_path)
    bad = [row(evidence_id="E1", entity_id="C9"), row(credibility=7)] * 3
    with pytest.raises(InputFileError) as caught:
        take(bad, store, tmp_path, strict=True, batch=4)
    first, *listed = str(caught.value).splitlines()
    path = tmp_path / "evidence.jsonl"
    assert first.startswith(f"{path}: 6 of 6 rows")
    assert [line.split(": ")[0] for line in listed] == [f"  {path}, line {n}" for n in range(1, 7)]


def test_whitespace_around_names_is_ignored(store: EvidenceStore, tmp_path: Path) -> None:
    names = {"evidence_id": "E4", "entity_id": "C4", "predicate": "level", "source": "audit"}
    names |= {"report_id": "R1", "supports_value": "low"}
    blank = {name: f" {text}\u00a0\t" for name, text in names.items()}
    rows = [row(text_content=" a text ", **given) for given in (blank, names)]
    assert counts(take(rows, store, tmp_path)) == (2, 1, 1, 0)
    kept = store.get("E4").evidence
    assert {name: getattr(kept, name) for name in names} == names
    assert kept.text_content == " a text "


def test_items_dated_in_the_future_are_added_and_counted(
    store: EvidenceStore, tmp_path: Path
) -> None:
    minutes = [None, -60, 3, 7, 60 * 24 * 365]
    moments = [m and from_micros(now_micros() + m * 60_000_000).isoformat() for m in minutes]
    rows = [row(evidence_id=f"E{n}", timestamp=moment) for n, moment in enumerate(moments)]
    outcome = take([*rows, row(credibility=7, timestamp="2999-01-01")], store, tmp_path, batch=2)
    assert (outcome.added, outcome.dated_later) == (5, 2)
    assert take(rows, store, tmp_path).dated_later == 0


def test_strict_gives_the_same_store(store: EvidenceStore, tmp_path: Path) -> None:
    rows = [*numbered_rows(9), row(evidence_id="C1_E003"), *numbered_rows(12)]
    take(rows, store, tmp_path, strict=True, batch=4)
    strict = [item[1] for item in contents(store)]
    with another_store(tmp_path / "other") as plain:
        take(rows, plain, tmp_path / "other", batch=4)
        assert [item[1] for item in contents(plain)] == strict


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_an_interrupted_run_is_completed_by_another(
    store: EvidenceStore, tmp_path: Path, stop_after: int
) -> None:
    rows = [*numbered_rows(10), row(credibility=7), row(evidence_id="C1_E009"), *numbered_rows(25)]
    rows[2] = row(credibility=8)

    def stop(done: int, total: int | None) -> None:
        if done >= stop_after * 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(rows, store, tmp_path, batch=8, progress=stop)
    assert len(list((tmp_path / "bad").glob("*.rejects.jsonl"))) == 1
    take(rows, store, tmp_path, batch=8)
    with another_store(tmp_path / "whole") as untouched:
        take(rows, untouched, tmp_path / "whole", batch=8)
        assert contents(untouched) == contents(store)
        ours, theirs = (s.vectors_after(1, 0) for s in (store, untouched))
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_a_failed_batch_adds_nothing(store: EvidenceStore, tmp_path: Path) -> None:
    class Breaking(HashReader):
        def read_many(self, items, *, progress=None):  # type: ignore[no-untyped-def]
            if self.texts_read >= 8:
                raise RuntimeError("the power is out")
            return super().read_many(items, progress=progress)

    with pytest.raises(RuntimeError):
        take(numbered_rows(20), store, tmp_path, batch=8, reader=Breaking())
    assert store.count() == 8
    assert store.missing_features(1, 100) == []


def test_progress_gets_rows_done_and_the_total_if_known(
    store: EvidenceStore, tmp_path: Path
) -> None:
    calls: list = []
    take(numbered_rows(10), store, tmp_path, batch=4, progress=lambda *done: calls.append(done))
    assert calls == [(4, None), (8, None), (10, None)]
    calls.clear()
    take(
        numbered_rows(10),
        store,
        tmp_path,
        batch=4,
        strict=True,
        progress=lambda *done: calls.append(done),
    )
    assert calls == [(4, 10), (8, 10), (10, 10)]


def test_the_only_predicate_need_not_be_named(store: EvidenceStore, tmp_path: Path) -> None:
    rows = [{"entity_id": 42, "text": "short name"}]
    assert counts(take(rows, store, tmp_path, schema=ONE_PREDICATE)) == (1, 1, 0, 0)
    evidence = store.get("42_E001").evidence
    assert (evidence.predicate, evidence.text_content) == ("level", "short name")


def test_columns_similar_to_a_field_are_reported(store: EvidenceStore, tmp_path: Path) -> None:
    rows = [row(support_value="low", Credibility=0.5, colour="red", zeal=1, **{"report id": 3})]
    outcome = take(rows, store, tmp_path)
    assert outcome.meant == {
        "Credibility": "credibility",
        "report id": "report_id",
        "support_value": "supports_value",
    }
    both = write_csv(tmp_path / "a.csv", [row(source="audit", sources="audit, press")])
    outcome = ingest(both, store, SCHEMA, HashReader(), rejects_folder=tmp_path)
    assert (outcome.ignored_columns, outcome.meant) == (("sources",), {})


def test_ignored_columns_are_named(store: EvidenceStore, tmp_path: Path) -> None:
    outcome = take([row(zeal=1), row(embedding_id=4, colour="red")], store, tmp_path)
    assert outcome.ignored_columns == ("colour", "embedding_id", "zeal")


def test_a_question_is_stored_as_the_claim(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="E1", question="Is it so?")], store, tmp_path)
    assert store.get("E1").evidence.claim == "Is it so?"


def test_rows_without_claim_are_added_whatever_the_reader(
    store: EvidenceStore, tmp_path: Path
) -> None:
    reader = HashReader(uses_claim=True)
    outcome = take([row(claim="c"), row()], store, tmp_path, reader=reader)
    assert counts(outcome) == (2, 2, 0, 0)
    assert outcome.notes == ()


def test_claims_that_are_not_read_are_noted(store: EvidenceStore, tmp_path: Path) -> None:
    (note,) = take([row(claim="c"), row(), row(claim="d")], store, tmp_path).notes
    assert note.startswith("2 items have claims")


@pytest.mark.parametrize(("claim", "expected"), [("c", True), ("", False)])
def test_the_reader_may_be_chosen_by_what_the_rows_have(
    store: EvidenceStore, tmp_path: Path, claim: str, expected: bool
) -> None:
    asked: list[bool] = []

    def choose(has_claims: bool) -> HashReader:
        asked.append(has_claims)
        return HashReader(uses_claim=has_claims)

    rows = [row(), row(claim=claim, text="other")]
    ingest_rows(rows, store, SCHEMA, choose, rejects_folder=tmp_path)
    assert asked == [expected]


def test_rows_in_memory_are_ingested_like_a_file(store: EvidenceStore, tmp_path: Path) -> None:
    rows = [row(), row(credibility=7)]
    outcome = ingest_rows(rows, store, SCHEMA, HashReader(), rejects_folder=tmp_path, name="posted")
    assert counts(outcome) == (2, 1, 0, 1)
    assert str(outcome.problems[0]).startswith("posted, row 2: credibility")


def test_an_id_taken_by_another_process_is_not_a_failure(
    either_store: EvidenceStore, tmp_path: Path
) -> None:
    """It adds the same file while this run is reading; nothing is added twice."""
    rows = numbered_rows(12, entities=2)

    class Overtaken(HashReader):
        overtaken = False

        def read_many(self, items, *, progress=None):  # type: ignore[no-untyped-def]
            if not self.overtaken:
                self.overtaken = True
                ingest_rows(
                    rows[3:9],
                    either_store,
                    SCHEMA,
                    HashReader(),
                    rejects_folder=tmp_path,
                    name="other",
                )
            return super().read_many(items, progress=progress)

    outcome = take(rows, either_store, tmp_path, reader=Overtaken())
    assert counts(outcome) == (12, 6, 6, 0)
    assert either_store.count() == 12


def test_a_reader_with_nan_features_is_not_called_again(
    store: EvidenceStore, tmp_path: Path
) -> None:
    class Broken(HashReader):
        def read_many(self, items, *, progress=None):  # type: ignore[no-untyped-def]
            return super().read_many(items, progress=progress) * np.float32("nan")

    reader = Broken()
    with pytest.raises(NonFiniteError, match="Nothing was written"):
        take([row()], store, tmp_path, reader=reader)
    assert (store.count(), reader.texts_read) == (0, 1)


def test_strict_shows_the_first_problems_and_counts_all(
    store: EvidenceStore, tmp_path: Path
) -> None:
    with pytest.raises(InputFileError, match="45 of 46 rows") as caught:
        take([row()] + [row(credibility=7)] * 45, store, tmp_path, strict=True, batch=10)
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (22, "  ...")


def test_the_batch_size_must_be_positive(store: EvidenceStore, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="batch: must be at least 1, got 0"):
        take([row()], store, tmp_path, batch=0)


def test_ingestion_works_with_the_default_reader(store: EvidenceStore, tmp_path: Path) -> None:
    reader = lpf.open_reader()
    take([row(text_content="Audit found no issue."), row()], store, tmp_path, reader=reader)
    number = store.reader_number(reader.reader_id, reader.width)
    vectors = store.vectors_after(number, 0)[1]
    np.testing.assert_allclose(vectors[0], reader.read("Audit found no issue."), atol=1e-5)


def test_the_content_hash_covers_every_field_but_the_id() -> None:
    plain = Evidence("E1", "C1", "level", "a text")
    changed = [
        {"entity_id": "x"},
        {"predicate": "x"},
        {"text_content": "x"},
        {"credibility": 0.5},
        {"timestamp": from_micros(0)},
        {"evidence_type": "hybrid"},
        {"source": "x"},
        {"supports_value": "x"},
        {"claim": "x"},
        {"report_id": "x"},
    ]
    hashes = {content_hash(replace(plain, **change)) for change in changed}
    assert len(hashes | {content_hash(plain)}) == 11
    assert content_hash(replace(plain, evidence_id="E2")) == content_hash(plain)
    # These bytes are stored: another definition would make every item look new.
    assert content_hash(plain).hex() == "58a29e20766e84f7707eaba3c7bcce46"


DATASET_ROW = {"entity_id": "K1", "label": "low", "evidence": [{"evidence_id": 1, "text": "a"}]}


def test_an_item_with_an_extra_list_is_accepted(store: EvidenceStore, tmp_path: Path) -> None:
    rows = [row(evidence=["see", "there"]), DATASET_ROW]
    assert counts(take(rows, store, tmp_path)) == (2, 1, 0, 1)
