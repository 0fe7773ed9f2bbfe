"""The dataset file: what is read, refused, or left out and counted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from labelled_data import SCHEMA, TWO, dataset, entity, item, line, write_lines

from lpf.datasets import read_dataset, write_dataset
from lpf.errors import DatasetError, UnknownPredicateError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.jsonl"


def test_values_are_inferred_without_a_schema(path: Path) -> None:
    write_lines(path, line(1, label="b"), line(2, label="a"), line(3, label="b"))
    data = read_dataset(path)
    assert data.name == "data"
    assert [(p.name, p.values) for p in data.schema] == [("label", ("a", "b"))]
    assert data.labels("label").tolist() == [1, 0, 1]
    assert data.exclusions == ()


def test_predicate_of_plain_labels_can_be_given(path: Path) -> None:
    data = read_dataset(write_lines(path, line(label="a")), predicate="colour", name="other")
    assert data.name == "other"
    assert data.entities[0].labels == {"colour": "a"}


def test_values_follow_the_schema(path: Path) -> None:
    write_lines(path, line(1, label="high"), line(2, label="low"))
    assert read_dataset(path, schema=SCHEMA).labels("level").tolist() == [2, 0]


def test_a_question_is_read_like_a_claim(path: Path) -> None:
    write_lines(
        path,
        line(1, label="a", claim=None, question="Is it so?"),
        line(2, label="b", claim="It is so.", question="Is it so?"),
    )
    assert [entity.claim for entity in read_dataset(path)] == ["Is it so?", "It is so."]


def test_every_field_is_read(path: Path) -> None:
    evidence = item(
        label="high",
        source="register",
        credibility=1,
        timestamp="2026-01-25T15:42:33+02:00",
        report_id=7,
        truth={"copy_of": None},
        votes=["unknown keys are ignored"],
    )
    given = line(
        entity_id=4,
        claim="It is so.",
        split="dev",
        group_id="g",
        evidence=[evidence],
        facts={"outcome": "clean"},
        fields={"size": [1, 2]},
        truth={"posterior": {"low": 0.5}},
        pages=["also unknown"],
    )
    read = read_dataset(write_lines(path, given), schema=TWO, predicate="level").entities[0]
    assert (read.entity_id, read.claim, read.group_id) == ("4", "It is so.", "g")
    assert read.split == "validation"
    assert read.facts == {"outcome": "clean"}
    assert read.fields == {"size": [1, 2]}
    assert read.truth == {"posterior": {"low": 0.5}}
    only = read.evidence[0]
    assert only.labels == {"level": "high"}
    assert (only.source, only.credibility, only.report_id) == ("register", 1.0, "7")
    assert only.timestamp == datetime(2026, 1, 25, 13, 42, 33, tzinfo=UTC)
    assert only.timestamp.tzinfo is UTC
    assert only.truth == {"copy_of": None}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("train", "train"),
        ("validation", "validation"),
        ("val", "validation"),
        ("dev", "validation"),
        ("valid", "validation"),
        ("test", "test"),
        (None, None),
        (..., None),
    ],
)
def test_split_aliases(path: Path, written: Any, read: str | None) -> None:
    assert read_dataset(write_lines(path, line(split=written))).entities[0].split == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-01-25", datetime(2026, 1, 25, tzinfo=UTC)),
        ("2026-01-25T10:00:00", datetime(2026, 1, 25, 10, tzinfo=UTC)),
        ("2026-01-25T10:00:00Z", datetime(2026, 1, 25, 10, tzinfo=UTC)),
    ],
)
def test_timestamps_are_read_as_utc(path: Path, written: str, read: datetime) -> None:
    data = read_dataset(write_lines(path, line(evidence=[item(timestamp=written)])))
    assert data.entities[0].evidence[0].timestamp == read


def test_labels_of_several_predicates(path: Path) -> None:
    first = line(1, label=..., labels={"level": "low", "outcome": "clean"})
    second = line(2, label=..., labels={"level": "high", "outcome": None})
    data = read_dataset(write_lines(path, first, second), schema=TWO)
    assert data.labels("level").tolist() == [0, 2]
    assert data.labels("outcome").tolist() == [0, -1]


def test_several_predicates_without_a_schema(path: Path) -> None:
    """Labelled predicates come first; values in evidence and facts count too."""
    evidence = [item(labels={"b": "z"})]
    first = line(1, label=..., labels={"b": "y"}, facts={"a": "q"}, evidence=evidence)
    data = read_dataset(write_lines(path, first))
    assert [(p.name, p.values) for p in data.schema] == [("b", ("y", "z")), ("a", ("q",))]
    assert data.item_labels("b").tolist() == [1]


def test_unknown_evidence_labels_are_ignored_and_counted(path: Path) -> None:
    evidence = [
        item(1, label="high"),
        item(2, label="comment"),
        item(3, label=None),
        item(4, label="query"),
    ]
    data = read_dataset(write_lines(path, line(evidence=evidence)), schema=SCHEMA)
    assert [one.labels for one in data.items] == [{"level": "high"}, {}, {}, {}]
    (sentence,) = data.exclusions
    assert sentence.startswith("2 evidence labels are not values")
    assert sentence.endswith("(first: 'comment', line 1).")


def test_plain_evidence_labels_need_a_single_predicate(path: Path) -> None:
    given = line(label=..., labels={"level": "low", "outcome": "clean"})
    given["evidence"] = [item(label="high")]
    data = read_dataset(write_lines(path, given), schema=TWO)
    assert [one.labels for one in data.items] == [{}]
    assert data.exclusions[0].startswith("1 evidence label is not a value")


def test_entities_without_evidence_or_label_are_left_out_and_counted(path: Path) -> None:
    write_lines(
        path,
        line(1),
        "",
        line(2, evidence=[]),
        line(3, label=None),
        line(4, label=...),
        line(5, evidence=[], label=None),
    )
    data = read_dataset(path)
    assert [each.entity_id for each in data] == ["C1"]
    assert data.exclusions == (
        "2 entities have no evidence and were left out (first: C2, line 3).",
        "2 entities have no label and were left out (first: C3, line 4).",
    )


def test_values_of_excluded_entities_are_ignored(path: Path) -> None:
    write_lines(path, line(1, label="a"), line(2, label="b", evidence=[]))
    assert read_dataset(path).schema["label"].values == ("a",)


def test_entities_without_a_value_of_the_predicate_are_left_out(path: Path) -> None:
    first = line(1, label=..., labels={"outcome": "clean"})
    second = line(2, label=..., labels={"level": "low"})
    data = read_dataset(write_lines(path, first, second), schema=TWO, predicate="level")
    assert [each.entity_id for each in data] == ["C2"]
    assert data.exclusions == ("1 entity has no label and was left out (first: C1, line 1).",)


def test_exclusions_do_not_change_the_digest(path: Path) -> None:
    whole = read_dataset(write_lines(path, line(1)))
    cut = read_dataset(write_lines(path, line(1), line(2, evidence=[])))
    assert cut.exclusions
    assert cut == whole
    assert cut.digest == whole.digest


def test_byte_order_mark_and_crlf_are_accepted(path: Path) -> None:
    text = '{"entity_id": "é\u2028", "label": "a", "evidence": [{"evidence_id": 1, "text": "t"}]}'
    path.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n")
    assert read_dataset(path).entities[0].entity_id == "é"


REFUSED = [
    ("{", "is not JSON", "JSON object"),
    ('{"entity_id": NaN}', "is not JSON (NaN is not allowed", "JSON object"),
    ("[" * 100_000, "is not JSON", "JSON object"),
    ('["a"]', "must be a JSON object, got a list", "JSON object"),
    (line(2, entity_id=...), "entity_id: is missing", "needs it"),
    (line(2, entity_id=" "), "entity_id: is empty", "needs it"),
    (line(2, entity_id=["a"]), "entity_id: must be a text", "Give a text"),
    (line(2, entity_id=True), "entity_id: must be a text, got True", "Give a text"),
    (line(2, entity_id="a\0"), "entity_id: contains a NUL character", "Give a text"),
    (line(2, claim=3.5), "claim: must be a text", "Give a text"),
    (line(2, claim="\ud800"), "claim: is not valid Unicode", "Give a text"),
    (line(2, label=0.5), "label: must be a text", "Give a text"),
    (line(2, label="odd"), "label: 'odd' is not a value of 'level'; its values are ['low', "
     "'medium', 'high']", "Correct the label or the schema"),
    (line(2, labels={"level": "low"}), "label: cannot be given together", "one of the two"),
    (line(2, label=..., labels=["low"]), "labels: must be an object", "in braces"),
    (line(2, label=..., labels={"level": "odd"}), "labels.level: 'odd' is not a value", "Correct"),
    (line(2, label=..., labels={"speed": "low"}), "labels.speed: is not a predicate", "Add it"),
    (line(2, label=..., labels={" ": "low"}), "labels: the name ' ' is empty", "Name a predicate"),
    (line(2, facts={"speed": "low"}), "facts.speed: is not a predicate of the schema", "Add it"),
    (line(2, facts={"level": "odd"}), "facts.level: 'odd' is not a value", "Correct"),
    (line(2, fields=[]), "fields: must be an object", "in braces"),
    (line(2, truth="yes"), "truth: must be an object", "in braces"),
    (line(2, split="trian"), "split: is not a split, got 'trian'", "Use one of 'train'"),
    (line(2, split=1), "split: is not a split, got 1", "Use one of 'train'"),
    (line(2, split=""), "split: is not a split, got ''", "Use one of 'train'"),
    (line(2, group_id={}), "group_id: must be a text", "Give a text"),
    (line(2, evidence=...), "evidence: is missing", "a list of objects"),
    (line(2, evidence={}), "evidence: must be a list", "a list of objects"),
    (line(2, evidence=[item(2), "text"]), "evidence[1]: must be an object", "in braces"),
    (line(2, evidence=[item(2, evidence_id=...)]), "evidence[0].evidence_id: is missing", "needs"),
    (line(2, evidence=[item(2, text=...)]), "evidence[0].text: is missing", "needs it"),
    (line(2, evidence=[item(2, text=" \n")]), "evidence[0].text: is empty", "needs it"),
    (line(2, evidence=[item(2, text=5)]), "evidence[0].text: must be a text, got 5", "Give"),
    (line(2, evidence=[item(2, label=[])]), "evidence[0].label: must be a text", "Give a text"),
    (line(2, evidence=[item(2, labels={"level": "odd"})]), "evidence[0].labels.level: 'odd' is not",
     "Correct"),
    (line(2, evidence=[item(2, credibility=1.01)]), "evidence[0].credibility: must be a number in "
     "[0, 1], got 1.01", "null"),
    (line(2, evidence=[item(2, credibility=-1)]), "evidence[0].credibility: must be", "null"),
    (line(2, evidence=[item(2, credibility="0.5")]), "evidence[0].credibility: must be", "null"),
    (line(2, evidence=[item(2, credibility=True)]), "evidence[0].credibility: must be", "null"),
    (line(2, evidence=[item(2, timestamp="yesterday")]), "evidence[0].timestamp: is not a time in "
     "ISO 8601, got 'yesterday'", "Write it as"),
    (line(2, evidence=[item(2, timestamp="0001-01-01T00:00:00+05:00")]), "evidence[0].timestamp: "
     "is not a time", "Write it as"),
    (line(2, evidence=[item(2, timestamp=5)]), "evidence[0].timestamp: must be a text", "Give"),
    (line(2, evidence=[item(2, truth=1)]), "evidence[0].truth: must be an object", "in braces"),
    (line(2, entity_id="C1"), "entity_id: 'C1' is already used in line 1", "unique"),
    (line(2, evidence=[item(1)]), "evidence[0].evidence_id: 'C1_E1' is already used in line 1",
     "unique"),
    (line(2, evidence=[item(2), item(2)]), "evidence[1].evidence_id: 'C2_E1' is already used in "
     "line 2", "unique"),
]  # fmt: skip


@pytest.mark.parametrize(("second", "problem", "hint"), REFUSED)
def test_invalid_line_names_line_field_and_hint(
    path: Path, second: Any, problem: str, hint: str
) -> None:
    write_lines(path, line(1), second)
    with pytest.raises(DatasetError) as caught:
        read_dataset(path, schema=SCHEMA)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 2: {problem}")
    assert "Nothing was read." in message
    assert len(caught.value.message) < 400
    assert hint in caught.value.hint
    if caught.value.field is not None:  # the line is a JSON object
        assert caught.value.field.startswith(f"{path}, line 2: ")


def test_plain_label_needs_a_predicate_if_the_schema_has_several(path: Path) -> None:
    write_lines(path, line())
    with pytest.raises(DatasetError, match=r"line 1: label: the schema has several predicates"):
        read_dataset(path, schema=TWO)
    assert read_dataset(path, schema=TWO, predicate="level").labels("level").tolist() == [0]
    with pytest.raises(UnknownPredicateError):
        read_dataset(path, schema=TWO, predicate="speed")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_empty_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"is empty\. Nothing was read"):
        read_dataset(path)


def test_unreadable_file_is_refused(path: Path) -> None:
    with pytest.raises(DatasetError, match=r"data\.jsonl: cannot be read \(No such file"):
        read_dataset(path)
    with pytest.raises(DatasetError, match=r"cannot be read \(Is a directory\)"):
        read_dataset(path.parent)


def test_file_that_is_not_utf8_is_refused(path: Path) -> None:
    path.write_bytes(b'{"entity_id": "a"}\n{"entity_id": "\xff"}\n')
    with pytest.raises(DatasetError, match=r"line 1: evidence: is missing"):
        read_dataset(path)
    path.write_bytes(b'\n{"entity_id": "\xff"}\n')
    with pytest.raises(DatasetError, match=r"line 2: is not valid UTF-8 .*at byte 16"):
        read_dataset(path)


def test_file_without_usable_entities_is_refused(path: Path) -> None:
    with pytest.raises(DatasetError, match="no entity has both evidence and a label"):
        read_dataset(write_lines(path, line(label=None)))
    with pytest.raises(DatasetError, match=r"no entity has both evidence and a label\. .*1 entity"):
        read_dataset(write_lines(path, line(evidence=[])))
    write_lines(path, line(label=..., labels={"level": "low"}))
    with pytest.raises(DatasetError, match="both evidence and a label of 'speed'"):
        read_dataset(path, predicate="speed")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"timestamp": datetime(2026, 1, 25)}, "evidence: would not be read back"),
        ({"credibility": float("nan")}, "some field: cannot be written as JSON"),
        ({"credibility": 2.0}, "evidence[0].credibility: must be a number in [0, 1]"),
        ({"truth": {"pair": (1, 2)}}, "evidence: would not be read back"),
        ({"truth": {"set": {1}}}, "some field: cannot be written as JSON"),
        ({"source": " a "}, "evidence: would not be read back"),
        ({"text": ""}, "evidence[0].text: is empty"),
        ({"labels": {"level": "odd"}}, "evidence[0].labels.level: 'odd' is not a value"),
    ],
)
def test_lossy_write_is_refused(path: Path, changes: Any, problem: str) -> None:
    path.write_text("kept")
    with pytest.raises(DatasetError) as caught:
        write_dataset(path, dataset([entity(1), entity(2, **changes)]))
    assert f"entity 'C0002': {problem}" in str(caught.value)
    assert "Nothing was written" in str(caught.value)
    assert path.read_text() == "kept"


def test_duplicate_ids_are_not_written(path: Path) -> None:
    with pytest.raises(DatasetError, match="'C0001' is already used in entity 1"):
        write_dataset(path, dataset([entity(1), entity(1)]))
    assert not path.exists()
