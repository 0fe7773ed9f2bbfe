"""FEVER: a few claims and pages in the official format, with made-up sentences."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from labelled_data import write_lines

from lpf.datasets import FEVER_LABELS, read_dataset, read_fever, write_dataset
from lpf.datasets.fever import page_groups
from lpf.errors import ConfigError, DatasetError

FEVER = Path(__file__).parent / "fever"
CLAIMS = FEVER / "claims.jsonl"
WIKI = FEVER / "wiki"


def claim(**changes: Any) -> dict[str, Any]:
    evidence = [[[1, 2, "Lake_Merrin", 0]]]
    return {"id": 1, "label": "SUPPORTS", "claim": "A claim.", "evidence": evidence, **changes}


def test_claims_have_the_sentences_they_cite() -> None:
    data = read_fever(CLAIMS, WIKI, split="validation")
    assert [each.entity_id for each in data] == [f"FEVER_{n}" for n in (101, 102, 104, 106)]
    assert [each.labels["compliance_level"] for each in data] == ["high", "low", "high", "low"]
    assert {each.split for each in data} == {"validation"}
    first = data.entities[0]
    assert first.claim == "Ostrava Tower was finished in 1911."
    assert first.fields == {"fever_label": "SUPPORTS"}
    assert [(item.evidence_id, item.source, item.text) for item in first.evidence] == [
        (
            "FEVER_101_E001",
            "Ostrava Tower (museum)",
            "The Ostrava Tower ( finished in 1911 ) is a small museum .",
        ),
        ("FEVER_101_E002", "Ostrava Tower (museum)", "Its staircase was drawn by Jana Nováková ."),
        ("FEVER_101_E003", "Jana Nováková", "She drew the staircase of a tower in 1909 ."),
    ]
    last = data.entities[-1].evidence[0]
    assert last.source == "Night Ferry: A Song"
    assert last.text == "It lasts about nine minutes [ at the first night ] ."


def test_missing_sentences_are_counted() -> None:
    data = read_fever(CLAIMS, WIKI)
    assert data.exclusions == (
        "2 claims are NOT ENOUGH INFO, cite no evidence and were left out "
        "(first: claim 103, line 3).",
        "1 entity has no label and was left out (first: claim 108, line 8).",
        "1 cited sentence was left out, since its page has none of that number "
        "(first: Lake_Merrin, sentence 7, of claim 104, line 4).",
        "1 cited sentence was left out, since its page is not in the wiki files "
        "(first: Port_Aldous, sentence 0, of claim 105, line 5).",
        "1 claim has none of the sentences it cites and was left out (first: claim 105, line 5).",
    )
    assert data.schema["compliance_level"].values == ("low", "high")


def test_claims_that_share_a_page_share_a_group() -> None:
    groups = [each.group_id for each in read_fever(CLAIMS, WIKI)]
    assert groups[0] == groups[1]
    assert groups[2:] == ["Lake_Merrin", "Night_Ferry-COLON-_A_Song"]


def test_groups_are_transitive_and_independent_of_order() -> None:
    pages = [{"a"}, {"c", "b"}, {"x"}, {"b", "a"}, {"c"}, {"x"}]
    groups = page_groups(pages)
    assert len({groups[i] for i in (0, 1, 3, 4)}) == 1
    assert groups[2] == groups[5] == "x"
    assert page_groups(pages[::-1]) == groups[::-1]


def test_fevers_own_labels_can_be_used() -> None:
    data = read_fever(CLAIMS, WIKI, mapping=FEVER_LABELS, nei="sample", seed=1)
    assert data.schema["verdict"].values == ("REFUTES", "NOT ENOUGH INFO", "SUPPORTS")
    assert data.entities[0].labels == {"verdict": "SUPPORTS"}


def sampled(wiki: Any, seed: int) -> Mapping[str, tuple[str, ...]]:
    data = read_fever(CLAIMS, wiki, nei="sample", seed=seed)
    assert data.schema["compliance_level"].values == ("low", "medium", "high")
    assert "2 claims are NOT ENOUGH INFO and were given sentences" in " ".join(data.exclusions)
    return {
        each.entity_id: tuple(item.text for item in each.evidence)
        for each in data
        if each.labels["compliance_level"] == "medium"
    }


def test_sampled_sentences_depend_on_the_seed_only() -> None:
    files = sorted(WIKI.glob("*.jsonl"))
    found = {seed: sampled(WIKI, seed) for seed in range(6)}
    assert all(list(texts) == ["FEVER_103", "FEVER_107"] for texts in found.values())
    assert all(all(1 <= len(t) <= 3 for t in texts.values()) for texts in found.values())
    assert len({tuple(texts.values()) for texts in found.values()}) > 1
    assert sampled(files[::-1], 4) == found[4]


def test_pages_repeat_if_there_are_too_few(tmp_path: Path) -> None:
    page = {"id": "Copper_kettle", "lines": "0\tIt heats evenly ."}
    one = write_lines(tmp_path / "one.jsonl", page)
    claims = write_lines(
        tmp_path / "claims.jsonl",
        claim(id=1, label="NOT ENOUGH INFO", evidence=[[[1, None, None, None]]]),
        claim(id=2, label="NOT ENOUGH INFO", evidence=[]),
    )
    data = read_fever(claims, one, nei="sample", seed=0)
    assert [item.text for item in data.items] == ["It heats evenly ."] * 2
    assert [each.group_id for each in data] == ["Copper_kettle"] * 2
    blank = write_lines(tmp_path / "blank.jsonl", {"id": "", "lines": ""})
    with pytest.raises(DatasetError, match=r"2 claims .* no page to draw"):
        read_fever(claims, blank, nei="sample", seed=0)


@pytest.mark.parametrize("settings", [{"nei": "sample"}, {"seed": 1}, {"nei": "drop", "seed": 1}])
def test_invalid_settings_are_refused(settings: Any) -> None:
    with pytest.raises(ConfigError):
        read_fever(CLAIMS, WIKI, **settings)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": None}, "id: is missing"),
        ({"claim": ""}, "claim: is empty"),
        (
            {"label": "MAYBE"},
            "label: unknown label 'MAYBE'; choose from ['REFUTES', 'NOT ENOUGH INFO'",
        ),
        ({"evidence": {}}, "evidence: must be a list"),
        ({"evidence": [5]}, "evidence[0]: must be a list"),
        ({"evidence": [[["Lake_Merrin", 0]]]}, "evidence[0][0]: is not a citation"),
        ({"evidence": [[[1, 2, "Lake_Merrin", "0"]]]}, "evidence[0][0]: is not a citation"),
        ({"id": 7}, "id: '7' is already used in line 1"),
    ],
)
def test_invalid_claims_are_refused(tmp_path: Path, changes: Any, problem: str) -> None:
    path = write_lines(tmp_path / "claims.jsonl", claim(id=7), claim(**changes))
    with pytest.raises(DatasetError) as caught:
        read_fever(path, WIKI)
    assert str(caught.value).startswith(f"{path}, line 2: {problem}")
    assert ". Nothing was read. " in str(caught.value)


def test_invalid_pages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"has no \.jsonl files"):
        read_fever(CLAIMS, tmp_path)
    write_lines(tmp_path / "wiki-001.jsonl", {"id": "Lake_Merrin", "lines": ["0\tA lake ."]})
    with pytest.raises(DatasetError, match=r"wiki-001\.jsonl, line 1: lines: must be a text"):
        read_fever(CLAIMS, tmp_path)


def test_claims_without_evidence_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "claims.jsonl"
    path.touch()
    with pytest.raises(DatasetError, match="is empty"):
        read_fever(path, WIKI)
    write_lines(path, {"id": 1, "claim": "Blind."})
    with pytest.raises(DatasetError, match="no claim has both a label and evidence"):
        read_fever(path, WIKI)


def test_fever_data_set_can_be_written(tmp_path: Path) -> None:
    shutil.copy(CLAIMS, tmp_path / "fever.jsonl")
    data = read_fever(tmp_path / "fever.jsonl", WIKI)
    assert data.name == "fever"
    write_dataset(tmp_path / "data.jsonl", data)
    assert read_dataset(tmp_path / "data.jsonl", schema=data.schema, name="fever") == data
