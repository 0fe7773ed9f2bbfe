"""Key files and checkpoints."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from ledgers import KEY, OTHER_KEY

from lpf.errors import LedgerKeyError, ProofError
from lpf.ledger import create_key, load_private, load_public, public_bytes
from lpf.ledger.checkpoint import parse, sign


def checkpoint():
    return sign(KEY, origin="lpf-0123456789abcdef", size=5, root=b"r" * 32, timestamp=1_700_000)


def test_a_new_key_is_private_and_never_overwritten(tmp_path: Path) -> None:
    files = create_key(tmp_path)
    assert stat.S_IMODE(files.private.stat().st_mode) == 0o600
    assert public_bytes(load_private(files.private)) == load_public(files.public)
    before = files.private.read_bytes()
    with pytest.raises(LedgerKeyError, match="already exists"):
        create_key(tmp_path)
    assert files.private.read_bytes() == before


class Killed(BaseException):
    """Simulates the end of the process."""


STEPS = ["open", "fdopen", "fsync", "link", "fsync again", "open for .pub", "link of .pub"]


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_during_key_creation_leaves_no_key_or_a_complete_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    name, times = step.split()[0], 2 if " " in step else 1
    calls, real = [], getattr(os, name)

    def killed(*arguments: object) -> object:
        # Opening a folder is not counted.
        if name != "open" or len(arguments) == 3:
            calls.append(name)
        if len(calls) == times:
            raise Killed
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(os, name, killed)
        patched.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(Killed):
            create_key(tmp_path)
    files = create_key(tmp_path)
    assert stat.S_IMODE(files.private.stat().st_mode) == 0o600
    assert public_bytes(load_private(files.private)) == load_public(files.public)


def test_a_missing_public_key_is_derived_and_a_missing_private_key_is_not_replaced(
    tmp_path: Path,
) -> None:
    files = create_key(tmp_path, "audit")
    assert (files.private.name, files.public.name) == ("audit.key", "audit.pub")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.key", "audit.pub"]
    public, private = files.public.read_bytes(), files.private.read_bytes()
    files.public.unlink()
    assert create_key(tmp_path, "audit") == files
    assert (files.public.read_bytes(), files.private.read_bytes()) == (public, private)
    files.private.unlink()
    with pytest.raises(LedgerKeyError, match=r"audit.pub already exists"):
        create_key(tmp_path, "audit")
    assert not files.private.exists()
    with pytest.raises(LedgerKeyError, match="cannot be written"):
        create_key(tmp_path / "nowhere")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_key_readable_by_others_is_rejected(tmp_path: Path, mode: int) -> None:
    files = create_key(tmp_path)
    files.private.chmod(mode)
    with pytest.raises(LedgerKeyError, match="chmod 600"):
        load_private(files.private)


def test_an_invalid_key_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "ledger.key"
    with pytest.raises(LedgerKeyError, match="cannot be read"):
        load_private(path)
    path.touch(0o600)
    with pytest.raises(LedgerKeyError, match="private key in PEM"):
        load_private(path)
    for text in ("zz", "00", "é"):
        path.write_text(text)
        with pytest.raises(LedgerKeyError, match="64 hexadecimal digits"):
            load_public(path)
    pem = X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(pem)
    with pytest.raises(LedgerKeyError, match="Ed25519"):
        load_private(path)


def test_a_checkpoint_is_parsed_from_its_bytes() -> None:
    parsed = parse(checkpoint().to_bytes())
    assert parsed == checkpoint()
    parsed.verify()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size", 6),
        ("origin", "lpf-other"),
        ("root", "00" * 32),
        ("timestamp", "2026-01-01T00:00:00.000000Z"),
        ("key", public_bytes(OTHER_KEY).hex()),
        ("signature", "00" * 64),
        ("key", "00"),
    ],
)
def test_a_changed_checkpoint_does_not_verify(field: str, value: object) -> None:
    document = {**checkpoint().document(), field: value}
    with pytest.raises(ProofError, match="not signed by the key"):
        parse(json.dumps(document).encode()).verify()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"7", b"\xff"])
def test_an_invalid_checkpoint_is_rejected(data: bytes) -> None:
    with pytest.raises(ProofError, match="not a checkpoint"):
        parse(data)


@pytest.mark.parametrize(("field", "value"), [("format", "x"), ("root", "zz"), ("timestamp", 5)])
def test_an_invalid_checkpoint_field_is_rejected(field: str, value: object) -> None:
    with pytest.raises(ProofError, match="not a checkpoint"):
        parse(json.dumps({**checkpoint().document(), field: value}).encode())
