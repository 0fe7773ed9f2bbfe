"""Rejects files: what is written of a row, and what an erasure removes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from ingest.parts import SCHEMA, HashReader, row, write_jsonl
from lpf.errors import StoreBusyError
from lpf.ingest import IngestOutcome, erase_evidence, ingest, ingest_rows, rejects
from lpf.ingest.rejects import locked_folder
from lpf.storage.evidence import EvidenceStore

SECRET = 'Kiełbasa "secret" of Mr. Żak'


def take(rows: list[dict], store: EvidenceStore, folder: Path, name: str = "rows") -> IngestOutcome:
    return ingest_rows(rows, store, SCHEMA, HashReader(), rejects_folder=folder, name=name)


def take_file(path: Path, store: EvidenceStore, folder: Path) -> IngestOutcome:
    return ingest(path, store, SCHEMA, HashReader(), rejects_folder=folder)


def entries(path: Path) -> list[dict]:
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [json.loads(line) for line in lines if line]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f"entity_id,predicate,text\nC1,level,{SECRET},more\n".encode()),
        ("a.csv", b"entity_id,predicate,text\nC1,level,secret Zo\x81\n"),
        ("a.jsonl", b'{"text": "secret Zo\\u00EB", \n'),
        ("a.jsonl", "secret Zoë".encode("latin-1")),
        ("a.jsonl", b'["secret"]'),
        ("a.csv", b'entity_id,predicate,text\nC1,level,"secret\n'),
    ],
)
def test_of_an_unparsed_row_only_its_line_is_written(
    store: EvidenceStore, tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    outcome = take_file(path, store, tmp_path / "bad")
    (entry,) = entries(outcome.rejects_file)
    assert (entry["file"], entry["row"], entry["field"]) == (str(path), None, None)
    assert entry["error"]
    assert "secret" not in outcome.rejects_file.read_text()


@pytest.mark.parametrize("given", [" E1", "E1\t", "E1"])
def test_an_erased_id_is_recognised_with_whitespace_around_it(
    store: EvidenceStore, tmp_path: Path, given: str
) -> None:
    take([row(evidence_id="E1", text_content="harmless")], store, tmp_path)
    before = take([row(evidence_id=given, text_content=SECRET, credibility=7)], store, tmp_path)
    assert "secret" in before.rejects_file.read_text()
    assert erase_evidence("E1", store, tmp_path).rejects_removed == 1
    assert "secret" not in before.rejects_file.read_text()
    after = take([row(evidence_id=given, text_content=SECRET)], store, tmp_path)
    (entry,) = entries(after.rejects_file)
    assert entry["row"] == {"evidence_id": "E1"}


def test_the_rejects_file_is_named_after_its_source(store: EvidenceStore, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = write_jsonl(tmp_path / "in" / "a.jsonl", [row(credibility=7)])
    outcome = take_file(path, store, tmp_path / "bad")
    assert outcome.rejects_file.parent == tmp_path / "bad"
    assert outcome.rejects_file.name.startswith("a.jsonl.20")


def test_bytes_from_parquet_are_not_written(store: EvidenceStore, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row(text_content=b"secret")]), path)
    outcome = take_file(path, store, tmp_path / "bad")
    (entry,) = entries(outcome.rejects_file)
    assert entry["row"]["text_content"] == "6 bytes"
    assert entry["error"] == "must be a text, got a value of type bytes"


@pytest.mark.parametrize("wrong", [{}, {"credibility": 7}, {"text_content": [SECRET]}])
def test_an_erased_text_is_not_written_again(
    either_store: EvidenceStore, tmp_path: Path, wrong: dict
) -> None:
    secret = row(evidence_id=17, text_content=SECRET)
    take([secret], either_store, tmp_path)
    erase_evidence("17", either_store, tmp_path)
    outcome = take([secret | wrong, row(credibility=7)], either_store, tmp_path)
    bare, other = entries(outcome.rejects_file)
    assert (bare["line"], bare["field"], bare["row"]) == (1, "evidence_id", {"evidence_id": "17"})
    assert bare["error"].startswith("was erased at 20")
    assert other["row"]["text_content"] == "a text"
    assert "secret" not in outcome.rejects_file.read_text()


def test_lines_are_recognised_by_id_text_and_claim(store: EvidenceStore, tmp_path: Path) -> None:
    claim = "Mr. Żak is ill."
    take([row(evidence_id="S1", text_content=SECRET, claim=claim)], store, tmp_path)
    wrong = [
        row(evidence_id="S1", text_content="conflict", credibility=7),
        row(text_content=f" {SECRET}\n".replace(" of ", "  of\t"), credibility=7),
        row(predicate=SECRET, text_content="of another column"),
        row(text_content="same claim", claim=claim, credibility=7),
        row(notes={"deep": [[SECRET]]}, credibility=7),
        row(evidence_id="S10", text_content="\u2028other", credibility=7),
    ]
    path = write_jsonl(tmp_path / "wrong.jsonl", wrong)
    path.write_text(path.read_text().replace("\\u017b", "\\u017B"))
    outcome = take_file(path, store, tmp_path)
    assert erase_evidence("S1", store, tmp_path).rejects_removed == 5
    same_claim, other = entries(outcome.rejects_file)
    assert (same_claim["line"], same_claim["field"], same_claim["row"]) == (4, "credibility", None)
    assert other["row"]["evidence_id"] == "S10"
    held = outcome.rejects_file.read_text(encoding="utf-8")
    assert SECRET not in held
    assert claim not in held


def test_a_short_text_removes_no_lines_of_others(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="S1", text_content="a")], store, tmp_path)
    outcome = take([row(text_content="a text with a's", credibility=7)], store, tmp_path)
    assert erase_evidence("S1", store, tmp_path).rejects_removed == 0
    assert len(entries(outcome.rejects_file)) == 1


def test_unrecognisable_lines_are_removed_by_any_erasure(
    store: EvidenceStore, tmp_path: Path
) -> None:
    """Partly written lines of a killed process, and rows that are not objects."""
    take([row(evidence_id="S1")], store, tmp_path)
    unread = tmp_path / "killed.rejects.jsonl.part"
    whole = '{"file": "x", "line": 1, "row": {"evidence_id": "S2"}}\n'
    unread.write_bytes(whole.encode() + b'{"row": "C1,secret"}\n{"row": ["C1"]}\n{"row": {"te\xc5')
    assert erase_evidence("S1", store, tmp_path).rejects_removed == 3
    assert unread.read_text() == whole


def test_a_cleaned_file_is_overwritten_and_leaves_no_other_files(
    store: EvidenceStore, tmp_path: Path
) -> None:
    folder = tmp_path / "bad"
    secret = row(evidence_id="S1", text_content=SECRET)
    take([secret], store, folder)
    outcome = take([secret | {"credibility": 7}, row(credibility=7)], store, folder)
    same = tmp_path / "same"
    same.hardlink_to(outcome.rejects_file)
    erase_evidence("S1", store, folder)
    assert not same.read_bytes().strip(b"\0")
    assert {path.name for path in folder.iterdir()} == {"rejects.lock", outcome.rejects_file.name}


def test_a_lone_surrogate_survives_a_cleaning(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="S1", claim="c")], store, tmp_path)
    wrong = [row(text_content="\ud800", claim="c"), row(text_content="\ud800b")]
    outcome = take([*wrong, row(evidence_id="S1", text_content="b")], store, tmp_path)
    erase_evidence("S1", store, tmp_path)
    assert [entry["row"] for entry in entries(outcome.rejects_file)] == [None, wrong[1]]


def test_long_and_unusual_source_names_are_accepted(store: EvidenceStore, tmp_path: Path) -> None:
    for name in ("ż" * 120, "posted/by/somebody"):
        outcome = take([row(evidence_id="S1", credibility=7)], store, tmp_path, name)
        assert outcome.rejects_file.parent == tmp_path
    take([row(evidence_id="S1")], store, tmp_path)
    assert erase_evidence("S1", store, tmp_path).rejects_removed == 2


def test_a_folder_locked_for_too_long_is_busy(
    store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejects, "LOCK_SECONDS", 0.1)
    with locked_folder(tmp_path), pytest.raises(StoreBusyError, match="another process"):
        take([row(credibility=7)], store, tmp_path)


def test_runs_in_different_threads_write_separate_files(
    store: EvidenceStore, tmp_path: Path
) -> None:
    def run() -> None:
        take([row(credibility=7)] * 3, store, tmp_path)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = list(tmp_path.glob("*.rejects.jsonl"))
    assert [len(entries(path)) for path in files] == [3] * 4
