"""The verifier finds every kind of tampering, and says where."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import rfc8785
from ledgers import KEY, OTHER_KEY, SETTINGS, asked_in, created, draft, execute, lines_of, opened

from lpf.errors import InputFileError, LedgerBrokenError, LedgerError
from lpf.ledger import (
    Draft,
    Ledger,
    LedgerReader,
    Verification,
    canonical,
    check_bundle,
    checkpoint_at,
    export,
    public_bytes,
    verify,
)
from lpf.ledger.checkpoint import sign
from lpf.ledger.merkle import leaf_hash
from lpf.ledger.verifier.sources import StoreSource
from lpf.storage.database import Database

COUNT = 300  # more than a tile
GOLDEN = Path(__file__).parent / "golden"


def write_ledger(folder: Path, count: int) -> Path:
    """A store and its export; checkpoints at a third, at two thirds and at the end."""
    with opened(folder / "store.db", checkpoint_seconds=0) as (database, ledger):
        for part in range(3):
            ledger.append_many([draft(part * 1000 + n) for n in range(count // 3)])
        export(database, folder / "export.jsonl")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ledger(tmp_path_factory.mktemp("ledger"), COUNT)


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> Iterator[Database]:
    """A copy that a test may change."""
    shutil.copy(folder / "store.db", tmp_path / "store.db")
    with Database(tmp_path / "store.db") as database:
        yield database


@pytest.fixture(scope="module")
def trusted(folder: Path) -> bytes:
    """The checkpoint over two thirds of the records."""
    line = lines_of(folder / "export.jsonl")[2 * COUNT // 3]
    return line["checkpoint"].encode()


def rewritten(path: Path, lines: list[bytes]) -> Path:
    """An export with changed lines and a matching last line, as a careful forger would write."""
    content = b"".join(line + b"\n" for line in lines[:-1])
    records = sum(b'"seq":' in line for line in lines[:-1])
    blobs = len(lines) - 2 - records
    end = {"blobs": blobs, "records": records, "sha256": hashlib.sha256(content).hexdigest()}
    path.write_bytes(content + canonical({"end": end}) + b"\n")
    return path


def findings(found: Verification) -> str:
    assert not found.ok
    return "\n".join(map(str, found.findings))


def test_an_unchanged_ledger_is_valid(folder: Path, store: Database, trusted: bytes) -> None:
    for source in (store, folder / "export.jsonl"):
        found = verify(source, public_bytes(KEY), trusted)
        found.require_ok()
        assert (found.records, found.checkpoints, found.unsigned_tail) == (COUNT, 3, 0)
        assert found.root == checkpoint_at(store, COUNT).root


# Changes of an export, and what the findings must contain.


def of_record(lines: list[bytes], number: int, change: Callable[[dict], object]) -> None:
    """Change the body of a record and adjust its leaf."""
    line = json.loads(lines[number])
    fields = json.loads(line["body"])
    body = change(fields)
    line["body"] = body if isinstance(body, str) else canonical(fields).decode()
    line["leaf"] = leaf_hash(line["body"].encode()).hex()
    lines[number] = canonical(line)


def deleted(lines: list[bytes]) -> None:
    del lines[10]


def swapped(lines: list[bytes]) -> None:
    lines[10], lines[11] = lines[11], lines[10]


def doubled(lines: list[bytes]) -> None:
    lines.insert(10, lines[10])


def changed(lines: list[bytes]) -> None:
    lines[10] = lines[10].replace(b"C0009", b"C0008")


def changed_with_its_leaf(lines: list[bytes]) -> None:
    of_record(lines, 10, lambda fields: fields.update(entity_id="C0008"))


def renumbered(lines: list[bytes]) -> None:
    of_record(lines, 10, lambda fields: fields.update(record_id="INF00000011"))


def of_another_format(lines: list[bytes]) -> None:
    of_record(lines, 10, lambda fields: fields.update(format="lpf-record/2"))


def with_spaces(lines: list[bytes]) -> None:
    of_record(lines, 10, lambda fields: json.dumps(fields, sort_keys=True, ensure_ascii=False))


def with_keys_in_another_order(lines: list[bytes]) -> None:
    def reordered(fields: dict) -> str:
        backwards = dict(sorted(fields.items(), reverse=True))
        return json.dumps(backwards, separators=(",", ":"), ensure_ascii=False)

    of_record(lines, 10, reordered)


def with_a_number_in_another_form(lines: list[bytes]) -> None:
    of_record(
        lines, 10, lambda fields: canonical(fields).decode().replace('"medium":1', '"medium":1.0')
    )


def with_escapes(lines: list[bytes]) -> None:
    of_record(lines, 10, lambda fields: canonical(fields).decode().replace("ë", "\\u00eb"))


def with_a_key_twice(lines: list[bytes]) -> None:
    of_record(
        lines,
        10,
        lambda fields: canonical(fields).decode().replace("{", '{"entity_id":"C0001",', 1),
    )


def with_no_object(lines: list[bytes]) -> None:
    of_record(lines, 10, lambda fields: "[]")


def line_with_spaces(lines: list[bytes]) -> None:
    lines[10] = lines[10].replace(b'"seq":', b'"seq": ')


def line_with_a_field_more(lines: list[bytes]) -> None:
    lines[10] = canonical({**json.loads(lines[10]), "z": 1})


def line_with_a_field_of_another_type(lines: list[bytes]) -> None:
    lines[10] = canonical({**json.loads(lines[10]), "body": 1})


def line_with_a_seq_of_another_type(lines: list[bytes]) -> None:
    lines[10] = canonical({**json.loads(lines[10]), "seq": "10"})


def line_with_a_leaf_in_capitals(lines: list[bytes]) -> None:
    line = json.loads(lines[10])
    lines[10] = canonical({**line, "leaf": line["leaf"].upper()})


def line_that_is_no_json(lines: list[bytes]) -> None:
    lines[10] = b"\xff"


def empty_line(lines: list[bytes]) -> None:
    lines.insert(10, b"")


def without_blobs(lines: list[bytes]) -> None:
    del lines[-2]


def with_another_blob(lines: list[bytes]) -> None:
    lines[-2] = lines[-2].replace(b"robust", b"paper!")


def with_a_blob_that_is_not_canonical(lines: list[bytes]) -> None:
    spaced = b'{"a": 1}'
    digest = hashlib.sha256(spaced).hexdigest()
    lines.insert(-1, canonical({"blob": digest, "body": spaced.decode()}))


def with_a_record_after_the_blobs(lines: list[bytes]) -> None:
    lines.insert(-1, lines[10])


def without_header(lines: list[bytes]) -> None:
    del lines[0]


def with_another_origin(lines: list[bytes]) -> None:
    lines[0] = canonical({**json.loads(lines[0]), "origin": "lpf-0000000000000000"})


def with_another_key(lines: list[bytes]) -> None:
    lines[0] = canonical({**json.loads(lines[0]), "public_key": public_bytes(OTHER_KEY).hex()})


def with_another_header(lines: list[bytes]) -> None:
    lines[0] = canonical({**json.loads(lines[0]), "format": "lpf-ledger/2"})


def signed_by(lines: list[bytes], number: int, **changes: object) -> None:
    line = json.loads(lines[number])
    facts = json.loads(line["checkpoint"])
    given = {"size": facts["size"], "root": bytes.fromhex(facts["root"]), "key": KEY, **changes}
    forged = sign(given.pop("key"), origin=facts["origin"], timestamp=1, **given)
    lines[number] = canonical({**line, "checkpoint": forged.to_bytes().decode()})


def with_a_checkpoint_of_another_key(lines: list[bytes]) -> None:
    signed_by(lines, COUNT // 3, key=OTHER_KEY)


def with_a_checkpoint_of_another_root(lines: list[bytes]) -> None:
    signed_by(lines, COUNT // 3, root=bytes(32))


def with_a_checkpoint_of_another_size(lines: list[bytes]) -> None:
    signed_by(lines, COUNT // 3, size=7)


def with_a_checkpoint_moved(lines: list[bytes]) -> None:
    first, second = json.loads(lines[COUNT // 3]), json.loads(lines[10])
    lines[10] = canonical({**second, "checkpoint": first["checkpoint"]})


def with_a_changed_checkpoint(lines: list[bytes]) -> None:
    lines[COUNT // 3] = lines[COUNT // 3].replace(b'timestamp\\":\\"2', b'timestamp\\":\\"3')


def with_a_checkpoint_of_no_size(lines: list[bytes]) -> None:
    lines[COUNT // 3] = lines[COUNT // 3].replace(b'\\"size\\":100', b'\\"size\\":true')


HERE = "INF00000010 (export.jsonl, line 11)"
CASES = [
    (deleted, ["INF00000010: is missing", "line 100): root: expected"]),
    (swapped, ["INF00000010 (export.jsonl, line 12): seq: is in the place of INF00000012"]),
    (doubled, ["INF00000010 (export.jsonl, line 12): seq: is in the place of INF00000011"]),
    (changed, [f"{HERE}: its body is not the one that was recorded: leaf: expected"]),
    (changed_with_its_leaf, ["checkpoint of INF00000100", "root: expected"]),
    (renumbered, [f"{HERE}: record_id: expected 'INF00000010', found 'INF00000011'"]),
    (of_another_format, [f"{HERE}: format"]),
    (with_spaces, [f"{HERE}: body: not canonical, from byte"]),
    (with_keys_in_another_order, [f"{HERE}: body: not canonical, from byte"]),
    (with_a_number_in_another_form, [f"{HERE}: body: not canonical, from byte"]),
    (with_escapes, [f"{HERE}: body: not canonical, from byte"]),
    (with_a_key_twice, [f"{HERE}: body: not canonical JSON (a key occurs twice"]),
    (with_no_object, [f"{HERE}: body: expected an object"]),
    (line_with_spaces, ["line 11: not canonical, from byte"]),
    (line_with_a_field_more, ["line 11: expected the fields"]),
    (line_with_a_field_of_another_type, ["line 11: body: expected a string, found 1"]),
    (line_with_a_seq_of_another_type, ["line 11: seq: expected a whole number"]),
    (line_with_a_leaf_in_capitals, ["line 11: leaf: expected 64 hexadecimal digits"]),
    (line_that_is_no_json, ["line 11: not canonical JSON"]),
    (empty_line, ["line 11: not canonical JSON"]),
    (without_blobs, ["INF00000001", "refers to blob", "which is missing"]),
    (with_another_blob, ["line 302: hash: expected"]),
    (with_a_blob_that_is_not_canonical, ["line 303: not canonical, from byte"]),
    (with_a_record_after_the_blobs, ["line 303: the last line is missing or wrong"]),
    (without_header, ["line 1: expected the fields"]),
    (with_another_origin, ["checkpoint of INF00000100", "origin: expected"]),
    (with_another_key, ["identity: public key: expected", "checkpoint of INF00000100"]),
    (with_another_header, ["line 1: expected a header of format 'lpf-ledger/1'"]),
    (with_a_checkpoint_of_another_key, ["checkpoint of INF00000100", "key: expected"]),
    (with_a_checkpoint_of_another_root, ["checkpoint of INF00000100", "root: expected"]),
    (with_a_checkpoint_of_another_size, ["checkpoint of INF00000100", "size: expected 100"]),
    (with_a_checkpoint_moved, ["checkpoint of INF00000010", "size: expected 10, found 100"]),
    (with_a_changed_checkpoint, ["checkpoint of INF00000100", "signature is not that"]),
    (with_a_checkpoint_of_no_size, ["checkpoint of INF00000100", "size: expected a count"]),
]


@pytest.mark.parametrize(("change", "expected"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_forged_export_is_found(
    folder: Path, tmp_path: Path, change: Callable[[list[bytes]], None], expected: list[str]
) -> None:
    lines = (folder / "export.jsonl").read_bytes().splitlines()
    change(lines)
    path = rewritten(tmp_path / "export.jsonl", lines)
    text = findings(verify(path, public_bytes(KEY)))
    for part in expected:
        assert part in text


def test_truncation_needs_a_trusted_checkpoint(
    folder: Path, tmp_path: Path, trusted: bytes
) -> None:
    lines = (folder / "export.jsonl").read_bytes().splitlines()
    path = rewritten(tmp_path / "export.jsonl", lines[: COUNT // 3 + 1] + lines[-2:])
    verify(path, public_bytes(KEY)).require_ok()  # nothing in the file can show what is gone
    text = findings(verify(path, public_bytes(KEY), trusted + b"\n"))
    assert "INF00000101: truncated: the trusted checkpoint covers 200 records" in text


def fork(folder: Path, identity_of: Database) -> Path:
    """Another history with the same origin and key, as the owner of the key could write."""
    origin = LedgerReader(identity_of).identity.origin
    with created(folder / "forked.db") as database:
        execute(database, "UPDATE ledger_identity SET origin = ?", origin)
        with Ledger(database, KEY) as ledger:
            ledger.append_many([draft(n + 1) for n in range(COUNT)])
        export(database, folder / "forked.jsonl")
    return folder / "forked.jsonl"


def test_a_forked_history_needs_a_trusted_checkpoint(
    store: Database, tmp_path: Path, trusted: bytes
) -> None:
    path = fork(tmp_path, store)
    verify(path, public_bytes(KEY)).require_ok()
    text = findings(verify(path, public_bytes(KEY), trusted))
    assert "INF00000200 (forked.jsonl, line 201): rewritten" in text


def test_a_trusted_checkpoint_must_be_signed_and_of_this_ledger(
    folder: Path, trusted: bytes
) -> None:
    path = folder / "export.jsonl"
    other = sign(OTHER_KEY, origin="lpf-0", size=1, root=bytes(32), timestamp=1).to_bytes()
    text = findings(verify(path, trusted=other))
    assert "trusted checkpoint: origin" in text
    assert "trusted checkpoint: key" in text
    assert "rewritten" in text


def test_a_truncated_file_is_found(folder: Path, tmp_path: Path) -> None:
    data = (folder / "export.jsonl").read_bytes()
    path = tmp_path / "export.jsonl"
    for cut in (50, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        assert not verify(path).ok, cut
    path.write_bytes(data + b"\n")
    assert "line 304" in findings(verify(path))
    path.write_bytes(data + data.splitlines()[-1] + b"\n")
    assert "line 304: expected nothing after the last line" in findings(verify(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="cannot be read"):
        verify(tmp_path / "none.jsonl")


def undetected(path: Path, copy: Path, count: int, seed: int) -> list[int]:
    """Positions where a changed byte is not found although the last line was adjusted."""
    data = path.read_bytes()
    generator = random.Random(seed)
    unseen = []
    for place in generator.sample(range(len(data)), count):
        changed_data = bytearray(data)
        changed_data[place] = (changed_data[place] + generator.randrange(1, 256)) % 256
        copy.write_bytes(changed_data)
        lines = bytes(changed_data).split(b"\n")
        if place < len(data) - len(data.splitlines()[-1]) - 2 and len(lines) > 2:
            rewritten(copy, lines[:-1])
        if not is_found(copy):
            unseen.append(place)
    return unseen


def is_found(path: Path) -> bool:
    try:
        return not verify(path, public_bytes(KEY), most_findings=1).ok
    except InputFileError:
        return True


def test_a_changed_byte_of_an_export_is_found(tmp_path: Path) -> None:
    folder = write_ledger(tmp_path, 60)
    assert undetected(folder / "export.jsonl", folder / "copy.jsonl", 300, seed=1) == []


@pytest.mark.slow
def test_a_changed_byte_of_a_large_export_is_found(tmp_path: Path) -> None:
    folder = write_ledger(tmp_path, 999)
    assert undetected(folder / "export.jsonl", folder / "copy.jsonl", 5000, seed=2) == []


# Changes of the store.


def leaf_of_new_body(store: Database) -> None:
    body = canonical({**LedgerReader(store).get("INF00000010").fields, "entity_id": "C9999"})
    row = (body, leaf_hash(body))
    execute(store, "UPDATE ledger SET body = ?, leaf = ? WHERE seq = 10", *row)


STORE_CASES = [
    ("UPDATE ledger SET body = x'7b7d' WHERE seq = 10", "INF00000010: its body is not the one"),
    (leaf_of_new_body, "checkpoint of INF00000100: root: expected"),
    (leaf_of_new_body, "tile 0 of level 0"),
    (
        "UPDATE ledger SET leaf = zeroblob(32) WHERE seq = 10",
        "INF00000010: its body is not the one",
    ),
    ("DELETE FROM ledger WHERE seq = 10", "INF00000010: is missing"),
    ("DELETE FROM ledger WHERE seq > 150", "INF00000151: truncated"),
    ("UPDATE ledger_tiles SET hashes = zeroblob(8192) WHERE level = 0", "tile 0 of level 0"),
    ("UPDATE ledger_tiles SET hashes = zeroblob(32) WHERE level = 1", "tile 0 of level 1"),
    ("DELETE FROM ledger_tiles", "tile 0 of level 0"),
    ("DELETE FROM ledger_blobs", "refers to blob"),
    ("UPDATE ledger_blobs SET body = x'7b7d'", "hash: expected"),
    ("UPDATE ledger_identity SET origin = 'x'", "origin: expected 'x'"),
    ("UPDATE ledger_identity SET public_key = zeroblob(32)", "identity: public key"),
    ("DELETE FROM ledger_identity", "ledger_identity: expected one row, found 0"),
    ("INSERT INTO ledger_identity VALUES ('y', zeroblob(32), 0)", "found 2"),
    ("UPDATE ledger SET checkpoint = x'00' WHERE seq = 100", "checkpoint of INF00000100"),
    ("UPDATE ledger SET body = CAST(body AS TEXT)", "INF00000010: body: has the wrong type text"),
    ("UPDATE ledger SET leaf = CAST(leaf AS TEXT)", "INF00000010: leaf: has the wrong type text"),
    ("UPDATE ledger SET leaf = 1.5 WHERE seq = 10", "INF00000010: leaf: has the wrong type real"),
    (
        "UPDATE ledger SET checkpoint = 'x' WHERE seq = 7",
        "INF00000007: checkpoint: has the wrong type text",
    ),
    (
        "UPDATE ledger_tiles SET hashes = CAST(hashes AS TEXT)",
        "level 0: hashes: has the wrong type text",
    ),
    ("UPDATE ledger_tiles SET level = x'ff' WHERE level = 1", "tile 0 of level blob: expected"),
    ("UPDATE ledger_blobs SET body = CAST(body AS TEXT)", "body: has the wrong type text"),
    ("UPDATE ledger_blobs SET hash = 'x'", "ledger_blobs: hash: has the wrong type text"),
    ("UPDATE ledger_identity SET public_key = 'x'", "public_key: has the wrong type text"),
    ("UPDATE ledger_identity SET origin = x'ff'", "origin: has the wrong type blob"),
    (
        "UPDATE ledger_tiles SET hashes = CAST(hashes || zeroblob(32) AS BLOB)",
        "tile 0 of level 0: its 8224 bytes do not follow",
    ),
    (
        "UPDATE ledger_tiles SET hashes = CAST(hashes || zeroblob(32) AS BLOB) WHERE level = 1",
        "tile 0 of level 1: its 64 bytes do not follow",
    ),
    ("UPDATE ledger_tiles SET hashes = x'' WHERE level = 1", "tile 0 of level 1: its 0 bytes"),
    ("INSERT INTO ledger_tiles VALUES (0, 1, zeroblob(8192))", "tile 1 of level 0: its 8192"),
    ("INSERT INTO ledger_tiles VALUES (0, -1, x'')", "tile -1 of level 0"),
    ("INSERT INTO ledger_tiles VALUES (2, 0, zeroblob(32))", "tile 0 of level 2"),
    ("INSERT INTO ledger_tiles VALUES (-1, 0, x'')", "tile 0 of level -1"),
    ("DELETE FROM ledger_tiles WHERE level = 1", "tile 0 of level 1: is missing"),
]


@pytest.mark.parametrize(("change", "expected"), STORE_CASES)
def test_a_change_of_the_store_is_found(
    store: Database,
    trusted: bytes,
    change: str | Callable[[Database], None],
    expected: str,
) -> None:
    if isinstance(change, str):
        execute(store, change)
    else:
        change(store)
    found = verify(store, public_bytes(KEY), trusted)
    assert expected in findings(found)
    with pytest.raises(LedgerBrokenError, match="not valid") as broken:
        found.require_ok()
    assert len(broken.value.findings) == len(found.findings)


def test_unusual_numbers_and_texts_are_parsed_strictly(tmp_path: Path) -> None:
    odd = {"large": 1e20, "small": 5e-324, "text": '\x00\x7f\u2028"\\', "\U00010000": 1}
    whole = {**odd, "format": "lpf-record/1", "record_id": "INF00000001"}
    with created(tmp_path / "store.db") as database:
        Ledger(database).append(Draft(odd))
        verify(database).require_ok()
        body = LedgerReader(database).get("INF00000001").body
        assert body == rfc8785.dumps(whole)
        for number in (b"100000000000000000001", b"1" * 500):
            changed_data = body.replace(b"100000000000000000000", number)
            execute(
                database,
                "UPDATE ledger SET body = ?, leaf = ?",
                changed_data,
                leaf_hash(changed_data),
            )
            assert "not canonical" in findings(verify(database))


def test_the_number_of_findings_is_limited(store: Database) -> None:
    execute(store, "UPDATE ledger SET leaf = zeroblob(32)")
    assert len(verify(store, most_findings=7).findings) == 7


def test_an_empty_ledger_is_valid(store_url: str, tmp_path: Path) -> None:
    with created(store_url) as database:
        verify(database).require_ok()
        assert export(database, tmp_path / "export.jsonl") == 0
        verify(tmp_path / "export.jsonl").require_ok()


def test_exports_of_both_databases_are_valid(store_url: str, tmp_path: Path) -> None:
    with opened(store_url) as (database, ledger):
        ledger.append_many([draft(number) for number in range(260)])
        assert export(database, tmp_path / "export.jsonl") == 260
        for source in (database, tmp_path / "export.jsonl"):
            verify(source, public_bytes(KEY)).require_ok()
        assert [path.name for path in tmp_path.glob("*export*")] == ["export.jsonl"]


def test_a_failed_export_writes_no_file(tmp_path: Path) -> None:
    with created(tmp_path / "store.db") as database:
        Ledger(database).append(draft())
        with pytest.raises(LedgerError, match="was not exported"):
            export(database, tmp_path / "nowhere" / "export.jsonl")
        execute(database, "UPDATE ledger SET body = x'ff'")
        with pytest.raises(LedgerBrokenError, match="INF00000001: its body is not the one"):
            export(database, tmp_path / "export.jsonl")
        execute(database, "UPDATE ledger SET leaf = ?", leaf_hash(b"\xff"))
        with pytest.raises(LedgerBrokenError, match="INF00000001: is not UTF-8"):
            export(database, tmp_path / "export.jsonl")
        assert not list(tmp_path.glob("*export*"))


def test_the_golden_files_are_valid() -> None:
    """Written by the first version of the formats; if this fails, existing ledgers fail too."""
    key = public_bytes(KEY)
    trusted = (GOLDEN / "checkpoint.json").read_bytes()
    found = verify(GOLDEN / "ledger.jsonl", key, trusted)
    found.require_ok()
    assert (found.records, found.checkpoints, found.unsigned_tail) == (20, 3, 1)
    assert SETTINGS.decode() in [line.get("body") for line in lines_of(GOLDEN / "ledger.jsonl")]
    for bundle in ("inclusion.json", "consistency.json"):
        assert check_bundle.check(json.loads((GOLDEN / bundle).read_text()), key.hex())


def test_records_appended_during_verification_are_not_findings(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their tiles and texts are in the store before the verifier reads those tables."""
    tiles = StoreSource.tiles

    def after_others_appended(source: StoreSource) -> Iterator[object]:
        with Ledger(store) as ledger:
            ledger.append_many([draft(number) for number in range(600)])
            ledger.append(asked_in("Meanwhile?")[0])
        return tiles(source)

    monkeypatch.setattr(StoreSource, "tiles", after_others_appended)
    found = verify(store, public_bytes(KEY))
    found.require_ok()
    assert found.records == COUNT
    monkeypatch.undo()
    verify(store, public_bytes(KEY)).require_ok()
