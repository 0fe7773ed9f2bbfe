"""Proof bundles, checked by the standalone script."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledgers import KEY, OTHER_KEY, created, draft, execute, opened

from lpf.errors import LedgerBrokenError, ProofError, UnknownRecordError
from lpf.ledger import (
    Ledger,
    LedgerReader,
    check_bundle,
    checkpoint_at,
    prove_consistency,
    prove_inclusion,
    public_bytes,
    record_id,
)
from lpf.ledger.checkpoint import sign
from lpf.ledger.merkle import leaf_hash
from lpf.storage.database import Database

SCRIPT = Path(check_bundle.__file__)
KEY_HEX = public_bytes(KEY).hex()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """700 records: two full tiles and a partial one; checkpoints at 100 and at the end."""
    folder = tmp_path_factory.mktemp("ledger")
    with opened(folder / "store.db", checkpoint_seconds=3600) as (store, ledger):
        ledger.append_many([draft(number) for number in range(100)])
        ledger.append_many([draft(number) for number in range(600)])
        ledger.checkpoint()
        yield store


def run_script(folder: Path, bundle: object, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "bundle.json").write_text(json.dumps(bundle, ensure_ascii=False))
    return called(folder, "bundle.json", *options)


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(SCRIPT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_the_script_accepts_a_valid_bundle_of_each_kind(database: Database, tmp_path: Path) -> None:
    inclusion = prove_inclusion(database, "INF00000257")
    done = run_script(tmp_path, inclusion, "--key", KEY_HEX)
    assert (done.returncode, done.stderr) == (0, "")
    assert "INF00000257 is among the 700 records" in done.stdout
    consistency = prove_consistency(
        database, checkpoint_at(database, 100), checkpoint_at(database, 700)
    )
    done = run_script(tmp_path, consistency)
    assert "the first 100 records are unchanged among 700" in done.stdout
    assert "use --key to check whose" in done.stdout


def test_the_script_rejects_an_invalid_bundle_and_says_why(
    database: Database, tmp_path: Path
) -> None:
    bundle = prove_inclusion(database, "INF00000257")
    done = run_script(tmp_path, bundle, "--key", public_bytes(OTHER_KEY).hex())
    assert done.returncode == 1
    assert "names the key" in done.stderr
    bundle["body"] = bundle["body"].replace("Zoë", "Zoe")
    done = run_script(tmp_path, bundle)
    assert done.returncode == 1
    assert "do not lead to the signed root" in done.stderr


@pytest.mark.parametrize(
    "content",
    ["no JSON", '["nonsense"]', "7", "{}", '{"format": []}', '{"format": "x"}', "\xff", ""],
)
def test_a_file_that_is_not_a_bundle_is_a_usage_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "bundle.json").write_text(content, encoding="latin-1")
    done = called(tmp_path, "bundle.json")
    assert done.returncode == 2
    assert "bundle.json: cannot be read, or is not a bundle of format" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_invalid_key_or_missing_file_is_a_usage_error(
    database: Database, tmp_path: Path
) -> None:
    bundle = prove_inclusion(database, "INF00000257")
    (tmp_path / "text.pub").write_text("no key")
    for key in ("none.pub", "text.pub", "x" * 64, "ab", "", "."):
        done = run_script(tmp_path, bundle, "--key", key)
        assert done.returncode == 2, key
        assert "is not a public key of 64 hexadecimal digits" in done.stderr
    done = called(tmp_path, "none.json")
    assert done.returncode == 2
    assert "none.json: cannot be read" in done.stderr


def test_the_key_may_be_a_file(database: Database, tmp_path: Path) -> None:
    bundle = prove_inclusion(database, "INF00000257")
    for content, code in ((KEY_HEX, 0), (public_bytes(OTHER_KEY).hex(), 1)):
        (tmp_path / "ledger.pub").write_text(f"{content}\n")
        assert run_script(tmp_path, bundle, "--key", "ledger.pub").returncode == code
    assert run_script(tmp_path, bundle, "--key", KEY_HEX.upper()).returncode == 0


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [[]], {"a": 1}, 1e400])
def test_a_part_of_another_type_is_invalid(
    database: Database, tmp_path: Path, value: object
) -> None:
    good = prove_inclusion(database, "INF00000257")
    for name in ("body", "index", "path", "checkpoint", "blobs"):
        with pytest.raises(check_bundle.InvalidBundleError):
            check_bundle.check({**good, name: value})
    for name in good["checkpoint"]:
        with pytest.raises(check_bundle.InvalidBundleError):
            check_bundle.check({**good, "checkpoint": {**good["checkpoint"], name: value}})
    done = run_script(tmp_path, {**good, "checkpoint": value})
    assert done.returncode == 1
    assert done.stderr.startswith("does not hold: ")
    assert "Error" not in done.stderr


@pytest.mark.parametrize("seq", [1, 2, 100, 255, 256, 257, 512, 513, 699, 700])
def test_records_inside_and_outside_tiles_are_proved(database: Database, seq: int) -> None:
    assert "holds" in check_bundle.check(prove_inclusion(database, record_id(seq)), KEY_HEX)
    if seq <= 100:
        early = prove_inclusion(database, record_id(seq), checkpoint_at(database, 100))
        assert "among the 100 records" in check_bundle.check(early, KEY_HEX)


def moved(bundle: dict[str, Any]) -> None:
    bundle["index"] += 1


def without_a_step(bundle: dict[str, Any]) -> None:
    bundle["path"].pop()


def with_a_step_more(bundle: dict[str, Any]) -> None:
    bundle["path"].append("00" * 32)


def with_another_blob(bundle: dict[str, Any]) -> None:
    digest = next(iter(bundle["blobs"]))
    bundle["blobs"][digest] = "{}"


def without_blobs(bundle: dict[str, Any]) -> None:
    bundle["blobs"] = {}


def with_another_root(bundle: dict[str, Any]) -> None:
    bundle["checkpoint"]["root"] = "00" * 32


def with_another_time(bundle: dict[str, Any]) -> None:
    bundle["checkpoint"]["timestamp"] = "2020-01-01T00:00:00.000000Z"


def outside_the_tree(bundle: dict[str, Any]) -> None:
    bundle["index"] = bundle["checkpoint"]["size"]


def with_a_point_off_the_curve(bundle: dict[str, Any]) -> None:
    bundle["checkpoint"]["signature"] = "02" + "00" * 63


def with_a_short_signature(bundle: dict[str, Any]) -> None:
    bundle["checkpoint"]["signature"] = "00"


@pytest.mark.parametrize(
    "change",
    [
        moved,
        without_a_step,
        with_a_step_more,
        with_another_blob,
        without_blobs,
        with_another_root,
        with_another_time,
        outside_the_tree,
        with_a_point_off_the_curve,
        with_a_short_signature,
    ],
)
def test_a_changed_inclusion_bundle_is_invalid(
    database: Database, change: Callable[[dict[str, Any]], None]
) -> None:
    bundle = copy.deepcopy(prove_inclusion(database, "INF00000300"))
    change(bundle)
    with pytest.raises(check_bundle.InvalidBundleError):
        check_bundle.check(bundle)


def test_a_changed_consistency_bundle_is_invalid(database: Database) -> None:
    first, second = checkpoint_at(database, 100), checkpoint_at(database, 700)
    good = prove_consistency(database, first, second)
    assert check_bundle.check(prove_consistency(database, first, first), KEY_HEX)
    for change in (
        {"path": good["path"][:-1]},
        {"path": [*good["path"], "00" * 32]},
        {"path": ["00" * 32, *good["path"][1:]]},
        {"path": []},
        {"first": good["second"], "second": good["first"]},
    ):
        with pytest.raises(check_bundle.InvalidBundleError):
            check_bundle.check({**good, **change})


def test_checkpoints_that_do_not_match_the_store_are_rejected(database: Database) -> None:
    latest = checkpoint_at(database, 700)
    facts = {"origin": latest.origin, "timestamp": latest.timestamp}
    beyond = sign(KEY, size=701, root=b"r" * 32, **facts)
    forked = sign(KEY, size=50, root=b"r" * 32, **facts)
    with pytest.raises(ProofError, match="covers 701 records"):
        prove_consistency(database, latest, beyond)
    with pytest.raises(ProofError, match="the checkpoint says"):
        prove_consistency(database, forked, latest)
    with pytest.raises(ProofError, match="earlier one first"):
        prove_consistency(database, latest, checkpoint_at(database, 100))
    with pytest.raises(ProofError, match="has no checkpoint"):
        checkpoint_at(database, 101)
    with pytest.raises(UnknownRecordError):
        prove_inclusion(database, record_id(701))


def test_a_proof_needs_a_checkpoint(tmp_path: Path) -> None:
    with created(tmp_path / "store.db") as database, Ledger(database) as ledger:
        ledger.append(draft())
        with pytest.raises(ProofError, match="no signed checkpoint covers it"):
            prove_inclusion(database, "INF00000001")


def test_a_changed_body_cannot_be_proved(tmp_path: Path) -> None:
    with created(tmp_path / "store.db") as database:
        with Ledger(database, KEY) as ledger:
            ledger.append(draft())
        execute(database, "UPDATE ledger SET body = ? WHERE seq = 1", b"{}")
        with pytest.raises(LedgerBrokenError, match="INF00000001: its body is not the one"):
            prove_inclusion(database, "INF00000001")
        execute(database, "UPDATE ledger SET leaf = ? WHERE seq = 1", leaf_hash(b"{}"))
        with pytest.raises(ProofError, match="nothing can be proved"):
            prove_inclusion(database, "INF00000001")


def test_the_ed25519_of_the_script_agrees_with_the_library() -> None:
    for number in range(5):
        key = Ed25519PrivateKey.generate()
        message = bytes(range(number * 10))
        signature = key.sign(message)
        check_bundle.check_signature(public_bytes(key), signature, message)
        for place in (0, 31, 32, 63):
            forged = bytearray(signature)
            forged[place] ^= 1
            with pytest.raises(check_bundle.InvalidBundleError):
                check_bundle.check_signature(public_bytes(key), bytes(forged), message)


def test_proofs_work_on_both_databases(store_url: str) -> None:
    with opened(store_url) as (database, ledger):
        ledger.append_many([draft(number) for number in range(300)])
        ledger.checkpoint()
        assert LedgerReader(database).size == 300
        for seq in (1, 256, 300):
            assert check_bundle.check(prove_inclusion(database, record_id(seq)), KEY_HEX)
