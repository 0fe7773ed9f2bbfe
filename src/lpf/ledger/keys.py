"""The ledger's Ed25519 key: ``ledger.key`` signs and is secret, ``ledger.pub`` checks."""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lpf.errors import LedgerKeyError
from lpf.storage.atomic_files import sync

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class KeyFiles:
    private: Path
    public: Path


def create_key(folder: Path, name: str = "ledger") -> KeyFiles:
    """A new key in ``folder``, as ``name.key`` and ``name.pub``. LedgerKeyError where there is
    one: a key is never overwritten. One that lacks its public half, because the process that made
    it was killed in between, is given it."""
    files = KeyFiles(folder / f"{name}.key", folder / f"{name}.pub")
    if files.public.exists():
        raise _exists(files.private if files.private.exists() else files.public)
    if not files.private.exists():
        _write_new(files.private, _as_pem(Ed25519PrivateKey.generate()), 0o600)
    _write_public(files)
    return files


def load_private(path: Path) -> Ed25519PrivateKey:
    """The signing key. LedgerKeyError where it is missing, no Ed25519 key, or readable by anyone
    but its owner."""
    data = _read(path)
    if path.stat().st_mode & _OTHERS:
        raise LedgerKeyError(
            f"{path}: others than its owner may read this signing key, so it was not used. "
            f"Run: chmod 600 {path}"
        )
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _not_a_key(path, "a private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _not_a_key(path, "an Ed25519 key")
    return key


def load_public(path: Path) -> bytes:
    """The 32 bytes that signatures are checked against."""
    try:
        key = bytes.fromhex(_read(path).decode("ascii").strip())
    except ValueError as error:
        raise _not_a_key(path, "a public key of 64 hexadecimal digits") from error
    if len(key) != 32:
        raise _not_a_key(path, "a public key of 64 hexadecimal digits")
    return key


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def _as_pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_public(files: KeyFiles) -> None:
    public = public_bytes(load_private(files.private))
    try:
        _write_new(files.public, f"{public.hex()}\n".encode(), 0o644)
    except LedgerKeyError:
        # Another process may have found the key without its public half, and helped.
        if not files.public.exists() or load_public(files.public) != public:
            raise


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Whole or not there, whenever the process is killed; and made with its final mode: there is
    no moment in which others could open it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb"
        ) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # unlike a renaming, it never takes the place of a file
        sync(path.parent)
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError as error:
        raise LedgerKeyError(f"{path}: cannot be written ({error.strerror}).") from error
    finally:
        temporary.unlink(missing_ok=True)


def _exists(path: Path) -> LedgerKeyError:
    return LedgerKeyError(
        f"{path}: exists already and was left as it is; no key was made. A ledger keeps its key "
        "for life; move the file away if you want a new one for another ledger."
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LedgerKeyError(
            f"{path}: the key cannot be read ({error.strerror}). Nothing was signed or checked."
        ) from error


def _not_a_key(path: Path, expected: str) -> LedgerKeyError:
    return LedgerKeyError(f"{path}: is not {expected}. Nothing was signed or checked.")
