"""The ledger's Ed25519 key pair: ``ledger.key`` (private) and ``ledger.pub`` (public)."""

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
    """Paths of a key pair."""

    private: Path
    public: Path


def create_key(folder: Path, name: str = "ledger") -> KeyFiles:
    """Create ``name.key`` and ``name.pub`` in ``folder``. LedgerKeyError if there is a key: it is
    never overwritten. If only the public file is missing, because the process that created the key
    was killed, it is written."""
    files = KeyFiles(folder / f"{name}.key", folder / f"{name}.pub")
    if files.public.exists():
        raise _already_exists(files.private if files.private.exists() else files.public)
    if not files.private.exists():
        _write_new(files.private, _as_pem(Ed25519PrivateKey.generate()), 0o600)
    _write_public(files)
    return files


def load_private(path: Path) -> Ed25519PrivateKey:
    """Load the private key. LedgerKeyError if it is missing, not an Ed25519 key, or readable by
    anyone but its owner."""
    data = _read(path)
    if path.stat().st_mode & _OTHERS:
        raise LedgerKeyError(
            f"{path}: users other than its owner may read this private key, so it was not used.",
            hint=f"Run: chmod 600 {path}",
        )
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _not_a_key(path, "a private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _not_a_key(path, "an Ed25519 key")
    return key


def load_public(path: Path) -> bytes:
    """Load the public key (32 bytes)."""
    try:
        key = bytes.fromhex(_read(path).decode("ascii").strip())
    except ValueError as error:
        raise _not_a_key(path, "a public key of 64 hexadecimal digits") from error
    if len(key) != 32:
        raise _not_a_key(path, "a public key of 64 hexadecimal digits")
    return key


def public_key_of(private: Path) -> tuple[bytes, Path] | None:
    """The public key (32 bytes) that belongs to a private key's path, and the file it is from: the
    private key itself, or the public file beside it. None if there is neither."""
    public = private.with_suffix(".pub")
    if private.exists():
        try:
            return public_bytes(load_private(private)), private
        except LedgerKeyError:  # another user's, or exposed: to verify, the public file is enough
            if not public.exists():
                raise
    return (load_public(public), public) if public.exists() else None


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
        # Another process may have found the public file missing and written it.
        if not files.public.exists() or load_public(files.public) != public:
            raise


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Create a file atomically. It has its final mode from the start, so others can never open
    it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb"
        ) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # unlike a rename, this never replaces a file
        sync(path.parent)
    except FileExistsError as error:
        raise _already_exists(path) from error
    except OSError as error:
        raise LedgerKeyError(f"{path} cannot be written ({error.strerror}).") from error
    finally:
        temporary.unlink(missing_ok=True)


def _already_exists(path: Path) -> LedgerKeyError:
    return LedgerKeyError(
        f"{path} already exists; no key was created. The key of a ledger cannot be changed; move "
        "the file away if you want a new key for another ledger."
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LedgerKeyError(
            f"{path}: the key cannot be read ({error.strerror}). Nothing was signed or verified."
        ) from error


def _not_a_key(path: Path, expected: str) -> LedgerKeyError:
    return LedgerKeyError(f"{path} is not {expected}. Nothing was signed or verified.")
