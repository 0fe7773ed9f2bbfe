"""A new entity whose ID looks mistyped is pointed out; other numbers are other entities."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts import ONE_PREDICATE, HashReader

from lpf.ingest import IngestOutcome, NewEntities, ingest_rows
from lpf.ingest import new_entities as module
from lpf.ingest.new_entities import is_likely_typo
from lpf.storage.evidence import EvidenceStore


def add(store: EvidenceStore, folder: Path, *names: str, batch: int = 256) -> IngestOutcome:
    rows = [
        {"entity_id": name, "text": f"Text {place} of {len(names)}."}
        for place, name in enumerate(names)
    ]
    reader = HashReader()
    return ingest_rows(rows, store, ONE_PREDICATE, reader, rejects_folder=folder, batch=batch)


def hints(outcome: IngestOutcome) -> list[str]:
    return [note for note in outcome.notes if "new entit" in note]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("S9O", "S90"),
        ("s90", "S90"),
        ("S-90", "S90"),
        ("S090", "S90"),
        ("C00l2", "C0012"),
        ("Acme Corp.", "ACME Corp"),
        ("Acme Crop", "Acme Corp"),
        ("Contso 12", "Contoso 12"),
    ],
)
def test_a_likely_typo(name: str, known: str) -> None:
    assert is_likely_typo(name, known)
    assert is_likely_typo(known, name)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("S91", "S90"),
        ("S901", "S90"),
        ("A12", "B12"),
        ("Supplier A", "Supplier B"),
        ("Acme North", "Acme South"),
        ("Acme", "Acme Corp"),
        ("1.2", "12"),
        ("ab12", "a812"),
    ],
)
def test_another_entity(name: str, known: str) -> None:
    assert not is_likely_typo(name, known)
    assert not is_likely_typo(known, name)


def test_a_new_entity_like_a_known_one_is_added_with_a_note(
    store: EvidenceStore, tmp_path: Path
) -> None:
    assert hints(add(store, tmp_path, "S90", "S91", "S92")) == []
    outcome = add(store, tmp_path, "S9O", "S93")
    assert outcome.added == 2
    (note,) = hints(outcome)
    assert "S9O" in note
    assert "S90" in note
    assert "S93" not in note
    # It is known from now on.
    assert hints(add(store, tmp_path, "S9O", "S90", "S9O")) == []


@pytest.mark.parametrize("batch", [2, 256])
def test_two_spellings_in_one_file(store: EvidenceStore, tmp_path: Path, batch: int) -> None:
    outcome = add(store, tmp_path, "S90", "S91", "S92", "S9O", batch=batch)
    (note,) = hints(outcome)
    assert "S9O" in note


def test_many_of_them_are_summed_up_in_one_note(store: EvidenceStore, tmp_path: Path) -> None:
    add(store, tmp_path, *(f"S{number}0" for number in range(1, 9)))
    (note,) = hints(add(store, tmp_path, *(f"S{number}O" for number in range(1, 9))))
    assert "8 new" in note
    assert "S5O" in note
    assert "S6O" not in note


def test_only_the_first_new_entities_are_compared_with_the_store(
    store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(module, "near_names", lambda _, name: asked.append(name) or [])
    entities = NewEntities(store.database)
    for start in range(0, 5000, 100):
        entities.look_at(f"E{number}" for number in range(start, start + 100))
    assert len(asked) == module.MOST_COMPARED
    entities.look_at(["E499O"])
    assert entities.similar == {"E499O": "E4990"}
