"""The ledger's Ed25519 key: ``ledger.key`` signs and is secret, ``ledger.pub`` checks."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lpf.errors import LedgerKeyError

PRIVATE_NAME, PUBLIC_NAME = "ledger.key", "ledger.pub"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class KeyFiles:
    private: Path
    public: Path


def create_key(folder: Path) -> KeyFiles:
    """A new key in ``folder``. LedgerKeyError where there is one: a key is never overwritten."""
    files = KeyFiles(folder / PRIVATE_NAME, folder / PUBLIC_NAME)
    key = Ed25519PrivateKey.generate()
    _write_new(files.private, _as_pem(key), 0o600)
    _write_new(files.public, f"{public_bytes(key).hex()}\n".encode(), 0o644)
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


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Made with its final mode: there is no moment in which others could open it."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError as error:
        raise LedgerKeyError(
            f"{path}: exists already and was left as it is; no key was made. A ledger keeps its "
            "key for life; move the file away if you want a new one for another ledger."
        ) from error
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LedgerKeyError(
            f"{path}: the key cannot be read ({error.strerror}). Nothing was signed or checked."
        ) from error


def _not_a_key(path: Path, expected: str) -> LedgerKeyError:
    return LedgerKeyError(f"{path}: is not {expected}. Nothing was signed or checked.")
