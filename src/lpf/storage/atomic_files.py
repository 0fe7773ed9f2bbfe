"""Write files atomically, and remove files so that their content is overwritten."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_CHUNK_BYTES = 1024 * 1024


def write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path``. After a crash it holds either the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block ends. If the block raises, the
    temporary file is removed and ``path`` is unchanged. A device or a pipe, such as /dev/null, is
    written to and never replaced."""
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            yield file
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk, so that they survive a power cut."""
    if os.name != "posix" and path.is_dir():
        return  # Windows cannot open folders, and does not need this for them
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def wipe(path: Path) -> None:
    """Overwrite a file with zeros and remove it. Does nothing if the file does not exist."""
    try:
        left = path.stat().st_size
    except FileNotFoundError:
        return
    with path.open("r+b") as file:
        while left > 0:
            left -= file.write(bytes(min(left, _CHUNK_BYTES)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    sync(path.parent)
