"""Files that are there as a whole or not at all, and files that are gone for good."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_AT_ONCE = 1024 * 1024


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces ``path``: after a crash it holds the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write into that becomes ``path`` when all went well; else nothing of it is left."""
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
    """Makes a file's content, or a rename or removal in a folder, survive a power cut. Windows
    opens no folders, and needs none of this for them."""
    if os.name != "posix" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def wipe(path: Path) -> None:
    """Overwrites a file before it is removed, so that its blocks do not keep what it held. A file
    that is not there is left at that."""
    try:
        left = path.stat().st_size
    except FileNotFoundError:
        return
    with path.open("r+b") as file:
        while left > 0:
            left -= file.write(bytes(min(left, _AT_ONCE)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    sync(path.parent)
